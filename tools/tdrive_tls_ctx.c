/* SPDX-License-Identifier: MIT */
/* The context that all connections share: what is offered, what is trusted. */
#include "tools/tdrive_tls.h"

#include "shm/base.h"
#include "tools/tdrive_addr.h"
#include "tools/tdrive_tls_int.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/opensslv.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 2048

const char *ctls_library(void)
{
	static char text[64];

	if (text[0] == '\0')
		snprintf(text, sizeof(text), "OpenSSL %s",
			 OpenSSL_version(OPENSSL_VERSION_STRING));
	return text;
}

int ctls_refuse(char *err, size_t len, const char *what, const char *value)
{
	unsigned long first = ERR_peek_error();
	const char *reason = first != 0 ? ERR_reason_error_string(first) : NULL;

	snprintf(err, len, "%s: %.300s: %s (%s)", what, value,
		 reason != NULL ? reason : "not possible", ctls_library());
	ERR_clear_error();
	return -EINVAL;
}

static bool is_suite(const char *name)
{
	return strncmp(name, "TLS_", 4) == 0;
}

/* Items that are TLS 1.3 suites, or are not, or both; with colons between. */
static int join(char *to, size_t size, const struct cfg_list *list, bool suites,
		bool others)
{
	size_t at = 0;

	to[0] = '\0';
	for (size_t i = 0; i < list->n; i++) {
		if (!(is_suite(list->item[i]) ? suites : others))
			continue;
		int n = snprintf(to + at, size - at, "%s%s", at > 0 ? ":" : "",
				 list->item[i]);

		if (n < 0 || (size_t)n >= size - at)
			return -E2BIG;
		at += (size_t)n;
	}
	return 0;
}

int ctls_join(char *to, size_t size, const struct cfg_list *list)
{
	return join(to, size, list, true, true);
}

static int version_of(const char *name)
{
	if (strcmp(name, "TLSv1.2") == 0)
		return TLS1_2_VERSION;
	return strcmp(name, "TLSv1.3") == 0 ? TLS1_3_VERSION : 0;
}

/* Which versions the named ciphers leave possible. */
struct possible {
	bool tls12, tls13;
};

static int set_versions(SSL_CTX *ctx, const struct cfg_list *versions,
			struct possible can, char *err, size_t len)
{
	bool tls12 = versions->n == 0, tls13 = versions->n == 0;
	const char *first = versions->n > 0 ? versions->item[0] : "";

	for (size_t i = 0; i < versions->n; i++) {
		int version = version_of(versions->item[i]);

		if (version == 0)
			return ctls_refuse(err, len, "versions",
					   versions->item[i]);
		tls12 = tls12 || version == TLS1_2_VERSION;
		tls13 = tls13 || version == TLS1_3_VERSION;
	}
	tls12 = tls12 && can.tls12;
	tls13 = tls13 && can.tls13;
	if (!tls12 && !tls13)
		return ctls_refuse(err, len, "versions",
				   "none of those named has a cipher");
	if (SSL_CTX_set_min_proto_version(ctx, tls12 ? TLS1_2_VERSION
						     : TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, tls13 ? TLS1_3_VERSION
						     : TLS1_2_VERSION) != 1)
		return ctls_refuse(err, len, "versions", first);
	return 0;
}

/*
 * In TLS 1.2 the client's groups also say which curves a certificate may have
 * (RFC 8422, 5.1): with X25519 alone no ECDSA certificate would do. Where the
 * server's own list decides the key exchange, the curves of certificates can be
 * named behind the wanted groups without any of them being chosen.
 */
static const char *const curves[][3] = {
	{"P-256", "prime256v1", "secp256r1"},
	{"P-384", "secp384r1", "secp384r1"},
};

static bool has_curve(const struct cfg_list *groups, size_t curve)
{
	for (size_t i = 0; i < groups->n; i++)
		for (size_t k = 0; k < ARRAY_LEN(curves[curve]); k++)
			if (strcasecmp(groups->item[i], curves[curve][k]) == 0)
				return true;
	return false;
}

static int add_curves(char *names, size_t size, const struct cfg_list *groups)
{
	for (size_t i = 0; i < ARRAY_LEN(curves); i++) {
		size_t at = strlen(names);
		int n;

		if (has_curve(groups, i))
			continue;
		n = snprintf(names + at, size - at, ":%s", curves[i][0]);
		if (n < 0 || (size_t)n >= size - at)
			return -E2BIG;
	}
	return 0;
}

