/* SPDX-License-Identifier: MIT */
/*
 * A seat: the place of one connection. It connects, shakes hands, may send
 * requests, may wait for a ticket, closes, and begins again:
 *
 *     IDLE -> CONNECT -> HANDSHAKE -> TALK -> TICKET -> CLOSE -> CONNECT ...
 *                                     | ^                `-> PAUSE -> CONNECT
 *                                    THINK
 *
 * (tdrive_states.def has every step.)
 *
 * Loans. A submitted SQE lends the socket, the seat and a buffer to the kernel;
 * `flying` tells which. A seat begins anew only with no loan out, so no
 * completion of an earlier connection can be taken for one of this.
 */
#ifndef TOOLS_TDRIVE_SEAT_H
#define TOOLS_TDRIVE_SEAT_H

#include "shm/base.h"
#include "tools/tdrive_http.h"
#include "tools/tdrive_tmr.h"

#include <stdbool.h>
#include <stdint.h>

struct ctls_conn;

enum seat_state {
#define STATE(name, ...) SEAT_##name,
#include "tools/tdrive_states.def"
	SEAT_STATES
};

/* Requests of a seat that can be in flight, one of each kind at most. */
enum seat_op {
	SEAT_OP_CONNECT,
	SEAT_OP_RECV,
	SEAT_OP_SEND,
	SEAT_OP_CANCEL,
	SEAT_OP_CLOSE,
	SEAT_OPS
};

/* Back-off: 1 ms, doubled by each failure in a row, 100 ms at most. */
#define SEAT_PAUSES 8u

/* Not opaque: the hot path of tdrive_step.c and tdrive_talk.c writes it. */
struct seat {
	struct tmr tmr;	    /* first: a timer is its seat */
	struct tmr work;    /* set while TLS work waits for its turn */
	struct seat *below; /* borrows; in the stack of seats at rest */
	uint32_t index;
	enum seat_state state;
	int fd;		   /* owns; -1: none */
	uint32_t flying;   /* bit per seat_op in flight */
	uint32_t fails;	   /* in a row */
	int send_error;	   /* -errno of a send while a receive could tell why */
	bool fresh;	   /* connected, TLS not begun */
	bool primed;	   /* has got a ticket since the phase began */
	bool got_ticket;   /* this connection has */
	bool wants_ticket; /* it does not end without one, or the wait's end */
	bool cancelled;	   /* what was in flight has been taken back */
	bool more;	   /* the kernel says that more has arrived */
	bool resumed;	   /* the handshake was */
	bool awaits;	   /* an answer, or the first byte */
	bool gathers;	   /* begun before arrivals, for its ticket alone */
	bool heard;	   /* a byte of data has come */
	bool unwritten;	   /* TLS had no room for the request: it is to be tried
			      again */
	uint64_t due_ns;   /* when the connection was due */
	uint64_t began_ns; /* the connect */
	uint64_t connected_ns;	/* the connect's end */
	uint64_t up_ns;		/* the handshake's end, too */
	uint64_t asked_ns;	/* the latest request */
	uint64_t left;		/* requests */
	uint64_t crypto_ns;	/* CPU in the TLS library for this handshake */
	uint64_t hs_in, hs_out; /* bytes of the handshake so far */
	uint64_t sent_bytes, recv_bytes; /* not yet counted in the slot */
	uint32_t plain_from; /* of the request, without TLS: sent so far */
	struct http_reader answer;
	uint8_t *in;	       /* borrows from its block */
	struct ctls_conn *tls; /* owns */
};

/* The only writer of seat->state; aborts on a step that is not in the table. */
void seat_set_state(struct seat *seat, enum seat_state state);
bool seat_may(enum seat_state from, enum seat_state to);
const char *seat_state_name(enum seat_state state);

/* Which pause (0 to SEAT_PAUSES - 1) follows `fails` failures in a row, at
 * least one; and how long that pause lasts. */
uint32_t seat_pause(uint32_t fails);
uint64_t seat_pause_ns(uint32_t pause);

static inline bool seat_flies(const struct seat *seat, enum seat_op op)
{
	return (seat->flying & (1u << op)) != 0;
}

#endif
