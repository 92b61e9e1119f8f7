/* SPDX-License-Identifier: MIT */
#include "terminator/tgt.h"

#include "terminator/tgt_int.h"

#include "shm/base.h"
#include "shm/clk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const tgt_keys[] = {
	[TGT_FROM_PIDS] = "target.pids",
	[TGT_FROM_PID_FILE] = "target.pid_file",
	[TGT_FROM_CGROUP] = "target.cgroup",
	[TGT_FROM_ADDRESS] = "target.address",
};

int tgt_fault(struct tgt *t, int rc, const char *fmt, ...)
{
	int n = snprintf(t->why, sizeof(t->why), "%s: ", tgt_keys[t->source]);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->why + n, sizeof(t->why) - (size_t)n, fmt, ap);
	va_end(ap);
	return rc;
}

const struct tgt_proc *tgt_find_proc(const struct tgt_sample *s, pid_t pid,
				     uint64_t start_ticks)
{
	uint32_t low = 0, high = s->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (s->proc[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == s->n || s->proc[low].pid != pid ||
	    s->proc[low].start_ticks != start_ticks)
		return NULL;
	return &s->proc[low];
}

/* ---- CPU times ---- */

static uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct tgt_cpu cpu_sub(const struct tgt_cpu *a, const struct tgt_cpu *b)
{
	return (struct tgt_cpu){
		.total_ns = above(a->total_ns, b->total_ns),
		.user_ns = above(a->user_ns, b->user_ns),
		.system_ns = above(a->system_ns, b->system_ns),
	};
}

static void cpu_add(struct tgt_cpu *sum, const struct tgt_cpu *a)
{
	sum->total_ns += a->total_ns;
	sum->user_ns += a->user_ns;
	sum->system_ns += a->system_ns;
}

/* ---- reading them ---- */

static bool read_one(const struct tgt_id *id, struct tgt_proc *out)
{
	struct tgt_proc p;

	if (tgt_proc_stat(id->pid, &p) < 0)
		return false;
	if (id->start_ticks != 0 && id->start_ticks != p.start_ticks)
		return false;
	/* To the nanosecond; in ticks, of a process that just ended. */
	(void)clk_pid_cpu(id->pid, &p.cpu.total_ns);
	*out = p;
	return true;
}

/* CPU of all first, close together; what takes longer to read comes after. */
static int read_all(struct tgt *t, const struct tgt_ids *ids,
		    struct tgt_sample *s)
{
	int rc = 0;

	s->proc = calloc(ids->n + 1, sizeof(*s->proc));
	if (s->proc == NULL)
		return tgt_fault(t, -ENOMEM, "out of memory");
	s->taken_ns = clk_now();
	s->by_cgroup = t->source == TGT_FROM_CGROUP;
	if (s->by_cgroup)
		rc = tgt_group_read(&t->group, &s->cgroup, &s->cgroup_bytes);
	if (rc < 0)
		return tgt_fault(t, rc, "%s: its CPU time cannot be read: %s",
				 t->value, strerror(-rc));
	for (size_t i = 0; i < ids->n; i++)
		if (read_one(&ids->item[i], &s->proc[s->n]))
			s->n++;
	if (s->n == 0)
		return tgt_fault(t, -ESRCH, "%s: no process is left", t->value);
	for (uint32_t i = 0; i < s->n; i++)
		tgt_proc_memory(&s->proc[i]);
	return 0;
}

/* ---- what came and what went ---- */

/* The scan began before `last` was read: who began later is new and all its
 * CPU time is the server's. */
static bool is_born(const struct tgt *t, const struct tgt_proc *p)
{
	uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);

	return (p->start_ticks + 1) * tick_ns > t->last_boot_ns;
}

/* Adds to `waited` what p's ended children used since the last sample. */
static void account_one(const struct tgt *t, struct tgt_sample *s,
			struct tgt_proc *p, struct tgt_cpu *waited)
{
	const struct tgt_proc *q =
		tgt_find_proc(&t->last, p->pid, p->start_ticks);
	struct tgt_cpu more;

	if (q != NULL) {
		p->before = q->before;
		more = cpu_sub(&p->waited, &q->waited);
		cpu_add(waited, &more);
		return;
	}
	s->came++;
	if (is_born(t, p))
		cpu_add(waited, &p->waited);
	else
		p->before = p->cpu;
}