static int set_groups(SSL_CTX *ctx, const struct ctls_want *want, char *err,
		      size_t len)
{
	const struct cfg_list *groups = &want->groups;
	char names[NAMES_MAX];

	if (groups->n == 0)
		return 0;
	if (ctls_join(names, sizeof(names), groups) != 0)
		return ctls_refuse(err, len, "groups", "the list is too long");
	/* One by one first: the library does not say which one it misses. */
	for (size_t i = 0; i < groups->n; i++)
		if (SSL_CTX_set1_groups_list(ctx, groups->item[i]) != 1)
			return ctls_refuse(err, len, "groups", groups->item[i]);
	if (want->server_chooses &&
	    SSL_CTX_get_min_proto_version(ctx) == TLS1_2_VERSION &&
	    add_curves(names, sizeof(names), groups) != 0)
		return ctls_refuse(err, len, "groups", "the list is too long");
	if (SSL_CTX_set1_groups_list(ctx, names) != 1)
		return ctls_refuse(err, len, "groups", names);
	return 0;
}

static int set_ciphers(SSL_CTX *ctx, const struct cfg_list *ciphers,
		       struct possible *can, char *err, size_t len)
{
	char suites[NAMES_MAX], others[NAMES_MAX];

	*can = (struct possible){true, true};
	if (ciphers->n == 0)
		return 0;
	if (join(suites, sizeof(suites), ciphers, true, false) != 0 ||
	    join(others, sizeof(others), ciphers, false, true) != 0)
		return ctls_refuse(err, len, "ciphers", "the list is too long");
	can->tls13 = suites[0] != '\0';
	can->tls12 = others[0] != '\0';
	if (can->tls13 && SSL_CTX_set_ciphersuites(ctx, suites) != 1)
		return ctls_refuse(err, len, "ciphers", suites);
	if (can->tls12 && SSL_CTX_set_cipher_list(ctx, others) != 1)
		return ctls_refuse(err, len, "ciphers", others);
	return 0;
}

static int set_trust(SSL_CTX *ctx, const struct ctls_want *want, char *err,
		     size_t len)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx);
	bool address = addr_is_numeric(want->name);

	SSL_CTX_set_verify(
		ctx, want->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	if (want->insecure)
		return 0;
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
	X509_VERIFY_PARAM_set_hostflags(param,
					X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if ((address ? X509_VERIFY_PARAM_set1_ip_asc(param, want->name)
		     : X509_VERIFY_PARAM_set1_host(param, want->name, 0)) != 1)
		return ctls_refuse(err, len, "name", want->name);
	if (want->ca_path == NULL) {
		if (SSL_CTX_set_default_verify_paths(ctx) != 1)
			return ctls_refuse(err, len, "trust",
					   "the system's store");
		return 0;
	}
	if (SSL_CTX_load_verify_file(ctx, want->ca_path) != 1)
		return ctls_refuse(err, len, "trust", want->ca_path);
	return 0;
}

static int set_up(SSL_CTX *ctx, const struct ctls_want *want, char *err,
		  size_t len)
{
	struct possible can;
	int rc = set_ciphers(ctx, &want->ciphers, &can, err, len);

	if (rc == 0)
		rc = set_versions(ctx, &want->versions, can, err, len);
	if (rc == 0)
		rc = set_groups(ctx, want, err, len);
	if (rc == 0)
		rc = set_trust(ctx, want, err, len);
	if (rc == 0)
		rc = ctls_set_credentials(ctx, want, err, len);
	/*
	 * With the internal cache the library would drop a TLS 1.3 session
	 * after one use and look each up under a lock; we take sessions in the
	 * callback and keep them per seat.
	 */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT |
						    SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, ctls_new_session);
	return rc;
}

int ctls_open(struct ctls **out, const struct ctls_want *want, char *err,
	      size_t len)
{
	struct ctls *ctls = calloc(1, sizeof(*ctls));
	int rc = -ENOMEM;

	if (ctls == NULL)
		goto fail;
	rc = ctls_load_providers(ctls, &want->providers, err, len);
	if (rc != 0)
		goto fail;
	rc = -ENOMEM;
	ctls->ctx = SSL_CTX_new(TLS_client_method());
	ctls->pump = ctls_pump();
	if (ctls->ctx == NULL || ctls->pump == NULL)
		goto fail;
	if (!addr_is_numeric(want->name)) {
		ctls->server_name = strdup(want->name);
		if (ctls->server_name == NULL)
			goto fail;
	}
	rc = set_up(ctls->ctx, want, err, len);
	if (rc != 0)
		goto fail;
	*out = ctls;
	return 0;
fail:
	if (rc == -ENOMEM)
		snprintf(err, len, "TLS client: out of memory");
	ERR_clear_error();
	ctls_close(&ctls);
	return rc;
}

void ctls_close(struct ctls **ctls)
{
	if (*ctls == NULL)
		return;
	ctls_free_pool(*ctls);
	SSL_CTX_free((*ctls)->ctx);
	BIO_meth_free((*ctls)->pump);
	while ((*ctls)->nproviders > 0)
		OSSL_PROVIDER_unload((*ctls)->provider[--(*ctls)->nproviders]);
	free((*ctls)->server_name);
	free(*ctls);
	*ctls = NULL;
}
