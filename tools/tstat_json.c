/* SPDX-License-Identifier: MIT */
#include "tools/tstat.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define SCHEMA 1

/*
 * jansson's way: a value is made and given away at once, and NULL (no memory)
 * makes the giving fail. One flag gathers that.
 */
struct maker {
	const struct view *v;
	bool failed;
};

static void set(struct maker *m, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) < 0)
		m->failed = true;
}

static void add(struct maker *m, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) < 0)
		m->failed = true;
}

/* JSON numbers here are signed; a real count stays far below. */
static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)base_min(n, INT64_MAX));
}

/* A text of the segment; where it is not UTF-8, its ASCII part. */
static json_t *text(const char *s)
{
	json_t *j = json_string(s);
	char ascii[512];
	size_t i;

	if (j != NULL)
		return j;
	for (i = 0; s[i] != '\0' && i < sizeof(ascii) - 1; i++)
		ascii[i] = (unsigned char)s[i] < 0x80 ? s[i] : '?';
	ascii[i] = '\0';
	return json_string(ascii);
}

static json_t *info(struct maker *m)
{
	const struct shm_info *i = &m->v->info;
	json_t *o = json_object();

	set(m, o, "version", text(i->version));
	set(m, o, "library", text(i->library));
	set(m, o, "library_built", text(i->library_built));
	set(m, o, "certificate", text(i->certificate));
	set(m, o, "groups", text(i->groups));
	set(m, o, "versions", text(i->versions));
	set(m, o, "ciphers", text(i->ciphers));
	set(m, o, "listen", text(i->listen));
	set(m, o, "accept", text(i->accept));
	return o;
}

static json_t *phase(struct maker *m)
{
	const struct shm_phase *p = &m->v->phase;
	json_t *o = json_object();

	set(m, o, "name", text(p->name));
	set(m, o, "state", json_string(view_phase_state(p)));
	set(m, o, "index", number(p->index));
	set(m, o, "count", number(p->count));
	set(m, o, "repetition", number(p->repetition));
	set(m, o, "duration_ns",
	    p->duration_ns > 0 ? number(p->duration_ns) : json_null());
	set(m, o, "left_ns",
	    p->duration_ns > 0 ? number(view_left_ns(m->v)) : json_null());
	return o;
}

static json_t *owner(struct maker *m)
{
	json_t *o = json_object();

	set(m, o, "pid", json_integer(shm_seg_owner(m->v->seg)));
	set(m, o, "up_ns", number(view_up_ns(m->v)));
	set(m, o, "generation", number(shm_seg_generation(m->v->seg)));
	return o;
}

static json_t *counters(struct maker *m, const struct shm_snap *s)
{
	json_t *o = json_object();

	for (uint32_t i = 0; i < s->nctr; i++)
		set(m, o, shm_seg_desc(m->v->seg, i)->name, number(s->ctr[i]));
	return o;
}

static json_t *buckets(struct maker *m, const struct hist_view *h)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		json_t *b;

		if (h->bucket[i] == 0)
			continue;
		b = json_array();
		add(m, b, number(hist_low(i)));
		add(m, b, number(hist_high(i)));
		add(m, b, number(h->bucket[i]));
		add(m, a, b);
	}
	return a;
}

/* Without a value there is no figure: null, never 0. */
static json_t *histogram(struct maker *m, const struct hist_view *h)
{
	static const struct {
		const char *key;
		double q;
	} quantiles[] = {
		{"p50_ns", 50},
		{"p90_ns", 90},
		{"p99_ns", 99},
		{"p999_ns", 99.9},
	};
	uint64_t n = hist_count(h);
	json_t *o = json_object();

	set(m, o, "count", number(n));
	set(m, o, "mean_ns", n > 0 ? json_real(hist_mean(h)) : json_null());
	for (size_t i = 0; i < ARRAY_LEN(quantiles); i++)
		set(m, o, quantiles[i].key,
		    n > 0 ? number(hist_percentile(h, quantiles[i].q))
			  : json_null());
	set(m, o, "max_ns", n > 0 ? number(h->max) : json_null());
	set(m, o, "buckets", buckets(m, h));
	return o;
}

static json_t *histograms(struct maker *m, const struct shm_snap *s)
{
	json_t *o = json_object();

	for (uint32_t i = 0; i < s->nhist; i++)
		set(m, o, shm_seg_desc(m->v->seg, s->nctr + i)->name,
		    histogram(m, &s->hist[i]));
	return o;
}

static json_t *identity(struct maker *m, const struct shm_snap *s)
{
	struct identity id = view_identity(m->v, s);
	json_t *o = json_object();

	set(m, o, "begun", number(id.begun));
	set(m, o, "full", number(id.full));
	set(m, o, "resumed", number(id.resumed));
	set(m, o, "failed", number(id.failed));
	set(m, o, "in_progress", number(id.in_progress));
	set(m, o, "holds", json_boolean(id.holds));
	return o;
}

static void figures(struct maker *m, json_t *o, const struct shm_snap *s)
{
	set(m, o, "torn", json_boolean(s->torn));
	set(m, o, "counters", counters(m, s));
	set(m, o, "histograms", histograms(m, s));
	set(m, o, "identity", identity(m, s));
}

static json_t *slot(struct maker *m, const struct shm_snap *s)
{
	uint64_t beat = s->heartbeat_ns;
	json_t *o = json_object();

	set(m, o, "role", json_string(view_role(s->role)));
	set(m, o, "number", number(s->number));
	set(m, o, "pid", s->pid > 0 ? json_integer(s->pid) : json_null());
	set(m, o, "cpu", s->cpu >= 0 ? json_integer(s->cpu) : json_null());
	set(m, o, "state", json_string(view_slot_state(s->state)));
	set(m, o, "generation", number(s->generation));
	set(m, o, "heartbeat_age_ns",
	    number(s->taken_ns > beat ? s->taken_ns - beat : 0));
	figures(m, o, s);
	return o;
}

static json_t *slots(struct maker *m)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < m->v->n; i++)
		add(m, a, slot(m, &m->v->snap[i]));
	return a;
}

/* Apart: a connection of a driver is one of a worker too. */
static json_t *total(struct maker *m, const struct shm_snap *s, uint32_t n)
{
	json_t *o = json_object();

	set(m, o, "slots", number(n));
	figures(m, o, s);
	return o;
}

static json_t *whole(struct maker *m)
{
	json_t *o = json_object(), *totals = json_object();

	set(m, o, "schema", json_integer(SCHEMA));
	set(m, o, "segment", text(shm_seg_name(m->v->seg)));
	set(m, o, "scenario", text(m->v->info.name));
	set(m, o, "alive", json_boolean(m->v->alive));
	set(m, o, "owner", owner(m));
	set(m, o, "info", info(m));
	set(m, o, "phase", phase(m));
	set(m, o, "slots", slots(m));
	set(m, totals, "workers", total(m, &m->v->workers, m->v->nworkers));
	set(m, totals, "drivers", total(m, &m->v->drivers, m->v->ndrivers));
	set(m, o, "total", totals);
	return o;
}

int json_print(FILE *out, const struct view *v)
{
	struct maker m = {.v = v};
	json_t *o = whole(&m);
	int rc = 0;

	if (o == NULL || m.failed)
		rc = -ENOMEM;
	else if (json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(15)) < 0)
		rc = -EIO;
	else
		fputc('\n', out);
	json_decref(o);
	return rc;
}
