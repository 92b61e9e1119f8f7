/* SPDX-License-Identifier: MIT */
#include "workers/tls_conn.h"

#include "workers/tls_int.h"

#include "shm/base.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

/* ---- the BIO between OpenSSL and the caller's bytes ---- */

static int bio_read(BIO *bio, char *buf, size_t len, size_t *got)
{
	struct tls_conn *c = BIO_get_data(bio);
	size_t n = len < c->left ? len : c->left;

	BIO_clear_retry_flags(bio);
	if (n == 0) {
		BIO_set_retry_read(bio);
		return 0;
	}
	memcpy(buf, c->in, n);
	c->in += n;
	c->left -= n;
	*got = n;
	return 1;
}

static int bio_write(BIO *bio, const char *buf, size_t len, size_t *done)
{
	struct tls_conn *c = BIO_get_data(bio);
	struct tls_out *o = c->out;
	size_t room = o->cap - o->len;
	size_t n = len < room ? len : room;

	BIO_clear_retry_flags(bio);
	if (n == 0) {
		BIO_set_retry_write(bio);
		return 0;
	}
	memcpy(o->data + o->len, buf, n);
	o->len += n;
	*done = n;
	return 1;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	(void)bio;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD *tls_conn_bio_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
				     "tterm");

	if (m == NULL)
		return NULL;
	BIO_meth_set_read_ex(m, bio_read);
	BIO_meth_set_write_ex(m, bio_write);
	BIO_meth_set_ctrl(m, bio_ctrl);
	return m;
}

/* In a handshake OpenSSL puts a buffer before the BIO for writing, so the one
 * for reading is asked. */
struct tls_conn *tls_conn_of(const SSL *ssl)
{
	return BIO_get_data(SSL_get_rbio(ssl));
}

/* ---- life ---- */

struct tls_conn *tls_conn_new(struct tls_srv *srv, struct tls_out *out)
{
	struct tls_conn *c = calloc(1, sizeof(*c));
	BIO *bio;

	if (c == NULL)
		return NULL;
	c->srv = srv;
	c->out = out;
	c->ssl = SSL_new(srv->ctx);
	bio = BIO_new(srv->bio);
	if (c->ssl == NULL || bio == NULL) {
		BIO_free(bio);
		SSL_free(c->ssl);
		free(c);
		ERR_clear_error();
		return NULL;
	}
	BIO_set_data(bio, c);
	BIO_set_init(bio, 1);
	SSL_set_bio(c->ssl, bio, bio);
	SSL_set_accept_state(c->ssl);
	return c;
}

void tls_conn_free(struct tls_conn **conn)
{
	struct tls_conn *c = *conn;

	if (c == NULL)
		return;
	SSL_free(c->ssl);
	free(c);
	*conn = NULL;
}

void tls_conn_feed(struct tls_conn *c, const void *data, size_t len)
{
	MUST(c->left == 0);
	c->in = data;
	c->left = len;
}

size_t tls_conn_left(const struct tls_conn *c)
{
	return c->left;
}

/* ---- steps ---- */

/* One error of the queue; PROTOCOL where it says nothing. */
static enum tls_cause cause_of(unsigned long e)
{
	int reason = ERR_GET_REASON(e);

	if (reason == ERR_R_MALLOC_FAILURE)
		return TLS_CAUSE_INTERNAL;
	if (ERR_GET_LIB(e) != ERR_LIB_SSL)
		return TLS_CAUSE_PROTOCOL;
	if (reason >= SSL_AD_REASON_OFFSET &&
	    reason < SSL_AD_REASON_OFFSET + 256)
		return TLS_CAUSE_ALERT;
	switch (reason) {
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
	case SSL_R_VERSION_TOO_HIGH:
	case SSL_R_NO_PROTOCOLS_AVAILABLE:
	case SSL_R_NO_SHARED_GROUPS:
	case SSL_R_WRONG_CURVE: /* of a client's certificate, in TLS 1.2 */
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_GROUPS:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
		return TLS_CAUSE_NO_SHARED;
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
		return TLS_CAUSE_VERIFY;
	default:
		return TLS_CAUSE_PROTOCOL;
	}
}

/*
 * Drains the queue. Where a client's certificate or key share is bad, the
 * library that found it out comes first and TLS's own word later, so the first
 * entry that tells something counts. "Internal error" counts only as the first:
 * OpenSSL also says it after a key exchange with a bad share.
 */
static void fail(struct tls_conn *c)
{
	unsigned long e = ERR_get_error();

	c->error = e;
	c->cause = cause_of(e);
	if (e == 0 || (ERR_GET_LIB(e) == ERR_LIB_SSL &&
		       ERR_GET_REASON(e) == ERR_R_INTERNAL_ERROR))
		c->cause = TLS_CAUSE_INTERNAL;
	while (c->cause == TLS_CAUSE_PROTOCOL && (e = ERR_get_error()) != 0)
		c->cause = cause_of(e);
	ERR_clear_error();
}

