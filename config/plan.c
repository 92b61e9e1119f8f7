/* SPDX-License-Identifier: MIT */
#include "config/plan.h"

#include "config/cgroup.h"
#include "config/unit.h"
#include "shm/base.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* From here on drivers get CPUs of their own. */
#define APART_FROM 4

/* The kernel's mask has to fit, whatever number of CPUs it was built for. */
#define MASK_CPUS 8192

/* ---- what there is ---- */

static int read_affinity(struct plan_cpus *out)
{
	cpu_set_t *mask = CPU_ALLOC(MASK_CPUS);
	size_t size = CPU_ALLOC_SIZE(MASK_CPUS);
	int rc = 0;

	if (mask == NULL)
		return -ENOMEM;
	if (sched_getaffinity(0, size, mask) < 0)
		rc = -errno;
	for (size_t cpu = 0; rc == 0 && cpu < MASK_CPUS; cpu++)
		if (CPU_ISSET_S(cpu, size, mask) && out->ncpu < PLAN_CPUS_MAX)
			out->cpu[out->ncpu++] = (int)cpu;
	CPU_FREE(mask);
	return rc;
}

/* "1.5", "2", "0.333": no printf of a double, which asks the locale. */
static void quota_text(char *buf, size_t len, double quota)
{
	unsigned long long thousandths =
		(unsigned long long)(quota * 1000 + 0.5);
	char frac[8];
	size_t n = (size_t)snprintf(frac, sizeof(frac), ".%03u",
				    (unsigned)(thousandths % 1000));

	while (frac[n - 1] == '0')
		frac[--n] = '\0';
	snprintf(buf, len, "%llu%s", thousandths / 1000, n > 1 ? frac : "");
}

static void explain(struct plan_cpus *out, const struct cgroup *group)
{
	char quota[96] = "no cgroup quota", cpuset[80] = "", number[32];

	if (out->quota > 0) {
		quota_text(number, sizeof(number), out->quota);
		snprintf(quota, sizeof(quota),
			 "cgroup v%d quota %s CPUs%s%.28s", group->version,
			 number, strcmp(group->where, "/") == 0 ? "" : " in ",
			 strcmp(group->where, "/") == 0 ? "" : group->where);
	}
	if (group->cpuset[0] != '\0')
		snprintf(cpuset, sizeof(cpuset), " (cpuset %.24s)",
			 group->cpuset);
	snprintf(out->source, sizeof(out->source),
		 "%u CPU%s: affinity allows %u of %u%s, %s", out->usable,
		 out->usable == 1 ? "" : "s", out->ncpu, out->online, cpuset,
		 quota);
}

int plan_detect(struct plan_cpus *out, const char *root)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	struct plan_cpus cpus = {0};
	struct cgroup group;
	int rc = read_affinity(&cpus);

	if (rc == 0)
		rc = cgroup_read(&group, root);
	if (rc < 0)
		return rc;
	cpus.online = online > (long)cpus.ncpu ? (uint32_t)online : cpus.ncpu;
	cpus.quota = group.quota;
	cpus.usable = cpus.ncpu;
	if (group.quota > 0 && ceil(group.quota) < cpus.ncpu)
		cpus.usable = (uint32_t)ceil(group.quota);
	explain(&cpus, &group);
	*out = cpus;
	return 0;
}

/* ---- who gets what ---- */

struct cpus {
	int cpu[PLAN_CPUS_MAX];
	uint32_t n;
};

static bool has(const struct cpus *set, int cpu)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->cpu[i] == cpu)
			return true;
	return false;
}

static struct cpus without(const struct cpus *all, const struct cpus *taken)
{
	struct cpus rest = {.n = 0};

	for (uint32_t i = 0; i < all->n; i++)
		if (!has(taken, all->cpu[i]))
			rest.cpu[rest.n++] = all->cpu[i];
	return rest;
}

/* The first n, all if there are fewer. */
static struct cpus first(const struct cpus *all, uint32_t n)
{
	struct cpus some = *all;

	some.n = n < all->n ? n : all->n;
	return some;
}

/* "0-2,5", cut with an ellipsis where it would be longer. */
static void set_text(const struct cpus *set, char *buf, size_t len)
{
	size_t used = 0;
	uint32_t i = 0, last;

	buf[0] = '\0';
	for (; i < set->n; i = last + 1) {
		for (last = i; last + 1 < set->n &&
			       set->cpu[last + 1] == set->cpu[last] + 1;)
			last++;
		if (used + 16 > len) {
			strcpy(buf + used, "...");
			return;
		}
		used += (size_t)snprintf(
			buf + used, len - used, last > i ? "%s%d-%d" : "%s%d",
			i > 0 ? "," : "", set->cpu[i], set->cpu[last]);
	}
}

/* How one side, workers or drivers, is to be pinned. */
struct side {
	const char *path; /* "workers.pin" */
	const char *pin;
	bool pinned;	  /* at all */
	bool listed;	  /* by a list in the scenario */
	struct cpus cpus; /* used in turn */
	uint64_t asked;	  /* CFG_AUTO, or how many */
	uint32_t n;
};

static int read_list(struct side *s, const struct cpus *allowed, char *err,
		     size_t len)
{
	char text[80];
	int n = unit_cpus(s->pin, s->cpus.cpu, PLAN_CPUS_MAX, err, len);

	if (n < 0)
		return n;
	s->cpus.n = (uint32_t)n;
	for (uint32_t i = 0; i < s->cpus.n; i++) {
		if (has(allowed, s->cpus.cpu[i]))
			continue;
		set_text(allowed, text, sizeof(text));
		snprintf(err, len,
			 "%s: CPU %d is not allowed to this process; allowed "
			 "are %s",
			 s->path, s->cpus.cpu[i], text);
		return -EINVAL;
	}
	return 0;
}

