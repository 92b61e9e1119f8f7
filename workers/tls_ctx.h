/* SPDX-License-Identifier: MIT */
/*
 * The server's side of TLS as the master makes it: SSL_CTX, certificate, keys
 * and ticket keys, before the first fork; workers inherit all of it
 * copy-on-write. No OpenSSL type appears here, so that the master needs none.
 */
#ifndef WORKERS_TLS_CTX_H
#define WORKERS_TLS_CTX_H

#include "config/cfg.h"

#include <stddef.h>
#include <stdint.h>

struct tls_srv;
struct tls_tickets;

/* "OpenSSL 3.0.22" as loaded, and as compiled against. Static storage. */
const char *tls_library(void);
const char *tls_library_built(void);

/*
 * Ticket keys: an anonymous shared mapping (locked, not dumped), written by the
 * master only, inherited by workers. With tickets.shared a single table for
 * all; otherwise one table per worker. nworkers: at most 256.
 *
 * 0, and the caller owns *out; -EINVAL with a sentence in err (key file not
 * readable, not a multiple of 80 bytes); or another -errno, also with a
 * sentence.
 */
int tls_tickets_create(struct tls_tickets **out, const struct cfg *cfg,
		       uint32_t nworkers, char *err, size_t err_len);
/*
 * Master: new keys in all tables at once (generation + 1), old ones kept for
 * accepting until tickets.lifetime after they stopped issuing, then cleansed.
 * Cleansing also happens in tls_tickets_tick(). 0, or -EPERM with a key file.
 */
int tls_tickets_rotate(struct tls_tickets *tickets);
/* Master: private keys of a worker that is being replaced are made anew. */
void tls_tickets_renew(struct tls_tickets *tickets, uint32_t worker);
/* Master: rotates and cleanses what is due at `now` (clk_now()); returns when
 * to call again (clk_now() scale; UINT64_MAX: never). */
uint64_t tls_tickets_tick(struct tls_tickets *tickets, uint64_t now);
uint64_t tls_tickets_generation(const struct tls_tickets *tickets);
/* Cleanses and unmaps. */
void tls_tickets_close(struct tls_tickets **tickets);

/*
 * The server's context. `tickets` is borrowed and must outlive it.
 * 0, and the caller owns *out; -EINVAL with one sentence in err that names the
 * key and the value ("tls.groups: X25519MLKEM768 needs OpenSSL 3.5; this is
 * 3.0.22", "tls.certificate.key: f.key does not belong to the certificate in
 * f.pem"); or another -errno, also with a sentence.
 */
int tls_srv_create(struct tls_srv **out, const struct cfg *cfg,
		   struct tls_tickets *tickets, char *err, size_t err_len);
void tls_srv_close(struct tls_srv **srv);

/* PEM that lets a client verify the server: the made CA, or the chain file
 * (to be used with partial chains allowed). Borrowed. */
const char *tls_srv_trust_pem(const struct tls_srv *srv, size_t *len);
/* Name to verify and to send as SNI: "localhost", or the first name of the
 * certificate. Borrowed. */
const char *tls_srv_name(const struct tls_srv *srv);
/* "ECDSA P-256", "RSA 2048", "Ed25519". Borrowed. */
const char *tls_srv_certificate(const struct tls_srv *srv);
/* Something worth a warning (an expired certificate), or NULL. Borrowed. */
const char *tls_srv_warning(const struct tls_srv *srv);

#endif
