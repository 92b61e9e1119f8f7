/* SPDX-License-Identifier: MIT */
#include "workers/io.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "workers/rsp.h"
#include "workers/tls_conn.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Deadlines of one turn, so that thousands at once do not hold up the rest. */
#define EXPIRE_MAX 64

/* ---- the end ---- */

/* In CLOSING: asks for what the kernel has on loan. */
static void recall(struct env *env, struct conn *c)
{
	tmr_cancel(&c->tmr);
	if (c->receiving && !c->recv_ended)
		ur_cancel(env->ring, conn_word(c, CONN_OP_RECV));
	if (c->sending)
		ur_cancel(env->ring, conn_word(c, CONN_OP_SEND));
}

static _Atomic uint64_t *why_counter(struct ctr_block *ctr, enum conn_why why)
{
	switch (why) {
	case CONN_WHY_PEER:
		return &ctr->conn_closed_peer;
	case CONN_WHY_RESET:
		return &ctr->conn_reset;
	case CONN_WHY_IDLE:
		return &ctr->conn_idle_timeout;
	case CONN_WHY_TLS:
		return &ctr->conn_tls_error;
	case CONN_WHY_NONE:
	case CONN_WHY_SELF:
		break;
	}
	return &ctr->conn_closed_self;
}

/* Ends a connection whose handshake failed and was counted as such. */
static void close_failed(struct env *env, struct conn *c)
{
	shm_begin(env->slot);
	conn_set_state(c, CONN_CLOSING, &env->slot->ctr);
	shm_end(env->slot);
	recall(env, c);
}

/* Ends a connection whose handshake was done; the first reason stands. */
static void close_conn(struct env *env, struct conn *c, enum conn_why why)
{
	if (c->why == CONN_WHY_NONE)
		c->why = (uint8_t)why;
	shm_begin(env->slot);
	ctr_add(why_counter(&env->slot->ctr, c->why), 1);
	conn_set_state(c, CONN_CLOSING, &env->slot->ctr);
	shm_end(env->slot);
	recall(env, c);
}

/* Counts what the TLS library did since the last time: inside an event. */
static void count_tls(struct env *env)
{
	struct tls_counts n = tls_srv_take_counts(env->tls);
	struct ctr_block *ctr = &env->slot->ctr;

	ctr_add(&ctr->signatures, n.signatures);
	ctr_add(&ctr->tickets_issued, n.tickets_issued);
	ctr_add(&ctr->tickets_renewed, n.tickets_renewed);
	ctr_add(&ctr->tickets_unknown, n.tickets_unknown);
}

/*
 * A handshake ends without success. Where the library made an alert, it is
 * sent; the connection counts as closed from now on all the same.
 */
static void fail_handshake(struct env *env, struct conn *c,
			   _Atomic uint64_t *counter)
{
	bool tell = c->out.bytes > 0 && !c->eof &&
		    counter != &env->slot->ctr.failed_timeout;

	shm_begin(env->slot);
	ctr_add(&env->slot->ctr.crypto_failed_ns, c->crypto_ns);
	count_tls(env);
	ctr_add(counter, 1);
	conn_set_state(c, tell ? CONN_ALERT : CONN_CLOSING, &env->slot->ctr);
	shm_end(env->slot);
	if (tell)
		tmr_arm(&env->linger, &c->tmr, env->now);
	else
		recall(env, c);
}

static _Atomic uint64_t *cause_counter(struct ctr_block *ctr,
				       enum tls_cause cause)
{
	switch (cause) {
	case TLS_CAUSE_PROTOCOL:
		return &ctr->failed_protocol;
	case TLS_CAUSE_NO_SHARED:
		return &ctr->failed_no_shared;
	case TLS_CAUSE_VERIFY:
		return &ctr->failed_verify;
	case TLS_CAUSE_ALERT:
		return &ctr->failed_alert;
	case TLS_CAUSE_INTERNAL:
		break;
	}
	return &ctr->failed_internal;
}

/* ---- TLS steps ---- */

/* Lets the next step write at the end of out. 0 or -ENOMEM. */
static int give_room(struct env *env, struct conn *c)
{
	env->records.len = 0;
	return buf_room(&env->bufs, &c->out, &env->records.data,
			&env->records.cap);
}

