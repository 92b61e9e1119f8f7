/* SPDX-License-Identifier: MIT */
/*
 * Certificates and keys: made in memory (a throw-away CA and a leaf for
 * localhost, 127.0.0.1 and ::1) or read from PEM files. Used by tls_ctx.c
 * alone, so OpenSSL's types may appear here.
 */
#ifndef WORKERS_TLS_CERT_H
#define WORKERS_TLS_CERT_H

#include "config/cfg.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stddef.h>

struct tls_cert {
	X509 *leaf;		/* owns */
	EVP_PKEY *key;		/* owns */
	STACK_OF(X509) * chain; /* owns; what is sent after the leaf; or NULL */
	char *trust_pem;	/* owns; verifies the leaf */
	size_t trust_len;
	char name[256];	   /* to verify and to send as SNI */
	char kind[64];	   /* "ECDSA P-256" */
	char warning[256]; /* "" if none */
};

/* 0; or -EINVAL or -EIO with a sentence in err; `out` is then empty. */
int tls_cert_make(struct tls_cert *out, enum cfg_cert kind, char *err,
		  size_t len);
int tls_cert_load(struct tls_cert *out, const char *chain, const char *key,
		  char *err, size_t len);
void tls_cert_fini(struct tls_cert *cert);

/* The first error of OpenSSL's queue as text, and the queue emptied. */
void tls_cert_reason(char *buf, size_t len);

#endif
