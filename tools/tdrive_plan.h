/* SPDX-License-Identifier: MIT */
/*
 * When connections of an open loop are due, and which of them resume: pure
 * arithmetic, no clock.
 *
 * An open loop begins connections when they are due, whatever became of those
 * before; a stalled server then shows in the latency of every connection that
 * was due meanwhile (a closed loop would just send fewer: "coordinated
 * omission"). So the schedule must not depend on when it is looked at. Let R be
 * the rate over all drivers in thousandths of a connection per second, D the
 * number of drivers, i this driver's number, and T = 10^12 ns the time in which
 * R connections are due.
 *
 * Constant    connection k of all drivers is due k T / R after the start, and
 * driver i takes k = i, i + D, i + 2D, ...: the drivers interleave, each has
 * its exact share, and their sum is the rate asked for, for any R and D. The
 * n-th connection of this driver is due floor((i + n D) T / R); the product is
 * formed in 128 bits, so no rounding adds up.
 *
 * Poisson     gaps are exponential with the mean D T / R: independent Poisson
 * processes of rate R / D add up to one of rate R, with no talk between
 * drivers. A gap is -ln(u) times the mean, u uniform in (0, 1] in steps of
 * 2^-53 of splitmix64, seeded by the driver's number: the same schedule in
 * every run. Gaps are rounded to the nearest ns, so rounding has no bias; the
 * longest that can come is 36.7 means.
 *
 * Two cursors over one plan (struct copies) give the same times: one counts
 * what is due, the other begins it when a seat is free.
 */
#ifndef TOOLS_TDRIVE_PLAN_H
#define TOOLS_TDRIVE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

struct plan_want {
	uint64_t rate; /* over all drivers, thousandths per second; not 0 */
	bool poisson;
	uint32_t drivers;
	uint32_t driver; /* below drivers */
};

/* Not opaque: a plain value; a copy is a second cursor. */
struct plan {
	struct plan_want want;
	uint64_t start_ns;
	uint64_t n;	 /* connections taken */
	uint64_t due_ns; /* of the next */
	uint64_t random; /* poisson: the generator's state */
	double mean_ns;	 /* poisson: between two */
};

void plan_start(struct plan *plan, const struct plan_want *want,
		uint64_t start_ns);

/* When the next one is due. */
static inline uint64_t plan_due(const struct plan *plan)
{
	return plan->due_ns;
}

/* Takes the next one, and says when it was due. */
uint64_t plan_take(struct plan *plan);

/*
 * Which of a row of connections resume: `percent` of any number of them, exact
 * to one (Bresenham). One that was to resume and could not, for want of a
 * ticket, stays owed: a later one makes up for it.
 */
struct mix {
	uint32_t percent;
	uint64_t owed; /* hundredths of a resumption */
};

void mix_start(struct mix *mix, uint32_t percent);

/* The next connection: does it resume, if it `can`? */
bool mix_next(struct mix *mix, bool can);

#endif