/* After a step. True when it is to be repeated with more room. */
static bool took_room(struct env *env, struct conn *c, enum tls_status rc)
{
	buf_filled(&c->out, env->records.len);
	env->records.len = 0;
	env->records.cap = 0;
	if (c->out.bytes == 0)
		buf_clear(&env->bufs, &c->out); /* not needed after all */
	return rc == TLS_AGAIN && tls_conn_wants_room(c->tls);
}

static void to_flush(struct env *env, struct conn *c, enum conn_why why)
{
	c->why = (uint8_t)why;
	shm_begin(env->slot);
	conn_set_state(c, CONN_FLUSH, &env->slot->ctr);
	shm_end(env->slot);
}

/*
 * Ends a connection of state OPEN in good order: our close_notify, then what is
 * to be sent. The caller flushes.
 */
static void finish(struct env *env, struct conn *c, enum conn_why why)
{
	enum tls_status rc = TLS_OK;

	do {
		if (c->bare || give_room(env, c) < 0)
			break;
		rc = tls_conn_shutdown(c->tls);
	} while (took_room(env, c, rc));
	if (c->plain.bytes > 0 || c->raw.bytes > 0)
		c->linger = true;
	to_flush(env, c, why);
}

/* A TLS error after the handshake: the library has made the alert. */
static void finish_broken(struct env *env, struct conn *c)
{
	c->linger = c->out.bytes > 0;
	to_flush(env, c, CONN_WHY_TLS);
}

/* Bytes both ways, and what was agreed on: inside the event. */
static void count_agreed(struct conn *c, struct ctr_block *ctr)
{
	struct tls_agreed agreed = tls_conn_agreed(c->tls, ctr);

	ctr_add(&ctr->hs_bytes_in, c->hs_bytes - tls_conn_left(c->tls));
	ctr_add(&ctr->hs_bytes_out, c->sent + c->out.bytes);
	ctr_add(agreed.group, 1);
	ctr_add(agreed.suite, 1);
	if (agreed.sig != NULL)
		ctr_add(agreed.sig, 1);
}

static void handshake_done(struct env *env, struct conn *c)
{
	struct ctr_block *ctr = &env->slot->ctr;
	struct hist_block *hist = &env->slot->hist;
	bool resumed = tls_conn_resumed(c->tls);
	bool tls13 = tls_conn_version(c->tls) == TLS_VERSION_13;
	uint64_t wall = clk_now() - c->accepted_ns;

	shm_begin(env->slot);
	hist_record(resumed ? &hist->hs_resumed_time : &hist->hs_full_time,
		    wall);
	hist_record(resumed ? &hist->hs_resumed_cpu : &hist->hs_full_cpu,
		    c->crypto_ns);
	ctr_add(resumed ? &ctr->crypto_resumed_ns : &ctr->crypto_full_ns,
		c->crypto_ns);
	ctr_add(tls13 ? &ctr->hs_tls13 : &ctr->hs_tls12, 1);
	count_agreed(c, ctr);
	count_tls(env);
	ctr_add(resumed ? &ctr->hs_resumed : &ctr->hs_full, 1);
	conn_set_state(c, CONN_OPEN, ctr);
	shm_end(env->slot);
	tmr_arm(&env->idle, &c->tmr, env->now);
	rsp_start(env, c);
}

/* The library's part of a handshake, with room as it needs. */
static enum tls_status handshake_step(struct env *env, struct conn *c)
{
	enum tls_status rc;

	do {
		if (give_room(env, c) < 0) {
			tls_conn_free(&c->tls); /* as if never made: internal */
			return TLS_ERR;
		}
		rc = tls_conn_handshake(c->tls);
	} while (took_room(env, c, rc));
	return rc;
}

/* Made with the first byte: a client that sends none costs no memory. */
static enum tls_status handshake_feed(struct env *env, struct conn *c,
				      const uint8_t *p, size_t n)
{
	if (c->tls == NULL)
		c->tls = tls_conn_new(env->tls, &env->records);
	if (c->tls == NULL)
		return TLS_ERR;
	tls_conn_feed(c->tls, p, n);
	return handshake_step(env, c);
}

