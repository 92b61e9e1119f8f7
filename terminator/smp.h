/* SPDX-License-Identifier: MIT */
/*
 * A sample: every slot, every child's CPU clock and the machine's busy time, at
 * one moment. A phase's figures are differences between two samples.
 */
#ifndef TERMINATOR_SMP_H
#define TERMINATOR_SMP_H

#include "shm/seg.h"
#include "terminator/kid.h"

#include <stdint.h>

/* The kernel's own counts, of the whole network namespace. */
struct smp_net {
	/* A full accept queue refused a connection. */
	uint64_t listen_overflows;
	/* A SYN or connection was dropped at a listener, for that or else. */
	uint64_t listen_drops;
	uint64_t timeouts;    /* retransmission timers that ran out */
	uint64_t retransmits; /* segments sent again */
	/* Connections that our own listeners dropped; the caller's to fill in.
	 */
	uint64_t own_drops;
};

struct smp {
	uint32_t n;	       /* slots */
	uint64_t taken_ns;     /* clk_now() */
	struct shm_snap *snap; /* owns n */
	uint64_t *cpu_ns;      /* owns n: user + system of the slot so far */
	uint64_t master_ns;    /* CPU of the master */
	uint64_t machine_ns;   /* busy time of all CPUs (/proc/stat) */
	uint64_t steal_ns;     /* time the hypervisor gave to others */
	struct smp_net net;
};

/* 0 or -ENOMEM; ends with smp_fini(). */
int smp_init(struct smp *s, const struct shm_seg *seg);
void smp_fini(struct smp *s);

/*
 * Fills `s`. CPU comes from the clock of each live process, which is exact up
 * to this moment; for a slot without one, from its own last word (cpu_ns).
 */
void smp_take(struct smp *s, const struct shm_seg *seg, const struct kid *kids,
	      uint32_t nkids);

/* out = later - earlier, slot by slot; `out` was initialised by the caller. */
void smp_diff(struct smp *out, const struct shm_seg *seg,
	      const struct smp *later, const struct smp *earlier);

/* Sum over all slots of one role; `out` was initialised with shm_snap_init().
 */
void smp_total(struct shm_snap *out, const struct shm_seg *seg,
	       const struct smp *s, uint32_t role);

#endif
