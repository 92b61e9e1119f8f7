/* SPDX-License-Identifier: MIT */
/*
 * What `auto` comes to on this machine: how many workers and drivers, and on
 * which CPUs each runs.
 */
#ifndef CONFIG_PLAN_H
#define CONFIG_PLAN_H

#include "config/cfg.h"

#include <stdbool.h>
#include <stdint.h>

#define PLAN_CPUS_MAX 1024

/* What the machine really allows this process. */
struct plan_cpus {
	int cpu[PLAN_CPUS_MAX]; /* allowed by affinity and cpuset, ascending */
	uint32_t ncpu;
	uint32_t online;  /* CPUs the machine has */
	double quota;	  /* CPUs' worth of cgroup quota; 0: none */
	uint32_t usable;  /* min(ncpu, quota rounded up, at least 1) */
	char source[256]; /* "2 CPUs: affinity allows 2 of 2, no cgroup quota"
			   */
};

/*
 * Reads the affinity of the caller and the cgroup files (v1 and v2, every level
 * up to the root: the smallest quota counts) below `root` ("" in production, a
 * fake tree in tests). 0 or -errno; files that are absent mean no limit.
 */
int plan_detect(struct plan_cpus *out, const char *root);

struct plan {
	uint32_t nworkers, ndrivers;
	int worker_cpu[256]; /* -1: not pinned */
	int driver_cpu[256];
	bool sharing; /* some CPU has both a worker and a driver, or none pinned
		       */
	char why[256]; /* "2 workers on CPUs 0-1, 2 drivers sharing them" */
};

/*
 * 0, or -EINVAL with one line in err (a CPU in a pin list that is not allowed).
 *
 * count and drivers on auto: with a load and 4 or more usable CPUs, half to
 * workers, half to drivers; on fewer every CPU gets a worker and a driver;
 * without a load (none, or no phases) all are workers. A pin list gives one
 * process per CPU listed. Where one side is given, the other one takes the CPUs
 * that it leaves (drivers at most half of all), or shares where it leaves none.
 *
 * With a target there are no workers; the drivers are as many, and where, as
 * they would be beside workers on auto.
 */
int plan_make(struct plan *out, const struct cfg *cfg,
	      const struct plan_cpus *cpus, char *err, size_t len);

#endif
