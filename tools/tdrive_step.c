/* SPDX-License-Identifier: MIT */
/*
 * What a seat does: one function per state and completion. Everything here is
 * the hot path: no allocation but the TLS library's, no log, and no system call
 * outside the ring but those that make a socket.
 */
#include "tools/tdrive_load_int.h"

#include "shm/clk.h"
#include "tools/tdrive_count.h"
#include "tools/tdrive_tls.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

/* ---- requests ---- */

static struct io_uring_sqe *request(struct load *load, struct seat *seat,
				    enum seat_op op)
{
	MUST(!seat_flies(seat, op));
	seat->flying |= 1u << op;
	return ring_sqe(&load->ring);
}

static void mark(struct io_uring_sqe *sqe, const struct seat *seat,
		 enum seat_op op)
{
	io_uring_sqe_set_data64(sqe, (uint64_t)seat->index << LOAD_OP_BITS |
					     (uint64_t)op);
}

static void ask_recv(struct load *load, struct seat *seat)
{
	struct io_uring_sqe *sqe = request(load, seat, SEAT_OP_RECV);

	io_uring_prep_recv(sqe, seat->fd, seat->in, load->in_size, 0);
	mark(sqe, seat, SEAT_OP_RECV);
}

/* What is unsent: its length, 0 when there is nothing. */
static size_t unsent(struct load *load, struct seat *seat, const uint8_t **out)
{
	if (!load_is_plain(load))
		return ctls_out(seat->tls, out);
	*out = (const uint8_t *)load->request + seat->plain_from;
	return load->request_len - seat->plain_from;
}

/* Everything unsent in one send, unless one is under way or has failed. */
static void ask_send(struct load *load, struct seat *seat)
{
	struct io_uring_sqe *sqe;
	const uint8_t *out;
	size_t len;

	if (seat_flies(seat, SEAT_OP_SEND) || seat->send_error != 0)
		return;
	len = unsent(load, seat, &out);
	if (len == 0)
		return;
	sqe = request(load, seat, SEAT_OP_SEND);
	io_uring_prep_send(sqe, seat->fd, out, len, MSG_WAITALL | MSG_NOSIGNAL);
	mark(sqe, seat, SEAT_OP_SEND);
}

void step_listen(struct load *load, struct seat *seat)
{
	ask_send(load, seat);
	if (!seat_flies(seat, SEAT_OP_RECV))
		ask_recv(load, seat);
}

static void ask_close(struct load *load, struct seat *seat)
{
	struct io_uring_sqe *sqe = request(load, seat, SEAT_OP_CLOSE);
	const struct linger reset = {.l_onoff = 1};

	if (load->phase.close == CFG_CLOSE_RST)
		setsockopt(seat->fd, SOL_SOCKET, SO_LINGER, &reset,
			   sizeof(reset));
	io_uring_prep_close(sqe, seat->fd);
	mark(sqe, seat, SEAT_OP_CLOSE);
	seat->fd = -1;
}

/* Once per connection: takes back what the kernel still holds of it. */
static void ask_cancel(struct load *load, struct seat *seat)
{
	struct io_uring_sqe *sqe;

	if (seat->flying == 0 || seat->fd < 0 || seat->cancelled)
		return;
	seat->cancelled = true;
	sqe = request(load, seat, SEAT_OP_CANCEL);
	io_uring_prep_cancel_fd(sqe, seat->fd, IORING_ASYNC_CANCEL_ALL);
	mark(sqe, seat, SEAT_OP_CANCEL);
}

struct count_bytes step_bytes(struct seat *seat)
{
	struct count_bytes bytes = {seat->recv_bytes, seat->sent_bytes};

	seat->recv_bytes = 0;
	seat->sent_bytes = 0;
	return bytes;
}

/* ---- the end of a connection ---- */

