/* SPDX-License-Identifier: MIT */
#include "terminator/slc.h"

#include "shm/base.h"
#include "shm/clk.h"

#include <math.h>
#include <stdatomic.h>

/* A slice with fewer handshakes is joined to the next: its cost says nothing.
 */
#define HANDSHAKES_MIN 20
/* Fewer samples of the speed do not make a mean. */
#define SAMPLES_MIN 4

uint64_t slc_length(uint64_t window_ns)
{
	return base_max(window_ns / 20, SLC_MIN_NS);
}

static uint64_t get(const _Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

void slc_take(struct slc *s, struct shm_seg *seg, const struct kid *kids,
	      uint32_t nworkers)
{
	struct slc_look l = {.at_ns = clk_now()};

	for (uint32_t i = 0; i < nworkers; i++) {
		struct shm_slot *slot = shm_seg_slot(seg, kids[i].slot);
		const struct ctr_block *c = &slot->ctr;
		uint64_t beat = get(&slot->heartbeat_ns), cpu;

		l.handshakes += get(&c->hs_full) + get(&c->hs_resumed);
		l.speed_samples += get(&c->speed_samples);
		l.speed_ns += get(&c->speed_ns);
		if (kids[i].pid != 0 && clk_pid_cpu(kids[i].pid, &cpu) == 0)
			l.cpu_ns += kids[i].cpu_base_ns + cpu;
		else
			l.cpu_ns += get(&c->cpu_ns);
		if (kids[i].pid != 0 && beat != 0 && l.at_ns > beat &&
		    l.at_ns - beat > l.silent_ns) {
			l.silent_ns = l.at_ns - beat;
			l.silent_worker = i;
		}
	}
	l.cpu_ns -= base_min(l.cpu_ns, l.speed_ns);
	s->look[s->n < SLC_MAX ? s->n++ : SLC_MAX - 1] = l;
}

/* Mean and half the width of its 95 % interval (normal, 1.96 s/sqrt n), which
 * for the ten and more slices of a window is near enough to Student's. */
struct spread {
	double sum, squares;
	uint32_t n;
};

static void add(struct spread *s, double x)
{
	s->sum += x;
	s->squares += x * x;
	s->n++;
}

static double half_width(const struct spread *s)
{
	double mean = s->sum / s->n, var;

	if (s->n < 2 || mean <= 0)
		return NAN;
	var = (s->squares - s->sum * mean) / (s->n - 1);
	return 1.96 * sqrt(fmax(var, 0) / s->n) / mean;
}

static void look_at_life(const struct slc *s, struct slc_facts *f)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->look[i].silent_ns > f->silent_ns) {
			f->silent_ns = s->look[i].silent_ns;
			f->silent_worker = s->look[i].silent_worker;
		}
}

struct slc_facts slc_judge(const struct slc *s)
{
	struct slc_facts f = {.cost_ns = NAN, .speed_ratio = NAN};
	struct spread raw = {0}, scaled = {0};
	double slow = 0, fast = INFINITY;
	uint32_t from = 0;

	look_at_life(s, &f);
	for (uint32_t i = 1; i < s->n; i++) {
		const struct slc_look *a = &s->look[from], *b = &s->look[i];
		uint64_t hs = b->handshakes - a->handshakes;
		uint64_t samples = b->speed_samples - a->speed_samples;
		double cost, speed;

		if (hs < HANDSHAKES_MIN || samples < SAMPLES_MIN)
			continue;
		/* A worker that died in between may seem to have used less. */
		cost = fmax((double)b->cpu_ns - (double)a->cpu_ns, 0) /
		       (double)hs;
		speed = (double)(b->speed_ns - a->speed_ns) / (double)samples;
		add(&raw, cost);
		add(&scaled, cost / speed);
		slow = fmax(slow, speed);
		fast = fmin(fast, speed);
		from = i;
	}
	f.slices = raw.n;
	f.half_width = half_width(&raw);
	f.scaled_half_width = half_width(&scaled);
	if (raw.n > 0) {
		f.cost_ns = raw.sum / raw.n;
		f.speed_ratio = slow / fast;
	}
	return f;
}
