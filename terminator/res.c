/* SPDX-License-Identifier: MIT */
#include "terminator/res.h"

#include "shm/base.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Fewer samples of a core's speed do not make a mean. */
#define SAMPLES_MIN 4

struct res_cost res_cost(const struct shm_seg *seg, const struct shm_snap *snap,
			 uint64_t cpu_ns, uint64_t window_ns,
			 enum res_kind kind)
{
	bool full = kind == RES_FULL;
	uint64_t nfull = shm_snap_ctr(seg, snap, CTR_ID_hs_full);
	uint64_t nresumed = shm_snap_ctr(seg, snap, CTR_ID_hs_resumed);
	uint64_t cfull = shm_snap_ctr(seg, snap, CTR_ID_crypto_full_ns);
	uint64_t cresumed = shm_snap_ctr(seg, snap, CTR_ID_crypto_resumed_ns);
	uint64_t cfailed = shm_snap_ctr(seg, snap, CTR_ID_crypto_failed_ns);
	uint64_t all = nfull + nresumed + shm_snap_failed(seg, snap);
	uint64_t speed = shm_snap_ctr(seg, snap, CTR_ID_speed_ns);
	uint64_t samples = shm_snap_ctr(seg, snap, CTR_ID_speed_samples);
	double rest =
		(double)cpu_ns - (double)(cfull + cresumed + cfailed + speed);
	const struct hist_view *time = shm_snap_hist(
		seg, snap,
		full ? HIST_ID_hs_full_time : HIST_ID_hs_resumed_time);
	struct res_cost c = {.n = full ? nfull : nresumed,
			     .per_s = NAN,
			     .whole_ns = NAN,
			     .crypto_ns = NAN,
			     .p50_ns = NAN,
			     .p99_ns = NAN,
			     .core_per_s = NAN};

	c.sample_ns =
		samples >= SAMPLES_MIN ? (double)speed / (double)samples : NAN;
	if (c.n == 0 || window_ns == 0)
		return c;
	c.per_s = (double)c.n * 1e9 / (double)window_ns;
	c.crypto_ns = (double)(full ? cfull : cresumed) / (double)c.n;
	c.whole_ns = c.crypto_ns + fmax(rest, 0) / (double)all;
	if (c.whole_ns > 0)
		c.core_per_s = 1e9 / c.whole_ns;
	if (time != NULL && hist_count(time) > 0) {
		c.p50_ns = (double)hist_percentile(time, 50);
		c.p99_ns = (double)hist_percentile(time, 99);
	}
	return c;
}

double res_saved(const struct res_cost *f, const struct res_cost *r)
{
	double ratio = r->whole_ns / f->whole_ns;
	double speed = f->sample_ns / r->sample_ns;

	return 1 - (isfinite(speed) ? ratio * speed : ratio);
}

double res_jain(const uint64_t *x, uint32_t n)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += (double)x[i];
		squares += (double)x[i] * (double)x[i];
	}
	return squares > 0 ? sum * sum / (n * squares) : NAN;
}

