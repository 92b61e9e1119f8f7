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

	io_uring_prep_recv(sqe, seat->fd, seat->in, LOAD_IN_SIZE, 0);
	mark(sqe, seat, SEAT_OP_RECV);
}

/* Everything unsent in one send, unless one is under way or has failed. */
static void ask_send(struct load *load, struct seat *seat)
{
	struct io_uring_sqe *sqe;
	const uint8_t *out;
	size_t len;

	if (seat_flies(seat, SEAT_OP_SEND) || seat->send_error != 0)
		return;
	len = ctls_out(seat->tls, &out);
	if (len == 0)
		return;
	sqe = request(load, seat, SEAT_OP_SEND);
	io_uring_prep_send(sqe, seat->fd, out, len, MSG_WAITALL | MSG_NOSIGNAL);
	mark(sqe, seat, SEAT_OP_SEND);
}

static void ask_close(struct load *load, struct seat *seat)
{
	struct io_uring_sqe *sqe = request(load, seat, SEAT_OP_CLOSE);

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

static struct count_bytes take_bytes(struct seat *seat)
{
	struct count_bytes bytes = {seat->recv_bytes, seat->sent_bytes};

	seat->recv_bytes = 0;
	seat->sent_bytes = 0;
	return bytes;
}

/* ---- the end of a connection ---- */

static bool may_begin(const struct load *load)
{
	return load->running &&
	       (load->want.limit == 0 || load->started < load->want.limit);
}

/* In CLOSE, with nothing in flight and no socket: what comes next. */
static void next(struct load *load, struct seat *seat)
{
	struct count_bytes bytes = take_bytes(seat);

	if (bytes.in + bytes.out > 0)
		count_moved(load->want.slot, bytes);
	ctls_end(seat->tls);
	if (!may_begin(load) || seat->fails == 0) {
		step_begin(load, seat);
		return;
	}
	seat_set_state(seat, SEAT_PAUSE);
	tmr_set(&load->pauses[seat_pause(seat->fails)], &seat->tmr, clk_now());
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

static void leave(struct seat *seat)
{
	tmr_cancel(&seat->tmr);
	tmr_cancel(&seat->work);
	seat_set_state(seat, SEAT_CLOSE);
}

/* The handshake or the connect failed: counted, and the alert is sent. */
static void fail(struct load *load, struct seat *seat, enum count_fail why)
{
	seat->fails++;
	leave(seat);
	count_failed(load->want.slot, why, seat->crypto_ns, take_bytes(seat));
	wind_up(load, seat);
}

static bool waits_for_ticket(const struct seat *seat)
{
	return seat->state == SEAT_TICKET && !seat->got_ticket;
}

/* The connection is over, its handshake was good. */
static void end(struct load *load, struct seat *seat, enum count_end how)
{
	bool missed = waits_for_ticket(seat);

	leave(seat);
	load->missed += missed;
	count_ended(load->want.slot, how, missed, take_bytes(seat));
	wind_up(load, seat);
}

/* ---- connect ---- */

/* 0, or -errno. The seat owns the socket. */
static int make_socket(struct load *load, struct seat *seat)
{
	const struct addr_target *target = &load->want.target;
	const int on = 1;

	seat->fd = socket(target->sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC,
			  IPPROTO_TCP);
	if (seat->fd < 0)
		return -errno;
	if (setsockopt(seat->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) !=
	    0)
		return -errno;
	if (!addr_rotates(target))
		return 0;
	struct sockaddr_in from =
		addr_source(target, load->want.driver, load->sources++);

	/* The port is chosen at the connect, when the whole 4-tuple counts. */
	if (setsockopt(seat->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on,
		       sizeof(on)) != 0 ||
	    bind(seat->fd, (const struct sockaddr *)&from, sizeof(from)) != 0)
		return -errno;
	return 0;
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

static void rest(struct load *load, struct seat *seat)
{
	if (seat->state == SEAT_IDLE)
		return;
	tmr_cancel(&seat->tmr);
	seat_set_state(seat, SEAT_IDLE);
	load->resting++;
}

void step_begin(struct load *load, struct seat *seat)
{
	struct io_uring_sqe *sqe;
	int rc;

	if (!may_begin(load)) {
		rest(load, seat);
		return;
	}
	load->started++;
	load->resting -= seat->state == SEAT_IDLE;
	seat->cancelled = false;
	seat->send_error = 0;
	seat->got_ticket = false;
	seat->more = false;
	seat->crypto_ns = 0;
	seat_set_state(seat, SEAT_CONNECT);
	count_started(load->want.slot);
	rc = make_socket(load, seat);
	if (rc != 0) {
		fail(load, seat, connect_cause(-rc));
		return;
	}
	seat->began_ns = clk_now();
	tmr_set(&load->steps, &seat->tmr, seat->began_ns);
	sqe = request(load, seat, SEAT_OP_CONNECT);
	io_uring_prep_connect(sqe, seat->fd, &load->want.target.sa.any,
			      load->want.target.len);
	mark(sqe, seat, SEAT_OP_CONNECT);
}

/* ---- handshake ---- */

static void begin_ticket(struct load *load, struct seat *seat);

static void note_tickets(struct load *load, struct seat *seat)
{
	uint32_t n = ctls_take_tickets(seat->tls);

	if (n > 0) {
		count_tickets(load->want.slot, n);
		load->tickets += n;
		seat->got_ticket = true;
	}
	if (!seat->primed && ctls_holds(seat->tls)) {
		seat->primed = true;
		load->primed++;
	}
}

static void done(struct load *load, struct seat *seat)
{
	struct count_hs hs = {.resumed = ctls_resumed(seat->tls),
			      .tls13 = ctls_is_tls13(seat->tls),
			      .time_ns = clk_now() - seat->connected_ns,
			      .cpu_ns = seat->crypto_ns};

	seat->fails = 0;
	count_done(load->want.slot, &hs, take_bytes(seat));
	note_tickets(load, seat);
	if (hs.tls13 && load->want.tickets != LOAD_TICKETS_NONE)
		begin_ticket(load, seat);
	else
		end(load, seat, COUNT_CLOSED_SELF);
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
		ask_send(load, seat);
		if (!seat_flies(seat, SEAT_OP_RECV))
			ask_recv(load, seat);
		break;
	case CTLS_FULL: /* goes on when the send is back */
		ask_send(load, seat);
		break;
	default:
		fail(load, seat, ctls_cause(seat->tls));
		break;
	}
}

static void begin_handshake(struct load *load, struct seat *seat)
{
	bool resume = load->handshake == CFG_HANDSHAKE_RESUMED;
	uint64_t before = clk_thread_cpu();
	int rc;

	seat->fresh = false;
	rc = ctls_begin(seat->tls, resume, resume);

	seat->crypto_ns += clk_thread_cpu() - before;
	if (rc != 0) {
		fail(load, seat, COUNT_INTERNAL);
		return;
	}
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
	tmr_set(&load->steps, &seat->tmr, seat->connected_ns);
	seat_set_state(seat, SEAT_HANDSHAKE);
	count_connected(load->want.slot, seat->connected_ns - seat->began_ns);
	seat->fresh = true;
	queue_work(load, seat, seat->connected_ns);
}

/* ---- ticket ---- */

/* LEARN: a first round without a single ticket, and a full load needs none. */
static bool given_up(const struct load *load)
{
	return load->want.tickets == LOAD_TICKETS_LEARN && load->tickets == 0 &&
	       load->missed >= load->want.seats &&
	       load->handshake == CFG_HANDSHAKE_FULL;
}

/* What has arrived so far is read: on with it, or the end. */
static void read_on(struct load *load, struct seat *seat)
{
	enum ctls_result result = ctls_read(seat->tls);

	note_tickets(load, seat);
	if (result == CTLS_ERR) {
		end(load, seat, COUNT_TLS_ERROR);
		return;
	}
	if (result == CTLS_EOF) {
		end(load, seat, COUNT_CLOSED_PEER);
		return;
	}
	ask_send(load, seat);
	if (seat->got_ticket && !seat->more)
		end(load, seat, COUNT_CLOSED_SELF);
	else if (result == CTLS_AGAIN && !seat_flies(seat, SEAT_OP_RECV))
		ask_recv(load, seat);
}

static void begin_ticket(struct load *load, struct seat *seat)
{
	if (given_up(load)) {
		end(load, seat, COUNT_CLOSED_SELF);
		return;
	}
	seat_set_state(seat, SEAT_TICKET);
	tmr_set(&load->waits, &seat->tmr, clk_now());
	read_on(load, seat);
}

/* ---- completions ---- */

/* The connection ended under us: `res` is 0 or -errno. */
static void broken(struct load *load, struct seat *seat, int res)
{
	bool reset = res < 0 || seat->send_error != 0;

	if (seat->state == SEAT_HANDSHAKE)
		fail(load, seat, reset ? COUNT_RESET : COUNT_EOF);
	else
		end(load, seat, reset ? COUNT_END_RESET : COUNT_CLOSED_PEER);
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
	ctls_feed(seat->tls, seat->in, (size_t)res);
	queue_work(load, seat, clk_now());
}

void step_work(struct load *load, struct seat *seat)
{
	if (seat->fresh)
		begin_handshake(load, seat);
	else if (seat->state == SEAT_HANDSHAKE)
		shake(load, seat);
	else
		read_on(load, seat);
}

/*
 * A failed send says that the connection is gone; a receive under way will say
 * how (an alert may have come before), so it has the word.
 */
static void sent(struct load *load, struct seat *seat, int res)
{
	ctls_sent(seat->tls, res > 0 ? (size_t)res : 0);
	if (res > 0)
		seat->sent_bytes += (uint64_t)res;
	else
		seat->send_error = res != 0 ? res : -EPIPE;
	if (seat->state == SEAT_CLOSE)
		return;
	ask_send(load, seat); /* what was written behind the loan */
	if (seat_flies(seat, SEAT_OP_RECV) || has_work(seat))
		return;
	if (seat->send_error != 0)
		broken(load, seat, res);
	else /* the step had no room for what it was to send */
		queue_work(load, seat, clk_now());
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

/* Work that waits is late by our fault, not by the peer's: the deadline moves.
 */
static bool late_by_us(struct load *load, struct seat *seat)
{
	if (!has_work(seat))
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
		step_begin(load, seat);
	else if (seat->state == SEAT_CONNECT)
		fail(load, seat, COUNT_CONNECT);
	else if (seat->state == SEAT_HANDSHAKE)
		fail(load, seat, COUNT_TIMEOUT);
	else
		end(load, seat, COUNT_CLOSED_SELF);
	if (seat->state == SEAT_CLOSE)
		ask_cancel(load, seat); /* a send that is stuck, too */
}

void step_abort(struct load *load, struct seat *seat)
{
	if (seat->state == SEAT_PAUSE)
		rest(load, seat);
	else if (seat->state == SEAT_CONNECT || seat->state == SEAT_HANDSHAKE)
		fail(load, seat, COUNT_DRAIN);
	else if (seat->state == SEAT_TICKET)
		end(load, seat, COUNT_CLOSED_SELF);
	if (seat->state == SEAT_CLOSE)
		ask_cancel(load, seat);
}