/* Hot path. The CPU clock is read around the library and nothing else. */
static void handshake(struct env *env, struct conn *c, const uint8_t *p,
		      size_t n)
{
	struct ctr_block *ctr = &env->slot->ctr;
	uint64_t before = clk_thread_cpu();
	enum tls_status rc;

	c->hs_bytes += n;
	rc = handshake_feed(env, c, p, n);

	c->crypto_ns += clk_thread_cpu() - before;
	switch (rc) {
	case TLS_OK:
		handshake_done(env, c);
		break;
	case TLS_AGAIN:
		break;
	case TLS_EOF:
		fail_handshake(env, c, &ctr->failed_eof);
		break;
	case TLS_ERR:
		fail_handshake(
			env, c,
			c->tls == NULL
				? &ctr->failed_internal
				: cause_counter(ctr, tls_conn_cause(c->tls)));
		break;
	}
}

/* ---- plaintext ---- */

bool io_room(const struct conn *c)
{
	return c->out.bytes < IO_OUT_MAX;
}

void io_write(struct env *env, struct conn *c, const void *p, size_t n)
{
	const uint8_t *from = p;
	enum tls_status rc = TLS_OK;

	if (c->bare) {
		if (buf_append(&env->bufs, &c->out, p, n) < 0)
			finish_broken(env, c);
		return;
	}

	while (n > 0 && c->state == CONN_OPEN) {
		size_t done = 0;

		do {
			if (give_room(env, c) < 0) {
				finish_broken(env, c);
				return;
			}
			rc = tls_conn_write(c->tls, from, n, &done);
		} while (took_room(env, c, rc));
		if (rc != TLS_OK) {
			finish_broken(env, c);
			return;
		}
		from += done;
		n -= done;
	}
}

/* Gives plaintext to the responder as far as it takes it. */
static size_t respond(struct env *env, struct conn *c, const uint8_t *p,
		      size_t n)
{
	size_t used = 0;

	while (used < n && c->state == CONN_OPEN && rsp_fill(env, c) &&
	       !c->last_answer)
		used += rsp_input(env, c, p + used, n - used);
	return used;
}

static void on_plain(struct env *env, struct conn *c, const uint8_t *p,
		     size_t n)
{
	size_t used = c->plain.bytes == 0 ? respond(env, c, p, n) : 0;

	if (used == n || c->state != CONN_OPEN)
		return;
	if (c->last_answer)
		c->linger = true; /* it sends more than it gets answers to */
	else if (buf_append(&env->bufs, &c->plain, p + used, n - used) < 0)
		finish_broken(env, c);
}

static enum tls_status read_step(struct env *env, struct conn *c, size_t *got)
{
	enum tls_status rc;

	do {
		if (give_room(env, c) < 0)
			return TLS_ERR;
		rc = tls_conn_read(c->tls, env->in, sizeof(env->in), got);
	} while (took_room(env, c, rc));
	return rc;
}

/*
 * Decrypts all that was fed. What the responder does not take now is kept: at
 * most a ring buffer's worth, and a record that was begun before.
 */
static void decrypt(struct env *env, struct conn *c)
{
	while (c->state == CONN_OPEN && tls_conn_left(c->tls) > 0) {
		size_t got = 0;

		switch (read_step(env, c, &got)) {
		case TLS_OK:
			on_plain(env, c, env->in, got);
			break;
		case TLS_AGAIN:
			return;
		case TLS_EOF:
			c->bye = true;
			return;
		case TLS_ERR:
			finish_broken(env, c);
			return;
		}
	}
}

static void on_bytes(struct env *env, struct conn *c, const uint8_t *p,
		     size_t n)
{
	if (c->bare) {
		on_plain(env, c, p, n);
		return;
	}
	if (c->state == CONN_HANDSHAKE)
		handshake(env, c, p, n);
	else
		tls_conn_feed(c->tls, p, n);
	if (c->state == CONN_OPEN)
		decrypt(env, c);
}

/* ---- moving on ---- */

/* Would bytes from the socket be used now? */
static bool wants_bytes(const struct conn *c)
{
	if (c->state == CONN_HANDSHAKE)
		return true;
	return c->state == CONN_OPEN && !c->bye && !c->last_answer &&
	       c->plain.bytes == 0 && c->body_left == 0 && io_room(c);
}

