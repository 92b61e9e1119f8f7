/* SPDX-License-Identifier: MIT */
/*
 * Slices of a phase's window: light looks at the workers' sums while it runs,
 * so that a result knows how steady it was. Absolute values; a slice is the
 * difference of two neighbours.
 */
#ifndef TERMINATOR_SLC_H
#define TERMINATOR_SLC_H

#include "shm/seg.h"
#include "terminator/kid.h"

#include <stdint.h>

#define SLC_MAX	   48
#define SLC_MIN_NS (100 * NS_PER_MS)

struct slc_look {
	uint64_t at_ns;	     /* clk_now() */
	uint64_t handshakes; /* of all workers, full and resumed */
	uint64_t cpu_ns;     /* of all workers, without speed samples */
	uint64_t speed_samples, speed_ns;
	uint64_t silent_ns;	/* longest time without a sign of life */
	uint32_t silent_worker; /* ... and whose it was */
};

struct slc {
	struct slc_look look[SLC_MAX];
	uint32_t n;
};

/* How long a slice of a window lasts: a 20th, at least SLC_MIN_NS. */
uint64_t slc_length(uint64_t window_ns);

/* Adds a look; the last place is overwritten when all are taken. */
void slc_take(struct slc *s, struct shm_seg *seg, const struct kid *kids,
	      uint32_t nworkers);

/* What the slices say. NaN where there are too few handshakes or samples. */
struct slc_facts {
	uint32_t slices;	  /* that had enough handshakes */
	double cost_ns;		  /* mean CPU per handshake over slices */
	double half_width;	  /* of its 95 % interval, as a share of it */
	double scaled_half_width; /* the same of costs scaled to core speed */
	double speed_ratio;	  /* slowest slice's sample / fastest slice's */
	uint64_t silent_ns;
	uint32_t silent_worker;
};

struct slc_facts slc_judge(const struct slc *s);

#endif
