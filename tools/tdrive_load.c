/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_load.h"

#include "shm/clk.h"
#include "tools/tdrive_count.h"
#include "tools/tdrive_load_int.h"
#include "tools/tdrive_tls.h"
#include "tools/tdrive_tls_rec.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors beside the seats': standard ones, ring, segment, control and
 * signals, what OpenSSL or the resolver may open. */
#define OTHER_FDS 32u

/* Phases that need tickets, or connections held, are ready after so many
 * timeouts even without; each connection to be held has a bit more. */
#define READY_TIMEOUTS 3u
#define READY_SEAT_NS  NS_PER_MS

/* Gathered in a few seconds. */
#define POOL_GOAL_MAX 4000u

/* TLS work between two looks at the ring: what connects are late by at most. */
#define WORK_NS NS_PER_MS

/* As many as the load may come to have, if the hard limit lets it. */
static int raise_nofile(const struct load_want *want, char *err, size_t len)
{
	rlim_t need = want->seats + OTHER_FDS;
	rlim_t like = base_max(want->seats, want->seats_max) + OTHER_FDS;
	struct rlimit limit;

	MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_cur >= like)
		return 0;
	if (limit.rlim_max < need) {
		snprintf(err, len,
			 "%u connections need %llu file descriptors, the hard "
			 "limit is %llu: raise it (ulimit -Hn), or use more "
			 "drivers",
			 want->seats, (unsigned long long)need,
			 (unsigned long long)limit.rlim_max);
		return -EMFILE;
	}
	limit.rlim_cur = base_min(like, limit.rlim_max);
	MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0); /* within the hard one */
	return 0;
}

/* ---- seats ---- */

/* Zeroed: memory checkers do not see what a ring writes. */
static int make_arena(struct load *load, struct load_block *block)
{
	uint8_t *arena = calloc(LOAD_BLOCK, load->in_size);

	if (arena == NULL)
		return -ENOMEM;
	free(block->arena);
	block->arena = arena;
	for (uint32_t i = 0; i < LOAD_BLOCK; i++)
		block->seat[i].in = arena + (size_t)i * load->in_size;
	return 0;
}

static int add_block(struct load *load)
{
	struct load_block **all = realloc(
		load->block, (load->nblocks + 1) * sizeof(*load->block));
	struct load_block *block;

	if (all == NULL)
		return -ENOMEM;
	load->block = all;
	block = calloc(1, sizeof(*block));
	if (block == NULL)
		return -ENOMEM;
	if (make_arena(load, block) != 0) {
		free(block);
		return -ENOMEM;
	}
	load->block[load->nblocks++] = block;
	return 0;
}

static void push_seat(struct load *load, struct seat *seat)
{
	seat->below = load->top;
	load->top = seat;
	load->resting++;
}

int load_add_seat(struct load *load)
{
	struct seat *seat;
	int rc = 0;

	if (load->nseats == load->nblocks * LOAD_BLOCK)
		rc = add_block(load);
	if (rc != 0)
		return rc;
	seat = load_seat(load, load->nseats);
	rc = ctls_conn_new(&seat->tls, load->want.tls);
	if (rc != 0)
		return rc;
	seat->index = load->nseats++;
	seat->fd = -1;
	push_seat(load, seat);
	return 0;
}

struct seat *load_take_seat(struct load *load)
{
	struct seat *seat = load->top;

	if (seat == NULL)
		return NULL;
	load->top = seat->below;
	seat->below = NULL;
	load->resting--;
	return seat;
}

void step_rest(struct load *load, struct seat *seat)
{
	tmr_cancel(&seat->tmr);
	seat_set_state(seat, SEAT_IDLE);
	push_seat(load, seat);
}

/* Buffers of another size, while nothing is lent. */
static int resize_buffers(struct load *load, uint32_t size)
{
	uint32_t before = load->in_size;

	if (size == before)
		return 0;
	load->in_size = size;
	for (uint32_t i = 0; i < load->nblocks; i++)
		if (make_arena(load, load->block[i]) != 0) {
			/* Those made anew are larger than need be, or as
			 * large as before. */
			load->in_size = (uint32_t)base_min(size, before);
			return -ENOMEM;
		}
	return 0;
}

static int make_seats(struct load *load, uint32_t n)
{
	int rc = 0;

	while (load->nseats < n && rc == 0)
		rc = load_add_seat(load);
	return rc;
}