/*
 * A client that ended the socket without close_notify and had nothing to come
 * is gone, as far as one can tell: ours would only be answered by a reset.
 */
static void peer_ended(struct env *env, struct conn *c)
{
	if (c->eof && !c->bye && c->out.bytes == 0)
		close_conn(env, c, CONN_WHY_PEER);
	else
		finish(env, c, CONN_WHY_PEER);
}

/* In OPEN: takes up what was kept, and ends what is over. */
static void serve(struct env *env, struct conn *c)
{
	const uint8_t *p;
	size_t n;

	while (c->state == CONN_OPEN && (n = buf_front(&c->plain, &p)) > 0) {
		n = respond(env, c, p, n);
		buf_consume(&env->bufs, &c->plain, n);
		if (n == 0)
			break;
	}
	if (c->state != CONN_OPEN || !rsp_fill(env, c))
		return;
	if (c->last_answer)
		finish(env, c, CONN_WHY_SELF);
	else if ((c->bye || c->eof) && c->plain.bytes + c->raw.bytes == 0)
		peer_ended(env, c);
	else if (env->draining && c->answered && rsp_quiet(env, c))
		finish(env, c, CONN_WHY_SELF);
}

/* What was kept is used, as far as its use makes no more output than fits. */
static void move_on(struct env *env, struct conn *c)
{
	const uint8_t *p;
	size_t n;

	serve(env, c);
	while (c->raw.bytes > 0 && wants_bytes(c)) {
		n = buf_front(&c->raw, &p);
		on_bytes(env, c, p, n);
		buf_consume(&env->bufs, &c->raw, n);
		if (c->bye)
			buf_clear(&env->bufs, &c->raw);
		serve(env, c);
	}
}

static void arm_recv(struct env *env, struct conn *c)
{
	conn_lend(c);
	c->receiving = true;
	c->recv_ended = false;
	ur_recv(env->ring, c->fd, conn_word(c, CONN_OP_RECV));
}

/*
 * Receives while the bytes are used, or to see the client's end. A client that
 * sends while it is not listened to fills the socket's own buffer.
 */
static void steer_recv(struct env *env, struct conn *c)
{
	bool listen = c->state == CONN_HANDSHAKE || c->state == CONN_OPEN ||
		      c->state == CONN_LINGER;

	if (!c->receiving && listen && !c->eof && c->raw.bytes == 0) {
		arm_recv(env, c);
	} else if (c->receiving && !c->recv_ended && c->raw.bytes > 0) {
		c->recv_ended = true;
		ur_cancel(env->ring, conn_word(c, CONN_OP_RECV));
	}
}

/* All is sent in FLUSH. */
static void flushed(struct env *env, struct conn *c)
{
	if (!c->linger || c->eof) {
		close_conn(env, c, CONN_WHY_SELF);
		return;
	}
	buf_clear(&env->bufs, &c->raw);
	shm_begin(env->slot);
	conn_set_state(c, CONN_LINGER, &env->slot->ctr);
	shm_end(env->slot);
	/* No ring request: one would look the descriptor up late, when its
	 * number may be another connection's. */
	(void)shutdown(c->fd, SHUT_WR);
	tmr_arm(&env->linger, &c->tmr, env->now);
}

static void flush(struct env *env, struct conn *c)
{
	const uint8_t *p;
	size_t n;

	if (c->sending)
		return;
	n = buf_front(&c->out, &p);
	if (n > 0) {
		conn_lend(c);
		c->sending = true;
		ur_send(env->ring, c->fd, p, n, conn_word(c, CONN_OP_SEND));
	} else if (c->state == CONN_FLUSH) {
		flushed(env, c);
	} else if (c->state == CONN_ALERT) {
		close_failed(env, c);
	}
}

static void reap(struct env *env, struct conn *c)
{
	buf_clear(&env->bufs, &c->out);
	buf_clear(&env->bufs, &c->raw);
	buf_clear(&env->bufs, &c->plain);
	ur_shut(env->ring, c->fd);
	c->fd = -1;
	env->fd_freed = true;
	conn_reap(&env->conns, &c);
}

