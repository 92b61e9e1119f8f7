/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_tls.h"

#include "shm/base.h"
#include "tools/tdrive_tls_int.h"

#include <openssl/err.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Holds a ClientHello with an ML-KEM key share (1.2 KiB) and a ticket of the
 * usual size in one piece; a longer flight leaves in several sends. */
#define OUT_SIZE 4096u

struct ctls_conn {
	struct ctls *ctls; /* borrows */
	BIO *bio;	   /* owns one reference; our end of the pump */
	SSL *ssl;	   /* owns; NULL between connections */
	SSL_SESSION *held; /* owns; the latest session that came, or NULL */
	const SSL_SESSION *used; /* borrows from ssl; what was offered */
	const uint8_t *in;	 /* borrows; the window */
	size_t in_len;
	uint32_t out_from; /* sent so far */
	uint32_t out_lent; /* end of the loan; out_from: none is out */
	uint32_t out_len;
	uint32_t tickets; /* came since ctls_take_tickets() */
	enum count_fail cause;
	bool keep;
	uint8_t out[OUT_SIZE];
};

/* ---- the pump ---- */

static int pump_read(BIO *bio, char *to, int len)
{
	struct ctls_conn *conn = BIO_get_data(bio);
	size_t n = base_min((uint64_t)len, conn->in_len);

	BIO_clear_retry_flags(bio);
	if (n == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(to, conn->in, n);
	conn->in += n;
	conn->in_len -= n;
	return (int)n;
}

static int pump_write(BIO *bio, const char *from, int len)
{
	struct ctls_conn *conn = BIO_get_data(bio);
	size_t n = base_min((uint64_t)len, OUT_SIZE - conn->out_len);

	BIO_clear_retry_flags(bio);
	if (n == 0) {
		BIO_set_retry_write(bio);
		return -1;
	}
	memcpy(conn->out + conn->out_len, from, n);
	conn->out_len += (uint32_t)n;
	return (int)n;
}

static long pump_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	(void)bio;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH; /* what is written is ready to leave */
}

BIO_METHOD *ctls_pump(void)
{
	int type = BIO_get_new_index();
	BIO_METHOD *pump;

	if (type == -1)
		return NULL;
	pump = BIO_meth_new(type | BIO_TYPE_SOURCE_SINK, "tdrive pump");
	if (pump == NULL)
		return NULL;
	BIO_meth_set_read(pump, pump_read);
	BIO_meth_set_write(pump, pump_write);
	BIO_meth_set_ctrl(pump, pump_ctrl);
	return pump;
}

void ctls_feed(struct ctls_conn *conn, const uint8_t *in, size_t len)
{
	conn->in = in;
	conn->in_len = len;
}

size_t ctls_out(struct ctls_conn *conn, const uint8_t **out)
{
	*out = conn->out + conn->out_from;
	conn->out_lent = conn->out_len;
	return conn->out_len - conn->out_from;
}

void ctls_sent(struct ctls_conn *conn, size_t n)
{
	MUST(n <= conn->out_lent - conn->out_from);
	conn->out_from += (uint32_t)n;
	conn->out_lent = conn->out_from;
	if (conn->out_from != conn->out_len)
		return;
	conn->out_from = 0;
	conn->out_lent = 0;
	conn->out_len = 0;
}

/* ---- causes ---- */

#define CAUSE_IS(reason, cause) \
	case reason:            \
		return cause

/* Alerts that say "nothing in common" (RFC 8446, section 6.2). */
static enum count_fail cause_of_alert(int alert)
{
	switch (alert) {
		CAUSE_IS(SSL_AD_HANDSHAKE_FAILURE, COUNT_NO_SHARED);
		CAUSE_IS(SSL_AD_PROTOCOL_VERSION, COUNT_NO_SHARED);
		CAUSE_IS(SSL_AD_INSUFFICIENT_SECURITY, COUNT_NO_SHARED);
		CAUSE_IS(SSL_AD_NO_APPLICATION_PROTOCOL, COUNT_NO_SHARED);
	default:
		return COUNT_ALERT;
	}
}

