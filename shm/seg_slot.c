/* SPDX-License-Identifier: MIT */
/* Slots from the master's side: before a process has one, and after it died. */
#include "shm/seg_int.h"

#include "shm/clk.h"

#include <string.h>

struct shm_slot *shm_seg_slot(struct shm_seg *seg, uint32_t index)
{
	const struct seg_head *h = &seg->head;

	MUST(seg->writable && index < h->nslots);
	return (struct shm_slot *)(void *)(seg->map + h->slot_offset +
					   (size_t)index * h->slot_size);
}

/* As shm_begin(), but a dead writer may have left its event open. */
static bool take_slot(struct shm_slot *slot)
{
	bool half_done =
		atomic_load_explicit(&slot->seq, memory_order_relaxed) % 2 != 0;

	if (!half_done)
		shm_begin(slot);
	return half_done;
}

#define SET(member, value) \
	atomic_store_explicit(&(member), (value), memory_order_relaxed)
#define GET(member) atomic_load_explicit(&(member), memory_order_relaxed)

void shm_slot_assign(struct shm_slot *slot, enum shm_role role, uint32_t number,
		     pid_t pid, int cpu)
{
	uint64_t now = clk_now();

	take_slot(slot);
	SET(slot->role, role);
	SET(slot->number, number);
	SET(slot->pid, pid);
	SET(slot->cpu, cpu);
	SET(slot->state, SHM_SLOT_STARTING);
	SET(slot->generation, GET(slot->generation) + 1);
	SET(slot->started_ns, now);
	SET(slot->heartbeat_ns, now);
	shm_end(slot);
}

/* ---- reap ---- */

static _Atomic uint64_t *ctr_at(struct shm_slot *slot, size_t id)
{
	return (_Atomic uint64_t *)&slot->ctr + id;
}

static struct hist *hist_at(struct shm_slot *slot, size_t id)
{
	return (struct hist *)&slot->hist + id;
}

/* The counter that a histogram is tied to; NULL for none. */
static _Atomic uint64_t *tied(struct shm_slot *slot, size_t hist_id)
{
	const char *name = ctr_descs[CTR_IDS + hist_id].counter;

	for (size_t i = 0; i < CTR_IDS; i++)
		if (strcmp(ctr_descs[i].name, name) == 0)
			return ctr_at(slot, i);
	return NULL;
}

/*
 * The dead process had counted its event here but not yet there. What the value
 * was is not known: the mean takes its place, so that the count is right and
 * percentiles are off by one value of many.
 */
static void fill_up(struct hist *h, uint64_t count)
{
	struct hist_view v;
	uint64_t mean;

	hist_copy(&v, h);
	mean = (uint64_t)hist_mean(&v);
	for (uint64_t n = hist_count(&v); n < count; n++)
		hist_record(h, mean);
}

/*
 * Writers store an event's histograms before its counters: a histogram may be
 * ahead of its counter, or of another histogram of the same counter.
 */
static void finish_event(struct shm_slot *slot)
{
	struct hist_view v;

	for (size_t i = 0; i < HIST_IDS; i++) {
		_Atomic uint64_t *c = tied(slot, i);

		if (c == NULL)
			continue;
		hist_copy(&v, hist_at(slot, i));
		ctr_raise(c, hist_count(&v));
	}
	for (size_t i = 0; i < HIST_IDS; i++) {
		_Atomic uint64_t *c = tied(slot, i);

		if (c != NULL)
			fill_up(hist_at(slot, i), GET(*c));
	}
}

static uint64_t sum_failed(struct shm_slot *slot)
{
	uint64_t n = 0;

	for (size_t i = 0; i < CTR_IDS; i++)
		if (ctr_is_failure(&ctr_descs[i]))
			n += GET(*ctr_at(slot, i));
	return n;
}

/*
 * By the sums and not by the gauge, which may lag behind them by the event that
 * was under way: so the identity holds whatever was stored of it.
 */
static void close_handshakes(struct shm_slot *slot)
{
	struct ctr_block *c = &slot->ctr;
	uint64_t begun = GET(c->conn_accepted) + GET(c->conn_started);
	uint64_t ended =
		GET(c->hs_full) + GET(c->hs_resumed) + sum_failed(slot);

	if (begun >= ended)
		ctr_add(&c->failed_died, begun - ended);
	else
		ctr_add(GET(slot->role) == SHM_DRIVER ? &c->conn_started
						      : &c->conn_accepted,
			ended - begun);
}

/* Past the handshake a connection ends in one of these. */
static void close_connections(struct shm_slot *slot)
{
	struct ctr_block *c = &slot->ctr;
	uint64_t plain = GET(slot->role) == SHM_WORKER ? GET(c->conn_plain) : 0;
	uint64_t past = GET(c->hs_full) + GET(c->hs_resumed) + plain;
	uint64_t ended = GET(c->conn_closed_peer) + GET(c->conn_closed_self) +
			 GET(c->conn_reset) + GET(c->conn_idle_timeout) +
			 GET(c->conn_tls_error) + GET(c->died_open);

	if (past > ended)
		ctr_add(&c->died_open, past - ended);
}

static void clear_gauges(struct shm_slot *slot)
{
	for (size_t i = 0; i < CTR_IDS; i++)
		if (ctr_descs[i].kind == CTR_GAUGE)
			ctr_set(ctr_at(slot, i), 0);
}

void shm_slot_reap(struct shm_slot *slot, enum shm_slot_state state)
{
	bool half_done = take_slot(slot);

	if (half_done)
		finish_event(slot);
	close_handshakes(slot);
	close_connections(slot);
	clear_gauges(slot);
	SET(slot->pid, 0);
	SET(slot->state, state);
	shm_end(slot);
}
