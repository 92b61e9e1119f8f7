/* SPDX-License-Identifier: MIT */
/*
 * Timers as first-in-first-out lists. All timers of one list last equally long,
 * so the list is sorted by arming them at its end, and arming, moving and
 * cancelling are a few pointer stores however many there are.
 *
 * Lives in the worker; `now` is the caller's clk_now() and never goes back.
 */
#ifndef WORKERS_TMR_H
#define WORKERS_TMR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TMR_NEVER UINT64_MAX

/* Lies inside what it times; must not move while armed. All zero: not armed. */
struct tmr {
	struct tmr *prev, *next; /* borrowed; NULL while not armed */
	uint64_t due_ns;
};

struct tmr_list {
	struct tmr head; /* ring of the armed ones, oldest first */
	uint64_t duration_ns;
};

void tmr_init(struct tmr_list *list, uint64_t duration_ns);

static inline bool tmr_armed(const struct tmr *t)
{
	return t->next != NULL;
}

/* Ends `duration` after now. An armed timer is moved, also from another list.
 */
void tmr_arm(struct tmr_list *list, struct tmr *t, uint64_t now);

/* Does nothing to a timer that is not armed. */
void tmr_cancel(struct tmr *t);

/* Disarms and returns the oldest timer that is due, or NULL. */
struct tmr *tmr_pop(struct tmr_list *list, uint64_t now);

/* When the oldest one is due; TMR_NEVER for an empty list. */
uint64_t tmr_next(const struct tmr_list *list);

#endif
