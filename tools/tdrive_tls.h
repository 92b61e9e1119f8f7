/* SPDX-License-Identifier: MIT */
/*
 * The client's side of TLS, without sockets: bytes that came are lent in, bytes
 * to send are taken out. The load moves them.
 *
 * In        ctls_feed() lends a window of received bytes; a step reads it to
 * its end before it answers CTLS_AGAIN, so the caller may then receive into the
 * same memory again. Out       a step appends to the connection's own buffer.
 * ctls_out() lends what is unsent to the kernel, ctls_sent() gives it back. A
 * step may run while a loan is out: it writes behind it. Sessions  come with
 * tickets (or, in TLS 1.2, an ID). As a phase has it they go into one pool for
 * all connections, oldest out first, each offered once; or each connection
 * object keeps the latest of its own and the next connection of it offers that:
 * a chain. A TLS 1.3 session is offered once (RFC 8446, C.4); one of TLS 1.2
 * until it is replaced or fails.
 */
#ifndef TOOLS_TDRIVE_TLS_H
#define TOOLS_TDRIVE_TLS_H

#include "config/cfg.h"
#include "tools/tdrive_count.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctls;	  /* what all connections share */
struct ctls_conn; /* one seat's */

/* All borrowed during ctls_open(). An empty list or NULL: the library's own. */
struct ctls_want {
	struct cfg_list versions; /* TLSv1.2, TLSv1.3 */
	struct cfg_list groups;
	bool server_chooses;	   /* its groups are the wanted ones too */
	struct cfg_list ciphers;   /* TLS 1.3 suites and TLS 1.2 names */
	struct cfg_list sigalgs;   /* by the library's names */
	struct cfg_list alpn;	   /* protocols, most wanted first */
	struct cfg_list providers; /* to load beside the default one */
	const char *certificate;   /* the client's: PEM file, or store URI */
	const char *key;     /* likewise; NULL: in the certificate's file */
	const char *ca_path; /* PEM; each certificate in it is trusted */
	const char *name;    /* to verify, and for SNI unless an address */
	bool insecure;	     /* verify nothing */
};

enum ctls_result {
	CTLS_OK,    /* done */
	CTLS_AGAIN, /* what was fed is used up; more is needed */
	CTLS_FULL,  /* what is to be sent must leave before the next step */
	CTLS_EOF,   /* the peer ended it by close_notify */
	CTLS_ERR, /* over; ctls_cause() says why; an alert may be in ctls_out()
		   */
};

/* "OpenSSL 3.0.22" as loaded. Static storage. */
const char *ctls_library(void);

/*
 * 0, and the caller owns *out; -EINVAL with one sentence in err that names the
 * value; -ENOMEM.
 */
int ctls_open(struct ctls **out, const struct ctls_want *want, char *err,
	      size_t len);
/* After every connection of it was freed. */
void ctls_close(struct ctls **ctls);

/*
 * A new phase: no session is held any more (those that connections keep are
 * dropped by ctls_drop()). `chain`: each connection keeps its own; otherwise
 * all share a pool of `most`. 0 or -ENOMEM.
 */
int ctls_keep(struct ctls *ctls, bool chain, uint32_t most);

/* Sessions in the pool. */
uint32_t ctls_pooled(const struct ctls *ctls);

/* 0 or -ENOMEM. The caller owns *out; `ctls` is borrowed. */
int ctls_conn_new(struct ctls_conn **out, struct ctls *ctls);
void ctls_conn_free(struct ctls_conn **conn);

enum ctls_offer {
	CTLS_OFFER_NONE,
	CTLS_OFFER_HELD,    /* a session, if there is one that still can be */
	CTLS_OFFER_ALTERED, /* one whose ticket no server can open */
};

/*
 * A new connection. `keep`: the sessions that come are kept; `lean`: buffers
 * are freed when they are empty. 0 or -ENOMEM.
 */
int ctls_begin(struct ctls_conn *conn, enum ctls_offer offer, bool keep,
	       bool lean);
bool ctls_offered(const struct ctls_conn *conn);

void ctls_feed(struct ctls_conn *conn, const uint8_t *in, size_t len);

/* Hot path. CTLS_OK, AGAIN, FULL or ERR. */
enum ctls_result ctls_handshake(struct ctls_conn *conn);

/*
 * After the handshake: takes tickets, and puts data of at most one record into
 * `to`, *n bytes. OK with data; AGAIN, FULL, EOF or ERR without.
 */
enum ctls_result ctls_read(struct ctls_conn *conn, uint8_t *to, size_t size,
			   size_t *n);

/*
 * OK when all of it is in ctls_out(). FULL: once that was sent, the same call
 * must be made again, with the same memory. ERR.
 */
enum ctls_result ctls_write(struct ctls_conn *conn, const void *from,
			    size_t len);

/* Adds a close_notify to ctls_out(). */
void ctls_notify(struct ctls_conn *conn);

/* After CTLS_ERR in the handshake. */
enum count_fail ctls_cause(const struct ctls_conn *conn);

/* After the handshake: what was agreed on, all of `hs` but its times and bytes.
 */
void ctls_agreed(const struct ctls_conn *conn, struct count_hs *hs);

/* Has it signed (CertificateVerify)? Also after a handshake that failed. */
bool ctls_signed(const struct ctls_conn *conn);

/* Tickets that came since the last call. */
uint32_t ctls_take_tickets(struct ctls_conn *conn);

/* Is there a session that it can offer: its own, or in the pool? */
bool ctls_holds(const struct ctls_conn *conn);
/* Has this connection given a session to keep, or given one back? */
bool ctls_kept(const struct ctls_conn *conn);
void ctls_drop(struct ctls_conn *conn);

/* Fed and not read yet; unsent, a loan included. */
size_t ctls_unread(const struct ctls_conn *conn);
size_t ctls_unsent(const struct ctls_conn *conn);

/* Lends what is unsent: its length, 0 when there is nothing. */
size_t ctls_out(struct ctls_conn *conn, const uint8_t **out);
/* The kernel took `n` bytes of the loan (0: the send failed); ends the loan. */
void ctls_sent(struct ctls_conn *conn, size_t n);

/*
 * Ends the connection, not the seat's session; no loan may be out. Sends
 * nothing. Also when none was begun.
 */
void ctls_end(struct ctls_conn *conn);

#endif
