/* SPDX-License-Identifier: MIT */
/* What tls_ctx.c and tls_conn.c share; nobody else includes it. */
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
};

/* NULL when out of memory. */
BIO_METHOD *tls_conn_bio_method(void);

#endif
