/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_load.h"

#include "shm/clk.h"
#include "tools/tdrive_count.h"
#include "tools/tdrive_load_int.h"
#include "tools/tdrive_tls.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors beside the seats': standard ones, ring, segment, control and
 * signals, what OpenSSL or the resolver may open. */
#define OTHER_FDS 32u

/* CPU time is published when it is this old and there was work. */
#define ALIVE_NS (10 * NS_PER_MS)

/* TLS work between two looks at the ring: what connects are late by at most. */
#define WORK_NS NS_PER_MS

static int raise_nofile(uint32_t seats, char *err, size_t len)
{
	rlim_t need = seats + OTHER_FDS;
	struct rlimit limit;

	MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_cur >= need)
		return 0;
	if (limit.rlim_max < need) {
		snprintf(err, len,
			 "%u connections need %llu file descriptors, the hard "
			 "limit is %llu: raise it (ulimit -Hn), or use more "
			 "drivers",
			 seats, (unsigned long long)need,
			 (unsigned long long)limit.rlim_max);
		return -EMFILE;
	}
	limit.rlim_cur = need;
	MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0); /* within the hard one */
	return 0;
}

static int make_seats(struct load *load)
{
	uint32_t n = load->want.seats;

	if (n == 0)
		return 0;
	load->seats = calloc(n, sizeof(*load->seats));
	/* Zeroed: memory checkers do not see what a ring writes. */
	load->arena = calloc(n, LOAD_IN_SIZE);
	if (load->seats == NULL || load->arena == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct seat *seat = &load->seats[i];
		int rc = ctls_conn_new(&seat->tls, load->want.tls);

		if (rc != 0)
			return rc;
		seat->index = i;
		seat->fd = -1;
		seat->in = load->arena + (size_t)i * LOAD_IN_SIZE;
	}
	load->resting = n;
	return 0;
}

static void free_seats(struct load *load)
{
	for (uint32_t i = 0; load->seats != NULL && i < load->want.seats; i++)
		ctls_conn_free(&load->seats[i].tls);
	free(load->seats);
	free(load->arena);
	free(load);
}

static void init_timers(struct load *load)
{
	tmr_init(&load->steps, load->want.timeout_ns);
	tmr_init(&load->waits, load->want.ticket_wait_ns);
	tmr_init(&load->work, 0);
	for (uint32_t i = 0; i < SEAT_PAUSES; i++)
		tmr_init(&load->pauses[i], seat_pause_ns(i));
	load->stop_by_ns = TMR_NEVER;
}

int load_open(struct load **out, const struct load_want *want, char *err,
	      size_t len)
{
	struct load *load = calloc(1, sizeof(*load));
	int rc = -ENOMEM;

	snprintf(err, len, "out of memory for %u connections", want->seats);
	if (load == NULL)
		return rc;
	load->want = *want;
	load->cpu_before_ns = atomic_load_explicit(&want->slot->ctr.cpu_ns,
						   memory_order_relaxed);
	init_timers(load);
	rc = raise_nofile(want->seats, err, len);
	if (rc == 0)
		rc = make_seats(load);
	/* A seat has a receive, a send and a cancel in flight at most. */
	if (rc == 0)
		rc = ring_open(&load->ring, 3 * want->seats + LOAD_WATCHES, err,
			       len);
	if (rc != 0) {
		free_seats(load);
		return rc;
	}
	*out = load;
	return 0;
}

/*
 * The ring goes first: its end takes back all that was lent, and only then may
 * the buffers go.
 */
void load_close(struct load **load)
{
	if (*load == NULL)
		return;
	ring_close(&(*load)->ring);
	for (uint32_t i = 0; i < (*load)->want.seats; i++)
		if ((*load)->seats[i].fd >= 0)
			close((*load)->seats[i].fd);
	free_seats(*load);
	*load = NULL;
}

void load_watch(struct load *load, int fd)
{
	MUST(load->nwatches < LOAD_WATCHES);
	load->unarmed |= 1u << load->nwatches;
	load->watch[load->nwatches++] = fd;
}

void load_start(struct load *load, enum cfg_handshake handshake)
{
	load->handshake = handshake;
	load->running = true;
	load->stop_by_ns = TMR_NEVER;
	load->primed = 0;
	for (uint32_t i = 0; i < load->want.seats; i++) {
		struct seat *seat = &load->seats[i];

		ctls_drop(seat->tls);
		seat->primed = false;
		if (seat->state != SEAT_IDLE)
			continue;
		seat->fails = 0;
		step_begin(load, seat);
	}
}

void load_stop(struct load *load)
{
	load->running = false;
	load->stop_by_ns = clk_now() + load->want.timeout_ns;
	for (uint32_t i = 0; i < load->want.seats; i++)
		if (load->seats[i].state == SEAT_PAUSE)
			step_abort(load, &load->seats[i]);
}

bool load_primed(const struct load *load)
{
	return load->primed == load->want.seats;
}