static void free_seats(struct load *load)
{
	for (uint32_t i = 0; i < load->nseats; i++)
		ctls_conn_free(&load_seat(load, i)->tls);
	for (uint32_t i = 0; i < load->nblocks; i++) {
		free(load->block[i]->arena);
		free(load->block[i]);
	}
	free(load->block);
	alive_fini(&load->alive);
	ctls_rec_free(&load->rec);
	free(load);
}

/* ---- open and close ---- */

static void init_timers(struct load *load)
{
	tmr_init(&load->steps, load->want.timeout_ns);
	tmr_init(&load->waits, load->want.ticket_wait_ns);
	tmr_init(&load->thinks, 0);
	tmr_init(&load->work, 0);
	for (uint32_t i = 0; i < SEAT_PAUSES; i++)
		tmr_init(&load->pauses[i], seat_pause_ns(i));
	load->stop_by_ns = TMR_NEVER;
}

int load_open(struct load **out, const struct load_want *want, char *err,
	      size_t len)
{
	uint32_t most = (uint32_t)base_max(want->seats, want->seats_max);
	struct load *load = calloc(1, sizeof(*load));
	int rc = -ENOMEM;

	snprintf(err, len, "out of memory for %u connections", want->seats);
	if (load == NULL)
		return rc;
	load->want = *want;
	load->want.seats_max = most;
	load->want.drivers = (uint32_t)base_max(want->drivers, 1);
	load->in_size = LOAD_IN_SIZE;
	init_timers(load);
	alive_init(&load->alive, want->slot);
	rc = raise_nofile(&load->want, err, len);
	if (rc == 0)
		rc = make_seats(load, want->seats);
	/* A seat has a receive, a send and a cancel in flight at most. */
	if (rc == 0)
		rc = ring_open(&load->ring, 3 * most + LOAD_WATCHES, err, len);
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
	for (uint32_t i = 0; i < (*load)->nseats; i++)
		if (load_seat(*load, i)->fd >= 0)
			close(load_seat(*load, i)->fd);
	free_seats(*load);
	*load = NULL;
}

void load_watch(struct load *load, int fd)
{
	MUST(load->nwatches < LOAD_WATCHES);
	load->unarmed |= 1u << load->nwatches;
	load->watch[load->nwatches++] = fd;
}

/* ---- phases ---- */

/* What no load can do, whoever asks for it. */
static const char *refusal(const struct load *load, const struct load_phase *p)
{
	bool open = p->rate > 0 || p->kind == CFG_KIND_RAMP;

	if (p->transport == CFG_TRANSPORT_TCP && load->want.plain.len == 0)
		return "transport: tcp needs an address that speaks without "
		       "TLS, and there is none";
	if (p->speaks_first == CFG_SPEAKS_SERVER && p->requests > 0)
		return "speaks_first: server has no use with requests";
	if (p->handshake == CFG_HANDSHAKE_RESUMED &&
	    p->ticket_use == CFG_TICKET_USE_CHAIN && open)
		return "ticket_use: chain needs a closed loop: a connection "
		       "waits for the ticket of the one before";
	if (p->kind == CFG_KIND_RAMP && (p->from == 0 || p->step == 0))
		return "kind: ramp needs from and step";
	if (p->kind == CFG_KIND_BURST && p->every_ns == 0)
		return "kind: burst needs every";
	return NULL;
}

/* So many tickets are to be there before an open loop begins: for a second in
 * which none comes back, or a server that stalls would meet full handshakes. */
static uint32_t pool_goal(const struct load *load, const struct load_phase *p)
{
	uint64_t rate = base_max(p->rate, base_max(p->from, p->to));
	uint64_t second = rate / load->want.drivers / 1000;

	if (!load_gathers(p) || p->ticket_use == CFG_TICKET_USE_CHAIN)
		return 0;
	return (uint32_t)base_max(p->seats, base_min(second, POOL_GOAL_MAX));
}

static int prepare(struct load *load, const struct load_phase *p, char *err,
		   size_t len)
{
	bool chain = p->ticket_use == CFG_TICKET_USE_CHAIN;
	uint32_t goal = pool_goal(load, p);
	int rc;

	rc = http_request(
		load->request, p->path != NULL ? p->path : "/", p->body,
		load->want.host != NULL ? load->want.host : "localhost");
	if (rc != 0) {
		snprintf(err, len, "path: too long");
		return rc;
	}
	load->request_len = (uint32_t)strlen(load->request);
	snprintf(err, len, "out of memory for %u connections", p->seats);
	rc = resize_buffers(load, p->kind == CFG_KIND_BULK ? LOAD_BULK_IN_SIZE
							   : LOAD_IN_SIZE);
	if (rc == 0)
		rc = make_seats(load, p->seats);
	/* Full handshakes of a mix bring more than are used. */
	if (rc == 0)
		rc = ctls_keep(load->want.tls, chain,
			       load_gathers(p) && !chain ? 4 * goal + LOAD_BLOCK
							 : 0);
	load->pool_goal = goal;
	return rc != 0 ? rc : record_start(load, p);
}

