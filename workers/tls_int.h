/* SPDX-License-Identifier: MIT */
/* What the tls_*.c of the workers share; nobody else includes it. */
#ifndef WORKERS_TLS_INT_H
#define WORKERS_TLS_INT_H

#include "workers/tls_cert.h"
#include "workers/tls_conn.h"
#include "workers/tls_ctx.h"
#include "workers/tls_ticket.h"

#include <openssl/ssl.h>

struct tls_srv {
	SSL_CTX *ctx;			/* owns */
	BIO_METHOD *bio;		/* owns; see tls_conn.c */
	EVP_CIPHER *ticket_cipher;	/* owns; prefetched */
	const struct tls_tickets *keys; /* borrows; NULL: no tickets */
	uint32_t table;			/* ours, after the fork */
	struct tls_counts counts;
	struct tls_cert cert;
	char warning[512]; /* "" if none */
};

struct tls_conn {
	struct tls_srv *srv; /* borrows */
	SSL *ssl;	     /* owns, with its BIO */
	struct tls_out *out; /* borrows */
	const uint8_t *in;   /* borrows: the fed bytes not yet consumed */
	size_t left;
	unsigned long error; /* OpenSSL's, after TLS_ERR */
	uint32_t hellos;     /* ClientHellos that came */
	bool wants_room;
	bool renews; /* the last ticket offered is to be replaced */
	enum tls_cause cause;
};

/* tls_conn.c: NULL when out of memory. */
BIO_METHOD *tls_conn_bio_method(void);
/* The connection of an SSL that tls_conn_new() made. Borrowed. */
struct tls_conn *tls_conn_of(const SSL *ssl);

/*
 * tls_opt.c: versions, groups, suites, tickets and client certificates of the
 * scenario into srv->ctx, which has the certificate already. 0; or -EINVAL,
 * -EIO or -ENOMEM, with a sentence or "" in err.
 */
int tls_opt_apply(struct tls_srv *srv, const struct cfg *cfg, char *err,
		  size_t len);
bool tls_opt_offers(const struct cfg *cfg, const char *version);
/* The TLS 1.3 suites of the scenario, joined by ':'. Owned by the caller. */
char *tls_opt_suites13(const struct cfg *cfg);

/*
 * tls_try.c: a handshake in memory with each version offered, against a client
 * that takes all that the scenario names. What cannot work together is told at
 * start and not by every client failing. 0, or -EINVAL with a sentence.
 */
int tls_try(struct tls_srv *srv, const struct cfg *cfg, char *err, size_t len);

#endif
