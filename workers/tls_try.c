/* SPDX-License-Identifier: MIT */
/* A handshake of our own at start, in memory: see tls_int.h. */
#include "workers/tls_int.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than a first flight with a chain of usual length; else it is repeated.
 */
#define ROOM (32 * 1024)
/* A turn hands over what both have to say; no version has more than three. */
#define TURNS 20

struct trial {
	SSL *client;		 /* owns, with its BIOs */
	BIO *to_client, *sent;	 /* borrows: the client's */
	struct tls_conn *server; /* owns */
	struct tls_out out;	 /* owns its memory */
	enum tls_status status;	 /* of the server's last step */
	unsigned long error;	 /* the client's; 0: none so far */
};

/* ---- a client that takes everything ---- */

/* Adds a group unless it is there: OpenSSL refuses a list that has one twice,
 * and keeps the one before. */
static void add_group(SSL_CTX *ctx, char *text, size_t cap, const char *group)
{
	size_t n = strlen(text);

	if (n + strlen(group) + 2 > cap)
		return;
	snprintf(text + n, cap - n, ":%s", group);
	if (SSL_CTX_set1_groups_list(ctx, text) != 1)
		text[n] = '\0';
}

/*
 * The scenario's groups, and curves of certificates: in TLS 1.2 a client takes
 * only a certificate whose curve it names.
 */
static bool set_groups(SSL_CTX *ctx, const struct cfg *cfg, EVP_PKEY *key)
{
	char text[1024] = "", own[64] = "P-256";
	size_t n = 0;
	bool ok = false;

	for (size_t i = 0; i < cfg->tls.groups.n && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
				      i > 0 ? ":" : "",
				      cfg->tls.groups.item[i]);
	if (n < sizeof(text))
		ok = SSL_CTX_set1_groups_list(ctx, text) == 1;
	if (ok) {
		(void)EVP_PKEY_get_group_name(key, own, sizeof(own), NULL);
		add_group(ctx, text, sizeof(text), own);
		add_group(ctx, text, sizeof(text), "P-256");
		add_group(ctx, text, sizeof(text), "P-384");
		add_group(ctx, text, sizeof(text), "P-521");
	}
	ERR_clear_error();
	return ok;
}

static SSL *new_client(const struct cfg *cfg, EVP_PKEY *key, int version)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	char *suites = tls_opt_suites13(cfg);
	SSL *ssl = NULL;

	if (ctx != NULL && suites != NULL && set_groups(ctx, cfg, key) &&
	    SSL_CTX_set_min_proto_version(ctx, version) == 1 &&
	    SSL_CTX_set_max_proto_version(ctx, version) == 1 &&
	    SSL_CTX_set_ciphersuites(ctx, suites) == 1 &&
	    SSL_CTX_set_cipher_list(ctx, "ALL:COMPLEMENTOFALL") == 1)
		ssl = SSL_new(ctx);
	if (ssl != NULL)
		SSL_set_connect_state(ssl);
	free(suites);
	SSL_CTX_free(ctx);
	return ssl;
}

/* ---- the handshake ---- */

static void fini(struct trial *t)
{
	tls_conn_free(&t->server);
	SSL_free(t->client);
	free(t->out.data);
}

static int init(struct trial *t, struct tls_srv *srv, const struct cfg *cfg,
		int version)
{
	memset(t, 0, sizeof(*t));
	t->status = TLS_AGAIN;
	t->out.data = malloc(ROOM);
	t->out.cap = ROOM;
	t->client = new_client(cfg, srv->cert.key, version);
	t->to_client = BIO_new(BIO_s_mem());
	t->sent = BIO_new(BIO_s_mem());
	t->server = tls_conn_new(srv, &t->out);
	if (t->out.data != NULL && t->client != NULL && t->to_client != NULL &&
	    t->sent != NULL && t->server != NULL) {
		SSL_set_bio(t->client, t->to_client, t->sent);
		return 0;
	}
	BIO_free(t->to_client);
	BIO_free(t->sent);
	fini(t);
	return -ENOMEM;
}

static void client_step(struct trial *t)
{
	int rc = SSL_do_handshake(t->client);

	if (rc != 1 && SSL_get_error(t->client, rc) != SSL_ERROR_WANT_READ)
		t->error = ERR_peek_error();
	ERR_clear_error();
}

/* What the client sent goes to the server, and what that answers back. */
static void server_step(struct trial *t)
{
	char *data;
	long n = BIO_get_mem_data(t->sent, &data);

	tls_conn_feed(t->server, data, (size_t)n);
	do {
		t->status = tls_conn_handshake(t->server);
		BIO_write(t->to_client, t->out.data, (int)t->out.len);
		t->out.len = 0;
	} while (t->status == TLS_AGAIN && tls_conn_wants_room(t->server));
	(void)BIO_reset(t->sent);
}

/* A client certificate, which ours has not, comes last: all else worked. */
static bool is_over(const struct trial *t)
{
	return t->status == TLS_OK ||
	       (t->status == TLS_ERR &&
		tls_conn_cause(t->server) == TLS_CAUSE_VERIFY);
}

static bool works(struct trial *t)
{
	for (int i = 0; i < TURNS && t->status == TLS_AGAIN; i++) {
		client_step(t);
		if (t->error != 0)
			return false;
		server_step(t);
	}
	return is_over(t);
}

static int try_version(struct tls_srv *srv, const struct cfg *cfg, int version,
		       const char *name, char *err, size_t len)
{
	struct trial t;
	const char *why;
	int rc = init(&t, srv, cfg, version);

	if (rc < 0)
		return rc;
	if (!works(&t)) {
		why = ERR_reason_error_string(t.error != 0 ? t.error
							   : t.server->error);
		snprintf(err, len,
			 "tls: no %s handshake is possible with these groups "
			 "and ciphers and this certificate (%s): %s",
			 name, srv->cert.kind,
			 why != NULL ? why : "no reason given");
		rc = -EINVAL;
	}
	fini(&t);
	return rc;
}

int tls_try(struct tls_srv *srv, const struct cfg *cfg, char *err, size_t len)
{
	int rc = 0;

	if (tls_opt_offers(cfg, "TLSv1.2"))
		rc = try_version(srv, cfg, TLS1_2_VERSION, "TLSv1.2", err, len);
	if (rc == 0 && tls_opt_offers(cfg, "TLSv1.3"))
		rc = try_version(srv, cfg, TLS1_3_VERSION, "TLSv1.3", err, len);
	memset(&srv->counts, 0, sizeof(srv->counts));
	return rc;
}
