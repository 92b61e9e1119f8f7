/* SPDX-License-Identifier: MIT */
#include "terminator/out.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "terminator/env.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct out {
	char *dir; /* owns */
	bool written;
};

/* JSON has no NaN: a figure that does not exist is null. */
static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *whole(uint64_t v)
{
	return json_integer((json_int_t)v);
}

/* A cost is in microseconds, rounded to the nanosecond. */
static json_t *us(double ns)
{
	return real(isfinite(ns) ? round(ns) / 1000 : ns);
}

/* ---- one row ---- */

static json_t *cost_json(const struct res_cost *c, double speed)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "cpu_scaled_us", us(c->whole_ns * speed), "count",
			 whole(c->n), "per_s", real(c->per_s), "cpu_us",
			 us(c->whole_ns), "crypto_us", us(c->crypto_ns),
			 "p50_us", us(c->p50_ns), "p99_us", us(c->p99_ns),
			 "core_per_s", real(c->core_per_s));
}

static json_t *hist_json(const struct hist_view *h)
{
	json_t *buckets = json_array();

	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		if (h->bucket[i] > 0)
			json_array_append_new(buckets,
					      json_pack("[o, o, o]",
							whole(hist_low(i)),
							whole(hist_high(i)),
							whole(h->bucket[i])));
	return json_pack("{s:o, s:o, s:o}", "count", whole(hist_count(h)),
			 "sum_ns", whole(h->sum), "buckets", buckets);
}

static bool of_role(const struct ctr_desc *d, uint32_t role)
{
	return (d->role & (role == SHM_WORKER ? CTR_WORKER : CTR_DRIVER)) != 0;
}

static json_t *counters_json(const struct shm_seg *seg,
			     const struct shm_snap *s, uint32_t role)
{
	json_t *out = json_object();

	for (uint32_t i = 0; i < s->nctr; i++) {
		const struct ctr_desc *d = shm_seg_desc(seg, i);

		if (of_role(d, role))
			json_object_set_new(out, d->name, whole(s->ctr[i]));
	}
	return out;
}

static json_t *hists_json(const struct shm_seg *seg, const struct shm_snap *s,
			  uint32_t role)
{
	json_t *out = json_object();

	for (uint32_t i = 0; i < s->nhist; i++) {
		const struct ctr_desc *d = shm_seg_desc(seg, s->nctr + i);

		if (of_role(d, role))
			json_object_set_new(out, d->name,
					    hist_json(&s->hist[i]));
	}
	return out;
}

/* What a worker, a driver or a total has in common. */
static json_t *row_json(const struct shm_seg *seg, const struct shm_snap *s,
			uint32_t role, uint64_t cpu_ns, uint64_t window_ns,
			double reference_ns)
{
	double speed = res_speed(seg, s, reference_ns);
	struct res_cost f = res_cost(seg, s, cpu_ns, window_ns, RES_FULL);
	struct res_cost r = res_cost(seg, s, cpu_ns, window_ns, RES_RESUMED);

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "core_speed", real(speed), "cpu_ns", whole(cpu_ns),
			 "busy", real((double)cpu_ns / (double)window_ns),
			 "failed", whole(shm_snap_failed(seg, s)), "full",
			 cost_json(&f, speed), "resumed", cost_json(&r, speed),
			 "counters", counters_json(seg, s, role), "histograms",
			 hists_json(seg, s, role));
}

static json_t *rows_json(const struct shm_seg *seg, const struct res_phase *p,
			 uint32_t role, double ref)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < p->measured.n; i++) {
		const struct shm_snap *s = &p->measured.snap[i];
		json_t *row;

		if (s->role != role)
			continue;
		row = row_json(seg, s, role, p->measured.cpu_ns[i],
			       p->measured.taken_ns, ref);
		json_object_set_new(row, "number", json_integer(s->number));
		json_object_set_new(row, "cpu", json_integer(s->cpu));
		json_object_set_new(row, "generation",
				    json_integer(s->generation));
		json_array_append_new(out, row);
	}
	return out;
}

/* ---- one phase ---- */

