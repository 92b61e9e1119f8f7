/* SPDX-License-Identifier: MIT */
/* Sessions: which are kept, which is offered next. */
#include "tools/tdrive_tls.h"

#include "shm/base.h"
#include "tools/tdrive_tls_int.h"

#include <openssl/err.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A ticket's first bytes are the name of its key (RFC 5077, 4). */
#define KEY_NAME_LEN 16

/* ---- the pool ---- */

static SSL_SESSION *take_oldest(struct ctls *ctls)
{
	SSL_SESSION *oldest;

	if (ctls->pooled == 0)
		return NULL;
	oldest = ctls->pool[ctls->first];
	ctls->first = (ctls->first + 1) % ctls->most;
	ctls->pooled--;
	return oldest;
}

/* Takes over one reference. A full pool gives up its oldest. */
static void pool_put(struct ctls *ctls, SSL_SESSION *session)
{
	if (ctls->most == 0) {
		SSL_SESSION_free(session);
		return;
	}
	if (ctls->pooled == ctls->most)
		SSL_SESSION_free(take_oldest(ctls));
	ctls->pool[(ctls->first + ctls->pooled++) % ctls->most] = session;
}

void ctls_free_pool(struct ctls *ctls)
{
	while (ctls->pooled > 0)
		SSL_SESSION_free(take_oldest(ctls));
	free(ctls->pool);
	ctls->pool = NULL;
	ctls->most = 0;
	ctls->first = 0;
	SSL_SESSION_free(ctls->altered);
	ctls->altered = NULL;
}

int ctls_keep(struct ctls *ctls, bool chain, uint32_t most)
{
	SSL_SESSION **pool = calloc(most, sizeof(*pool));

	if (pool == NULL && most > 0)
		return -ENOMEM;
	ctls_free_pool(ctls);
	ctls->pool = pool;
	ctls->most = most;
	ctls->chain = chain;
	return 0;
}

uint32_t ctls_pooled(const struct ctls *ctls)
{
	return ctls->pooled;
}

/* ---- keeping ---- */

/* Takes over one reference. */
static void put(struct ctls_conn *conn, SSL_SESSION *session)
{
	conn->kept = true;
	if (conn->ctls->chain) {
		SSL_SESSION_free(conn->held);
		conn->held = session;
	} else {
		pool_put(conn->ctls, session);
	}
}

void ctls_drop(struct ctls_conn *conn)
{
	SSL_SESSION_free(conn->held);
	conn->held = NULL;
}

bool ctls_holds(const struct ctls_conn *conn)
{
	return conn->ctls->chain ? conn->held != NULL &&
					   SSL_SESSION_is_resumable(conn->held)
				 : conn->ctls->pooled > 0;
}

bool ctls_kept(const struct ctls_conn *conn)
{
	return conn->kept;
}

uint32_t ctls_take_tickets(struct ctls_conn *conn)
{
	uint32_t n = conn->tickets;

	conn->tickets = 0;
	return n;
}

int ctls_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct ctls_conn *conn = SSL_get_app_data(ssl);

	conn->tickets += (uint32_t)SSL_SESSION_has_ticket(session);
	if (!conn->keep)
		return 0;
	put(conn, session);
	return 1;
}

/*
 * A resumed TLS 1.2 handshake calls no new_session_cb. When the server sent a
 * new ticket, the library has replaced the connection's session; otherwise the
 * session is good for another time.
 */
void ctls_settle_session(struct ctls_conn *conn)
{
	SSL_SESSION *used = conn->used;

	if (used == NULL || SSL_session_reused(conn->ssl) != 1)
		return;
	if (SSL_get0_session(conn->ssl) != used) {
		conn->tickets++;
		used = SSL_get0_session(conn->ssl);
	}
	if (conn->keep && SSL_SESSION_up_ref(used) == 1)
		put(conn, used);
}

void ctls_forget_session(struct ctls_conn *conn)
{
	if (conn->altered) { /* it may be what went wrong */
		SSL_SESSION_free(conn->ctls->altered);
		conn->ctls->altered = NULL;
	}
}

/* ---- offering ---- */

/* The next to be offered, which leaves the holder. NULL: there is none. */
static SSL_SESSION *take(struct ctls_conn *conn)
{
	struct ctls *ctls = conn->ctls;
	SSL_SESSION *next;

	if (ctls->chain) {
		next = conn->held;
		conn->held = NULL;
		if (next != NULL && SSL_SESSION_is_resumable(next))
			return next;
		SSL_SESSION_free(next);
		return NULL;
	}
	while ((next = take_oldest(ctls)) != NULL) {
		if (SSL_SESSION_is_resumable(next))
			return next;
		SSL_SESSION_free(next);
	}
	return NULL;
}

/*
 * A copy of a session whose ticket names a key that no server has. There is no
 * call to set a ticket; but the ticket stands as it is in the session's own
 * serialisation, whose lengths stay. NULL: no ticket, or no memory.
 */
static SSL_SESSION *altered_copy(SSL_SESSION *from)
{
	const uint8_t *ticket, *at;
	uint8_t *der = NULL, *found;
	SSL_SESSION *copy = NULL;
	size_t ticket_len;
	int len;

	SSL_SESSION_get0_ticket(from, &ticket, &ticket_len);
	if (ticket_len == 0)
		return NULL;
	len = i2d_SSL_SESSION(from, &der);
	if (len <= 0)
		goto out;
	found = memmem(der, (size_t)len, ticket, ticket_len);
	if (found == NULL)
		goto out;
	for (size_t i = 0; i < base_min(KEY_NAME_LEN, ticket_len); i++)
		found[i] ^= 0xff;
	at = der;
	copy = d2i_SSL_SESSION(NULL, &at, len);
out:
	OPENSSL_free(der);
	ERR_clear_error();
	return copy;
}

/* One alteration serves all connections: no server can tell it from another.
 * The caller gets a reference, or NULL. */
static SSL_SESSION *altered(struct ctls_conn *conn)
{
	struct ctls *ctls = conn->ctls;
	SSL_SESSION *genuine;

	if (ctls->altered != NULL && !SSL_SESSION_is_resumable(ctls->altered)) {
		SSL_SESSION_free(ctls->altered);
		ctls->altered = NULL;
	}
	if (ctls->altered == NULL) {
		genuine = take(conn);
		if (genuine == NULL)
			return NULL;
		ctls->altered = altered_copy(genuine);
		SSL_SESSION_free(genuine);
	}
	if (ctls->altered == NULL || SSL_SESSION_up_ref(ctls->altered) != 1)
		return NULL;
	return ctls->altered;
}

int ctls_offer_session(struct ctls_conn *conn, enum ctls_offer offer)
{
	conn->altered = offer == CTLS_OFFER_ALTERED;
	conn->used = offer == CTLS_OFFER_NONE	   ? NULL
		     : offer == CTLS_OFFER_ALTERED ? altered(conn)
						   : take(conn);
	if (conn->used == NULL || SSL_set_session(conn->ssl, conn->used) == 1)
		return 0;
	ERR_clear_error();
	ctls_end(conn);
	return -ENOMEM;
}
