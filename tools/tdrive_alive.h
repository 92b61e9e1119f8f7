/* SPDX-License-Identifier: MIT */
/*
 * Signs of life, published from time to time: heartbeat, CPU time, time in the
 * run queue, and the core's speed.
 */
#ifndef TOOLS_TDRIVE_ALIVE_H
#define TOOLS_TDRIVE_ALIVE_H

#include "shm/seg.h"

#include <stdbool.h>
#include <stdint.h>

/* The longest between two heartbeats. */
#define ALIVE_HEARTBEAT_NS (100 * NS_PER_MS)

struct ctls_speed;

/* Not opaque: lies in struct load. */
struct alive {
	struct shm_slot *slot;	  /* borrows */
	struct ctls_speed *speed; /* owns; NULL: not sampled */
	uint64_t cpu_before_ns;	  /* of the slot's earlier processes */
	uint64_t shown_ns;	  /* all was published */
	uint64_t sampled_ns;	  /* CPU time at the last sample of speed */
	uint64_t delay_ns;	  /* in the run queue, already counted */
	int schedstat_fd;	  /* owns; -1: the kernel has none */
};

void alive_init(struct alive *a, struct shm_slot *slot);
void alive_fini(struct alive *a);

/* Publishes, if that is due; sooner when there was work. */
void alive_show(struct alive *a, uint64_t now, bool worked);

#endif