static json_t *agree_json(const struct res_agree *a)
{
	return json_pack(
		"{s:b, s:b, s:{s:o, s:o, s:o, s:o}, s:{s:o, s:o, s:o, s:o}}",
		"compared", a->done, "ok", a->ok, "workers", "accepted",
		whole(a->server_accepted), "full", whole(a->server_full),
		"resumed", whole(a->server_resumed), "failed",
		whole(a->server_failed), "drivers", "started",
		whole(a->driver_started), "full", whole(a->driver_full),
		"resumed", whole(a->driver_resumed), "failed",
		whole(a->driver_failed));
}

static const char *const levels[] = {
	[RES_NOTE] = "note", [RES_DOUBT] = "doubt", [RES_FATAL] = "fatal"};

static json_t *doubts_json(const struct res_doubts *d)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < d->n; i++)
		json_array_append_new(
			out, json_pack("{s:s, s:s, s:s, s:b}", "name",
				       d->item[i].name, "text", d->item[i].text,
				       "level", levels[d->item[i].level],
				       "accepted", d->item[i].accepted));
	return out;
}

static json_t *slices_json(const struct res_phase *p)
{
	const struct slc_facts *f = &p->facts;
	json_t *rows = json_array();

	for (uint32_t i = 1; i < p->slices.n; i++) {
		const struct slc_look *a = &p->slices.look[i - 1];
		const struct slc_look *b = &p->slices.look[i];

		json_array_append_new(
			rows,
			json_pack(
				"{s:o, s:o, s:o, s:o, s:o}", "length_ns",
				whole(b->at_ns - a->at_ns), "handshakes",
				whole(b->handshakes - a->handshakes), "cpu_ns",
				json_integer(
					(json_int_t)(b->cpu_ns - a->cpu_ns)),
				"speed_samples",
				whole(b->speed_samples - a->speed_samples),
				"speed_ns", whole(b->speed_ns - a->speed_ns)));
	}
	return json_pack(
		"{s:i, s:o, s:o, s:o, s:o, s:o}", "used", (int)f->slices,
		"cost_half_width", real(f->half_width), "scaled_half_width",
		real(f->scaled_half_width), "speed_ratio", real(f->speed_ratio),
		"longest_silence_ns", whole(f->silent_ns), "rows", rows);
}

/* Requests or plain connections, where the phase is about them. */
static json_t *work_json(const struct shm_seg *seg, const struct res_phase *p)
{
	uint64_t n;

	if (res_of_handshakes(p->cfg))
		return json_null();
	n = res_work(seg, p, &p->workers);
	return json_pack(
		"{s:s, s:o, s:o, s:o, s:o}", "of",
		p->cfg->requests > 0 ? "requests" : "connections", "count",
		whole(n), "per_s",
		real((double)n * 1e9 / (double)p->measured.taken_ns), "cpu_us",
		us(res_work_ns(seg, p, &p->workers, p->workers_cpu_ns)),
		"driver_cpu_us",
		us(res_work_ns(seg, p, &p->drivers, p->drivers_cpu_ns)));
}