/* In CLOSE, with nothing in flight and no socket: what comes next. */
static void next(struct load *load, struct seat *seat)
{
	struct count_bytes bytes = step_bytes(seat);

	if (bytes.in + bytes.out > 0)
		count_moved(load->want.slot, bytes);
	ctls_end(seat->tls);
	pace_next(load, seat);
}

/* In CLOSE: takes the next step towards a closed socket, if it can. */
static void wind_up(struct load *load, struct seat *seat)
{
	ask_send(load, seat);
	if (seat_flies(seat, SEAT_OP_RECV) || seat_flies(seat, SEAT_OP_CONNECT))
		ask_cancel(load, seat);
	if (seat->flying != 0)
		return;
	if (seat->fd >= 0)
		ask_close(load, seat);
	else
		next(load, seat);
}

static void leave(struct load *load, struct seat *seat)
{
	tmr_cancel(&seat->tmr);
	tmr_cancel(&seat->work);
	load->holding -= seat->state == SEAT_HOLD;
	seat->unwritten = false;
	seat_set_state(seat, SEAT_CLOSE);
}

/* The handshake or the connect failed: counted, and the alert is sent. */
static void fail(struct load *load, struct seat *seat, enum count_fail why)
{
	struct shm_slot *slot = load->want.slot;

	seat->fails++;
	leave(load, seat);
	record_end(load, seat, false);
	if (load_is_plain(load))
		count_plain_failed(slot, why);
	else
		count_failed(slot, why, seat->crypto_ns, step_bytes(seat));
	if (ctls_signed(seat->tls))
		count_signed(slot);
	wind_up(load, seat);
}

/* A connection that was to be kept and was not: as a failure, it pauses. */
static bool was_held(const struct seat *seat, enum count_end how)
{
	return seat->state == SEAT_HOLD && how != COUNT_CLOSED_SELF;
}

void step_end(struct load *load, struct seat *seat, enum count_end how)
{
	bool missed = seat->state == SEAT_TICKET && seat->wants_ticket &&
		      !seat->got_ticket;

	seat->fails += was_held(seat, how);
	leave(load, seat);
	record_end(load, seat, true);
	load->missed += missed;
	if (seat->awaits)
		count_bad(load->want.slot, 1);
	seat->awaits = false;
	if (load->phase.close == CFG_CLOSE_NOTIFY && how == COUNT_CLOSED_SELF &&
	    !load_is_plain(load))
		ctls_notify(seat->tls);
	count_ended(load->want.slot, how, missed, step_bytes(seat));
	wind_up(load, seat);
}

/* ---- connect ---- */

static const struct addr_target *target_of(const struct load *load)
{
	return load_is_plain(load) ? &load->want.plain : &load->want.target;
}

/* 0, or -errno: the address that the next connection comes from. */
static int bind_source(struct load *load, int fd)
{
	const struct load_want *want = &load->want;
	const struct addr_target *target = target_of(load);
	const int on = 1;
	uint64_t turn = load->sources;
	struct addr_target from;

	if (want->nsources > 0)
		from = want->source[(want->driver + turn) % want->nsources];
	else if (addr_rotates(target))
		from = addr_source(target, want->driver, turn);
	else
		return 0;
	load->sources++;
	/* The port is chosen at the connect, when the whole 4-tuple counts. */
	if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on,
		       sizeof(on)) != 0 ||
	    bind(fd, &from.sa.any, from.len) != 0)
		return -errno;
	return 0;
}

