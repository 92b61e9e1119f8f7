/* SPDX-License-Identifier: MIT */
/*
 * Another server as the target: which processes it is made of, and what they
 * have used so far, from /proc and its cgroup.
 *
 * Whose      the processes named by target.pids, target.pid_file or
 *            target.cgroup, or else those that listen on target.address, and
 *            all their descendants (not tterm's own). Found anew at every
 *            sample, so a worker that the server starts later is counted.
 * Total      of each process exactly, from its CPU clock. What an ended process
 *            used is known to a clock tick (10 ms) from its parent, which
 *            waited for it; where nobody in the set did, up to the last sample.
 *            With a cgroup the group's own count is the total: all that ever
 *            ran in it, up to the last timer tick of each CPU.
 * User and   as /proc shows them, to a clock tick each: good for a share, while
 * system     the total is what to divide by.
 * Memory     the cgroup's; else the sum of proportional sets, in which a page
 *            shared by n processes counts 1/n in each; else, where those may
 *            not be read, the sum of resident sets.
 */
#ifndef TERMINATOR_TGT_H
#define TERMINATOR_TGT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TGT_MAX 1024 /* processes */

struct tgt;

/* As in the scenario; all borrowed for the call. NULL and 0: not given. */
struct tgt_want {
	const char *address; /* "127.0.0.1:8443", "[::1]:443" */
	char *const *pids;   /* npids texts */
	size_t npids;
	const char *pid_file;
	const char *cgroup; /* a folder, or its path below /sys/fs/cgroup */
	const char *name;   /* NULL: as the first process calls itself */
};

struct tgt_cpu {
	uint64_t total_ns;
	uint64_t user_ns, system_ns;
};

struct tgt_proc {
	pid_t pid, parent;
	uint64_t start_ticks; /* with the pid, one process for ever */
	char comm[16];
	char state; /* R, S, D, T, Z ... of proc(5) */
	uint32_t threads;
	struct tgt_cpu cpu;    /* its own, since it began */
	struct tgt_cpu waited; /* of ended children that it waited for */
	struct tgt_cpu before; /* of cpu, what is not the target's: used before
				* it joined the set */
	uint64_t resident_bytes;
	uint64_t pss_bytes; /* 0: may not be read */
};

/* Good when all zero: {0}. */
struct tgt_sample {
	uint64_t taken_ns;     /* clk_now() */
	struct tgt_proc *proc; /* owns n, in order of pid */
	uint32_t n;
	uint32_t threads;     /* of all */
	uint32_t came, went;  /* processes, since tgt_open() */
	struct tgt_cpu cpu;   /* of all: the cgroup's, or of proc[] and ended */
	struct tgt_cpu ended; /* of those that ended since tgt_open() */
	struct tgt_cpu cgroup;
	uint64_t memory_bytes; /* the best known of the next three */
	uint64_t resident_bytes;
	uint64_t pss_bytes;    /* 0: may not be read of some */
	uint64_t cgroup_bytes; /* 0: not counted */
	bool by_cgroup;	       /* cgroup is there */
	/* Processes came or went: since tgt_open(), or in a difference. */
	bool changed;
};

/*
 * Finds the processes and takes a first look. The caller owns *out
 * (tgt_close()).
 *
 * 0; -EINVAL: a value is wrong; -ESRCH: no such process; -ENXIO: nothing on
 * this machine listens on the address; -EACCES: something does, and whose it is
 * may not be seen; or another -errno. `err` then says which key, which value
 * and what would be right.
 */
int tgt_open(struct tgt **out, const struct tgt_want *want, char *err,
	     size_t len);
void tgt_close(struct tgt **t);

/* What the target is called. Borrowed. */
const char *tgt_name(const struct tgt *t);

/* Where its processes come from: "target.pid_file: FILE". Borrowed. */
const char *tgt_source(const struct tgt *t);

/*
 * What the target has used up to now; what `out` held is freed. About 20 us per
 * process of the machine and 50 us per process of the target.
 *
 * 0; -ESRCH: a process that was named, or the last one, is gone; or another
 * -errno: `out` is as it was and tgt_why() tells.
 */
int tgt_sample(struct tgt *t, struct tgt_sample *out);

/* The last fault of tgt_sample(), as the texts of tgt_open(). Borrowed. */
const char *tgt_why(const struct tgt *t);

/*
 * out = later - earlier. CPU, came, went and taken_ns are differences; memory,
 * threads and states are those of `later`. proc[] holds the processes of
 * `later`, each with its CPU in between; what ended ones used is in `ended`.
 * What `out` held is freed. 0 or -ENOMEM.
 */
int tgt_diff(struct tgt_sample *out, const struct tgt_sample *later,
	     const struct tgt_sample *earlier);

/* Frees what the sample owns; it is then all zero. */
void tgt_fini(struct tgt_sample *s);

#endif