static json_t *phase_json(const struct shm_seg *seg, const struct res_phase *p,
			  double ref)
{
	json_t *o = json_object();
	bool load = p->cfg != NULL;

	json_object_set_new(o, "name",
			    json_string(load ? p->cfg->name : "serving"));
	json_object_set_new(o, "handshake",
			    load ? json_string(cfg_word("HANDSHAKE",
							(int)p->cfg->handshake))
				 : json_null());
	json_object_set_new(o, "loop",
			    !load	       ? json_null()
			    : p->cfg->rate > 0 ? json_string("open")
					       : json_string("closed"));
	json_object_set_new(o, "is_result",
			    json_boolean(!res_fatal(&p->doubts)));
	json_object_set_new(o, "interrupted", json_boolean(p->interrupted));
	json_object_set_new(o, "window_ns", whole(p->measured.taken_ns));
	json_object_set_new(o, "workers", rows_json(seg, p, SHM_WORKER, ref));
	json_object_set_new(o, "workers_total",
			    row_json(seg, &p->workers, SHM_WORKER,
				     p->workers_cpu_ns, p->measured.taken_ns,
				     ref));
	json_object_set_new(o, "drivers", rows_json(seg, p, SHM_DRIVER, ref));
	json_object_set_new(o, "drivers_total",
			    row_json(seg, &p->drivers, SHM_DRIVER,
				     p->drivers_cpu_ns, p->measured.taken_ns,
				     ref));
	json_object_set_new(o, "work", work_json(seg, p));
	json_object_set_new(o, "identity_ok", json_boolean(p->identity));
	json_object_set_new(o, "both_ends",
			    load ? agree_json(&p->agree) : json_null());
	json_object_set_new(o, "balance",
			    json_pack("{s:o, s:o, s:o}", "jain", real(p->jain),
				      "min", whole(p->min_hs), "max",
				      whole(p->max_hs)));
	json_object_set_new(
		o, "machine",
		json_pack(
			"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			"own_listener_drops", whole(p->measured.net.own_drops),
			"busy_ns", whole(p->measured.machine_ns), "master_ns",
			whole(p->measured.master_ns), "unattributed_ns",
			whole(p->unattributed_ns), "steal_ns",
			whole(p->measured.steal_ns), "listen_overflows",
			whole(p->measured.net.listen_overflows), "listen_drops",
			whole(p->measured.net.listen_drops), "tcp_timeouts",
			whole(p->measured.net.timeouts), "tcp_retransmits",
			whole(p->measured.net.retransmits)));
	json_object_set_new(o, "limit", json_string(p->limit));
	json_object_set_new(o, "limited_by", json_string(p->limited_by));
	json_object_set_new(o, "slices", slices_json(p));
	json_object_set_new(o, "doubts", doubts_json(&p->doubts));
	return o;
}

/* ---- the whole ---- */

static json_t *terminator_json(const struct mst *mst)
{
	const struct plan *plan = mst_plan(mst);
	struct shm_info i;

	shm_seg_info(mst_seg(mst), &i);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, "
			 "s:b, s:s}",
			 "library", i.library, "certificate", i.certificate,
			 "groups", i.groups, "versions", i.versions, "ciphers",
			 i.ciphers, "listen", i.listen, "accept", i.accept,
			 "backlog", (int)mst_backlog(mst), "workers",
			 (int)plan->nworkers, "drivers", (int)plan->ndrivers,
			 "sharing_cpus", plan->sharing, "plan", plan->why);
}

static json_t *time_json(uint64_t real_ns)
{
	time_t t = (time_t)(real_ns / NS_PER_S);
	char buf[40];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(buf, sizeof(buf), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(buf);
}

static const char *status_word(int status)
{
	return status == EXIT_GOOD	 ? "good"
	       : status == EXIT_DOUBTFUL ? "doubtful"
					 : "failed";
}

static char *scenario_text(const struct cfg *cfg)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		return NULL;
	if (cfg_print(cfg, f) < 0) {
		fclose(f);
		free(text);
		return NULL;
	}
	fclose(f);
	return text;
}

static json_t *result_json(const struct mst *mst, const struct cfg *cfg,
			   const struct mst_report *report, int status,
			   const char *scenario)
{
	json_t *o = json_object(), *phases = json_array();
	double ref =
		res_reference_ns(mst_seg(mst), report->phase, report->nphase);

	json_object_set_new(o, "schema", json_string(OUT_SCHEMA));
	json_object_set_new(o, "schema_version",
			    json_integer(OUT_SCHEMA_VERSION));
	json_object_set_new(o, "scenario", json_string(cfg->scenario));
	json_object_set_new(o, "started", time_json(report->started_real_ns));
	json_object_set_new(o, "status", json_string(status_word(status)));
	json_object_set_new(o, "interrupted",
			    json_boolean(report->interrupted));
	json_object_set_new(o, "doubts", doubts_json(&report->doubts));
	json_object_set_new(o, "terminator", terminator_json(mst));
	json_object_set_new(o, "environment",
			    env_json(mst_cpus(mst), mst_ring(mst)));
	json_object_set_new(o, "scenario_yaml", json_string(scenario));
	for (uint32_t i = 0; i < report->nphase; i++)
		json_array_append_new(
			phases,
			phase_json(mst_seg(mst), &report->phase[i], ref));
	json_object_set_new(o, "speed_reference_ns", real(ref));
	json_object_set_new(o, "phases", phases);
	return o;
}

