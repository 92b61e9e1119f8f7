/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_tmr.h"

#include <stddef.h>

void tmr_init(struct tmr_list *list, uint64_t span_ns)
{
	list->head.prev = &list->head;
	list->head.next = &list->head;
	list->head.due_ns = TMR_NEVER;
	list->span_ns = span_ns;
}

void tmr_set(struct tmr_list *list, struct tmr *tmr, uint64_t now)
{
	tmr_cancel(tmr);
	tmr->due_ns = now + list->span_ns;
	tmr->prev = list->head.prev;
	tmr->next = &list->head;
	tmr->prev->next = tmr;
	list->head.prev = tmr;
}

void tmr_cancel(struct tmr *tmr)
{
	if (tmr->next == NULL)
		return;
	tmr->prev->next = tmr->next;
	tmr->next->prev = tmr->prev;
	tmr->prev = NULL;
	tmr->next = NULL;
}

uint64_t tmr_due(const struct tmr_list *list)
{
	return list->head.next->due_ns; /* the head's own is TMR_NEVER */
}

struct tmr *tmr_pop(struct tmr_list *list, uint64_t now)
{
	struct tmr *first = list->head.next;

	if (first == &list->head || first->due_ns > now)
		return NULL;
	tmr_cancel(first);
	return first;
}
