/* SPDX-License-Identifier: MIT */
#include "terminator/vrd.h"

#include "shm/base.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Below this share a phase that was to resume did not: no result. */
#define RESUMED_SHARE_MIN 0.99
/* Percentage points that a mix may be off. */
#define MIX_OFF_MAX 2
/* An open loop that began this share of its connections when they were due. */
#define ON_TIME_MIN 0.98
/* Fewer handshakes than this in a window say little about a percentile. */
#define HANDSHAKES_MIN 100
/* More of the machine than this used by others changes what we measure: they
 * take caches, and the other threads of our cores. */
#define OTHERS_MAX 0.10
/* A process that used this share of a CPU was saturated. */
#define BUSY_SATURATED 0.95
/* All CPUs together, where drivers and workers share them. */
#define MACHINE_SATURATED 0.90
/* A worker that gives no sign of life for so long was stopped or starved; it
 * beats every 100 ms when idle and every 10 ms of work. */
#define SILENT_NS (600 * NS_PER_MS)
/* The core's speed moved more than this within a phase. */
#define SPEED_RATIO_MAX 1.10
/* The 95 % interval of the cost per handshake is wider than this, each way. */
#define HALF_WIDTH_MAX 0.10
/* A worker waited longer for its CPU than it ran, though no driver shares it.
 */
#define DELAY_SHARE_MAX 0.20

static uint64_t ctr(const struct shm_seg *seg, const struct shm_snap *s,
		    enum ctr_id id)
{
	return shm_snap_ctr(seg, s, id);
}

/* ---- no result ---- */

static void judge_resumption(struct res_phase *p, const struct shm_seg *seg,
			     uint64_t full, uint64_t resumed)
{
	uint64_t all = full + resumed;
	uint64_t unknown = ctr(seg, &p->workers, CTR_ID_tickets_unknown);
	double share = (double)resumed / (double)all;

	if (p->cfg->handshake == CFG_HANDSHAKE_RESUMED &&
	    share < RESUMED_SHARE_MIN)
		res_doubt(&p->doubts, RES_FATAL, "not-resumed",
			  "the phase was to resume, but only %llu of %llu "
			  "handshakes (%.1f %%) were resumed%s",
			  (unsigned long long)resumed, (unsigned long long)all,
			  100 * share,
			  unknown * 10 > all
				  ? ": the workers do not know the keys of the "
				    "tickets offered (tls.tickets.shared?)"
				  : "");
	if (p->cfg->handshake == CFG_HANDSHAKE_FULL && resumed > 0)
		res_doubt(&p->doubts, RES_DOUBT, "resumed-in-full",
			  "%llu handshakes were resumed in a phase of full "
			  "ones: another client?",
			  (unsigned long long)resumed);
}

/* The control: each connection offers a ticket that must be declined. */
static void judge_refusal(struct res_phase *p, const struct shm_seg *seg)
{
	uint64_t refused = ctr(seg, &p->drivers, CTR_ID_hs_refused);
	uint64_t full = ctr(seg, &p->drivers, CTR_ID_hs_full);

	if ((double)refused < RESUMED_SHARE_MIN * (double)full)
		res_doubt(&p->doubts, RES_FATAL, "not-refused",
			  "only %llu of %llu full handshakes had offered a "
			  "ticket",
			  (unsigned long long)refused,
			  (unsigned long long)full);
}

/* The share that was asked for, in the window: before it the drivers collect
 * the tickets by full handshakes. */
static void judge_mix(struct res_phase *p, const struct shm_seg *seg)
{
	double resumed = (double)ctr(seg, &p->drivers, CTR_ID_hs_resumed);
	double all = resumed + (double)ctr(seg, &p->drivers, CTR_ID_hs_full);
	double got = 100 * resumed / all;

	if (all > 0 && fabs(got - (double)p->cfg->resume) > MIX_OFF_MAX)
		res_doubt(
			&p->doubts, RES_DOUBT, "mix-off",
			"%.1f %% of the handshakes were resumed, %llu %% were "
			"asked for",
			got, (unsigned long long)p->cfg->resume);
}