/* 0, or -errno. The seat owns the socket. */
static int make_socket(struct load *load, struct seat *seat)
{
	const int on = 1;

	seat->fd = socket(target_of(load)->sa.any.sa_family,
			  SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	if (seat->fd < 0)
		return -errno;
	if (setsockopt(seat->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) !=
	    0)
		return -errno;
	return bind_source(load, seat->fd);
}

static enum count_fail connect_cause(int error)
{
	switch (error) {
	case EADDRNOTAVAIL:
	case EADDRINUSE:
		return COUNT_NO_PORT;
	case EMFILE:
	case ENFILE:
		return COUNT_NO_FD;
	case ENOMEM:
	case ENOBUFS:
		return COUNT_INTERNAL;
	default:
		return COUNT_CONNECT;
	}
}

/* Of the connection before nothing stays but the ticket. */
static void clear(struct load *load, struct seat *seat)
{
	seat->cancelled = false;
	seat->send_error = 0;
	seat->got_ticket = false;
	seat->wants_ticket = false;
	seat->more = false;
	seat->heard = false;
	seat->gathers = load->priming;
	seat->crypto_ns = 0;
	seat->hs_in = 0;
	seat->hs_out = 0;
	seat->plain_from = load->request_len;
}

void step_begin(struct load *load, struct seat *seat, uint64_t due_ns)
{
	const struct addr_target *target = target_of(load);
	struct io_uring_sqe *sqe;
	int rc;

	load->started++;
	clear(load, seat);
	seat_set_state(seat, SEAT_CONNECT);
	if (load_is_plain(load))
		count_plain(load->want.slot);
	else
		count_started(load->want.slot);
	rc = make_socket(load, seat);
	if (rc != 0) {
		fail(load, seat, connect_cause(-rc));
		return;
	}
	seat->began_ns = clk_now();
	seat->due_ns = due_ns > 0 ? due_ns : seat->began_ns;
	tmr_set(&load->steps, &seat->tmr, seat->began_ns);
	sqe = request(load, seat, SEAT_OP_CONNECT);
	io_uring_prep_connect(sqe, seat->fd, &target->sa.any, target->len);
	mark(sqe, seat, SEAT_OP_CONNECT);
}

/* ---- handshake ---- */

void step_tickets(struct load *load, struct seat *seat)
{
	uint32_t n = ctls_take_tickets(seat->tls);

	if (n > 0) {
		count_tickets(load->want.slot, n);
		load->tickets += n;
		seat->got_ticket = true;
	}
	if (!seat->primed && ctls_kept(seat->tls)) {
		seat->primed = true;
		load->primed++;
	}
}

/* LEARN: a first round without a single ticket, and a full load needs none. */
static bool given_up(const struct load *load)
{
	return load->want.tickets == LOAD_TICKETS_LEARN && load->tickets == 0 &&
	       load->missed >= base_max(load->phase.seats, 1) &&
	       load->phase.handshake == CFG_HANDSHAKE_FULL;
}

static void done(struct load *load, struct seat *seat)
{
	uint64_t now = clk_now();
	struct count_hs hs = {.time_ns = now - seat->connected_ns,
			      .cpu_ns = seat->crypto_ns,
			      .bytes_in = seat->hs_in - ctls_unread(seat->tls),
			      .bytes_out =
				      seat->hs_out + ctls_unsent(seat->tls)};

	ctls_agreed(seat->tls, &hs);
	seat->fails = 0;
	seat->resumed = hs.resumed;
	seat->wants_ticket = hs.tls13 &&
			     load->want.tickets != LOAD_TICKETS_NONE &&
			     !given_up(load);
	count_done(load->want.slot, &hs, step_bytes(seat));
	step_tickets(load, seat);
	talk_begin(load, seat, now);
	if (seat->state != SEAT_CLOSE)
		talk_read(load, seat);
}

/*
 * TLS work is not done where the completion is found, but in its turn: a step
 * takes some hundred microseconds, and completions behind it would be seen, and
 * their connects timed, so much later.
 */
static void queue_work(struct load *load, struct seat *seat, uint64_t now)
{
	tmr_set(&load->work, &seat->work, now);
}

static bool has_work(const struct seat *seat)
{
	return seat->work.next != NULL;
}

/* One step of the handshake, what was fed is used up. */
static void shake(struct load *load, struct seat *seat)
{
	uint64_t before = clk_thread_cpu();
	enum ctls_result result = ctls_handshake(seat->tls);

	seat->crypto_ns += clk_thread_cpu() - before;
	switch (result) {
	case CTLS_OK:
		done(load, seat);
		break;
	case CTLS_AGAIN:
		step_listen(load, seat);
		break;
	case CTLS_FULL: /* goes on when the send is back */
		ask_send(load, seat);
		break;
	default:
		fail(load, seat, ctls_cause(seat->tls));
		break;
	}
}

static enum ctls_offer offer_of(struct load *load, const struct seat *seat)
{
	if (seat->gathers) /* each one brings a ticket or more */
		return CTLS_OFFER_NONE;
	switch (load->phase.handshake) {
	case CFG_HANDSHAKE_RESUMED:
		return CTLS_OFFER_HELD;
	case CFG_HANDSHAKE_REFUSED:
		return CTLS_OFFER_ALTERED;
	case CFG_HANDSHAKE_MIX:
		if (load->gathered &&
		    mix_next(&load->mix, ctls_holds(seat->tls)))
			return CTLS_OFFER_HELD;
		return CTLS_OFFER_NONE;
	default:
		return CTLS_OFFER_NONE;
	}
}

static void begin_handshake(struct load *load, struct seat *seat)
{
	enum ctls_offer offer = offer_of(load, seat);
	uint64_t before = clk_thread_cpu();
	int rc;

	seat->fresh = false;
	rc = ctls_begin(seat->tls, offer, load_gathers(&load->phase),
			load->phase.kind == CFG_KIND_IDLE);

	seat->crypto_ns += clk_thread_cpu() - before;
	if (rc != 0) {
		fail(load, seat, COUNT_INTERNAL);
		return;
	}
	record_begin(load, seat);
	if (ctls_offered(seat->tls))
		count_offered(load->want.slot);
	shake(load, seat);
}

static void connected(struct load *load, struct seat *seat, int res)
{
	if (res < 0) {
		fail(load, seat, connect_cause(-res));
		return;
	}
	seat->connected_ns = clk_now();
	count_connected(load->want.slot, seat->connected_ns - seat->began_ns);
	if (load_is_plain(load)) {
		seat->fails = 0;
		talk_begin(load, seat, seat->connected_ns);
		if (seat->state != SEAT_CLOSE)
			step_listen(load, seat);
		return;
	}
	tmr_set(&load->steps, &seat->tmr, seat->connected_ns);
	seat_set_state(seat, SEAT_HANDSHAKE);
	seat->fresh = true;
	queue_work(load, seat, seat->connected_ns);
}

/* ---- completions ---- */

/* The connection ended under us: `res` is 0 or -errno. */
static void broken(struct load *load, struct seat *seat, int res)
{
	bool reset = res < 0 || seat->send_error != 0;

	if (seat->state == SEAT_HANDSHAKE)
		fail(load, seat, reset ? COUNT_RESET : COUNT_EOF);
	else
		step_end(load, seat,
			 reset ? COUNT_END_RESET : COUNT_CLOSED_PEER);
}

static void received(struct load *load, struct seat *seat, int res,
		     uint32_t flags)
{
	if (res <= 0) {
		broken(load, seat, res);
		return;
	}
	seat->recv_bytes += (uint64_t)res;
	seat->more = (flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
	if (load_is_plain(load)) {
		talk_plain(load, seat, (size_t)res);
		return;
	}
	if (seat->state == SEAT_HANDSHAKE)
		seat->hs_in += (uint64_t)res;
	ctls_feed(seat->tls, seat->in, (size_t)res);
	queue_work(load, seat, clk_now());
}

void step_work(struct load *load, struct seat *seat)
{
	if (seat->fresh) {
		begin_handshake(load, seat);
		return;
	}
	if (seat->state == SEAT_HANDSHAKE) {
		shake(load, seat);
		return;
	}
	if (seat->unwritten)
		talk_write(load, seat);
	if (seat->state != SEAT_CLOSE)
		talk_read(load, seat);
}

static void note_sent(struct load *load, struct seat *seat, int res)
{
	uint32_t n = res > 0 ? (uint32_t)res : 0;

	if (load_is_plain(load))
		seat->plain_from += n;
	else
		ctls_sent(seat->tls, n);
	if (res <= 0)
		seat->send_error = res != 0 ? res : -EPIPE;
	seat->sent_bytes += n;
	if (seat->state == SEAT_HANDSHAKE)
		seat->hs_out += n;
}

/*
 * A failed send says that the connection is gone; a receive under way will say
 * how (an alert may have come before), so it has the word.
 */
static void sent(struct load *load, struct seat *seat, int res)
{
	note_sent(load, seat, res);
	if (seat->state == SEAT_CLOSE)
		return;
	ask_send(load, seat); /* what was written behind the loan */
	if (has_work(seat))
		return;
	if (seat->send_error != 0) {
		if (!seat_flies(seat, SEAT_OP_RECV))
			broken(load, seat, res);
	} else if (seat->unwritten || !seat_flies(seat, SEAT_OP_RECV)) {
		/* the step had no room for what it was to send */
		queue_work(load, seat, clk_now());
	}
}

void step_complete(struct load *load, struct seat *seat, enum seat_op op,
		   int res, uint32_t flags)
{
	MUST(seat_flies(seat, op));
	seat->flying &= ~(1u << op);
	if (op == SEAT_OP_SEND)
		sent(load, seat, res);
	else if (op == SEAT_OP_CONNECT && seat->state == SEAT_CONNECT)
		connected(load, seat, res);
	else if (op == SEAT_OP_RECV && seat->state != SEAT_CLOSE)
		received(load, seat, res, flags);
	else if (op == SEAT_OP_RECV && res > 0)
		seat->recv_bytes += (uint64_t)res;
	if (seat->state == SEAT_CLOSE)
		wind_up(load, seat);
}

/* ---- from outside ---- */

static bool has_deadline(const struct seat *seat)
{
	return seat->state == SEAT_HANDSHAKE || seat->state == SEAT_TALK ||
	       seat->state == SEAT_TICKET;
}

/* Work that waits is late by our fault, not by the peer's: the deadline moves.
 */
static bool late_by_us(struct load *load, struct seat *seat)
{
	if (!has_work(seat) || !has_deadline(seat))
		return false;
	tmr_set(seat->state == SEAT_TICKET ? &load->waits : &load->steps,
		&seat->tmr, clk_now());
	return true;
}

void step_timeout(struct load *load, struct seat *seat)
{
	if (late_by_us(load, seat))
		return;
	if (seat->state == SEAT_PAUSE)
		pace_again(load, seat);
	else if (seat->state == SEAT_THINK)
		talk_ask(load, seat);
	else if (seat->state == SEAT_CONNECT)
		fail(load, seat, COUNT_CONNECT);
	else if (seat->state == SEAT_HANDSHAKE)
		fail(load, seat, COUNT_TIMEOUT);
	else
		step_end(load, seat, COUNT_CLOSED_SELF);
	if (seat->state == SEAT_CLOSE)
		ask_cancel(load, seat); /* a send that is stuck, too */
}

void step_abort(struct load *load, struct seat *seat)
{
	seat->awaits = false; /* no answer is missed, we end it */
	if (seat->state == SEAT_PAUSE)
		step_rest(load, seat);
	else if (seat->state == SEAT_CONNECT || seat->state == SEAT_HANDSHAKE)
		fail(load, seat, COUNT_DRAIN);
	else if (seat->state != SEAT_IDLE && seat->state != SEAT_CLOSE)
		step_end(load, seat, COUNT_CLOSED_SELF);
	if (seat->state == SEAT_CLOSE)
		ask_cancel(load, seat);
}
