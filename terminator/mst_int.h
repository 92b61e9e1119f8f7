/* SPDX-License-Identifier: MIT */
/* What mst.c and phs.c share; nobody else includes it. */
#ifndef TERMINATOR_MST_INT_H
#define TERMINATOR_MST_INT_H

#include "terminator/kid.h"
#include "terminator/lst.h"
#include "terminator/mst.h"
#include "terminator/smp.h"
#include "workers/tls_ctx.h"

#include <signal.h>

enum mst_state {
	MST_STARTING, /* until every worker accepts */
	MST_SERVING,  /* no load of ours */
	MST_PRIME,
	MST_WARMUP,
	MST_MEASURE,
	MST_SETTLE, /* drivers close their last connections */
	MST_REST,   /* workers see the last of them */
	MST_ENDING, /* children told to end */
	MST_OVER,
};

struct mst {
	const struct cfg *cfg; /* borrows */
	struct plan plan;
	struct plan_cpus cpus;
	char ring[256];
	struct shm_seg *seg;
	struct shm_info info;
	struct lst *lst;
	struct tls_tickets *tickets;
	struct tls_srv *tls;
	int config_fd, trust_fd;
	char driver_path[4096];
	struct kid *kids; /* owns; workers, then drivers; index = slot */
	uint32_t nkids;
	int epoll_fd, signal_fd, timer_fd;
	sigset_t old_mask;
	bool progress, progress_shown;

	enum mst_state state;
	uint64_t deadline_ns;	 /* of the state; 0: none */
	uint64_t tickets_due_ns; /* next tls_tickets_tick() */
	uint64_t rest_poll_ns;
	uint64_t progress_ns;
	uint64_t state_began_ns;
	uint64_t hs_at_begin;
	bool stopping; /* SIGINT, SIGTERM or a failure: no further phase */
	bool drain;
	uint32_t signals;
	uint32_t phase; /* index of the running one */
	struct smp rest_before, begin, end, rest_after;
	bool cut; /* the window was cut short */
	struct slc slices;
	uint64_t slice_due_ns;	   /* in MST_MEASURE */
	struct res_doubts pending; /* doubts of the running phase */
	struct mst_report *report;
	char fault[MST_ERR_MAX]; /* why the run failed; "" if it did not */
};

/* phs.c: the phases. Each is called by the loop. */
void phs_workers_ready(struct mst *m); /* all workers accept: begin */
void phs_driver_said(struct mst *m);   /* a driver became ready or idle */
void phs_deadline(struct mst *m);      /* the state's deadline passed */
void phs_poll_rest(struct mst *m);     /* MST_REST: look again */
void phs_slice(struct mst *m);	       /* MST_MEASURE: a slice is over */
void phs_stop(struct mst *m);	       /* asked to end, or a failure */
void phs_ended(struct mst *m);	       /* all children are gone */

/* mst.c */
void mst_enter(struct mst *m, enum mst_state state, uint64_t lasts_ns);
void mst_end_children(struct mst *m);
void mst_fail(struct mst *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
uint64_t mst_handshakes(const struct mst *m);

/* prg.c: the line on the terminal. */
void prg_show(struct mst *m);
void prg_clear(struct mst *m);

#endif