static void judge_handshakes(struct res_phase *p, const struct shm_seg *seg)
{
	uint64_t full = ctr(seg, &p->workers, CTR_ID_hs_full);
	uint64_t resumed = ctr(seg, &p->workers, CTR_ID_hs_resumed);
	uint64_t failed = shm_snap_failed(seg, &p->workers) +
			  shm_snap_failed(seg, &p->drivers);

	if (full + resumed == 0) {
		res_doubt(&p->doubts, RES_FATAL, "no-handshakes",
			  "no handshake was completed in the window (%llu "
			  "failed)",
			  (unsigned long long)failed);
		return;
	}
	if (p->cfg->handshake == CFG_HANDSHAKE_REFUSED)
		judge_refusal(p, seg);
	else if (p->cfg->handshake == CFG_HANDSHAKE_MIX)
		judge_mix(p, seg);
	else
		judge_resumption(p, seg, full, resumed);
	if (full + resumed < HANDSHAKES_MIN)
		res_doubt(&p->doubts, RES_DOUBT, "few-handshakes",
			  "only %llu handshakes in the window: make the "
			  "phase longer",
			  (unsigned long long)(full + resumed));
	if (failed * 100 > full + resumed)
		res_doubt(&p->doubts, RES_DOUBT, "failures",
			  "%llu handshakes or connects failed, more than 1 %%",
			  (unsigned long long)failed);
}

/* A phase of requests on kept connections, or without TLS. */
static void judge_work(struct res_phase *p, const struct shm_seg *seg)
{
	uint64_t bad = ctr(seg, &p->drivers, CTR_ID_requests_bad);
	uint64_t failed = shm_snap_failed(seg, &p->drivers);
	uint64_t done = res_work(seg, p, &p->workers);

	if (done == 0)
		res_doubt(&p->doubts, RES_FATAL, "no-work",
			  "no %s was completed in the window (%llu failed)",
			  p->cfg->requests > 0 ? "request" : "connection",
			  (unsigned long long)(failed + bad));
	else if ((bad + failed) * 100 > done)
		res_doubt(
			&p->doubts, RES_DOUBT, "failures",
			"%llu connections or answers were bad, more than 1 %%",
			(unsigned long long)(bad + failed));
}

/* ---- both ends ---- */

static void judge_agreement(struct res_phase *p)
{
	const struct res_agree *a = &p->agree;

	if (!a->done)
		res_doubt(&p->doubts, RES_DOUBT, "not-at-rest",
			  "connections were still open after the phase, so the "
			  "counts of the two ends cannot be compared");
	else if (!a->ok)
		res_doubt(&p->doubts, RES_DOUBT, "ends-disagree",
			  "the workers counted %llu full and %llu resumed, the "
			  "drivers %llu and %llu: another client, or "
			  "handshakes that failed on one end only",
			  (unsigned long long)a->server_full,
			  (unsigned long long)a->server_resumed,
			  (unsigned long long)a->driver_full,
			  (unsigned long long)a->driver_resumed);
}

/* ---- the machine ---- */

static double others(const struct res_phase *p)
{
	double all = (double)p->measured.taken_ns * p->ncpu;

	return all > 0 ? (double)p->unattributed_ns / all : 0;
}

static void judge_machine(struct res_phase *p)
{
	if (others(p) > OTHERS_MAX)
		res_doubt(
			&p->doubts, RES_DOUBT, "busy-machine",
			"others used %.0f %% of the machine's CPU time, which "
			"makes a handshake dearer: end them and run again",
			100 * others(p));
}

/* A worker alone on its CPU that still waits for it has a neighbour there. */
static void judge_delay(struct res_phase *p, const struct shm_seg *seg,
			const struct res_moments *m)
{
	double window = (double)p->measured.taken_ns;

	for (uint32_t i = 0; !m->sharing && i < p->measured.n; i++) {
		const struct shm_snap *s = &p->measured.snap[i];
		double delay = (double)ctr(seg, s, CTR_ID_run_delay_ns);

		if (s->role != SHM_WORKER || delay < DELAY_SHARE_MAX * window)
			continue;
		res_doubt(
			&p->doubts, RES_DOUBT, "noisy-neighbour",
			"worker %u waited %.0f %% of the time for its CPU %d, "
			"which something else uses: end it or pin elsewhere",
			s->number, 100 * delay / window, s->cpu);
		return;
	}
}

static void judge_backlog(struct res_phase *p)
{
	uint64_t drops = p->measured.net.own_drops;

	if (drops > 0)
		res_doubt(
			&p->doubts, RES_DOUBT, "backlog-overflow",
			"our listeners dropped %llu connections, which had to "
			"try again after a second: raise terminator.backlog "
			"(and net.core.somaxconn) or lower the load",
			(unsigned long long)drops);
}

static void judge_ports(struct res_phase *p, const struct shm_seg *seg)
{
	uint64_t none = ctr(seg, &p->drivers, CTR_ID_failed_no_port);

	if (none > 0)
		res_doubt(&p->doubts, RES_DOUBT, "no-ports",
			  "%llu connects found no free source port: widen "
			  "net.ipv4.ip_local_port_range, or give load.source "
			  "more addresses",
			  (unsigned long long)none);
}