/* The last step after anything that happened: `c` may be gone after it. */
static void settle(struct env *env, struct conn *c)
{
	if (c->state != CONN_CLOSING)
		flush(env, c);
	if (c->state != CONN_CLOSING)
		steer_recv(env, c);
	else if (c->inflight == 0)
		reap(env, c);
}

/* ---- events ---- */

/* Without TLS there is no handshake to count: it is open at once. */
static void accepted_bare(struct env *env, struct conn *c)
{
	c->bare = true;
	shm_begin(env->slot);
	ctr_add(&env->slot->ctr.conn_plain, 1);
	conn_set_state(c, CONN_OPEN, &env->slot->ctr);
	shm_end(env->slot);
	c->accepted_ns = env->now;
	tmr_arm(&env->idle, &c->tmr, env->now);
	rsp_start(env, c);
	move_on(env, c);
	settle(env, c);
}

void io_accepted(struct env *env, int fd, bool bare)
{
	struct conn *c = conn_new(&env->conns, fd);
	struct ctr_block *ctr = &env->slot->ctr;

	if (bare && c != NULL) {
		accepted_bare(env, c);
		return;
	}
	shm_begin(env->slot);
	ctr_add(&ctr->conn_accepted, 1);
	if (c != NULL)
		conn_set_state(c, CONN_HANDSHAKE, ctr);
	else
		ctr_add(&ctr->failed_internal, 1);
	shm_end(env->slot);
	if (c == NULL) {
		ur_shut(env->ring, fd);
		return;
	}
	c->accepted_ns = env->now;
	tmr_arm(&env->handshake, &c->tmr, env->now);
	settle(env, c);
}

/* The socket is broken: nothing can be received or sent any more. */
static void on_reset(struct env *env, struct conn *c)
{
	c->eof = true;
	switch ((enum conn_state)c->state) {
	case CONN_HANDSHAKE:
		fail_handshake(env, c, &env->slot->ctr.failed_reset);
		break;
	case CONN_ALERT:
		close_failed(env, c);
		break;
	case CONN_FLUSH:
		/* Our last answer did not reach it whole. */
		if (c->why == CONN_WHY_SELF)
			c->why = CONN_WHY_RESET;
		close_conn(env, c, CONN_WHY_RESET);
		break;
	case CONN_OPEN:
	case CONN_LINGER:
		close_conn(env, c, CONN_WHY_RESET);
		break;
	default:
		break;
	}
}

static void on_eof(struct env *env, struct conn *c)
{
	c->eof = true;
	if (c->state == CONN_HANDSHAKE)
		fail_handshake(env, c, &env->slot->ctr.failed_eof);
	else if (c->state == CONN_LINGER)
		close_conn(env, c, CONN_WHY_SELF);
}

static void on_data(struct env *env, struct conn *c, const struct ur_event *ev)
{
	size_t n = (size_t)ev->res;

	env->sums.bytes_in += n;
	if ((c->state != CONN_HANDSHAKE && c->state != CONN_OPEN) || c->bye)
		return; /* of no use any more */
	if (c->state == CONN_OPEN)
		tmr_arm(&env->idle, &c->tmr, env->now);
	if (c->raw.bytes == 0 && wants_bytes(c))
		on_bytes(env, c, ev->buf, n);
	else if (buf_append(&env->bufs, &c->raw, ev->buf, n) < 0)
		finish_broken(env, c);
}

static void on_recv(struct env *env, struct conn *c, const struct ur_event *ev)
{
	if (!ev->more) {
		conn_return(c);
		c->receiving = false;
		env->sums.rearms += ev->res > 0 && !c->recv_ended;
		env->sums.no_buffers += ev->res == -ENOBUFS;
	}
	if (ev->res > 0)
		on_data(env, c, ev);
	else if (ev->res == 0)
		on_eof(env, c);
	else if (ev->res != -ENOBUFS && ev->res != -ECANCELED)
		on_reset(env, c);
	ur_give(env->ring, ev);
}

