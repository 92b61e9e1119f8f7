/* SPDX-License-Identifier: MIT */
/*
 * Ticket keys: tables in an anonymous shared mapping, locked into memory and
 * kept out of core dumps, never in the named segment.
 *
 * Writers    the master only (create, rotate, renew, tick).
 * Readers    workers, after the fork: they copy one key, use it and cleanse the
 *            copy. All workers therefore switch to new keys at the same moment.
 * Lifetime   a key issues until the next rotation and accepts until
 *            tickets.lifetime after that; then its bytes are cleansed.
 * With tickets.shared there is one table, otherwise one per worker.
 *
 * A reader never waits for the writer, so a master that is stopped or killed in
 * the middle of a write holds up no worker. Every key has a number that no
 * other key of this mapping has or had. The writer stores it after the key's
 * bytes, and stores 0 before it touches them again; a reader that finds another
 * number after its copy than before drops the copy: the key was there no more.
 */
#ifndef WORKERS_TLS_TICKET_H
#define WORKERS_TLS_TICKET_H

#include "workers/tls_ctx.h"

#include <stdbool.h>
#include <stdint.h>

/* nginx's ssl_session_ticket_key of 80 bytes: name, HMAC key, AES key. */
#define TLS_TICKET_NAME 16
#define TLS_TICKET_HMAC 32
#define TLS_TICKET_AES	32
#define TLS_TICKET_KEY	(TLS_TICKET_NAME + TLS_TICKET_HMAC + TLS_TICKET_AES)

struct tls_ticket_key {
	uint8_t name[TLS_TICKET_NAME];
	uint8_t hmac[TLS_TICKET_HMAC];
	uint8_t aes[TLS_TICKET_AES];
};

_Static_assert(sizeof(struct tls_ticket_key) == TLS_TICKET_KEY,
	       "as it lies in a key file");

/* Table of a worker: 0 when shared. */
uint32_t tls_ticket_table(const struct tls_tickets *t, uint32_t worker);

/* The key that issues. The caller cleanses *out. */
void tls_ticket_current(const struct tls_tickets *t, uint32_t table,
			struct tls_ticket_key *out);

/*
 * The key of a name, if it still accepts; *current tells whether it is the one
 * that issues. The caller cleanses *out when it is found.
 */
bool tls_ticket_find(const struct tls_tickets *t, uint32_t table,
		     const uint8_t name[TLS_TICKET_NAME],
		     struct tls_ticket_key *out, bool *current);

/* Something worth a warning (keys not locked into memory), or NULL. */
const char *tls_ticket_warning(const struct tls_tickets *t);

#endif