/* ---- steadiness ---- */

static void judge_steadiness(struct res_phase *p)
{
	const struct slc_facts *f = &p->facts;

	if (f->silent_ns > SILENT_NS)
		res_doubt(&p->doubts, RES_DOUBT, "worker-stalled",
			  "worker %u gave no sign of life for %.1f s: it was "
			  "stopped, or starved of its CPU",
			  f->silent_worker, (double)f->silent_ns / 1e9);
	if (f->slices >= 3 && f->half_width > HALF_WIDTH_MAX)
		res_doubt(
			&p->doubts, RES_DOUBT, "unsteady",
			"CPU per handshake is known to +-%.0f %% only (95 %%, "
			"over %u slices of the window): make the phase longer",
			100 * f->half_width, f->slices);
	if (f->speed_ratio > SPEED_RATIO_MAX)
		res_doubt(&p->doubts, RES_NOTE, "core-speed",
			  "the cores' speed moved by %.0f %% within the phase "
			  "(frequency, or a neighbour on the same core): go by "
			  "the scaled figures",
			  100 * (f->speed_ratio - 1));
}

/* ---- what limited the rate ---- */

/* Open loop: were all connections begun when they were due? */
static bool on_time(const struct res_phase *p, const struct shm_seg *seg)
{
	double due = (double)ctr(seg, &p->drivers, CTR_ID_arrivals);
	double late = (double)ctr(seg, &p->drivers, CTR_ID_arrivals_late);

	return p->cfg != NULL && p->cfg->rate > 0 && due > 0 &&
	       due - late >= ON_TIME_MIN * due;
}

static const char *limit_server(struct res_phase *p, char *to, size_t len)
{
	snprintf(to, len,
		 "the server: its busiest worker used %.0f %% of a CPU",
		 100 * p->busy_max);
	return "server";
}

static const char *limit_of(struct res_phase *p, const struct shm_seg *seg,
			    const struct res_moments *m, char *to, size_t len)
{
	if (m->ndrivers == 0) {
		snprintf(to, len, "the clients: no load of ours");
		return "clients";
	}
	if (ctr(seg, &p->drivers, CTR_ID_failed_no_port) > 0) {
		snprintf(to, len, "source ports: the drivers ran out of them");
		return "ports";
	}
	if (p->busy_max >= BUSY_SATURATED)
		return limit_server(p, to, len);
	if (on_time(p, seg)) {
		snprintf(to, len,
			 "the offered rate: the loop is open, and nobody was "
			 "saturated");
		return "offered-rate";
	}
	if (p->driver_busy_max >= BUSY_SATURATED) {
		snprintf(to, len,
			 "the drivers: the busiest used %.0f %% of a CPU, the "
			 "workers at most %.0f %%: add drivers",
			 100 * p->driver_busy_max, 100 * p->busy_max);
		return "driver";
	}
	if (p->machine_busy >= MACHINE_SATURATED && others(p) > OTHERS_MAX) {
		snprintf(to, len,
			 "other programs, which used %.0f %% of the machine",
			 100 * others(p));
		return "others";
	}
	if (m->sharing && p->machine_busy >= MACHINE_SATURATED) {
		snprintf(to, len,
			 "CPUs shared with the drivers (which also makes a "
			 "handshake dearer, by about a tenth)");
		return "shared-cpus";
	}
	snprintf(to, len,
		 "unknown: nobody is saturated (workers at most %.0f %% of a "
		 "CPU, drivers %.0f %%); more connections?",
		 100 * p->busy_max, 100 * p->driver_busy_max);
	return "unknown";
}

void vrd_judge(struct res_phase *p, const struct shm_seg *seg,
	       const struct res_moments *m)
{
	p->limit = limit_of(p, seg, m, p->limited_by, sizeof(p->limited_by));
	if (m->interrupted)
		res_doubt(&p->doubts, RES_DOUBT, "interrupted",
			  "stopped after %.1f s of the window",
			  (double)p->measured.taken_ns / 1e9);
	if (p->cfg == NULL)
		return;
	if (res_of_handshakes(p->cfg))
		judge_handshakes(p, seg);
	else
		judge_work(p, seg);
	judge_agreement(p);
	judge_machine(p);
	judge_delay(p, seg, m);
	judge_backlog(p);
	judge_ports(p, seg);
	judge_steadiness(p);
}

void vrd_accept(struct res_doubts *d, const struct cfg *cfg)
{
	for (uint32_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < cfg->accept_doubt.n; k++)
			if (strcmp(d->item[i].name,
				   cfg->accept_doubt.item[k]) == 0)
				d->item[i].accepted = true;
}