/* Beside its place, then renamed; O_EXCL and O_NOFOLLOW against planted links.
 */
static int write_file(const struct out *out, const char *name, const char *text)
{
	size_t len = strlen(text);
	char *path = NULL, *tmp = NULL;
	int fd = -1, rc = 0;

	if (asprintf(&path, "%s/%s", out->dir, name) < 0 ||
	    asprintf(&tmp, "%s/.%s.part", out->dir, name) < 0) {
		rc = -ENOMEM;
		goto done;
	}
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		  0644);
	if (fd < 0)
		rc = -errno;
	for (size_t at = 0; rc == 0 && at < len;) {
		ssize_t n = write(fd, text + at, len - at);

		if (n < 0)
			rc = -errno;
		else
			at += (size_t)n;
	}
	if (fd >= 0 && close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(tmp, path) < 0)
		rc = -errno;
	if (rc < 0 && fd >= 0)
		unlink(tmp);
done:
	free(path);
	free(tmp);
	return rc;
}

int out_write(struct out *out, const struct mst *mst, const struct cfg *cfg,
	      const struct mst_report *report, int status, const char *table,
	      char *err, size_t len)
{
	char *scenario = scenario_text(cfg), *text = NULL;
	json_t *json = NULL;
	int rc = -ENOMEM;

	if (scenario != NULL)
		json = result_json(mst, cfg, report, status, scenario);
	if (json != NULL)
		text = json_dumps(json,
				  JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	if (text != NULL) {
		out->written = true;
		rc = write_file(out, "scenario.yaml", scenario);
		if (rc == 0)
			rc = write_file(out, "table.txt", table);
		if (rc == 0)
			rc = write_file(out, "result.json", text);
	}
	if (rc < 0)
		snprintf(err, len, "result: %.300s cannot be written: %s",
			 out->dir, strerror(-rc));
	json_decref(json);
	free(text);
	free(scenario);
	return rc;
}

/* mkdir -p */
static int make_dirs(const char *path)
{
	char *copy = strdup(path);
	int rc = 0;

	if (copy == NULL)
		return -ENOMEM;
	for (char *p = copy + 1; rc == 0; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			rc = -errno;
		*p = c;
		if (c == '\0')
			break;
	}
	free(copy);
	return rc;
}

/* A new folder, with a number behind it if two runs start in one second. */
static int make_run_dir(const struct cfg *cfg, char **out)
{
	time_t t = (time_t)(clk_realtime() / NS_PER_S);
	char stamp[40];
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	for (int i = 1; i < 1000; i++) {
		char suffix[16] = "", *dir;

		if (i > 1)
			snprintf(suffix, sizeof(suffix), "-%d", i);
		if (asprintf(&dir, "%s/%s-%s%s", cfg->result.dir, cfg->scenario,
			     stamp, suffix) < 0)
			return -ENOMEM;
		if (mkdir(dir, 0755) == 0) {
			*out = dir;
			return 0;
		}
		free(dir);
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int out_open(struct out **out, const struct cfg *cfg, char *err, size_t len)
{
	struct out *o = calloc(1, sizeof(*o));
	int rc;

	if (o == NULL)
		return -ENOMEM;
	rc = make_dirs(cfg->result.dir);
	if (rc == 0)
		rc = make_run_dir(cfg, &o->dir);
	if (rc < 0) {
		snprintf(err, len,
			 "result.dir: %.300s: %s: choose a folder you may "
			 "write, for example --set result.dir=/tmp/results",
			 cfg->result.dir, strerror(-rc));
		free(o);
		return rc;
	}
	*out = o;
	return 0;
}

const char *out_dir(const struct out *out)
{
	return out->dir;
}

void out_close(struct out **out)
{
	struct out *o = *out;

	if (o == NULL)
		return;
	if (!o->written)
		rmdir(o->dir);
	free(o->dir);
	free(o);
	*out = NULL;
}
