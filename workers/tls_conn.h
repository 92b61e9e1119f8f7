/* SPDX-License-Identifier: MIT */
/*
 * The server's side of TLS for one connection, over bytes that the caller
 * moves: no socket and no OpenSSL type here.
 *
 * Input      tls_conn_feed() lends the received bytes; steps take from them
 *            until tls_conn_left() is 0.
 * Output     steps append records to the struct tls_out that the caller keeps
 *            pointing at room. A step that finds no room returns TLS_AGAIN with
 *            tls_conn_wants_room(); the caller makes room and repeats the step.
 *            A flight is written at the end of the step that makes it, so with
 *            room for it (20 KiB hold any record, or a handshake with a chain
 *            of usual length) it lies in one piece.
 * Errors     WANT_READ is none. OpenSSL's queue is drained where the call
 *            failed; the alert it made is in the output, as far as there was
 *            room, and is worth sending.
 */
#ifndef WORKERS_TLS_CONN_H
#define WORKERS_TLS_CONN_H

#include "shm/seg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tls_srv;
struct tls_conn;

enum tls_status {
	TLS_OK,
	TLS_AGAIN,
	TLS_EOF,
	TLS_ERR
};

/* Why TLS_ERR; each has its failed_* counter. */
enum tls_cause {
	TLS_CAUSE_PROTOCOL,
	TLS_CAUSE_NO_SHARED,
	TLS_CAUSE_VERIFY,
	TLS_CAUSE_ALERT,
	TLS_CAUSE_INTERNAL,
};

enum tls_version {
	TLS_VERSION_12,
	TLS_VERSION_13
};

/* Where records go; the caller owns the memory. */
struct tls_out {
	uint8_t *data;
	size_t len, cap;
};

/* What happened since the last call, for the slot's counters. */
struct tls_counts {
	uint64_t signatures;
	uint64_t tickets_issued;
	uint64_t tickets_renewed;
	uint64_t tickets_unknown;
};

/* Worker, once after the fork: chooses the ticket table of this worker. */
void tls_srv_start(struct tls_srv *srv, uint32_t worker);

/* Returns and clears. Cheap; to be called inside the event's bracket. */
struct tls_counts tls_srv_take_counts(struct tls_srv *srv);

/*
 * `out` is borrowed and may be changed by the caller between steps.
 * NULL when out of memory. The caller owns it; tls_conn_free() accepts NULL,
 * sends nothing and leaves the session good for resumption.
 */
struct tls_conn *tls_conn_new(struct tls_srv *srv, struct tls_out *out);
void tls_conn_free(struct tls_conn **conn);

/* Lends `len` bytes until they are consumed or the next feed; the bytes of the
 * last feed must have been consumed (tls_conn_left() == 0). */
void tls_conn_feed(struct tls_conn *conn, const void *data, size_t len);
size_t tls_conn_left(const struct tls_conn *conn);

/* One step. TLS_OK: the handshake is over. */
enum tls_status tls_conn_handshake(struct tls_conn *conn);
/* TLS_OK with *got > 0; TLS_EOF: the peer said close_notify. */
enum tls_status tls_conn_read(struct tls_conn *conn, void *buf, size_t cap,
			      size_t *got);
/* TLS_OK with *done > 0 bytes taken (fewer than `len` at times). After
 * TLS_AGAIN the same bytes must be offered again. */
enum tls_status tls_conn_write(struct tls_conn *conn, const void *buf,
			       size_t len, size_t *done);
/* Puts close_notify into the output. */
enum tls_status tls_conn_shutdown(struct tls_conn *conn);
/* After TLS_AGAIN: it lacks room, not input. */
bool tls_conn_wants_room(const struct tls_conn *conn);
/* Decrypted bytes that a read left, because `cap` was too small for its record.
 * Never others: nothing of a record is taken before the one before is read. */
size_t tls_conn_pending(const struct tls_conn *conn);

/* After the handshake. */
bool tls_conn_resumed(const struct tls_conn *conn);
enum tls_version tls_conn_version(const struct tls_conn *conn);
/*
 * What a handshake agreed on, as groups of counters: each points at the member
 * of `ctr` to raise. Borrowed from `ctr`; `sig` is NULL for a resumed one, in
 * which the server signs nothing.
 */
struct tls_agreed {
	_Atomic uint64_t *group, *suite, *sig;
};
struct tls_agreed tls_conn_agreed(const struct tls_conn *conn,
				  struct ctr_block *ctr);

/* After TLS_ERR. */
enum tls_cause tls_conn_cause(const struct tls_conn *conn);

#endif
