/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_tls.h"

#include "shm/base.h"
#include "tools/tdrive_tls_int.h"

#include <openssl/err.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	size_t n = base_min((uint64_t)len, CTLS_OUT_SIZE - conn->out_len);

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

int ctls_begin(struct ctls_conn *conn, enum ctls_offer offer, bool keep,
	       bool lean)
{
	SSL *ssl = SSL_new(conn->ctls->ctx);

	if (ssl == NULL)
		goto fail;
	conn->ssl = ssl;
	conn->keep = keep;
	conn->kept = false;
	conn->tickets = 0;
	BIO_up_ref(conn->bio); /* SSL_set_bio() takes one reference for both */
	SSL_set_bio(ssl, conn->bio, conn->bio);
	SSL_set_connect_state(ssl);
	if (lean)
		SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	if (SSL_set_app_data(ssl, conn) != 1)
		goto fail;
	if (conn->ctls->server_name != NULL &&
	    SSL_set_tlsext_host_name(ssl, conn->ctls->server_name) != 1)
		goto fail;
	return ctls_offer_session(conn, offer);
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
		if (SSL_version(conn->ssl) != TLS1_3_VERSION)
			ctls_settle_session(conn);
		return CTLS_OK;
	}
	result = stopped(conn, rc);
	if (result == CTLS_EOF) { /* close_notify before the end */
		conn->cause = COUNT_EOF;
		result = CTLS_ERR;
	}
	if (result == CTLS_ERR)
		ctls_forget_session(conn);
	return result;
}

enum ctls_result ctls_read(struct ctls_conn *conn, uint8_t *to, size_t size,
			   size_t *n)
{
	int rc;

	*n = 0;
	if (conn->in_len == 0)
		return CTLS_AGAIN; /* the call could only say the same */
	rc = SSL_read(conn->ssl, to, (int)size);
	if (rc <= 0)
		return stopped(conn, rc);
	*n = (size_t)rc;
	return CTLS_OK;
}

enum ctls_result ctls_write(struct ctls_conn *conn, const void *from,
			    size_t len)
{
	int rc = SSL_write(conn->ssl, from, (int)len);

	return rc > 0 ? CTLS_OK : stopped(conn, rc);
}

void ctls_notify(struct ctls_conn *conn)
{
	if (SSL_shutdown(conn->ssl) < 0)
		ERR_clear_error(); /* no room for it: then it ends without */
}

size_t ctls_unread(const struct ctls_conn *conn)
{
	return conn->in_len;
}

size_t ctls_unsent(const struct ctls_conn *conn)
{
	return conn->out_len - conn->out_from;
}

void ctls_end(struct ctls_conn *conn)
{
	/* Marked as shut down, or the library declares the session unfit. */
	if (conn->ssl != NULL)
		SSL_set_shutdown(conn->ssl,
				 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(conn->ssl);
	conn->ssl = NULL;
	SSL_SESSION_free(conn->used);
	conn->used = NULL;
	conn->in_len = 0;
	conn->out_from = 0;
	conn->out_lent = 0;
	conn->out_len = 0;
}
