/* SPDX-License-Identifier: MIT */
/* The scenario's TLS options, each checked so that a wrong one can be named. */
#include "workers/tls_int.h"

#include "shm/base.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options of the scenario ---- */

bool tls_opt_offers(const struct cfg *cfg, const char *name)
{
	for (size_t i = 0; i < cfg->tls.versions.n; i++)
		if (strcmp(cfg->tls.versions.item[i], name) == 0)
			return true;
	return false;
}

static int set_versions(SSL_CTX *ctx, const struct cfg *cfg)
{
	bool v12 = tls_opt_offers(cfg, "TLSv1.2"),
	     v13 = tls_opt_offers(cfg, "TLSv1.3");

	return SSL_CTX_set_min_proto_version(ctx, v12 ? TLS1_2_VERSION
						      : TLS1_3_VERSION) == 1 &&
			       SSL_CTX_set_max_proto_version(
				       ctx, v13 ? TLS1_3_VERSION
						: TLS1_2_VERSION) == 1
		       ? 0
		       : -EIO;
}

/* Items joined by ':' that `want` (NULL: all) selects; the caller frees. */
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
		if (want != NULL && !want(list->item[i]))
			continue;
		if (at != out)
			*at++ = ':';
		at = stpcpy(at, list->item[i]);
	}
	return out;
}

static bool is_suite13(const char *name)
{
	return strncmp(name, "TLS_", 4) == 0;
}

static bool is_suite12(const char *name)
{
	return !is_suite13(name);
}

char *tls_opt_suites13(const struct cfg *cfg)
{
	return join(&cfg->tls.ciphers, is_suite13);
}

/* ---- groups ---- */

/* Groups that came with a version; for the message alone. */
static const struct {
	const char *group;
	unsigned major, minor;
} newer[] = {
	{"X25519MLKEM768", 3, 5},
	{"SecP256r1MLKEM768", 3, 5},
	{"SecP384r1MLKEM1024", 3, 5},
	{"MLKEM512", 3, 5},
	{"MLKEM768", 3, 5},
	{"MLKEM1024", 3, 5},
	{"brainpoolP256r1tls13", 3, 2},
	{"brainpoolP384r1tls13", 3, 2},
	{"brainpoolP512r1tls13", 3, 2},
};

static void refuse_group(const char *name, char *err, size_t len)
{
	unsigned major = OPENSSL_version_major();
	unsigned minor = OPENSSL_version_minor();

	for (size_t i = 0; i < ARRAY_LEN(newer); i++) {
		if (strcasecmp(newer[i].group, name) != 0 ||
		    major > newer[i].major ||
		    (major == newer[i].major && minor >= newer[i].minor))
			continue;
		snprintf(err, len,
			 "tls.groups: group %s needs OpenSSL %u.%u; this is %s",
			 newer[i].group, newer[i].major, newer[i].minor,
			 OpenSSL_version(OPENSSL_VERSION_STRING));
		return;
	}
	snprintf(err, len,
		 "tls.groups: %s is no group of %s; write X25519, P-256, P-384 "
		 "or another name it has",
		 name, tls_library());
}

/* The list up to each item is set, so that the one it fails at can be named. */
static int set_groups(SSL_CTX *ctx, const struct cfg *cfg, char *err,
		      size_t len)
{
	for (size_t i = 0; i < cfg->tls.groups.n; i++) {
		const char *name = cfg->tls.groups.item[i];
		struct cfg_list upto = {cfg->tls.groups.item, i + 1};
		char *text;
		bool ok;

		if (name[0] == '-' ||
		    SSL_CTX_set1_groups_list(ctx, name) != 1) {
			refuse_group(name, err, len);
			return -EINVAL;
		}
		text = join(&upto, NULL);
		if (text == NULL)
			return -ENOMEM;
		ok = SSL_CTX_set1_groups_list(ctx, text) == 1;
		free(text);
		if (!ok) {
			snprintf(err, len,
				 "tls.groups: %s is there twice, by this or "
				 "another name; name each group once",
				 name);
			return -EINVAL;
		}
	}
	return 0;
}

/* ---- suites ---- */

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

static int check_names(const struct cfg *cfg, char *err, size_t len)
{
	for (size_t i = 0; i < cfg->tls.ciphers.n; i++) {
		const char *name = cfg->tls.ciphers.item[i];
		const char *ours = OPENSSL_cipher_name(name);

		if (knows_suite(name))
			continue;
		if (knows_suite(ours))
			snprintf(err, len,
				 "tls.ciphers: %s is called %s by OpenSSL; "
				 "write that",
				 name, ours);
		else
			snprintf(err, len,
				 "tls.ciphers: %s is unknown to %s (see "
				 "`openssl ciphers -v`)",
				 name, tls_library());
		return -EINVAL;
	}
	return 0;
}

static bool is_rsa(EVP_PKEY *key)
{
	return EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_is_a(key, "RSA-PSS");
}

