/* SPDX-License-Identifier: MIT */
/*
 * A TLS server for the driver's tests: a forked child, one connection at a
 * time, blocking, by OpenSSL's own socket BIO, so that it shares nothing with
 * what it tests. It counts what it saw in memory shared with the test.
 */
#ifndef TESTS_UNIT_TOOLS_TDRIVE_TLS_SERVER_H
#define TESTS_UNIT_TOOLS_TDRIVE_TLS_SERVER_H

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum server_kind {
	SERVER_TLS,
	SERVER_CLOSES,	/* after the ClientHello */
	SERVER_RESETS,	/* after the ClientHello */
	SERVER_GARBAGE, /* answers what is no TLS */
	SERVER_ALERTS,	/* answers internal_error */
	SERVER_MUTE,	/* accepts and says nothing */
};

struct server_want {
	enum server_kind kind;
	bool ipv6;
	int version;	    /* 0: both */
	size_t tickets;	    /* after a full TLS 1.3 handshake */
	bool no_tickets;    /* TLS 1.2 as well */
	bool renews;	    /* every resumption gets a new ticket */
	bool forgets;	    /* accepts no ticket */
	bool speaks_first;  /* 20,000 bytes of data before it closes */
	bool closes;	    /* after the handshake, without waiting */
	bool long_chain;    /* a certificate of more than 4 KiB */
	bool plain;	    /* no TLS */
	bool http;	    /* answers requests; /bytes/N gives N bytes */
	const char *answer; /* ... all of them with this text instead */
	bool forks;	    /* a process for each connection */
	bool strict;	    /* `fin` is for a close_notify only */
	bool asks_client;   /* wants a certificate, and verifies it not */
	const char *groups;
};

/* Shared with the child. */
struct server_seen {
	_Atomic uint64_t full, resumed, failed;
	_Atomic uint64_t
		fin; /* after the handshake, the client closed cleanly */
	_Atomic uint64_t not_fin;
	_Atomic uint64_t reset; /* ... by a reset */
	_Atomic uint64_t plain, requests;
};

struct server {
	pid_t pid;
	uint16_t port;
	struct server_seen *seen;
	char ca_path[64]; /* PEM of the certificate, a memfd of the test's */
};

/* ---- certificate: made once, before the fork, self-signed ---- */

static EVP_PKEY *server_key;
static X509 *server_cert;

static void server_add_ext(X509 *cert, int nid, const char *text)
{
	X509V3_CTX ctx;
	X509_EXTENSION *ext;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, text);
	ck_assert_ptr_nonnull(ext);
	ck_assert_int_eq(X509_add_ext(cert, ext, -1), 1);
	X509_EXTENSION_free(ext);
}

static X509 *server_make_cert(EVP_PKEY *key, const char *sans)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);

	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
				   (const unsigned char *)"test", -1, -1, 0);
	X509_set_issuer_name(cert, name);
	X509_set_pubkey(cert, key);
	server_add_ext(cert, NID_subject_alt_name, sans);
	ck_assert_int_gt(X509_sign(cert, key, EVP_sha256()), 0);
	return cert;
}

#define SERVER_SANS "DNS:localhost,IP:127.0.0.1,IP:::1"

static void server_make(bool long_chain)
{
	char sans[16384] = SERVER_SANS;
	size_t at = strlen(sans);

	for (int i = 0; long_chain && i < 300; i++)
		at += (size_t)snprintf(sans + at, sizeof(sans) - at,
				       ",DNS:name-number-%d.example.org", i);
	server_key = EVP_EC_gen("P-256");
	ck_assert_ptr_nonnull(server_key);
	server_cert = server_make_cert(server_key, sans);
}