/*
 * When a process is waited for, all that it and its children used moves to its
 * parent's `waited`. So the growth of `waited`, less what was in the ended
 * ones' own `waited` (and so counted already) or is not the target's, is what
 * ended ones used, those included that came and went unseen. Ticks are cut off
 * there, and nobody may have waited: it is never less than what was seen last.
 */
static void account(const struct tgt *t, struct tgt_sample *s)
{
	const struct tgt_sample *last = &t->last;
	struct tgt_cpu waited = {0}, seen = {0}, counted = {0};

	s->ended = last->ended;
	s->came = last->came;
	s->went = last->went;
	for (uint32_t i = 0; i < s->n && t->opened; i++)
		account_one(t, s, &s->proc[i], &waited);
	for (uint32_t i = 0; i < last->n; i++) {
		const struct tgt_proc *q = &last->proc[i];
		struct tgt_cpu own = cpu_sub(&q->cpu, &q->before);

		if (tgt_find_proc(s, q->pid, q->start_ticks) != NULL)
			continue;
		s->went++;
		cpu_add(&seen, &own);
		cpu_add(&counted, &q->waited);
		cpu_add(&counted, &q->before);
	}
	waited = cpu_sub(&waited, &counted);
	cpu_add(&s->ended, waited.total_ns > seen.total_ns ? &waited : &seen);
}

static bool has_changed(const struct tgt_sample *s)
{
	return s->came > 0 || s->went > 0 || s->ended.total_ns > 0;
}

static void add_up(struct tgt_sample *s)
{
	bool all_pss = true;

	s->cpu = s->ended;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct tgt_proc *p = &s->proc[i];
		struct tgt_cpu own = cpu_sub(&p->cpu, &p->before);

		cpu_add(&s->cpu, &own);
		s->threads += p->threads;
		s->resident_bytes += p->resident_bytes;
		s->pss_bytes += p->pss_bytes;
		all_pss = all_pss && (p->pss_bytes || !p->resident_bytes);
	}
	if (!all_pss)
		s->pss_bytes = 0;
	s->memory_bytes = s->pss_bytes ? s->pss_bytes : s->resident_bytes;
	if (s->by_cgroup)
		s->cpu = s->cgroup;
	if (s->cgroup_bytes != 0)
		s->memory_bytes = s->cgroup_bytes;
	s->changed = has_changed(s);
}

static uint64_t since_boot_ns(void)
{
	struct timespec ts;

	MUST(clock_gettime(CLOCK_BOOTTIME, &ts) == 0);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* A copy for the caller, who may end it when he likes. 0 or -ENOMEM. */
static int copy(struct tgt_sample *out, const struct tgt_sample *s)
{
	struct tgt_proc *proc = calloc(s->n + 1, sizeof(*proc));

	if (proc == NULL)
		return -ENOMEM;
	memcpy(proc, s->proc, s->n * sizeof(*proc));
	free(out->proc);
	*out = *s;
	out->proc = proc;
	return 0;
}

/* The next sample becomes `last`. */
static int look(struct tgt *t)
{
	uint64_t boot_ns = since_boot_ns();
	struct tgt_sample s = {0};
	struct tgt_ids ids = {0};
	int rc = tgt_members(t, &ids);

	if (rc == 0)
		rc = read_all(t, &ids, &s);
	tgt_ids_fini(&ids);
	if (rc < 0) {
		tgt_fini(&s);
		return rc;
	}
	account(t, &s);
	add_up(&s);
	tgt_fini(&t->last);
	t->last = s;
	t->last_boot_ns = boot_ns;
	t->opened = true;
	return 0;
}

/* ---- opening ---- */

static void join_pids(struct tgt *t, const struct tgt_want *want)
{
	size_t used = 0;

	for (size_t i = 0; i < want->npids && used < sizeof(t->value); i++)
		used += (size_t)snprintf(t->value + used,
					 sizeof(t->value) - used, "%s%s",
					 i > 0 ? ", " : "", want->pids[i]);
}

/* Which key it is; only one of the three may be there. */
static int choose(struct tgt *t, const struct tgt_want *want)
{
	const char *value = want->address;
	int given = 0;

	t->source = TGT_FROM_ADDRESS;
	if (want->npids > 0) {
		t->source = TGT_FROM_PIDS;
		given++;
	}
	if (want->pid_file != NULL) {
		t->source = TGT_FROM_PID_FILE;
		value = want->pid_file;
		given++;
	}
	if (want->cgroup != NULL) {
		t->source = TGT_FROM_CGROUP;
		value = want->cgroup;
		given++;
	}
	if (given > 1)
		return tgt_fault(t, -EINVAL,
				 "only one of target.pids, target.pid_file and "
				 "target.cgroup may say what the server is");
	if (t->source == TGT_FROM_PIDS)
		join_pids(t, want);
	else if (value == NULL || value[0] == '\0')
		return tgt_fault(t, -EINVAL, "is empty");
	else if (snprintf(t->value, sizeof(t->value), "%s", value) >=
		 (int)sizeof(t->value))
		return tgt_fault(t, -ENAMETOOLONG,
				 "is longer than a path can be");
	snprintf(t->about, sizeof(t->about), "%s: %s", tgt_keys[t->source],
		 t->value);
	return 0;
}

static void set_name(struct tgt *t, const struct tgt_want *want)
{
	const struct tgt_proc *p = NULL;

	if (t->roots.n > 0)
		p = tgt_find_proc(&t->last, t->roots.item[0].pid,
				  t->roots.item[0].start_ticks);
	if (p == NULL)
		p = &t->last.proc[0];
	snprintf(t->name, sizeof(t->name), "%s",
		 want->name != NULL ? want->name : p->comm);
}

int tgt_open(struct tgt **out, const struct tgt_want *want, char *err,
	     size_t len)
{
	struct tgt *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL) {
		snprintf(err, len, "target: out of memory");
		return -ENOMEM;
	}
	rc = choose(t, want);
	if (rc == 0)
		rc = tgt_resolve(t, want);
	if (rc == 0)
		rc = look(t);
	if (rc < 0) {
		snprintf(err, len, "%s", t->why);
		tgt_close(&t);
		return rc;
	}
	set_name(t, want);
	*out = t;
	return 0;
}

