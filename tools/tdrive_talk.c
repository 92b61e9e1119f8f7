/* SPDX-License-Identifier: MIT */
/*
 * What a connection says once it is up: requests and their answers, the first
 * byte of a server that speaks first, or nothing. The hot path, as
 * tdrive_step.c.
 */
#include "tools/tdrive_load_int.h"

#include "shm/clk.h"
#include "tools/tdrive_tls.h"

static void enter(struct seat *seat, enum seat_state state)
{
	if (seat->state != state)
		seat_set_state(seat, state);
}

/* All that the phase wanted of this connection is done. */
static void done(struct load *load, struct seat *seat, uint64_t now)
{
	uint64_t ns = now - seat->due_ns;

	seat->awaits = false;
	if (!seat->gathers) {
		count_latency(load->want.slot, ns);
		pace_done(load, ns);
	}
	if (load->phase.kind == CFG_KIND_IDLE && load->running) {
		tmr_cancel(&seat->tmr);
		seat_set_state(seat, SEAT_HOLD);
		load->holding++;
	} else if ((seat->wants_ticket && !seat->got_ticket) || seat->more) {
		seat_set_state(seat, SEAT_TICKET);
		tmr_set(&load->waits, &seat->tmr, now);
	} else {
		step_end(load, seat, COUNT_CLOSED_SELF);
	}
}

/* ---- requests ---- */

void talk_write(struct load *load, struct seat *seat)
{
	enum ctls_result result;

	seat->unwritten = false;
	if (load_is_plain(load)) {
		seat->plain_from = 0;
		return;
	}
	result = ctls_write(seat->tls, load->request, load->request_len);
	if (result == CTLS_ERR)
		step_end(load, seat, COUNT_TLS_ERROR);
	else
		seat->unwritten = result != CTLS_OK;
}

static void ask(struct load *load, struct seat *seat, uint64_t now)
{
	enter(seat, SEAT_TALK);
	seat->awaits = true;
	seat->asked_ns = now;
	http_expect(&seat->answer);
	tmr_set(&load->steps, &seat->tmr, now);
	talk_write(load, seat);
}

void talk_ask(struct load *load, struct seat *seat)
{
	ask(load, seat, clk_now());
	if (seat->state == SEAT_TALK)
		step_listen(load, seat);
}

static void answered(struct load *load, struct seat *seat)
{
	uint64_t now = clk_now();

	seat->awaits = false;
	count_request(load->want.slot, now - seat->asked_ns,
		      !http_is_good(&seat->answer), step_bytes(seat));
	if (seat->left != CFG_UNLIMITED)
		seat->left--;
	if (seat->left == 0 || !load->running || http_closes(&seat->answer)) {
		done(load, seat, now);
	} else if (load->phase.think_ns > 0) {
		seat_set_state(seat, SEAT_THINK);
		tmr_set(&load->thinks, &seat->tmr, now);
	} else {
		ask(load, seat, now);
	}
}

static void answer_is_bad(struct load *load, struct seat *seat)
{
	seat->awaits = true; /* for step_end() to count it */
	seat->fails++;
	step_end(load, seat, COUNT_CLOSED_SELF);
}

static void hear(struct load *load, struct seat *seat, const uint8_t *p,
		 size_t n)
{
	size_t used;

	switch (http_read(&seat->answer, p, n, &used)) {
	case HTTP_MORE:
		/* As long as it goes on it is not late. */
		tmr_set(&load->steps, &seat->tmr, clk_now());
		if (seat->recv_bytes >= LOAD_MOVED_SIZE)
			count_moved(load->want.slot, step_bytes(seat));
		return;
	case HTTP_DONE:
		if (used == n)
			answered(load, seat);
		else /* more than was asked for */
			answer_is_bad(load, seat);
		return;
	default:
		answer_is_bad(load, seat);
	}
}

/* Data has come: `n` bytes at p, at least one. */
static void take(struct load *load, struct seat *seat, const uint8_t *p,
		 size_t n)
{
	uint64_t now;

	if (!seat->heard) {
		now = clk_now();
		seat->heard = true;
		count_first_byte(load->want.slot, now - seat->up_ns);
		if (seat->awaits &&
		    load->phase.speaks_first == CFG_SPEAKS_SERVER) {
			done(load, seat, now);
			return;
		}
	}
	if (seat->awaits)
		hear(load, seat, p, n);
}

/* ---- reading ---- */

void talk_begin(struct load *load, struct seat *seat, uint64_t now)
{
	seat->up_ns = now;
	seat->left = load->phase.requests;
	if (load->phase.speaks_first == CFG_SPEAKS_SERVER) {
		seat_set_state(seat, SEAT_TALK);
		seat->awaits = true;
		tmr_set(&load->steps, &seat->tmr, now);
	} else if (seat->left > 0 && !seat->gathers) {
		ask(load, seat, now);
	} else {
		done(load, seat, now);
	}
}

static bool is_over(const struct seat *seat)
{
	return seat->state == SEAT_CLOSE;
}

/* In TICKET: nothing more is to come. */
static bool has_all(const struct seat *seat)
{
	return seat->state == SEAT_TICKET && !seat->more &&
	       (seat->got_ticket || !seat->wants_ticket);
}

void talk_read(struct load *load, struct seat *seat)
{
	enum ctls_result result;
	size_t n;

	do {
		result = ctls_read(seat->tls, load->plain, sizeof(load->plain),
				   &n);
		step_tickets(load, seat);
		if (n > 0)
			take(load, seat, load->plain, n);
	} while (result == CTLS_OK && !is_over(seat));
	if (is_over(seat))
		return;
	if (result == CTLS_ERR)
		step_end(load, seat, COUNT_TLS_ERROR);
	else if (result == CTLS_EOF)
		step_end(load, seat, COUNT_CLOSED_PEER);
	else if (has_all(seat))
		step_end(load, seat, COUNT_CLOSED_SELF);
	else if (result == CTLS_AGAIN)
		step_listen(load, seat);
}

void talk_plain(struct load *load, struct seat *seat, size_t n)
{
	take(load, seat, seat->in, n);
	if (is_over(seat))
		return;
	if (has_all(seat))
		step_end(load, seat, COUNT_CLOSED_SELF);
	else
		step_listen(load, seat);
}
