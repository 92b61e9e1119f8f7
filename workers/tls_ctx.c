/* SPDX-License-Identifier: MIT */
#include "workers/tls_ctx.h"

#include "workers/tls_int.h"

#include "shm/base.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/opensslv.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Handshake types, RFC 8446 section 4 and RFC 5246 section 7.4. */
#define HS_CLIENT_HELLO	       1
#define HS_SERVER_KEY_EXCHANGE 12
#define HS_CERTIFICATE_VERIFY  15

const char *tls_library(void)
{
	static char text[64];

	if (text[0] == '\0')
		snprintf(text, sizeof(text), "OpenSSL %s",
			 OpenSSL_version(OPENSSL_VERSION_STRING));
	return text;
}

const char *tls_library_built(void)
{
	return "OpenSSL " OPENSSL_VERSION_STR;
}

/* ---- callbacks ---- */

/* Signatures are made for just two of our messages. */
static void on_message(int sent, int proto, int type, const void *buf,
		       size_t len, SSL *ssl, void *arg)
{
	struct tls_srv *srv = arg;
	const uint8_t *m = buf;

	(void)proto;
	if (type != SSL3_RT_HANDSHAKE || len == 0)
		return;
	if (sent == 0)
		tls_conn_of(ssl)->hellos += m[0] == HS_CLIENT_HELLO;
	else if (m[0] == HS_SERVER_KEY_EXCHANGE ||
		 m[0] == HS_CERTIFICATE_VERIFY)
		srv->counts.signatures++;
}

static bool set_mac(EVP_MAC_CTX *mac, struct tls_ticket_key *key)
{
	OSSL_PARAM p[3];

	p[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->hmac,
						 sizeof(key->hmac));
	p[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
						(char *)"SHA256", 0);
	p[2] = OSSL_PARAM_construct_end();
	return EVP_MAC_CTX_set_params(mac, p) == 1;
}

static int seal(struct tls_srv *srv, uint8_t *name, uint8_t *iv,
		EVP_CIPHER_CTX *ctx, EVP_MAC_CTX *mac)
{
	struct tls_ticket_key key;
	int rc = -1;

	tls_ticket_current(srv->keys, srv->table, &key);
	memcpy(name, key.name, sizeof(key.name));
	if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(srv->ticket_cipher)) == 1 &&
	    EVP_EncryptInit_ex2(ctx, srv->ticket_cipher, key.aes, iv, NULL) ==
		    1 &&
	    set_mac(mac, &key)) {
		srv->counts.tickets_issued++;
		rc = 1;
	}
	OPENSSL_cleanse(&key, sizeof(key));
	return rc;
}

/*
 * 2 asks OpenSSL for a new ticket: in TLS 1.3 always, for a client that uses
 * each once would be left without (nginx and HAProxy do the same); in TLS 1.2
 * when the key no longer issues. 0: not ours, a full handshake follows.
 *
 * Whether the ticket is good is seen after this, so a renewal is counted when
 * the handshake has ended. After a HelloRetryRequest the client offers the same
 * tickets again, which are unknown once.
 */
static int unseal(struct tls_srv *srv, struct tls_conn *c, const uint8_t *name,
		  const uint8_t *iv, EVP_CIPHER_CTX *ctx, EVP_MAC_CTX *mac)
{
	struct tls_ticket_key key;
	bool current, ok, tls13 = SSL_version(c->ssl) == TLS1_3_VERSION;

	c->renews = false;
	if (!tls_ticket_find(srv->keys, srv->table, name, &key, &current)) {
		srv->counts.tickets_unknown += c->hellos == 1;
		return 0;
	}
	ok = EVP_DecryptInit_ex2(ctx, srv->ticket_cipher, key.aes, iv, NULL) ==
		     1 &&
	     set_mac(mac, &key);
	OPENSSL_cleanse(&key, sizeof(key));
	if (!ok)
		return -1;
	c->renews = tls13 ? SSL_get_num_tickets(c->ssl) > 0 : !current;
	return c->renews ? 2 : 1;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv,
		     EVP_CIPHER_CTX *ctx, EVP_MAC_CTX *mac, int enc)
{
	struct tls_conn *c = tls_conn_of(ssl);

	return enc != 0 ? seal(c->srv, name, iv, ctx, mac)
			: unseal(c->srv, c, name, iv, ctx, mac);
}

/* ---- create ---- */