/* PEM of a certificate in a memfd that lives as long as the test. */
static void server_write_pem(X509 *cert, char path[static 64])
{
	int fd = memfd_create("ca", 0);
	FILE *f = fdopen(dup(fd), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(PEM_write_X509(f, cert), 1);
	fclose(f);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
}

/* ---- the child ---- */

static unsigned char server_ticket_key[32] = "a key for tests only, not secret";

static int server_ticket_cb(SSL *ssl, unsigned char *name, unsigned char *iv,
			    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int enc)
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string("key", server_ticket_key, 32),
		OSSL_PARAM_construct_utf8_string(
			"digest", (char *)(uintptr_t) "SHA256", 0),
		OSSL_PARAM_construct_end()};
	const struct server_want *want =
		SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	if (enc) {
		memset(name, 1, 16);
		RAND_bytes(iv, 16);
	} else if (want->forgets) {
		return 0;
	}
	EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, server_ticket_key,
			  iv, enc);
	EVP_MAC_CTX_set_params(mac, params);
	return !enc && want->renews ? 2 : 1;
}

static int server_takes_any(int ok, X509_STORE_CTX *store)
{
	(void)ok;
	(void)store;
	return 1;
}

static SSL_CTX *server_ctx(struct server_want *want)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	SSL_CTX_use_certificate(ctx, server_cert);
	SSL_CTX_use_PrivateKey(ctx, server_key);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"t", 1);
	SSL_CTX_set_num_tickets(ctx, want->tickets);
	SSL_CTX_set_app_data(ctx, want);
	if (!want->strict)
		SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	if (want->asks_client)
		SSL_CTX_set_verify(
			ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
			server_takes_any);
	if (want->groups != NULL)
		SSL_CTX_set1_groups_list(ctx, want->groups);
	if (want->renews || want->forgets)
		SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, server_ticket_cb);
	if (want->no_tickets)
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	if (want->version != 0) {
		SSL_CTX_set_min_proto_version(ctx, want->version);
		SSL_CTX_set_max_proto_version(ctx, want->version);
	}
	return ctx;
}

/*
 * Whether the client ended by a FIN is seen at its end. The library is told to
 * take one for a close, or it would answer an alert, and the client's kernel
 * that by a reset.
 */

/* ---- HTTP, by TLS or without ---- */

struct server_peer {
	SSL *ssl; /* NULL: plain */
	int fd;
};

static ssize_t server_read(struct server_peer *p, char *to, size_t len)
{
	return p->ssl != NULL ? SSL_read(p->ssl, to, (int)len)
			      : recv(p->fd, to, len, 0);
}

static void server_write(struct server_peer *p, const char *from, size_t len)
{
	if (p->ssl != NULL)
		SSL_write(p->ssl, from, (int)len);
	else
		send(p->fd, from, len, MSG_NOSIGNAL);
}

static void server_write_body(struct server_peer *p, size_t size)
{
	static char body[16384];

	for (size_t n; size > 0; size -= n) {
		n = size < sizeof(body) ? size : sizeof(body);
		server_write(p, body, n);
	}
}

