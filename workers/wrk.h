/* SPDX-License-Identifier: MIT */
/*
 * A worker: one process, one thread, one ring, pinned to one CPU. The master
 * forks and calls wrk_main() in the child, which makes its ring only then.
 */
#ifndef WORKERS_WRK_H
#define WORKERS_WRK_H

#include "config/cfg.h"
#include "shm/seg.h"

#include <stddef.h>

struct tls_srv;

#define WRK_LISTEN_MAX 32

/* Everything that crosses fork(). All borrowed from the master's copy. */
struct wrk_args {
	const struct cfg *cfg;
	struct shm_slot *slot;	       /* ours; the master has assigned it */
	struct tls_srv *tls;	       /* made before the fork */
	uint32_t number;	       /* worker 0.. */
	int cpu;		       /* to pin to; -1: none */
	int ctl_fd;		       /* shm/ctl.h */
	int listen_fd[WRK_LISTEN_MAX]; /* listening sockets of this worker */
	size_t nlisten;
	size_t nplain; /* the last of these, which serve without TLS */
};

/*
 * Runs until CTL_QUIT, end of file on ctl_fd, or the end of a drain. Sends
 * CTL_READY when its accepts are armed, or CTL_FAIL with the reason. Exits the
 * process with 0 when ended as told, 1 otherwise.
 */
_Noreturn void wrk_main(const struct wrk_args *args);

/*
 * What io_uring offers here, by a trial ring that is closed again. 0 with one
 * line in `features` ("DEFER_TASKRUN SINGLE_ISSUER multishot-accept ..."); or
 * -errno with one line in `err` that names the cause (sysctl
 * kernel.io_uring_disabled, seccomp, RLIMIT_MEMLOCK, kernel too old) and what
 * to do. To be called by the master before it forks.
 */
int wrk_probe(char *features, size_t features_len, char *err, size_t err_len);

/* The state diagram workers/STATES.md, as Markdown. */
void wrk_describe_states(FILE *out);

#endif