bool load_idle(const struct load *load)
{
	return load->resting == load->want.seats;
}

const char *load_ring_mode(const struct load *load)
{
	return load->ring.mode;
}

/* ---- one turn ---- */

static void arm_watches(struct load *load)
{
	for (uint32_t i = 0; load->unarmed != 0; i++) {
		struct io_uring_sqe *sqe;

		if ((load->unarmed & (1u << i)) == 0)
			continue;
		load->unarmed &= ~(1u << i);
		sqe = ring_sqe(&load->ring);
		io_uring_prep_poll_add(sqe, load->watch[i], POLLIN);
		io_uring_sqe_set_data64(sqe, (uint64_t)i << LOAD_OP_BITS |
						     LOAD_OP_WATCH);
	}
}

/* When something is due at the latest. */
static uint64_t due(const struct load *load, uint64_t until_ns)
{
	uint64_t first = base_min(until_ns, load->stop_by_ns);

	first = base_min(first, load->alive_ns + LOAD_HEARTBEAT_NS);
	first = base_min(first, tmr_due(&load->work));
	first = base_min(first, tmr_due(&load->steps));
	first = base_min(first, tmr_due(&load->waits));
	for (uint32_t i = 0; i < SEAT_PAUSES; i++)
		first = base_min(first, tmr_due(&load->pauses[i]));
	return first;
}

static struct seat *seat_of_work(struct tmr *tmr)
{
	return (struct seat *)(void *)((char *)tmr -
				       offsetof(struct seat, work));
}

static void expire_list(struct load *load, struct tmr_list *list, uint64_t now)
{
	struct tmr *tmr;

	/* A timer is its seat's first member. */
	while ((tmr = tmr_pop(list, now)) != NULL)
		step_timeout(load, (struct seat *)(void *)tmr);
}

static void expire(struct load *load, uint64_t now)
{
	expire_list(load, &load->steps, now);
	expire_list(load, &load->waits, now);
	for (uint32_t i = 0; i < SEAT_PAUSES; i++)
		expire_list(load, &load->pauses[i], now);
	if (now < load->stop_by_ns)
		return;
	load->stop_by_ns = TMR_NEVER;
	for (uint32_t i = 0; i < load->want.seats; i++)
		step_abort(load, &load->seats[i]);
}

static void dispatch(struct load *load, uint64_t data, int res, uint32_t flags,
		     uint32_t *ready)
{
	uint32_t index = (uint32_t)(data >> LOAD_OP_BITS);
	uint32_t op = data & ((1u << LOAD_OP_BITS) - 1);

	if (op == LOAD_OP_WATCH) {
		*ready |= 1u << index;
		load->unarmed |= 1u << index;
		return;
	}
	MUST(op < SEAT_OPS && index < load->want.seats);
	step_complete(load, &load->seats[index], (enum seat_op)op, res, flags);
}

/*
 * TLS work for WORK_NS, one step at least. What a step sends leaves at once and
 * not with the turn's end: the server would stand idle meanwhile, and each end
 * would wait for the other.
 */
static bool work(struct load *load)
{
	uint64_t end = clk_now() + WORK_NS;
	bool worked = false;
	struct tmr *tmr;

	while ((tmr = tmr_pop(&load->work, TMR_NEVER - 1)) != NULL) {
		step_work(load, seat_of_work(tmr));
		ring_submit(&load->ring);
		worked = true;
		if (clk_now() >= end)
			break;
	}
	return worked;
}

/* All completions that are there; none of it is TLS work, so it is short. */
static uint64_t reap(struct load *load, uint32_t *ready)
{
	struct io_uring *uring = &load->ring.uring;
	struct io_uring_cqe *cqe;
	uint64_t n = 0;

	while (io_uring_peek_cqe(uring, &cqe) == 0) {
		uint64_t data = io_uring_cqe_get_data64(cqe);
		int res = cqe->res;
		uint32_t flags = cqe->flags;

		io_uring_cqe_seen(uring, cqe);
		dispatch(load, data, res, flags, ready);
		n++;
	}
	return n;
}

static void show_alive(struct load *load, uint64_t now, bool worked)
{
	uint64_t age = now - load->alive_ns;

	if (age < (worked ? ALIVE_NS : LOAD_HEARTBEAT_NS))
		return;
	load->alive_ns = now;
	count_alive(load->want.slot, now,
		    load->cpu_before_ns + clk_process_cpu());
}

uint32_t load_turn(struct load *load, uint64_t until_ns)
{
	uint64_t now = clk_now(), wake = due(load, until_ns), n;
	uint32_t ready = 0;
	bool overflow, worked;

	arm_watches(load);
	ring_wait(&load->ring, wake > now ? wake - now : 0);
	overflow = ring_overflowed(&load->ring);
	n = reap(load, &ready);
	worked = work(load);
	now = clk_now();
	expire(load, now);
	show_alive(load, now, worked || n > 0);
	if (n > 0)
		count_turn(load->want.slot, n, overflow);
	return ready;
}