void tgt_close(struct tgt **t)
{
	if (*t == NULL)
		return;
	tgt_ids_fini(&(*t)->roots);
	tgt_fini(&(*t)->last);
	free(*t);
	*t = NULL;
}

const char *tgt_name(const struct tgt *t)
{
	return t->name;
}

const char *tgt_source(const struct tgt *t)
{
	return t->about;
}

const char *tgt_why(const struct tgt *t)
{
	return t->why;
}

/* ---- samples ---- */

int tgt_sample(struct tgt *t, struct tgt_sample *out)
{
	int rc = look(t);

	if (rc < 0)
		return rc;
	if (copy(out, &t->last) < 0)
		return tgt_fault(t, -ENOMEM, "out of memory");
	return 0;
}

static void diff_one(struct tgt_proc *p, const struct tgt_sample *earlier)
{
	const struct tgt_proc *q =
		tgt_find_proc(earlier, p->pid, p->start_ticks);

	p->cpu = cpu_sub(&p->cpu, q != NULL ? &q->cpu : &p->before);
	if (q != NULL)
		p->waited = cpu_sub(&p->waited, &q->waited);
	p->before = (struct tgt_cpu){0};
}

/* Of `earlier`, what later ended: that much of `ended` was used before. */
static struct tgt_cpu used_before(const struct tgt_sample *later,
				  const struct tgt_sample *earlier)
{
	struct tgt_cpu sum = earlier->ended;

	for (uint32_t i = 0; i < earlier->n; i++) {
		const struct tgt_proc *p = &earlier->proc[i];
		struct tgt_cpu own = cpu_sub(&p->cpu, &p->before);

		if (tgt_find_proc(later, p->pid, p->start_ticks) == NULL)
			cpu_add(&sum, &own);
	}
	return sum;
}

int tgt_diff(struct tgt_sample *out, const struct tgt_sample *later,
	     const struct tgt_sample *earlier)
{
	struct tgt_cpu before = used_before(later, earlier);
	struct tgt_sample d = {0};

	if (copy(&d, later) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < d.n; i++)
		diff_one(&d.proc[i], earlier);
	d.taken_ns = later->taken_ns - earlier->taken_ns;
	d.came = later->came - earlier->came;
	d.went = later->went - earlier->went;
	d.cpu = cpu_sub(&later->cpu, &earlier->cpu);
	d.ended = cpu_sub(&later->ended, &before);
	d.cgroup = cpu_sub(&later->cgroup, &earlier->cgroup);
	d.changed = has_changed(&d);
	tgt_fini(out);
	*out = d;
	return 0;
}

void tgt_fini(struct tgt_sample *s)
{
	free(s->proc);
	memset(s, 0, sizeof(*s));
}
