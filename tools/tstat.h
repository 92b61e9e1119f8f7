/* SPDX-License-Identifier: MIT */
/*
 * tstat: a reader of the segment. It takes one consistent copy of every slot
 * and prints it, as a table or as JSON; it never writes to the segment, locks
 * nothing and leaves the workers alone.
 */
#ifndef TOOLS_TSTAT_H
#define TOOLS_TSTAT_H

#include "shm/seg.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- what is there (tstat_view.c) ---- */

/* One look at a segment. */
struct view {
	const struct shm_seg *seg; /* borrowed */
	struct shm_info info;
	struct shm_phase phase;
	bool alive; /* its master */
	uint64_t now_ns;
	uint32_t n;
	struct shm_snap *snap; /* owned: one for each slot ever used */
	struct shm_snap workers, drivers; /* owned: totals */
	uint32_t nworkers, ndrivers;
};

/* 0 or -ENOMEM; ends with view_fini(). */
int view_take(struct view *v, const struct shm_seg *seg);
void view_fini(struct view *v);

/* accepted (or started) = full + resumed + failed + in progress */
struct identity {
	uint64_t begun, full, resumed, failed, in_progress;
	bool holds;
};

struct identity view_identity(const struct view *v, const struct shm_snap *s);

/* Since the segment was made; 0 if it says it was made later than now. */
uint64_t view_up_ns(const struct view *v);
/* What is left of the phase's present state; 0 if it has no fixed end. */
uint64_t view_left_ns(const struct view *v);

const char *view_role(uint32_t role);
const char *view_slot_state(uint32_t state);
const char *view_phase_state(const struct shm_phase *p);

/* ---- which segment (tstat_find.c) ---- */

#define FIND_ERR_MAX 1024

/*
 * Attaches to `name`, or to the only running segment if that is NULL, and waits
 * for one up to `wait_ns`. 0; or -errno with one line in `err` that says what
 * is wrong and what to do.
 */
int find_segment(struct shm_seg **out, const char *name, uint64_t wait_ns,
		 char err[static FIND_ERR_MAX]);

/* All segments, one line each. 0 or -errno. */
int find_list(FILE *out);

/* ---- printing ---- */

struct style {
	bool colour;
	bool utf8;
	int width; /* columns */
};

void table_print(FILE *out, const struct view *v, const struct style *style);

/* One JSON object and a newline. 0, or -ENOMEM. */
int json_print(FILE *out, const struct view *v);

/* A text of the segment, without what could steer a terminal. */
void table_text(FILE *out, const char *text);

/* "3.2 s", "4 min 10 s", "2 h 5 min", "3 d 4 h" */
void table_span(char *buf, size_t len, uint64_t ns);

/* ---- the program (tstat_run.c) ---- */

/* What main() does: an exit status. */
int tstat_run(int argc, char **argv);

#endif
