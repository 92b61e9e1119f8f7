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
	X509 *leaf;    /* owns */
	EVP_PKEY *key; /* owns */
	STACK_OF(X509) *
		chain;	 /* owns; what is sent after the leaf; NULL: none */
	char *trust_pem; /* owns; verifies the leaf */
	size_t trust_len;
	char name[256];	   /* to verify and to send as SNI */
	char kind[64];	   /* "ECDSA P-256" */
	char warning[256]; /* "" if none; of a file's certificates */
};

/* 0; or -EINVAL, -EIO or -ENOMEM with a sentence in err, and an empty *out. */
int tls_cert_make(struct tls_cert *out, enum cfg_cert kind, char *err,
		  size_t len);
int tls_cert_load(struct tls_cert *out, const char *chain, const char *key,
		  char *err, size_t len);
void tls_cert_fini(struct tls_cert *cert);

/* All certificates of a PEM file, at least one; `option` begins the message.
 * 0 and the caller owns *out; or -EINVAL or -ENOMEM, with a sentence. */
int tls_cert_stack(STACK_OF(X509) * *out, const char *path, const char *option,
		   char *err, size_t len);

/*
 * A file's bytes, at most 1 MiB. 0, and the caller owns *bytes, which has a NUL
 * after them and is to be freed by OPENSSL_clear_free(): they may be a key.
 * -EINVAL (it cannot be read) or -ENOMEM, with a sentence.
 */
int tls_cert_file(const char *path, const char *option, char **bytes, size_t *n,
		  char *err, size_t len);

/* The first error of OpenSSL's queue as text, and the queue emptied. */
void tls_cert_reason(char *buf, size_t len);

#endif
