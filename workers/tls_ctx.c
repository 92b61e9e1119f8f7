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

static const char *version(void)
{
	return tls_library();
}

/* ---- callbacks ---- */

/* A signature is made for just these messages. */
static void on_message(int sent, int proto, int type, const void *buf,
		       size_t len, SSL *ssl, void *arg)
{
	struct tls_srv *srv = arg;
	const uint8_t *m = buf;

	(void)proto;
	(void)ssl;
	if (sent != 0 && type == SSL3_RT_HANDSHAKE && len > 0 &&
	    (m[0] == HS_SERVER_KEY_EXCHANGE || m[0] == HS_CERTIFICATE_VERIFY))
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
 */
static int unseal(struct tls_srv *srv, SSL *ssl, const uint8_t *name,
		  const uint8_t *iv, EVP_CIPHER_CTX *ctx, EVP_MAC_CTX *mac)
{
	struct tls_ticket_key key;
	bool current, ok;

	if (!tls_ticket_find(srv->keys, srv->table, name, &key, &current)) {
		srv->counts.tickets_unknown++;
		return 0;
	}
	ok = EVP_DecryptInit_ex2(ctx, srv->ticket_cipher, key.aes, iv, NULL) ==
		     1 &&
	     set_mac(mac, &key);
	OPENSSL_cleanse(&key, sizeof(key));
	if (!ok)
		return -1;
	if (current && SSL_version(ssl) != TLS1_3_VERSION)
		return 1;
	srv->counts.tickets_renewed++;
	return 2;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv,
		     EVP_CIPHER_CTX *ctx, EVP_MAC_CTX *mac, int enc)
{
	struct tls_srv *srv = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	return enc != 0 ? seal(srv, name, iv, ctx, mac)
			: unseal(srv, ssl, name, iv, ctx, mac);
}

/* ---- options of the scenario ---- */

static bool offers(const struct cfg *cfg, const char *name)
{
	for (size_t i = 0; i < cfg->tls.versions.n; i++)
		if (strcmp(cfg->tls.versions.item[i], name) == 0)
			return true;
	return false;
}

static int set_versions(SSL_CTX *ctx, const struct cfg *cfg)
{
	bool v12 = offers(cfg, "TLSv1.2"), v13 = offers(cfg, "TLSv1.3");

	return SSL_CTX_set_min_proto_version(ctx, v12 ? TLS1_2_VERSION
						      : TLS1_3_VERSION) == 1 &&
			       SSL_CTX_set_max_proto_version(
				       ctx, v13 ? TLS1_3_VERSION
						: TLS1_2_VERSION) == 1
		       ? 0
		       : -EIO;
}

/* Items joined by ':' that `want` selects; the caller frees. */
static char *join(const struct cfg_list *list, bool (*want)(const char *))
{
	size_t len = 1;
	char *out, *at;

	for (size_t i = 0; i < list->n; i++)
		len += strlen(list->item[i]) + 1;
	out = malloc(len);
	if (out == NULL)
		return NULL;
	at = out;
	*at = '\0';
	for (size_t i = 0; i < list->n; i++) {
		if (!want(list->item[i]))
			continue;
		if (at != out)
			*at++ = ':';
		at = stpcpy(at, list->item[i]);
	}
	return out;
}

static bool any(const char *name)
{
	(void)name;
	return true;
}

static bool is_suite13(const char *name)
{
	return strncmp(name, "TLS_", 4) == 0;
}

static bool is_suite12(const char *name)
{
	return !is_suite13(name);
}

/* Groups that came with a version; for the message alone. */
static const char *needs(const char *group)
{
	return strcasestr(group, "MLKEM") != NULL ? "3.5" : NULL;
}

static int set_groups(SSL_CTX *ctx, const struct cfg *cfg, char *err,
		      size_t len)
{
	char *all;
	int rc = 0;

	for (size_t i = 0; i < cfg->tls.groups.n; i++) {
		const char *g = cfg->tls.groups.item[i];
		const char *since = needs(g);

		if (SSL_CTX_set1_groups_list(ctx, g) == 1)
			continue;
		ERR_clear_error();
		if (since != NULL)
			snprintf(err, len,
				 "tls.groups: group %s needs OpenSSL %s; this "
				 "is %s",
				 g, since, version() + 8);
		else
			snprintf(err, len,
				 "tls.groups: %s is no group of %s; write "
				 "X25519, P-256, P-384 or another name it has",
				 g, version());
		return -EINVAL;
	}
	all = join(&cfg->tls.groups, any);
	if (all == NULL || SSL_CTX_set1_groups_list(ctx, all) != 1)
		rc = -EIO;
	free(all);
	return rc;
}

/* Set alone, is the context's list just this suite? (Newer versions ignore an
 * unknown name instead of failing.) */
static bool knows_suite(const char *name)
{
	SSL_CTX *probe = SSL_CTX_new(TLS_server_method());
	STACK_OF(SSL_CIPHER) * list;
	bool found = false;

	if (probe == NULL)
		return false;
	if (is_suite13(name) ? SSL_CTX_set_ciphersuites(probe, name) == 1
			     : SSL_CTX_set_cipher_list(probe, name) == 1) {
		list = SSL_CTX_get_ciphers(probe);
		for (int i = 0; i < sk_SSL_CIPHER_num(list); i++)
			if (strcmp(SSL_CIPHER_get_name(
					   sk_SSL_CIPHER_value(list, i)),
				   name) == 0)
				found = true;
	}
	ERR_clear_error();
	SSL_CTX_free(probe);
	return found;
}

/* Is there a TLS 1.2 suite whose signature the certificate can make? */
static bool suite12_fits(SSL_CTX *ctx, EVP_PKEY *key)
{
	int want = EVP_PKEY_is_a(key, "RSA") ? NID_auth_rsa : NID_auth_ecdsa;
	STACK_OF(SSL_CIPHER) *list = SSL_CTX_get_ciphers(ctx);

	for (int i = 0; i < sk_SSL_CIPHER_num(list); i++)
		if (SSL_CIPHER_get_auth_nid(sk_SSL_CIPHER_value(list, i)) ==
		    want)
			return true;
	return false;
}

static int set_suites(SSL_CTX *ctx, const struct cfg *cfg, EVP_PKEY *key,
		      char *err, size_t len)
{
	char *s12 = join(&cfg->tls.ciphers, is_suite12);
	char *s13 = join(&cfg->tls.ciphers, is_suite13);
	int rc = -EINVAL;

	for (size_t i = 0; i < cfg->tls.ciphers.n; i++)
		if (!knows_suite(cfg->tls.ciphers.item[i])) {
			snprintf(err, len,
				 "tls.ciphers: %s is unknown to %s (see "
				 "`openssl ciphers -v`)",
				 cfg->tls.ciphers.item[i], version());
			goto done;
		}
	if (s12 == NULL || s13 == NULL) {
		rc = -ENOMEM;
		goto done;
	}
	/* The 1.2 list cannot be empty; its default is not reached when only
	 * 1.3 is offered. */
	if (SSL_CTX_set_ciphersuites(ctx, s13) != 1 ||
	    (s12[0] != '\0' && SSL_CTX_set_cipher_list(ctx, s12) != 1)) {
		rc = -EIO;
		goto done;
	}
	if (offers(cfg, "TLSv1.3") && s13[0] == '\0')
		snprintf(err, len,
			 "tls.ciphers: no suite for TLSv1.3 in it; add "
			 "TLS_AES_256_GCM_SHA384, or leave TLSv1.3 out of "
			 "tls.versions");
	else if (offers(cfg, "TLSv1.2") && s12[0] == '\0')
		snprintf(err, len,
			 "tls.ciphers: no suite for TLSv1.2 in it; add "
			 "ECDHE-ECDSA-AES256-GCM-SHA384, or leave TLSv1.2 out "
			 "of tls.versions");
	else if (offers(cfg, "TLSv1.2") && !suite12_fits(ctx, key))
		snprintf(err, len,
			 "tls.ciphers: no suite for TLSv1.2 in it fits the "
			 "%s certificate; add %s",
			 EVP_PKEY_is_a(key, "RSA") ? "RSA" : "ECDSA or Ed25519",
			 EVP_PKEY_is_a(key, "RSA")
				 ? "ECDHE-RSA-AES256-GCM-SHA384"
				 : "ECDHE-ECDSA-AES256-GCM-SHA384");
	else
		rc = 0;
done:
	free(s12);
	free(s13);
	return rc;
}

static void set_tickets(struct tls_srv *srv, const struct cfg *cfg)
{
	const struct cfg_tickets *t = &cfg->tls.tickets;
	static const unsigned char context[] = "tterm";

	SSL_CTX_set_session_id_context(srv->ctx, context, sizeof(context) - 1);
	SSL_CTX_set_timeout(srv->ctx, (long)(t->lifetime / NS_PER_S));
	if (!t->enabled) {
		/* With no cache either, nothing resumes in any version. */
		SSL_CTX_set_options(srv->ctx, SSL_OP_NO_TICKET);
		SSL_CTX_set_num_tickets(srv->ctx, 0);
		return;
	}
	SSL_CTX_set_num_tickets(srv->ctx, (size_t)t->per_handshake);
	SSL_CTX_set_tlsext_ticket_key_evp_cb(srv->ctx, on_ticket);
}

static int set_client_auth(SSL_CTX *ctx, const struct cfg *cfg, char *err,
			   size_t len)
{
	const char *ca = cfg->tls.ca;
	STACK_OF(X509_NAME) * names;
	char reason[128];

	if (cfg->tls.client_auth == CFG_CLIENT_AUTH_NONE)
		return 0;
	names = SSL_load_client_CA_file(ca);
	if (names == NULL || SSL_CTX_load_verify_file(ctx, ca) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		tls_cert_reason(reason, sizeof(reason));
		snprintf(err, len,
			 "tls.ca: %s: no CA certificate can be read "
			 "from it (%s)",
			 ca, reason);
		return -EINVAL;
	}
	SSL_CTX_set_client_CA_list(ctx, names);
	SSL_CTX_set_verify(
		ctx,
		SSL_VERIFY_PEER |
			(cfg->tls.client_auth == CFG_CLIENT_AUTH_REQUIRED
				 ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT
				 : 0),
		NULL);
	return 0;
}

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

static int configure(struct tls_srv *srv, const struct cfg *cfg, char *err,
		     size_t len)
{
	int rc = use_certificate(srv, cfg, err, len);

	SSL_CTX_set_options(srv->ctx, SSL_OP_CIPHER_SERVER_PREFERENCE |
					      SSL_OP_NO_RENEGOTIATION |
					      SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(srv->ctx, SSL_MODE_RELEASE_BUFFERS |
					   SSL_MODE_ENABLE_PARTIAL_WRITE |
					   SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(srv->ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_msg_callback(srv->ctx, on_message);
	SSL_CTX_set_msg_callback_arg(srv->ctx, srv);
	SSL_CTX_set_app_data(srv->ctx, srv);
	if (rc == 0)
		rc = set_versions(srv->ctx, cfg);
	if (rc == 0)
		rc = set_groups(srv->ctx, cfg, err, len);
	if (rc == 0)
		rc = set_suites(srv->ctx, cfg, srv->cert.key, err, len);
	if (rc == 0)
		rc = set_client_auth(srv->ctx, cfg, err, len);
	if (rc == 0)
		set_tickets(srv, cfg);
	return rc;
}

int tls_srv_create(struct tls_srv **out, const struct cfg *cfg,
		   struct tls_tickets *tickets, char *err, size_t err_len)
{
	struct tls_srv *srv = calloc(1, sizeof(*srv));
	int rc = -ENOMEM;

	err[0] = '\0';
	if (srv != NULL) {
		srv->ctx = SSL_CTX_new(TLS_server_method());
		srv->bio = tls_conn_bio_method();
		srv->ticket_cipher =
			EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
		srv->keys = cfg->tls.tickets.enabled ? tickets : NULL;
	}
	if (srv != NULL && srv->ctx != NULL && srv->bio != NULL &&
	    srv->ticket_cipher != NULL)
		rc = configure(srv, cfg, err, err_len);
	if (rc < 0) {
		char reason[128];

		tls_cert_reason(reason, sizeof(reason));
		if (err[0] == '\0')
			snprintf(err, err_len, "TLS cannot be set up: %s",
				 reason);
		tls_srv_close(&srv);
		return rc;
	}
	*out = srv;
	return 0;
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
	return srv->cert.warning[0] != '\0' ? srv->cert.warning : NULL;
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