/* What our own library found wrong. */
static enum count_fail cause_of_reason(int reason)
{
	switch (reason) {
		CAUSE_IS(SSL_R_CERTIFICATE_VERIFY_FAILED, COUNT_VERIFY);
		CAUSE_IS(SSL_R_UNEXPECTED_EOF_WHILE_READING, COUNT_EOF);
		CAUSE_IS(SSL_R_UNSUPPORTED_PROTOCOL, COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_UNSUPPORTED_SSL_VERSION, COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_WRONG_SSL_VERSION, COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_VERSION_TOO_LOW, COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_VERSION_TOO_HIGH, COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_NO_PROTOCOLS_AVAILABLE, COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_NO_CIPHERS_AVAILABLE, COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_NO_SUITABLE_KEY_SHARE, COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM,
			 COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_WRONG_SIGNATURE_TYPE, COUNT_NO_SHARED);
		CAUSE_IS(SSL_R_WRONG_CURVE, COUNT_NO_SHARED);
		CAUSE_IS(ERR_R_MALLOC_FAILURE, COUNT_INTERNAL);
		CAUSE_IS(ERR_R_INTERNAL_ERROR, COUNT_INTERNAL);
	default:
		return COUNT_PROTOCOL;
	}
}

/* The first error of the queue is the cause, later ones are its echo. */
static enum count_fail take_cause(void)
{
	unsigned long first = ERR_peek_error();
	int reason = ERR_GET_REASON(first);

	ERR_clear_error();
	if (first == 0)
		return COUNT_INTERNAL;
	if (ERR_GET_LIB(first) == ERR_LIB_SSL &&
	    reason >= SSL_AD_REASON_OFFSET &&
	    reason < SSL_AD_REASON_OFFSET + 256)
		return cause_of_alert(reason - SSL_AD_REASON_OFFSET);
	return cause_of_reason(reason);
}

enum count_fail ctls_cause(const struct ctls_conn *conn)
{
	return conn->cause;
}

/* ---- sessions ---- */

void ctls_drop(struct ctls_conn *conn)
{
	SSL_SESSION_free(conn->held);
	conn->held = NULL;
}

bool ctls_holds(const struct ctls_conn *conn)
{
	return conn->held != NULL && SSL_SESSION_is_resumable(conn->held);
}

uint32_t ctls_take_tickets(struct ctls_conn *conn)
{
	uint32_t n = conn->tickets;

	conn->tickets = 0;
	return n;
}

/* Takes over one reference. */
static void hold(struct ctls_conn *conn, SSL_SESSION *session)
{
	SSL_SESSION_free(conn->held);
	conn->held = session;
}

int ctls_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct ctls_conn *conn = SSL_get_app_data(ssl);

	conn->tickets += (uint32_t)SSL_SESSION_has_ticket(session);
	if (!conn->keep)
		return 0;
	hold(conn, session);
	return 1;
}

/*
 * A resumed TLS 1.2 handshake calls no new_session_cb; when the server sent a
 * new ticket, the library has replaced the connection's session.
 */
static void take_renewed(struct ctls_conn *conn)
{
	SSL_SESSION *now = SSL_get0_session(conn->ssl);

	if (conn->used == NULL || now == conn->used)
		return;
	conn->tickets++;
	if (conn->keep)
		hold(conn, SSL_get1_session(conn->ssl));
}

/* A TLS 1.3 ticket is used once (RFC 8446, C.4): what we held is given up. */
static int offer_held(struct ctls_conn *conn)
{
	if (SSL_set_session(conn->ssl, conn->held) != 1) {
		ERR_clear_error();
		return -ENOMEM;
	}
	conn->used = SSL_get0_session(conn->ssl);
	if (SSL_SESSION_get_protocol_version(conn->held) == TLS1_3_VERSION)
		ctls_drop(conn);
	return 0;
}

