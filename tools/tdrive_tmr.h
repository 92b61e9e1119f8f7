/* SPDX-License-Identifier: MIT */
/*
 * Deadlines. All timers of a list last equally long, so a new one is always the
 * last to be due: a list in the order of setting is a list in the order of
 * deadlines, and setting, cancelling and looking at the first cost no search.
 */
#ifndef TOOLS_TDRIVE_TMR_H
#define TOOLS_TDRIVE_TMR_H

#include <stdint.h>

#define TMR_NEVER UINT64_MAX

struct tmr {
	struct tmr *prev, *next; /* borrowed; NULL when not set */
	uint64_t due_ns;
};

struct tmr_list {
	struct tmr head; /* a ring: head.next is due first */
	uint64_t span_ns;
};

/* Empty; the list must not move afterwards. */
void tmr_init(struct tmr_list *list, uint64_t span_ns);

/* Due span_ns after `now` (clk_now(), never falling). Sets again if set. */
void tmr_set(struct tmr_list *list, struct tmr *tmr, uint64_t now);

/* Also when it is not set. */
void tmr_cancel(struct tmr *tmr);

/* When the first is due; TMR_NEVER if there is none. */
uint64_t tmr_due(const struct tmr_list *list);

/* Takes out and returns the first that is due at `now`, or NULL. */
struct tmr *tmr_pop(struct tmr_list *list, uint64_t now);

#endif
