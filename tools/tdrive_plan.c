/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_plan.h"

#include "shm/base.h"

#include <math.h>

/* Time in which as many connections are due as the rate's number says. */
#define RATE_SPAN_NS (1000 * NS_PER_S)

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t gap(struct plan *plan)
{
	double u = (double)((draw(&plan->random) >> 11) + 1) * 0x1p-53;

	return (uint64_t)(-log(u) * plan->mean_ns + 0.5);
}

static uint64_t constant_due(const struct plan *plan)
{
	const struct plan_want *w = &plan->want;
	unsigned __int128 k =
		(unsigned __int128)plan->n * w->drivers + w->driver;

	return plan->start_ns + (uint64_t)(k * RATE_SPAN_NS / w->rate);
}

void plan_start(struct plan *plan, const struct plan_want *want,
		uint64_t start_ns)
{
	MUST(want->rate > 0 && want->driver < want->drivers);
	*plan = (struct plan){.want = *want,
			      .start_ns = start_ns,
			      .random = want->driver,
			      .mean_ns = (double)RATE_SPAN_NS * want->drivers /
					 (double)want->rate};
	plan->due_ns =
		want->poisson ? start_ns + gap(plan) : constant_due(plan);
}

uint64_t plan_take(struct plan *plan)
{
	uint64_t due = plan->due_ns;

	plan->n++;
	plan->due_ns =
		plan->want.poisson ? due + gap(plan) : constant_due(plan);
	return due;
}

void mix_start(struct mix *mix, uint32_t percent)
{
	MUST(percent <= 100);
	*mix = (struct mix){.percent = percent};
}

bool mix_next(struct mix *mix, bool can)
{
	mix->owed += mix->percent;
	if (mix->owed < 100 || !can)
		return false;
	mix->owed -= 100;
	return true;
}
