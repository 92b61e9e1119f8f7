/* SPDX-License-Identifier: MIT */
/* Between tdrive_tls.c and tdrive_tls_ctx.c; nobody else includes it. */
#ifndef TOOLS_TDRIVE_TLS_INT_H
#define TOOLS_TDRIVE_TLS_INT_H

#include "tools/tdrive_tls.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>

struct ctls {
	SSL_CTX *ctx;	   /* owns */
	BIO_METHOD *pump;  /* owns; the BIO of all connections */
	char *server_name; /* owns; for SNI; NULL: send none */
};

/* NULL without memory; the caller owns it. */
BIO_METHOD *ctls_pump(void);

/* new_session_cb: a session came; 1 if the connection took the reference. */
int ctls_new_session(SSL *ssl, SSL_SESSION *session);

#endif