static uint64_t ready_span(const struct load *load, const struct load_phase *p)
{
	uint64_t span = READY_TIMEOUTS * load->want.timeout_ns;

	if (p->kind == CFG_KIND_IDLE)
		return span + p->seats * READY_SEAT_NS;
	return load_gathers(p) ? span : 0;
}

int load_start(struct load *load, const struct load_phase *phase, char *err,
	       size_t len)
{
	const char *why = refusal(load, phase);
	int rc;

	MUST(load_idle(load) && phase->seats <= load->want.seats_max);
	if (why != NULL) {
		snprintf(err, len, "%s", why);
		return -EINVAL;
	}
	rc = prepare(load, phase, err, len);
	if (rc != 0)
		return rc;
	load->phase = *phase;
	load->phase.path = NULL; /* was lent for the call */
	load->phase.most = (uint32_t)base_min(
		base_max(phase->most, phase->seats), load->want.seats_max);
	load->running = true;
	load->stop_by_ns = TMR_NEVER;
	load->ready_by_ns = clk_now() + ready_span(load, phase);
	load->primed = 0;
	load->notes = 0;
	tmr_init(&load->thinks, phase->think_ns);
	for (uint32_t i = 0; i < load->nseats; i++) {
		struct seat *seat = load_seat(load, i);

		ctls_drop(seat->tls);
		seat->primed = false;
		seat->fails = 0;
	}
	pace_start(load);
	return 0;
}

void load_stop(struct load *load)
{
	load->running = false;
	load->stop_by_ns = clk_now() + load->want.timeout_ns;
	for (uint32_t i = 0; i < load->nseats; i++) {
		struct seat *seat = load_seat(load, i);

		if (seat->state == SEAT_PAUSE || seat->state == SEAT_HOLD ||
		    seat->state == SEAT_THINK)
			step_abort(load, seat);
	}
}

bool load_primed(const struct load *load)
{
	if (load->phase.kind == CFG_KIND_IDLE)
		return load->holding == load->phase.seats;
	if (load->primed < load->phase.seats)
		return false;
	return !load->priming;
}

bool load_ready(const struct load *load)
{
	return load_primed(load) || clk_now() >= load->ready_by_ns;
}

uint64_t load_ready_by(const struct load *load)
{
	return load->ready_by_ns;
}

/* ---- notes ---- */

void load_tell(struct load *load, const char *format, ...)
{
	uint32_t at = (load->note_first + load->notes) % LOAD_NOTES;
	va_list args;

	va_start(args, format);
	vsnprintf(load->note[at], LOAD_NOTE_MAX, format, args);
	va_end(args);
	if (load->notes < LOAD_NOTES)
		load->notes++;
	else
		load->note_first = (load->note_first + 1) % LOAD_NOTES;
}

bool load_note(struct load *load, char to[static LOAD_NOTE_MAX])
{
	if (load->notes == 0)
		return false;
	memcpy(to, load->note[load->note_first], LOAD_NOTE_MAX);
	load->note_first = (load->note_first + 1) % LOAD_NOTES;
	load->notes--;
	return true;
}

bool load_idle(const struct load *load)
{
	return load->resting == load->nseats;
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

	first = base_min(first, load->alive.shown_ns + ALIVE_HEARTBEAT_NS);
	first = base_min(first, tmr_due(&load->work));
	first = base_min(first, tmr_due(&load->steps));
	first = base_min(first, tmr_due(&load->waits));
	first = base_min(first, tmr_due(&load->thinks));
	first = base_min(first, pace_due(load));
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
	expire_list(load, &load->thinks, now);
	for (uint32_t i = 0; i < SEAT_PAUSES; i++)
		expire_list(load, &load->pauses[i], now);
	if (now < load->stop_by_ns)
		return;
	load->stop_by_ns = TMR_NEVER;
	for (uint32_t i = 0; i < load->nseats; i++)
		step_abort(load, load_seat(load, i));
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
	MUST(op < SEAT_OPS && index < load->nseats);
	step_complete(load, load_seat(load, index), (enum seat_op)op, res,
		      flags);
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
	pace_turn(load, now);
	alive_show(&load->alive, now, worked || n > 0);
	if (n > 0)
		count_turn(load->want.slot, n, overflow);
	return ready;
}