static int use_certificate(struct tls_srv *srv, const struct cfg *cfg,
			   char *err, size_t len)
{
	const struct cfg_certificate *c = &cfg->tls.certificate;
	char reason[128];
	int rc = c->chain != NULL
			 ? tls_cert_load(&srv->cert, c->chain, c->key, err, len)
			 : tls_cert_make(&srv->cert, c->make, err, len);

	if (rc < 0)
		return rc;
	if (SSL_CTX_use_cert_and_key(srv->ctx, srv->cert.leaf, srv->cert.key,
				     srv->cert.chain, 1) == 1)
		return 0;
	tls_cert_reason(reason, sizeof(reason));
	snprintf(err, len,
		 "tls.certificate: OpenSSL does not take the "
		 "certificate (%s): %s",
		 srv->cert.kind, reason);
	return -EINVAL;
}

static void set_modes(struct tls_srv *srv)
{
	SSL_CTX *ctx = srv->ctx;

	SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_NO_RENEGOTIATION |
					 SSL_OP_NO_COMPRESSION);
	/* What is sent is the chain as given: OpenSSL would build and verify
	 * one anew in every handshake where there is only the leaf. */
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS |
				      SSL_MODE_NO_AUTO_CHAIN |
				      SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_dh_auto(ctx, 1); /* DHE-RSA-... of TLS 1.2 */
	SSL_CTX_set_msg_callback(ctx, on_message);
	SSL_CTX_set_msg_callback_arg(ctx, srv);
	if (srv->keys != NULL)
		SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket);
}

static void gather_warnings(struct tls_srv *srv)
{
	const char *keys =
		srv->keys != NULL ? tls_ticket_warning(srv->keys) : NULL;
	const char *cert =
		srv->cert.warning[0] != '\0' ? srv->cert.warning : NULL;

	snprintf(srv->warning, sizeof(srv->warning), "%s%s%s",
		 cert != NULL ? cert : "",
		 cert != NULL && keys != NULL ? "; " : "",
		 keys != NULL ? keys : "");
}

static int configure(struct tls_srv *srv, const struct cfg *cfg, char *err,
		     size_t len)
{
	int rc = use_certificate(srv, cfg, err, len);

	if (rc == 0) {
		set_modes(srv);
		rc = tls_opt_apply(srv, cfg, err, len);
	}
	if (rc == 0)
		rc = tls_try(srv, cfg, err, len);
	if (rc == 0)
		gather_warnings(srv);
	return rc;
}

static int fill(struct tls_srv *srv, const struct cfg *cfg,
		const struct tls_tickets *tickets, char *err, size_t len)
{
	srv->ctx = SSL_CTX_new(TLS_server_method());
	srv->bio = tls_conn_bio_method();
	srv->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	srv->keys = cfg->tls.tickets.enabled ? tickets : NULL;
	MUST(srv->keys != NULL || !cfg->tls.tickets.enabled);
	if (srv->ctx == NULL || srv->bio == NULL || srv->ticket_cipher == NULL)
		return -ENOMEM;
	return configure(srv, cfg, err, len);
}

int tls_srv_create(struct tls_srv **out, const struct cfg *cfg,
		   struct tls_tickets *tickets, char *err, size_t err_len)
{
	struct tls_srv *srv = calloc(1, sizeof(*srv));
	char reason[128];
	int rc = -ENOMEM;

	err[0] = '\0';
	if (srv != NULL)
		rc = fill(srv, cfg, tickets, err, err_len);
	tls_cert_reason(reason, sizeof(reason));
	if (rc == 0) {
		*out = srv;
		return 0;
	}
	if (err[0] == '\0')
		snprintf(err, err_len, "tls: it cannot be set up: %s", reason);
	tls_srv_close(&srv);
	return rc;
}

void tls_srv_close(struct tls_srv **srv)
{
	struct tls_srv *s = *srv;

	if (s == NULL)
		return;
	SSL_CTX_free(s->ctx);
	BIO_meth_free(s->bio);
	EVP_CIPHER_free(s->ticket_cipher);
	tls_cert_fini(&s->cert);
	free(s);
	*srv = NULL;
}

const char *tls_srv_trust_pem(const struct tls_srv *srv, size_t *len)
{
	*len = srv->cert.trust_len;
	return srv->cert.trust_pem;
}

const char *tls_srv_name(const struct tls_srv *srv)
{
	return srv->cert.name;
}

const char *tls_srv_certificate(const struct tls_srv *srv)
{
	return srv->cert.kind;
}

const char *tls_srv_warning(const struct tls_srv *srv)
{
	return srv->warning[0] != '\0' ? srv->warning : NULL;
}

void tls_srv_start(struct tls_srv *srv, uint32_t worker)
{
	srv->table =
		srv->keys != NULL ? tls_ticket_table(srv->keys, worker) : 0;
	memset(&srv->counts, 0, sizeof(srv->counts));
}

struct tls_counts tls_srv_take_counts(struct tls_srv *srv)
{
	struct tls_counts c = srv->counts;

	memset(&srv->counts, 0, sizeof(srv->counts));
	return c;
}