/* ---- connections ---- */

int ctls_conn_new(struct ctls_conn **out, struct ctls *ctls)
{
	struct ctls_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		return -ENOMEM;
	conn->ctls = ctls;
	conn->bio = BIO_new(ctls->pump);
	if (conn->bio == NULL) {
		ERR_clear_error();
		free(conn);
		return -ENOMEM;
	}
	BIO_set_data(conn->bio, conn);
	BIO_set_init(conn->bio, 1);
	*out = conn;
	return 0;
}

void ctls_conn_free(struct ctls_conn **conn)
{
	if (*conn == NULL)
		return;
	ctls_end(*conn);
	ctls_drop(*conn);
	BIO_free((*conn)->bio);
	free(*conn);
	*conn = NULL;
}

int ctls_begin(struct ctls_conn *conn, bool offer, bool keep)
{
	SSL *ssl = SSL_new(conn->ctls->ctx);

	if (ssl == NULL)
		goto fail;
	conn->ssl = ssl;
	conn->keep = keep;
	conn->used = NULL;
	conn->tickets = 0;
	BIO_up_ref(conn->bio); /* SSL_set_bio() takes one reference for both */
	SSL_set_bio(ssl, conn->bio, conn->bio);
	SSL_set_connect_state(ssl);
	if (SSL_set_app_data(ssl, conn) != 1)
		goto fail;
	if (conn->ctls->server_name != NULL &&
	    SSL_set_tlsext_host_name(ssl, conn->ctls->server_name) != 1)
		goto fail;
	if (offer && ctls_holds(conn))
		return offer_held(conn);
	return 0;
fail:
	ERR_clear_error();
	ctls_end(conn);
	return -ENOMEM;
}

bool ctls_offered(const struct ctls_conn *conn)
{
	return conn->used != NULL;
}

/* What stopped a call that answered `rc`; drains the library's error queue. */
static enum ctls_result stopped(struct ctls_conn *conn, int rc)
{
	switch (SSL_get_error(conn->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
		return CTLS_AGAIN;
	case SSL_ERROR_WANT_WRITE:
		return CTLS_FULL;
	case SSL_ERROR_ZERO_RETURN:
		return CTLS_EOF;
	default:
		conn->cause = take_cause();
		return CTLS_ERR;
	}
}

enum ctls_result ctls_handshake(struct ctls_conn *conn)
{
	int rc = SSL_do_handshake(conn->ssl);
	enum ctls_result result;

	if (rc == 1) {
		if (!ctls_is_tls13(conn))
			take_renewed(conn);
		return CTLS_OK;
	}
	result = stopped(conn, rc);
	if (result == CTLS_EOF) { /* close_notify before the end */
		conn->cause = COUNT_EOF;
		result = CTLS_ERR;
	}
	/* A session that was offered in vain is not offered again. */
	if (result == CTLS_ERR && conn->used != NULL)
		ctls_drop(conn);
	return result;
}

enum ctls_result ctls_read(struct ctls_conn *conn)
{
	uint8_t away[4096];
	int rc;

	if (conn->in_len == 0)
		return CTLS_AGAIN; /* the call could only say the same */
	do
		rc = SSL_read(conn->ssl, away, sizeof(away));
	while (rc > 0);
	return stopped(conn, rc);
}

bool ctls_resumed(const struct ctls_conn *conn)
{
	return SSL_session_reused(conn->ssl) == 1;
}

bool ctls_is_tls13(const struct ctls_conn *conn)
{
	return SSL_version(conn->ssl) == TLS1_3_VERSION;
}

void ctls_end(struct ctls_conn *conn)
{
	/* Marked as shut down, or the library declares the session unfit. */
	if (conn->ssl != NULL)
		SSL_set_shutdown(conn->ssl,
				 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(conn->ssl);
	conn->ssl = NULL;
	conn->used = NULL;
	conn->in_len = 0;
	conn->out_from = 0;
	conn->out_lent = 0;
	conn->out_len = 0;
}
