/* SPDX-License-Identifier: MIT */
#include "workers/tmr.h"

#include "shm/base.h"

void tmr_init(struct tmr_list *list, uint64_t duration_ns)
{
	list->head.prev = &list->head;
	list->head.next = &list->head;
	list->head.due_ns = TMR_NEVER;
	list->duration_ns = duration_ns;
}

void tmr_cancel(struct tmr *t)
{
	if (!tmr_armed(t))
		return;
	t->prev->next = t->next;
	t->next->prev = t->prev;
	t->prev = NULL;
	t->next = NULL;
}

void tmr_arm(struct tmr_list *list, struct tmr *t, uint64_t now)
{
	struct tmr *last;

	tmr_cancel(t);
	last = list->head.prev;
	t->due_ns = now + list->duration_ns;
	/* The order holds only as long as the clock does not go back. */
	MUST(last == &list->head || last->due_ns <= t->due_ns);
	t->prev = last;
	t->next = &list->head;
	last->next = t;
	list->head.prev = t;
}

struct tmr *tmr_pop(struct tmr_list *list, uint64_t now)
{
	struct tmr *first = list->head.next;

	if (first == &list->head || first->due_ns > now)
		return NULL;
	tmr_cancel(first);
	return first;
}

uint64_t tmr_next(const struct tmr_list *list)
{
	return list->head.next->due_ns; /* the head itself: never */
}