/* Is there a TLS 1.2 suite whose signature the certificate can make? */
static bool suite12_fits(SSL_CTX *ctx, EVP_PKEY *key)
{
	int want = is_rsa(key) ? NID_auth_rsa : NID_auth_ecdsa;
	STACK_OF(SSL_CIPHER) *list = SSL_CTX_get_ciphers(ctx);

	for (int i = 0; i < sk_SSL_CIPHER_num(list); i++)
		if (SSL_CIPHER_get_auth_nid(sk_SSL_CIPHER_value(list, i)) ==
		    want)
			return true;
	return false;
}

/* Does every version offered have a suite? */
static int check_versions(SSL_CTX *ctx, const struct cfg *cfg, EVP_PKEY *key,
			  bool have12, bool have13, char *err, size_t len)
{
	bool v12 = tls_opt_offers(cfg, "TLSv1.2");
	const char *usual = is_rsa(key) ? "ECDHE-RSA-AES256-GCM-SHA384"
					: "ECDHE-ECDSA-AES256-GCM-SHA384";

	if (tls_opt_offers(cfg, "TLSv1.3") && !have13)
		snprintf(err, len,
			 "tls.ciphers: no suite for TLSv1.3 in it; add "
			 "TLS_AES_256_GCM_SHA384, or leave TLSv1.3 out of "
			 "tls.versions");
	else if (v12 && !have12)
		snprintf(err, len,
			 "tls.ciphers: no suite for TLSv1.2 in it; add %s, or "
			 "leave TLSv1.2 out of tls.versions",
			 usual);
	else if (v12 && !suite12_fits(ctx, key))
		snprintf(err, len,
			 "tls.ciphers: no suite for TLSv1.2 in it fits the "
			 "%s certificate; add %s",
			 is_rsa(key) ? "RSA" : "ECDSA or Ed25519", usual);
	else
		return 0;
	return -EINVAL;
}

static int set_suites(SSL_CTX *ctx, const struct cfg *cfg, EVP_PKEY *key,
		      char *err, size_t len)
{
	char *s12 = join(&cfg->tls.ciphers, is_suite12);
	char *s13 = tls_opt_suites13(cfg);
	int rc = check_names(cfg, err, len);

	if (s12 == NULL || s13 == NULL)
		rc = -ENOMEM;
	/* The 1.2 list cannot be empty; its default is not reached when only
	 * 1.3 is offered. */
	if (rc == 0 &&
	    (SSL_CTX_set_ciphersuites(ctx, s13) != 1 ||
	     (s12[0] != '\0' && SSL_CTX_set_cipher_list(ctx, s12) != 1)))
		rc = -EIO;
	if (rc == 0)
		rc = check_versions(ctx, cfg, key, s12[0] != '\0',
				    s13[0] != '\0', err, len);
	free(s12);
	free(s13);
	return rc;
}

/* ---- tickets and client certificates ---- */

static void set_tickets(SSL_CTX *ctx, const struct cfg *cfg)
{
	const struct cfg_tickets *t = &cfg->tls.tickets;
	static const unsigned char context[] = "tterm";

	SSL_CTX_set_session_id_context(ctx, context, sizeof(context) - 1);
	SSL_CTX_set_timeout(ctx, (long)(t->lifetime / NS_PER_S));
	SSL_CTX_set_num_tickets(ctx, t->enabled ? (size_t)t->per_handshake : 0);
	/* As there is no cache either, nothing resumes then in any version. */
	if (!t->enabled)
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
}

/* Who signs clients is trusted, also without the CA above. */
static int set_client_auth(SSL_CTX *ctx, const struct cfg *cfg, char *err,
			   size_t len)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	STACK_OF(X509) * cas;
	int rc;

	if (cfg->tls.client_auth == CFG_CLIENT_AUTH_NONE)
		return 0;
	rc = tls_cert_stack(&cas, cfg->tls.ca, "tls.ca", err, len);
	if (rc < 0)
		return rc;
	for (int i = 0; i < sk_X509_num(cas); i++) {
		X509 *ca = sk_X509_value(cas, i);

		if (X509_STORE_add_cert(store, ca) != 1 ||
		    SSL_CTX_add_client_CA(ctx, ca) != 1)
			rc = -EIO;
	}
	sk_X509_pop_free(cas, X509_free);
	X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
	SSL_CTX_set_verify(
		ctx,
		SSL_VERIFY_PEER |
			(cfg->tls.client_auth == CFG_CLIENT_AUTH_REQUIRED
				 ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT
				 : 0),
		NULL);
	return rc;
}

int tls_opt_apply(struct tls_srv *srv, const struct cfg *cfg, char *err,
		  size_t len)
{
	int rc = set_versions(srv->ctx, cfg);

	if (rc == 0)
		rc = set_groups(srv->ctx, cfg, err, len);
	if (rc == 0)
		rc = set_suites(srv->ctx, cfg, srv->cert.key, err, len);
	if (rc == 0)
		rc = set_client_auth(srv->ctx, cfg, err, len);
	if (rc == 0)
		set_tickets(srv->ctx, cfg);
	return rc;
}