/* What a return of <= 0 means. */
static enum tls_status outcome(struct tls_conn *c, int rc)
{
	c->wants_room = false;
	switch (SSL_get_error(c->ssl, rc)) {
	case SSL_ERROR_NONE:
		return TLS_OK;
	case SSL_ERROR_WANT_READ:
		return TLS_AGAIN;
	case SSL_ERROR_WANT_WRITE:
		c->wants_room = true;
		return TLS_AGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return TLS_EOF;
	default:
		fail(c);
		return TLS_ERR;
	}
}

enum tls_status tls_conn_handshake(struct tls_conn *c)
{
	int rc = SSL_do_handshake(c->ssl);

	if (rc != 1)
		return outcome(c, rc);
	/* What the library tried on the way and did without would be taken for
	 * the next call's error. */
	ERR_clear_error();
	if (c->renews && SSL_session_reused(c->ssl) == 1)
		c->srv->counts.tickets_renewed++;
	c->renews = false;
	return TLS_OK;
}

enum tls_status tls_conn_read(struct tls_conn *c, void *buf, size_t cap,
			      size_t *got)
{
	int rc = SSL_read_ex(c->ssl, buf, cap, got);

	return rc == 1 ? TLS_OK : outcome(c, rc);
}

enum tls_status tls_conn_write(struct tls_conn *c, const void *buf, size_t len,
			       size_t *done)
{
	int rc = SSL_write_ex(c->ssl, buf, len, done);

	return rc == 1 ? TLS_OK : outcome(c, rc);
}

enum tls_status tls_conn_shutdown(struct tls_conn *c)
{
	int rc = SSL_shutdown(c->ssl);

	/* 0: sent, and the peer's is still to come, which we do not wait for.
	 */
	return rc >= 0 ? TLS_OK : outcome(c, rc);
}

bool tls_conn_wants_room(const struct tls_conn *c)
{
	return c->wants_room;
}

size_t tls_conn_pending(const struct tls_conn *c)
{
	return (size_t)SSL_pending(c->ssl);
}

bool tls_conn_resumed(const struct tls_conn *c)
{
	return SSL_session_reused(c->ssl) == 1;
}

enum tls_version tls_conn_version(const struct tls_conn *c)
{
	return SSL_version(c->ssl) == TLS1_3_VERSION ? TLS_VERSION_13
						     : TLS_VERSION_12;
}

/* Of the TLS supported-groups registry: what OpenSSL has no NID for. */
#define UNKNOWN_NID    0x1000000
#define X25519MLKEM768 0x11ec

static _Atomic uint64_t *group_of(SSL *ssl, struct ctr_block *ctr)
{
	switch (SSL_get_negotiated_group(ssl)) {
	case NID_X25519:
		return &ctr->group_x25519;
	case NID_X9_62_prime256v1:
		return &ctr->group_p256;
	case NID_secp384r1:
		return &ctr->group_p384;
	case UNKNOWN_NID | X25519MLKEM768:
		return &ctr->group_hybrid;
	default:
		return &ctr->group_other;
	}
}

static _Atomic uint64_t *suite_of(SSL *ssl, struct ctr_block *ctr)
{
	switch (SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(ssl))) {
	case NID_aes_128_gcm:
		return &ctr->suite_aes128;
	case NID_aes_256_gcm:
		return &ctr->suite_aes256;
	case NID_chacha20_poly1305:
		return &ctr->suite_chacha;
	default:
		return &ctr->suite_other;
	}
}

static _Atomic uint64_t *sig_of(SSL *ssl, struct ctr_block *ctr)
{
	int type = NID_undef, digest = NID_undef;

	SSL_get_signature_type_nid(ssl, &type);
	SSL_get_signature_nid(ssl, &digest);
	switch (type) {
	case EVP_PKEY_EC:
		return digest == NID_sha256   ? &ctr->sig_ecdsa_p256
		       : digest == NID_sha384 ? &ctr->sig_ecdsa_p384
					      : &ctr->sig_other;
	case EVP_PKEY_ED25519:
		return &ctr->sig_ed25519;
	case EVP_PKEY_RSA_PSS:
		return &ctr->sig_rsa_pss;
	case EVP_PKEY_RSA:
		return &ctr->sig_rsa_pkcs1;
	default:
		return &ctr->sig_other;
	}
}

struct tls_agreed tls_conn_agreed(const struct tls_conn *c,
				  struct ctr_block *ctr)
{
	return (struct tls_agreed){
		.group = group_of(c->ssl, ctr),
		.suite = suite_of(c->ssl, ctr),
		.sig = tls_conn_resumed(c) ? NULL : sig_of(c->ssl, ctr)};
}

enum tls_cause tls_conn_cause(const struct tls_conn *c)
{
	return c->cause;
}
