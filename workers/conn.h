/* SPDX-License-Identifier: MIT */
/*
 * A connection: its state, what it owns, and what the kernel has on loan.
 *
 * In-flight rule. A request in the ring lends the connection (its word names
 * it) and the bytes it sends to the kernel, until the request's last event.
 * inflight counts these loans. A connection that ends goes to CLOSING: requests
 * still under way are cancelled, and each one's last event gives a loan back.
 * Only at zero does conn_reap() free it, after its descriptor's close was
 * queued behind everything else. So neither memory nor a descriptor's number
 * can be used again while the kernel may still act on it. A word also holds a
 * generation, which the place changes with each user; an event of an earlier
 * user is a bug and aborts.
 *
 * Lives in the worker, one thread. Nothing here calls the ring.
 */
#ifndef WORKERS_CONN_H
#define WORKERS_CONN_H

#include "shm/ctr.h"
#include "workers/buf.h"
#include "workers/http.h"
#include "workers/tmr.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tls_conn;

enum conn_state {
#define STATE(name, ...) CONN_##name,
#define EDGE(...)
#include "workers/states.def"
	CONN_STATES
};

/* Why a connection ends after its handshake; each has a counter. */
enum conn_why {
	CONN_WHY_NONE, /* it does not end yet */
	CONN_WHY_PEER,
	CONN_WHY_SELF,
	CONN_WHY_RESET,
	CONN_WHY_IDLE,
	CONN_WHY_TLS,
};

/* What a ring request's word says it is; never 0. */
enum conn_op {
	CONN_OP_RECV = 1,
	CONN_OP_SEND,
	CONN_OPS
};

/*
 * Answers written and not yet handed to the kernel whole, for request_time.
 * Requests of one turn share an entry; should all be taken, the newest requests
 * join the last one.
 */
#define CONN_MARKS 4

struct conn_mark {
	uint64_t end;	/* of the answer, in bytes of `written` */
	uint64_t at_ns; /* the request's last byte was read */
	uint32_t requests;
	uint32_t refused;
};

/* Not opaque: the hot path works on its members. Zero except where said. */
struct conn {
	struct tmr
		tmr; /* the deadline of the state; first: see conn_of_tmr() */
	uint32_t index; /* place in the pool, for ever */
	uint32_t generation;
	int fd;	       /* owns; -1: none */
	uint8_t state; /* enum conn_state; conn_set_state() only */
	uint8_t why;   /* enum conn_why */
	uint8_t inflight;
	bool receiving;	 /* a receive is in flight */
	bool sending;	 /* a send of out's front is in flight */
	bool recv_ended; /* ... and was asked to end */
	bool send_ended;
	bool eof;	  /* nothing more comes from the socket */
	bool linger;	  /* wait for the client's end after the last send */
	bool last_answer; /* no request is taken after this answer */
	bool bye;	  /* close_notify was read */
	bool bare;	  /* no TLS: bytes are the plaintext */
	bool answered;	  /* something was */
	bool answering;	  /* a request is being answered */
	bool refused;	  /* ... with a 4xx */
	uint8_t nmarks;

	struct tls_conn *tls; /* owns; NULL until the first byte */
	uint64_t accepted_ns;
	uint64_t crypto_ns; /* CPU time in the TLS library, handshake only */
	uint64_t hs_bytes;  /* received until the handshake ended */

	struct buf_chain out;	/* records to send; its front may be on loan */
	struct buf_chain raw;	/* received, not yet given to TLS */
	struct buf_chain plain; /* decrypted, not yet taken by the responder */
	uint64_t sent;		/* bytes of out handed to the kernel so far */

	struct http http;
	uint64_t asked_ns;  /* the request's last byte was read */
	uint64_t body_left; /* of the answer under way */
	uint64_t body_done;
	struct conn_mark mark[CONN_MARKS];

	struct conn *next_free; /* borrowed */
};

static inline struct conn *conn_of_tmr(struct tmr *t)
{
	return (struct conn *)(void *)t;
}

struct conn_pool {
	struct conn **slab; /* owns, and each slab */
	uint32_t nslabs;
	struct conn *free; /* borrows */
	uint32_t in_use;
};

void conn_pool_init(struct conn_pool *pool);
/* All connections must be back. */
void conn_pool_fini(struct conn_pool *pool);

/*
 * A connection in state FREE that owns `fd`. NULL without memory; the caller
 * keeps fd then.
 */
struct conn *conn_new(struct conn_pool *pool, int fd);

/*
 * Gives the place back: state CLOSING, nothing in flight, descriptor closed
 * (-1), buffers back. Frees tls. The only one that frees.
 */
void conn_reap(struct conn_pool *pool, struct conn **conn);

/* The place's connection, in use or not; NULL past the last. */
struct conn *conn_at(const struct conn_pool *pool, uint32_t index);

/* The word of a request, and the connection of a word: aborts if it is another
 * generation's. */
uint64_t conn_word(const struct conn *c, enum conn_op op);
enum conn_op conn_word_op(uint64_t word);
struct conn *conn_of_word(const struct conn_pool *pool, uint64_t word);

/* Counts a loan to the kernel, and its end. */
void conn_lend(struct conn *c);
void conn_return(struct conn *c);

/*
 * The only writer of the state. Aborts where states.def has no such edge. Moves
 * the gauges conn_open and hs_in_progress: inside the caller's shm_begin() and
 * shm_end(), together with the counters of the event.
 */
void conn_set_state(struct conn *c, enum conn_state to, struct ctr_block *ctr);
bool conn_edge(enum conn_state from, enum conn_state to);
const char *conn_state_name(enum conn_state state);

/* Remembers a request whose answer ends at the end of out. */
void conn_mark_answer(struct conn *c, uint64_t at_ns, bool refused);

/* The diagram, as Markdown. */
void conn_describe(FILE *out);

#endif