static void server_answer_request(struct server_peer *p, const char *request,
				  const struct server_want *want)
{
	size_t size = 10;
	char head[128];

	sscanf(request, "GET /bytes/%zu", &size);
	if (want->answer != NULL) {
		server_write(p, want->answer, strlen(want->answer));
		return;
	}
	snprintf(head, sizeof(head),
		 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", size);
	server_write(p, head, strlen(head));
	server_write_body(p, size);
}

/* Until the client's end; what the last read said. */
static ssize_t server_talk(struct server_peer *p,
			   const struct server_want *want,
			   struct server_seen *seen)
{
	char request[2048];
	size_t len = 0;
	ssize_t n;

	while ((n = server_read(p, request + len, sizeof(request) - 1 - len)) >
	       0) {
		len += (size_t)n;
		request[len] = '\0';
		if (!want->http || strstr(request, "\r\n\r\n") == NULL)
			continue;
		seen->requests++;
		server_answer_request(p, request, want);
		len = 0;
	}
	return n;
}

static void server_serve_plain(int fd, const struct server_want *w,
			       struct server_seen *seen)
{
	struct server_peer peer = {NULL, fd};
	ssize_t n;

	seen->plain++;
	if (w->speaks_first)
		server_write_body(&peer, 1);
	n = w->closes ? 0 : server_talk(&peer, w, seen);
	*(n == 0 ? &seen->fin : &seen->not_fin) += 1;
	seen->reset += n < 0 && errno == ECONNRESET;
}

static void server_serve_tls(SSL_CTX *ctx, int fd, const struct server_want *w,
			     struct server_seen *seen)
{
	static char data[20000];
	SSL *ssl = SSL_new(ctx);
	struct server_peer peer = {ssl, fd};
	int rc;

	SSL_set_fd(ssl, fd);
	if (SSL_accept(ssl) != 1) {
		seen->failed++;
		goto out;
	}
	*(SSL_session_reused(ssl) ? &seen->resumed : &seen->full) += 1;
	if (w->speaks_first)
		SSL_write(ssl, data, sizeof(data));
	if (w->closes)
		goto out;
	rc = (int)server_talk(&peer, w, seen);
	seen->reset += SSL_get_error(ssl, rc) == SSL_ERROR_SYSCALL &&
		       errno == ECONNRESET;
	*(SSL_get_error(ssl, rc) == SSL_ERROR_ZERO_RETURN ? &seen->fin
							  : &seen->not_fin) +=
		1;
out:
	ERR_clear_error();
	SSL_free(ssl);
}

static void server_answer(int fd, const struct server_want *want)
{
	static const char garbage[] =
		"SSH-2.0-this is no TLS server at all\r\n";
	/* alert, TLS 1.2, two bytes: fatal, internal_error */
	static const unsigned char alert[] = {21, 3, 3, 0, 2, 2, 80};
	const struct linger now = {.l_onoff = 1};
	char away[4096];

	if (recv(fd, away, sizeof(away), 0) <= 0)
		return;
	if (want->kind == SERVER_GARBAGE)
		send(fd, garbage, sizeof(garbage) - 1, MSG_NOSIGNAL);
	else if (want->kind == SERVER_ALERTS)
		send(fd, alert, sizeof(alert), MSG_NOSIGNAL);
	else if (want->kind == SERVER_RESETS)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	if (want->kind == SERVER_GARBAGE || want->kind == SERVER_ALERTS)
		while (recv(fd, away, sizeof(away), 0) > 0)
			;
}

static void server_serve(SSL_CTX *ctx, int fd, const struct server_want *want,
			 struct server_seen *seen)
{
	if (want->plain)
		server_serve_plain(fd, want, seen);
	else if (want->kind == SERVER_TLS)
		server_serve_tls(ctx, fd, want, seen);
	else if (want->kind != SERVER_MUTE)
		server_answer(fd, want);
}

static _Noreturn void server_child(int listener, struct server_want *want,
				   struct server_seen *seen)
{
	SSL_CTX *ctx = server_ctx(want);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* nobody waits for them */
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			_exit(1);
		if (!want->forks) {
			server_serve(ctx, fd, want, seen);
		} else if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			server_serve(ctx, fd, want, seen);
			_exit(0);
		}
		if (want->kind != SERVER_MUTE)
			close(fd);
	}
}

/* ---- the test's side ---- */

/* A listening socket on loopback, port by the kernel. */
static int server_listen(bool ipv6, int backlog, uint16_t *port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr *sa =
		ipv6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
	socklen_t len = ipv6 ? sizeof(six) : sizeof(four);
	int fd = socket(sa->sa_family, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, sa, len), 0);
	ck_assert_int_eq(listen(fd, backlog), 0);
	ck_assert_int_eq(getsockname(fd, sa, &len), 0);
	*port = ntohs(ipv6 ? six.sin6_port : four.sin_port);
	return fd;
}

static struct server server_start(struct server_want want)
{
	struct server s;
	int fd = server_listen(want.ipv6, 512, &s.port);

	server_make(want.long_chain);
	server_write_pem(server_cert, s.ca_path);
	s.seen = mmap(NULL, sizeof(*s.seen), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(s.seen, MAP_FAILED);
	s.pid = fork();
	ck_assert_int_ge(s.pid, 0);
	if (s.pid == 0)
		server_child(fd, &want, s.seen);
	close(fd);
	return s;
}

static void server_stop(struct server *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	munmap(s->seen, sizeof(*s->seen));
	X509_free(server_cert);
	EVP_PKEY_free(server_key);
}

#endif