static int read_side(struct side *s, const struct cpus *allowed, char *err,
		     size_t len)
{
	s->pinned = strcmp(s->pin, "none") != 0;
	s->listed = s->pinned && strcmp(s->pin, "auto") != 0;
	return s->listed ? read_list(s, allowed, err, len) : 0;
}

static uint32_t at_most_256(uint64_t n)
{
	return n < 256 ? (uint32_t)n : 256;
}

/* How many, where the scenario leaves it open; then on which CPUs. */
static void plan_workers(struct side *w, const struct side *d, bool load,
			 const struct cpus *usable)
{
	bool half = load && !d->listed && usable->n >= APART_FROM;
	struct cpus mine = *usable;
	uint32_t n;

	if (load && d->listed)
		mine = without(usable, &d->cpus);
	if (mine.n == 0)
		mine = *usable;
	n = half ? usable->n / 2 : mine.n;
	if (w->listed)
		n = w->cpus.n;
	w->n = at_most_256(w->asked != CFG_AUTO ? w->asked : n);
	if (!w->listed)
		w->cpus = first(&mine, w->n);
}

/* Drivers run where no worker does, if any CPU is left. */
static void plan_drivers(struct side *d, const struct side *w,
			 const struct cpus *usable)
{
	struct cpus mine = *usable;
	uint32_t n;

	if (w->pinned)
		mine = without(usable, &w->cpus);
	if (mine.n == 0)
		mine = *usable;
	n = mine.n;
	if (usable->n >= APART_FROM && n > usable->n - usable->n / 2)
		n = usable->n - usable->n / 2;
	if (d->listed)
		n = d->cpus.n;
	d->n = at_most_256(d->asked != CFG_AUTO ? d->asked : n);
	if (!d->listed)
		d->cpus = first(&mine, d->n);
}

static void assign(int cpu[256], const struct side *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		cpu[i] = s->pinned ? s->cpus.cpu[i % s->cpus.n] : -1;
}

/* ---- words ---- */

static void side_text(char *buf, size_t len, const struct side *s,
		      const char *word)
{
	struct cpus used = first(&s->cpus, s->n);
	char list[64];
	int n = snprintf(buf, len, "%u %s%s ", s->n, word,
			 s->n == 1 ? "" : "s");

	set_text(&used, list, sizeof(list));
	if (!s->pinned)
		snprintf(buf + n, len - (size_t)n, "not pinned");
	else
		snprintf(buf + n, len - (size_t)n, "on CPU%s %s",
			 used.n == 1 ? "" : "s", list);
}

static bool equal(const struct cpus *a, const struct cpus *b)
{
	return a->n == b->n && memcmp(a->cpu, b->cpu, a->n * sizeof(int)) == 0;
}

static void explain_plan(struct plan *p, const struct side *w,
			 const struct side *d, const char *target)
{
	struct cpus wc = first(&w->cpus, w->n), dc = first(&d->cpus, d->n);
	char workers[112], drivers[112];

	side_text(workers, sizeof(workers), w, "worker");
	side_text(drivers, sizeof(drivers), d, "driver");
	if (target != NULL)
		snprintf(p->why, sizeof(p->why),
			 "no workers: the target is %s; %s", target, drivers);
	else if (d->n == 0)
		snprintf(p->why, sizeof(p->why), "%s, no drivers", workers);
	else if (w->pinned && d->pinned && equal(&wc, &dc))
		snprintf(p->why, sizeof(p->why), "%s, %u driver%s sharing %s",
			 workers, d->n, d->n == 1 ? "" : "s",
			 wc.n == 1 ? "it" : "them");
	else
		snprintf(p->why, sizeof(p->why), "%s, %s%s", workers, drivers,
			 p->sharing && w->pinned && d->pinned
				 ? ", some of them shared"
				 : "");
}

static bool overlap(const struct side *w, const struct side *d)
{
	struct cpus wc = first(&w->cpus, w->n), dc = first(&d->cpus, d->n);

	if (d->n == 0 || w->n == 0)
		return false;
	return !w->pinned || !d->pinned || without(&dc, &wc).n < dc.n;
}

int plan_make(struct plan *out, const struct cfg *cfg,
	      const struct plan_cpus *cpus, char *err, size_t len)
{
	struct cpus allowed = {.n = cpus->ncpu};
	struct side w = {.path = "workers.pin", .pin = cfg->workers.pin};
	struct side d = {.path = "load.pin", .pin = cfg->load.pin};
	bool load = cfg->load.drivers != CFG_NO_DRIVERS && cfg->nphases > 0;
	struct cpus usable;
	struct plan plan = {0};
	int rc;

	memcpy(allowed.cpu, cpus->cpu, cpus->ncpu * sizeof(int));
	usable = first(&allowed, cpus->usable);
	w.asked = cfg->workers.count;
	d.asked = cfg->load.drivers;
	rc = read_side(&w, &allowed, err, len);
	if (rc == 0)
		rc = read_side(&d, &allowed, err, len);
	if (rc < 0)
		return rc;
	plan_workers(&w, &d, load, &usable);
	if (load)
		plan_drivers(&d, &w, &usable);
	/* The target is left the CPUs that the workers would have. */
	if (cfg->has_target)
		w.n = 0;
	plan.nworkers = w.n;
	plan.ndrivers = d.n;
	plan.sharing = overlap(&w, &d);
	assign(plan.worker_cpu, &w);
	assign(plan.driver_cpu, &d);
	explain_plan(&plan, &w, &d,
		     cfg->has_target ? cfg->target.address : NULL);
	*out = plan;
	return 0;
}
