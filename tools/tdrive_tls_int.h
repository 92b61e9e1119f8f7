/* SPDX-License-Identifier: MIT */
/* Between the files tdrive_tls*.c; nobody else includes it. */
#ifndef TOOLS_TDRIVE_TLS_INT_H
#define TOOLS_TDRIVE_TLS_INT_H

#include "tools/tdrive_tls.h"

#include <openssl/bio.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>

/* Holds a ClientHello with an ML-KEM key share (1.2 KiB) and a ticket of the
 * usual size in one piece; a longer flight leaves in several sends. */
#define CTLS_OUT_SIZE 4096u

/* Providers that can be loaded, the default one beside them. */
#define CTLS_PROVIDERS 16

struct ctls {
	SSL_CTX *ctx;	   /* owns */
	BIO_METHOD *pump;  /* owns; the BIO of all connections */
	char *server_name; /* owns; for SNI; NULL: send none */
	OSSL_PROVIDER *provider[CTLS_PROVIDERS + 1]; /* owns */
	size_t nproviders;
	/* sessions, tdrive_tls_held.c */
	bool chain;
	SSL_SESSION **pool; /* owns it and each session; a ring of `most` */
	uint32_t most, first, pooled;
	SSL_SESSION *altered; /* owns; one serves all connections, or NULL */
};

struct ctls_conn {
	struct ctls *ctls; /* borrows */
	BIO *bio;	   /* owns one reference; our end of the pump */
	SSL *ssl;	   /* owns; NULL between connections */
	SSL_SESSION *held; /* owns; a chain's latest session, or NULL */
	SSL_SESSION *used; /* owns; what is offered, or NULL */
	const uint8_t *in; /* borrows; the window */
	size_t in_len;
	uint32_t out_from; /* sent so far */
	uint32_t out_lent; /* end of the loan; out_from: none is out */
	uint32_t out_len;
	uint32_t tickets; /* came since ctls_take_tickets() */
	enum count_fail cause;
	bool keep;
	bool kept;    /* this connection has put a session by */
	bool altered; /* `used` is no session of ours */
	uint8_t out[CTLS_OUT_SIZE];
};

/* NULL without memory; the caller owns it. */
BIO_METHOD *ctls_pump(void);

/* Versions, groups, ciphers, trust; tdrive_tls_ctx.c. And client certificate,
 * signatures, ALPN, providers; tdrive_tls_cred.c. 0, or -EINVAL with a sentence
 * in err; both drain the library's error queue. */
int ctls_refuse(char *err, size_t len, const char *what, const char *value);
int ctls_join(char *to, size_t size, const struct cfg_list *list);
int ctls_load_providers(struct ctls *ctls, const struct cfg_list *names,
			char *err, size_t len);
int ctls_set_credentials(SSL_CTX *ctx, const struct ctls_want *want, char *err,
			 size_t len);

/* new_session_cb: a session came; 1 if the connection took the reference. */
int ctls_new_session(SSL *ssl, SSL_SESSION *session);

/* Before the handshake. 0 or -ENOMEM. */
int ctls_offer_session(struct ctls_conn *conn, enum ctls_offer offer);
/* After a handshake that ended well in TLS 1.2. */
void ctls_settle_session(struct ctls_conn *conn);
/* What it offered is not offered again. */
void ctls_forget_session(struct ctls_conn *conn);
/* The end of all. */
void ctls_free_pool(struct ctls *ctls);

#endif
