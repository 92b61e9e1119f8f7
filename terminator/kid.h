/* SPDX-License-Identifier: MIT */
/*
 * The master's children: workers (forked) and drivers (forked and executed).
 * A child has a slot in the segment, a pidfd, and a control channel. The master
 * writes the slot whenever no live process holds it.
 */
#ifndef TERMINATOR_KID_H
#define TERMINATOR_KID_H

#include "shm/seg.h"
#include "workers/wrk.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum kid_kind {
	KID_WORKER,
	KID_DRIVER
};

struct kid {
	enum kid_kind kind;
	uint32_t number; /* worker 0.. or driver 0.. */
	uint32_t slot;	 /* index in the segment */
	int cpu;
	pid_t pid;	/* 0: no process */
	int pid_fd;	/* -1: none */
	int ctl_fd;	/* owns the master's end; -1: none */
	bool ready;	/* workers: accepts; drivers: READY for `phase` */
	bool idle;	/* drivers: no connection left */
	bool leaving;	/* told to end: its exit is no fault */
	uint32_t phase; /* drivers: the last START sent */
	uint32_t
		quick_deaths; /* in a row, each less than 1 s after its start */
	uint64_t started_ns;
	uint64_t cpu_base_ns; /* CPU of the slot's earlier processes */
	uint64_t respawn_ns;  /* clk_now() when to start it again; 0: no */
	char fault[480];      /* its own words when it failed (CTL_FAIL) */
};

/* What a driver is given beside its number; file descriptors are borrowed. */
struct kid_driver {
	const char *program; /* path of tdrive */
	const char *segment; /* NAME */
	const char *target;
	const char *plain; /* NULL: no plain listener */
	const char *server_name;
	uint32_t ndrivers;
	int config_fd, trust_fd;
};

/*
 * Forks. `args` lacks only the slot, number, cpu and ctl_fd, which are filled
 * in here. 0, or -errno (fork, pidfd, socketpair).
 */
int kid_start_worker(struct kid *kid, struct shm_seg *seg,
		     const struct wrk_args *args);
int kid_start_driver(struct kid *kid, struct shm_seg *seg,
		     const struct kid_driver *driver);

/*
 * After its pidfd became readable: reaps the process, mends the slot and closes
 * the descriptors. Returns the wait status.
 */
int kid_reap(struct kid *kid, struct shm_seg *seg);

/* "exited with status 1", "was killed by signal 9 (Killed)". */
void kid_explain(int status, char *buf, size_t len);

/* "worker 3". */
void kid_name(const struct kid *kid, char *buf, size_t len);

#endif