/* Answers that are handed to the kernel whole: requests done. */
static void count_answers(struct env *env, struct conn *c)
{
	struct shm_slot *slot = env->slot;
	uint8_t done = 0;

	while (done < c->nmarks && c->mark[done].end <= c->sent) {
		const struct conn_mark *m = &c->mark[done++];

		shm_begin(slot);
		for (uint32_t i = 0; i < m->requests; i++)
			hist_record(&slot->hist.request_time,
				    env->now - m->at_ns);
		ctr_add(&slot->ctr.requests, m->requests);
		ctr_add(&slot->ctr.requests_refused, m->refused);
		shm_end(slot);
	}
	if (done == 0)
		return;
	c->nmarks = (uint8_t)(c->nmarks - done);
	memmove(c->mark, c->mark + done, c->nmarks * sizeof(*c->mark));
}

static void on_send(struct env *env, struct conn *c, const struct ur_event *ev)
{
	conn_return(c);
	c->sending = false;
	if (ev->res <= 0) {
		if (ev->res != -ECANCELED && ev->res != -EINTR)
			on_reset(env, c);
		return;
	}
	env->sums.bytes_out += (uint64_t)ev->res;
	c->sent += (uint64_t)ev->res;
	buf_consume(&env->bufs, &c->out, (size_t)ev->res);
	count_answers(env, c);
	if (c->state == CONN_OPEN || c->state == CONN_FLUSH)
		tmr_arm(&env->idle, &c->tmr, env->now);
}

void io_event(struct env *env, const struct ur_event *ev)
{
	struct conn *c = conn_of_word(&env->conns, ev->data);

	if (conn_word_op(ev->data) == CONN_OP_RECV)
		on_recv(env, c, ev);
	else
		on_send(env, c, ev);
	move_on(env, c);
	settle(env, c);
}

/* ---- deadlines, drain and end ---- */

static void on_idle(struct env *env, struct conn *c)
{
	if (c->state == CONN_OPEN && c->out.bytes == 0) {
		/* It only rests: it is told, and has as long to take that. */
		finish(env, c, CONN_WHY_IDLE);
		tmr_arm(&env->idle, &c->tmr, env->now);
		return;
	}
	c->why = CONN_WHY_IDLE;
	close_conn(env, c, CONN_WHY_IDLE);
}

static void on_linger(struct env *env, struct conn *c)
{
	if (c->state == CONN_ALERT)
		close_failed(env, c);
	else
		close_conn(env, c, CONN_WHY_SELF);
}

static void on_deadline(struct env *env, struct conn *c)
{
	switch ((enum conn_state)c->state) {
	case CONN_HANDSHAKE:
		fail_handshake(env, c, &env->slot->ctr.failed_timeout);
		break;
	case CONN_OPEN:
	case CONN_FLUSH:
		on_idle(env, c);
		break;
	default:
		on_linger(env, c);
		break;
	}
	settle(env, c);
}

void io_expire(struct env *env)
{
	struct tmr_list *lists[] = {&env->handshake, &env->idle, &env->linger};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct tmr *t;
		int n = 0;

		while (n++ < EXPIRE_MAX &&
		       (t = tmr_pop(lists[i], env->now)) != NULL)
			on_deadline(env, conn_of_tmr(t));
	}
}

uint64_t io_next(const struct env *env)
{
	return base_min(tmr_next(&env->handshake),
			base_min(tmr_next(&env->idle), tmr_next(&env->linger)));
}

void io_drain(struct env *env)
{
	struct conn *c;

	for (uint32_t i = 0; (c = conn_at(&env->conns, i)) != NULL; i++) {
		if (c->state != CONN_OPEN || !rsp_quiet(env, c))
			continue;
		finish(env, c, CONN_WHY_SELF);
		settle(env, c);
	}
}

void io_abandon(struct env *env)
{
	struct ctr_block *ctr = &env->slot->ctr;
	struct conn *c;

	for (uint32_t i = 0; (c = conn_at(&env->conns, i)) != NULL; i++) {
		switch ((enum conn_state)c->state) {
		case CONN_HANDSHAKE:
			fail_handshake(env, c, &ctr->failed_drain);
			break;
		case CONN_OPEN:
		case CONN_FLUSH:
		case CONN_LINGER:
			close_conn(env, c, CONN_WHY_SELF);
			break;
		default:
			break;
		}
	}
}