void res_doubt(struct res_doubts *d, enum res_level level, const char *name,
	       const char *fmt, ...)
{
	struct res_doubt *r;
	va_list ap;

	if (d->n == ARRAY_LEN(d->item))
		return;
	r = &d->item[d->n++];
	r->level = level;
	r->accepted = false;
	snprintf(r->name, sizeof(r->name), "%s", name);
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

bool res_fatal(const struct res_doubts *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		if (d->item[i].level == RES_FATAL)
			return true;
	return false;
}

enum res_level res_worst(const struct res_doubts *d)
{
	enum res_level worst = RES_NOTE;

	for (uint32_t i = 0; i < d->n; i++)
		if (!d->item[i].accepted && d->item[i].level > worst)
			worst = d->item[i].level;
	return worst;
}

static uint64_t ctr(const struct shm_seg *seg, const struct shm_snap *s,
		    enum ctr_id id)
{
	return shm_snap_ctr(seg, s, id);
}

/* The accounting identity of one slot, in absolute counts. */
static bool identity_holds(const struct shm_seg *seg, const struct shm_snap *s)
{
	uint64_t in = ctr(seg, s, CTR_ID_conn_accepted) +
		      ctr(seg, s, CTR_ID_conn_started);
	uint64_t out =
		ctr(seg, s, CTR_ID_hs_full) + ctr(seg, s, CTR_ID_hs_resumed) +
		shm_snap_failed(seg, s) + ctr(seg, s, CTR_ID_hs_in_progress);

	return in == out;
}

static void check_identity(struct res_phase *p, const struct shm_seg *seg,
			   const struct res_moments *m)
{
	const struct smp *all[] = {m->rest_before, m->begin, m->end,
				   m->rest_after};

	p->identity = true;
	for (size_t k = 0; k < ARRAY_LEN(all); k++)
		for (uint32_t i = 0; i < all[k]->n; i++) {
			const struct shm_snap *s = &all[k]->snap[i];

			if (s->torn)
				res_doubt(&p->doubts, RES_DOUBT,
					  "torn-snapshot",
					  "slot %u did not come to rest within "
					  "100 ms: its process was stopped",
					  i);
			else if (!identity_holds(seg, s))
				p->identity = false;
		}
	if (!p->identity)
		res_doubt(&p->doubts, RES_FATAL, "accounting",
			  "accepted is not full + resumed + failed + in "
			  "progress: a bug, please report it");
}

static int totals(struct shm_snap *out, const struct shm_seg *seg,
		  const struct smp *later, const struct smp *earlier,
		  uint32_t role)
{
	struct smp d;
	int rc = smp_init(&d, seg);

	if (rc < 0)
		return rc;
	smp_diff(&d, seg, later, earlier);
	smp_total(out, seg, &d, role);
	smp_fini(&d);
	return 0;
}

/* Both ends, from rest to rest. */
static int compare_ends(struct res_phase *p, const struct shm_seg *seg,
			const struct res_moments *m)
{
	struct res_agree *a = &p->agree;
	struct shm_snap w, d;
	int rc = shm_snap_init(&w, seg);

	if (rc < 0)
		return rc;
	rc = shm_snap_init(&d, seg);
	if (rc == 0)
		rc = totals(&w, seg, m->rest_after, m->rest_before, SHM_WORKER);
	if (rc == 0)
		rc = totals(&d, seg, m->rest_after, m->rest_before, SHM_DRIVER);
	if (rc == 0) {
		a->server_accepted = ctr(seg, &w, CTR_ID_conn_accepted);
		a->server_full = ctr(seg, &w, CTR_ID_hs_full);
		a->server_resumed = ctr(seg, &w, CTR_ID_hs_resumed);
		a->server_failed = shm_snap_failed(seg, &w);
		a->driver_started = ctr(seg, &d, CTR_ID_conn_started);
		a->driver_full = ctr(seg, &d, CTR_ID_hs_full);
		a->driver_resumed = ctr(seg, &d, CTR_ID_hs_resumed);
		a->driver_failed = shm_snap_failed(seg, &d);
	}
	shm_snap_fini(&d);
	shm_snap_fini(&w);
	a->done = m->at_rest;
	a->ok = a->done && a->server_full == a->driver_full &&
		a->server_resumed == a->driver_resumed;
	return rc;
}

static void balance(struct res_phase *p, const struct shm_seg *seg)
{
	uint64_t hs[SHM_SLOTS_MAX] = {0};
	uint32_t n = 0;

	p->min_hs = UINT64_MAX;
	for (uint32_t i = 0; i < p->measured.n; i++) {
		const struct shm_snap *s = &p->measured.snap[i];
		double busy = (double)p->measured.cpu_ns[i] /
			      (double)p->measured.taken_ns;

		if (s->role == SHM_DRIVER) {
			p->driver_busy_max = fmax(p->driver_busy_max, busy);
			p->drivers_cpu_ns += p->measured.cpu_ns[i];
		}
		if (s->role != SHM_WORKER)
			continue;
		p->busy_max = fmax(p->busy_max, busy);
		p->workers_cpu_ns += p->measured.cpu_ns[i];
		hs[n] = res_of_handshakes(p->cfg)
				? ctr(seg, s, CTR_ID_hs_full) +
					  ctr(seg, s, CTR_ID_hs_resumed)
				: res_work(seg, p, s);
		p->min_hs = base_min(p->min_hs, hs[n]);
		p->max_hs = base_max(p->max_hs, hs[n]);
		n++;
	}
	p->jain = res_jain(hs, n);
	if (n == 0)
		p->min_hs = 0;
}

static void unattributed(struct res_phase *p)
{
	uint64_t ours =
		p->workers_cpu_ns + p->drivers_cpu_ns + p->measured.master_ns;
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	p->ncpu = n > 0 ? (uint32_t)n : 1;
	p->unattributed_ns = base_max(p->measured.machine_ns, ours) - ours;
	p->machine_busy = (double)p->measured.machine_ns /
			  ((double)p->measured.taken_ns * p->ncpu);
}

static void speed(struct res_phase *p, const struct shm_seg *seg)
{
	uint64_t n = ctr(seg, &p->workers, CTR_ID_speed_samples);

	p->speed_ns = n > 0 ? (double)ctr(seg, &p->workers, CTR_ID_speed_ns) /
				      (double)n
			    : NAN;
}

int res_phase(struct res_phase *out, const struct shm_seg *seg,
	      const struct cfg_phase *phase, const struct res_moments *m)
{
	int rc;

	memset(out, 0, sizeof(*out));
	out->cfg = phase;
	out->interrupted = m->interrupted;
	rc = smp_init(&out->measured, seg);
	if (rc == 0)
		rc = shm_snap_init(&out->workers, seg);
	if (rc == 0)
		rc = shm_snap_init(&out->drivers, seg);
	if (rc == 0 && m->ndrivers > 0)
		rc = compare_ends(out, seg, m);
	if (rc < 0) {
		res_phase_fini(out);
		return rc;
	}
	smp_diff(&out->measured, seg, m->end, m->begin);
	smp_total(&out->workers, seg, &out->measured, SHM_WORKER);
	smp_total(&out->drivers, seg, &out->measured, SHM_DRIVER);
	balance(out, seg);
	unattributed(out);
	speed(out, seg);
	if (m->slices != NULL)
		out->slices = *m->slices;
	out->facts = slc_judge(&out->slices);
	check_identity(out, seg, m);
	return 0;
}

bool res_of_handshakes(const struct cfg_phase *phase)
{
	return phase == NULL || (phase->transport == CFG_TRANSPORT_TLS &&
				 phase->requests != CFG_UNLIMITED);
}

uint64_t res_work(const struct shm_seg *seg, const struct res_phase *p,
		  const struct shm_snap *snap)
{
	return ctr(seg, snap,
		   p->cfg->requests > 0 ? CTR_ID_requests : CTR_ID_conn_plain);
}

double res_work_ns(const struct shm_seg *seg, const struct res_phase *p,
		   const struct shm_snap *snap, uint64_t cpu_ns)
{
	uint64_t n = res_work(seg, p, snap);
	uint64_t speed = ctr(seg, snap, CTR_ID_speed_ns);

	if (n == 0)
		return NAN;
	return ((double)cpu_ns - (double)speed) / (double)n;
}

double res_reference_ns(const struct shm_seg *seg, const struct res_phase *p,
			uint32_t n)
{
	uint64_t samples = 0, ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		samples += ctr(seg, &p[i].workers, CTR_ID_speed_samples);
		ns += ctr(seg, &p[i].workers, CTR_ID_speed_ns);
	}
	return samples > 0 ? (double)ns / (double)samples : NAN;
}

double res_speed(const struct shm_seg *seg, const struct shm_snap *snap,
		 double reference_ns)
{
	uint64_t n = ctr(seg, snap, CTR_ID_speed_samples);
	uint64_t ns = ctr(seg, snap, CTR_ID_speed_ns);

	return ns > 0 ? reference_ns * (double)n / (double)ns : NAN;
}

void res_phase_fini(struct res_phase *p)
{
	smp_fini(&p->measured);
	shm_snap_fini(&p->workers);
	shm_snap_fini(&p->drivers);
}
