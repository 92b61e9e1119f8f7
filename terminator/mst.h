/* SPDX-License-Identifier: MIT */
/*
 * The master: one thread, one loop over signalfd, pidfds, control channels and
 * a timerfd. It holds no connection and never blocks on a child.
 *
 * Signals: SIGINT ends and gives what was measured; SIGTERM drains first;
 * SIGHUP makes new ticket keys; a second SIGINT or SIGTERM ends at once.
 */
#ifndef TERMINATOR_MST_H
#define TERMINATOR_MST_H

#include "config/cfg.h"
#include "config/plan.h"
#include "shm/seg.h"
#include "terminator/res.h"

#include <stdbool.h>
#include <stdint.h>

struct mst;

#define MST_ERR_MAX 1024

/* What a run leaves behind, for the table and the result file. */
struct mst_report {
	struct res_phase *phase; /* owns; one per phase that was measured */
	uint32_t nphase;
	struct res_doubts doubts; /* of the run as a whole */
	uint64_t started_real_ns; /* clk_realtime() */
	bool interrupted;
	bool served; /* no phases: phase[0] is the whole time of serving */
};

/*
 * Everything before the first fork: limits, ring probe, ticket keys, TLS
 * context, listeners, segment. On failure one sentence in err (MST_ERR_MAX).
 * 0, and the caller owns *out; -EINVAL when the scenario is at fault; or
 * another -errno.
 */
int mst_open(struct mst **out, const struct cfg *cfg, bool progress, char *err);

/* Forks, runs all phases (or serves), ends all children. 0 or -errno, and what
 * was measured in *report in any case (mst_report_fini()). */
int mst_run(struct mst *mst, struct mst_report *report, char *err);
void mst_report_fini(struct mst_report *report);

/* Ends what is left, unlinks the segment. */
void mst_close(struct mst **mst);

/* Borrowed, until mst_close(). */
const struct shm_seg *mst_seg(const struct mst *mst);
const struct plan *mst_plan(const struct mst *mst);
const struct plan_cpus *mst_cpus(const struct mst *mst);
const char *mst_ring(const struct mst *mst); /* io_uring features in use */
uint32_t mst_backlog(const struct mst *mst);

#endif
