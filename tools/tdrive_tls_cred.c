/* SPDX-License-Identifier: MIT */
/* What the client shows of itself: certificate and key, from PEM files or from
 * a store of a provider (a TPM, a token), signatures, ALPN. */
#include "tools/tdrive_tls.h"

#include "shm/base.h"
#include "tools/tdrive_tls_int.h"

#include <openssl/err.h>
#include <openssl/store.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 2048

static int load_provider(struct ctls *ctls, const char *name, char *err,
			 size_t len)
{
	OSSL_PROVIDER *p = OSSL_PROVIDER_load(NULL, name);

	if (p == NULL)
		return ctls_refuse(err, len, "provider", name);
	ctls->provider[ctls->nproviders++] = p;
	return 0;
}

/* The default one is loaded by itself only as long as no other is; and first,
 * so that the others do only what it cannot. */
int ctls_load_providers(struct ctls *ctls, const struct cfg_list *names,
			char *err, size_t len)
{
	int rc = 0;

	if (names->n == 0)
		return 0;
	if (names->n > CTLS_PROVIDERS)
		return ctls_refuse(err, len, "providers", "too many");
	rc = load_provider(ctls, "default", err, len);
	for (size_t i = 0; i < names->n && rc == 0; i++)
		if (strcmp(names->item[i], "default") != 0)
			rc = load_provider(ctls, names->item[i], err, len);
	return rc;
}

/* ---- certificate and key ---- */

/* A URI has a scheme ("handle:", "pkcs11:", "file:"); a path has none. */
static bool is_uri(const char *text)
{
	size_t n = strcspn(text, ":/");

	return n > 0 && text[n] == ':';
}

/* The first object of `type` in the store; the caller owns it. NULL: none, the
 * queue says why or is empty. */
static void *load_object(const char *uri, int type)
{
	OSSL_STORE_CTX *store = OSSL_STORE_open(uri, NULL, NULL, NULL, NULL);
	void *object = NULL;

	if (store == NULL)
		return NULL;
	OSSL_STORE_expect(store, type);
	while (object == NULL && !OSSL_STORE_eof(store)) {
		OSSL_STORE_INFO *info = OSSL_STORE_load(store);

		if (info == NULL)
			break;
		if (OSSL_STORE_INFO_get_type(info) == type)
			object = type == OSSL_STORE_INFO_PKEY
					 ? (void *)OSSL_STORE_INFO_get1_PKEY(
						   info)
					 : (void *)OSSL_STORE_INFO_get1_CERT(
						   info);
		OSSL_STORE_INFO_free(info);
	}
	OSSL_STORE_close(store);
	return object;
}

static bool use_certificate(SSL_CTX *ctx, const char *from)
{
	X509 *cert;
	bool used;

	if (!is_uri(from))
		return SSL_CTX_use_certificate_chain_file(ctx, from) == 1;
	cert = load_object(from, OSSL_STORE_INFO_CERT);
	used = cert != NULL && SSL_CTX_use_certificate(ctx, cert) == 1;
	X509_free(cert);
	return used;
}

static bool use_key(SSL_CTX *ctx, const char *from)
{
	EVP_PKEY *key;
	bool used;

	if (!is_uri(from))
		return SSL_CTX_use_PrivateKey_file(ctx, from,
						   SSL_FILETYPE_PEM) == 1;
	key = load_object(from, OSSL_STORE_INFO_PKEY);
	used = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1;
	EVP_PKEY_free(key);
	return used;
}

static int set_certificate(SSL_CTX *ctx, const struct ctls_want *want,
			   char *err, size_t len)
{
	const char *key = want->key != NULL ? want->key : want->certificate;

	if (want->certificate == NULL)
		return want->key == NULL ? 0
					 : ctls_refuse(err, len, "key",
						       "a certificate is "
						       "missing");
	if (!use_certificate(ctx, want->certificate))
		return ctls_refuse(err, len, "certificate", want->certificate);
	if (!use_key(ctx, key))
		return ctls_refuse(err, len, "key", key);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return ctls_refuse(err, len, "key", key);
	return 0;
}

/* ---- lists ---- */

static int set_sigalgs(SSL_CTX *ctx, const struct cfg_list *list, char *err,
		       size_t len)
{
	char names[NAMES_MAX];

	if (list->n == 0)
		return 0;
	if (ctls_join(names, sizeof(names), list) != 0)
		return ctls_refuse(err, len, "sigalgs", "the list is too long");
	/* One by one first: the library does not say which one it misses. */
	for (size_t i = 0; i < list->n; i++)
		if (SSL_CTX_set1_sigalgs_list(ctx, list->item[i]) != 1)
			return ctls_refuse(err, len, "sigalgs", list->item[i]);
	if (SSL_CTX_set1_sigalgs_list(ctx, names) != 1)
		return ctls_refuse(err, len, "sigalgs", names);
	return 0;
}

/* Each name behind its length (RFC 7301, 3.1). */
static int set_alpn(SSL_CTX *ctx, const struct cfg_list *list, char *err,
		    size_t len)
{
	uint8_t names[NAMES_MAX];
	size_t at = 0;

	if (list->n == 0)
		return 0;
	for (size_t i = 0; i < list->n; i++) {
		size_t n = strlen(list->item[i]);

		if (n == 0 || n > 255 || n >= sizeof(names) - at)
			return ctls_refuse(err, len, "alpn", list->item[i]);
		names[at++] = (uint8_t)n;
		memcpy(names + at, list->item[i], n);
		at += n;
	}
	if (SSL_CTX_set_alpn_protos(ctx, names, (unsigned)at) != 0)
		return ctls_refuse(err, len, "alpn", list->item[0]);
	return 0;
}

int ctls_set_credentials(SSL_CTX *ctx, const struct ctls_want *want, char *err,
			 size_t len)
{
	int rc = set_certificate(ctx, want, err, len);

	if (rc == 0)
		rc = set_sigalgs(ctx, &want->sigalgs, err, len);
	if (rc == 0)
		rc = set_alpn(ctx, &want->alpn, err, len);
	return rc;
}
