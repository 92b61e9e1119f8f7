/* SPDX-License-Identifier: MIT */
/*
 * What the tests of a whole worker share: a master in miniature (segment,
 * listener, keys, a forked worker) and TLS clients by OpenSSL's own socket BIO,
 * so that they share nothing with what they test.
 */
#ifndef TESTS_UNIT_WORKERS_WRK_TLS_FIXTURE_H
#define TESTS_UNIT_WORKERS_WRK_TLS_FIXTURE_H

#include "config/cfg.h"
#include "shm/clk.h"
#include "shm/ctl.h"
#include "shm/log.h"
#include "shm/seg.h"
#include "workers/tls_ctx.h"
#include "workers/wrk.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RIG_WORKERS 2
#define PATIENCE_NS (20 * NS_PER_S)

struct rig {
	struct cfg cfg;
	struct shm_seg *seg;
	struct tls_tickets *tickets;
	struct tls_srv *srv;
	struct rlimit nofile; /* of workers; 0: as ours */
	uint32_t nworkers;
	int lst_fd[RIG_WORKERS];
	int ctl_fd[RIG_WORKERS];
	pid_t pid[RIG_WORKERS];
	struct sockaddr_in addr;
	SSL_CTX *client;
};

/* valgrind is some 30 times slower and keeps descriptors for itself. */
static inline bool under_valgrind(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		found |= strstr(line, "vgpreload") != NULL;
	if (f != NULL)
		fclose(f);
	return found;
}

/* ---- the master ---- */

static char *rig_versions[] = {(char *)(uintptr_t) "TLSv1.2",
			       (char *)(uintptr_t) "TLSv1.3"};
static char *rig_groups[] = {(char *)(uintptr_t) "X25519"};
static char *rig_ciphers[] = {
	(char *)(uintptr_t) "TLS_AES_256_GCM_SHA384",
	(char *)(uintptr_t) "ECDHE-ECDSA-AES256-GCM-SHA384"};

static inline void rig_init(struct rig *r)
{
	*r = (struct rig){.nworkers = 1};
	r->cfg.terminator.accept = CFG_ACCEPT_REUSEPORT;
	r->cfg.terminator.handshake_timeout = 10 * NS_PER_S;
	r->cfg.terminator.idle_timeout = 10 * NS_PER_S;
	r->cfg.terminator.drain_timeout = 10 * NS_PER_S;
	r->cfg.terminator.nodelay = true;
	r->cfg.terminator.respond.mode = CFG_RESPOND_HTTP;
	r->cfg.terminator.respond.body = 1024;
	r->cfg.tls.versions = (struct cfg_list){rig_versions, 2};
	r->cfg.tls.groups = (struct cfg_list){rig_groups, 1};
	r->cfg.tls.ciphers = (struct cfg_list){rig_ciphers, 2};
	r->cfg.tls.certificate.make = CFG_CERT_ECDSA_P256;
	r->cfg.tls.tickets.enabled = true;
	r->cfg.tls.tickets.shared = true;
	r->cfg.tls.tickets.per_handshake = 2;
	r->cfg.tls.tickets.lifetime = 3600 * NS_PER_S;
}

static inline int rig_listener(struct rig *r)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(r->addr);
	int on = 1;

	ck_assert_int_ge(fd, 0);
	r->addr.sin_family = AF_INET;
	r->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	ck_assert_int_eq(
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&r->addr, len), 0);
	ck_assert_int_eq(listen(fd, 4096), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&r->addr, &len), 0);
	return fd;
}

static inline void rig_make(struct rig *r)
{
	struct shm_info info = {.name = "check"};
	char name[SHM_NAME_MAX], err[256] = "";
	bool took;

	snprintf(name, sizeof(name), "unit-wrk-%d", (int)getpid());
	ck_assert_int_eq(shm_seg_create(&r->seg, name, 0600, RIG_WORKERS, &info,
					&took, NULL),
			 0);
	ck_assert_msg(tls_tickets_create(&r->tickets, &r->cfg, r->nworkers, err,
					 sizeof(err)) == 0,
		      "%s", err);
	ck_assert_msg(tls_srv_create(&r->srv, &r->cfg, r->tickets, err,
				     sizeof(err)) == 0,
		      "%s", err);
	for (uint32_t i = 0; i < r->nworkers; i++) {
		if (i > 0 && r->cfg.terminator.accept == CFG_ACCEPT_SHARED)
			r->lst_fd[i] = dup(r->lst_fd[0]);
		else
			r->lst_fd[i] = rig_listener(r);
	}
}

static inline void rig_child(struct rig *r, uint32_t i, int ctl_fd)
{
	struct wrk_args args = {
		.cfg = &r->cfg,
		.slot = shm_seg_slot(r->seg, i),
		.tls = r->srv,
		.number = i,
		.cpu = -1,
		.ctl_fd = ctl_fd,
		.listen_fd = {r->lst_fd[i]},
		.nlisten = 1,
	};

	for (uint32_t k = 0; k <= i; k++)
		close(r->ctl_fd[k]);
	for (uint32_t k = 0; k < r->nworkers; k++) {
		if (k != i)
			close(r->lst_fd[k]);
	}
	if (r->nofile.rlim_max > 0 && setrlimit(RLIMIT_NOFILE, &r->nofile) < 0)
		_exit(70);
	wrk_main(&args);
}

static inline void rig_fork(struct rig *r, uint32_t i)
{
	int child_fd;

	ck_assert_int_eq(ctl_pair(&r->ctl_fd[i], &child_fd), 0);
	r->pid[i] = fork();
	ck_assert_int_ge(r->pid[i], 0);
	if (r->pid[i] == 0)
		rig_child(r, i, child_fd);
	shm_slot_assign(shm_seg_slot(r->seg, i), SHM_WORKER, i, r->pid[i], -1);
	close(child_fd);
}

/* The next message of a worker: its kind; 0 at end of file. */
static inline uint32_t rig_message(struct rig *r, uint32_t i, struct ctl_msg *m)
{
	struct pollfd p = {.fd = r->ctl_fd[i], .events = POLLIN};

	ck_assert_int_eq(poll(&p, 1, (int)(PATIENCE_NS / NS_PER_MS)), 1);
	return ctl_recv(r->ctl_fd[i], m) > 0 ? m->kind : 0;
}

static inline SSL_CTX *client_ctx(struct rig *r)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	size_t len;
	const char *pem = tls_srv_trust_pem(r->srv, &len);
	BIO *bio = BIO_new_mem_buf(pem, (int)len);
	X509 *ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);

	ck_assert_ptr_nonnull(ca);
	ck_assert_int_eq(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca),
			 1);
	X509_free(ca);
	BIO_free(bio);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return ctx;
}

static inline void rig_start(struct rig *r)
{
	struct ctl_msg m;

	signal(SIGPIPE, SIG_IGN);
	log_init("check", LOG_ERROR);
	rig_make(r);
	r->client = client_ctx(r);
	for (uint32_t i = 0; i < r->nworkers; i++)
		rig_fork(r, i);
	for (uint32_t i = 0; i < r->nworkers; i++)
		ck_assert_uint_eq(rig_message(r, i, &m), CTL_READY);
}

/* Its exit status, or 1000 + the signal that ended it. */
static inline int rig_wait(struct rig *r, uint32_t i)
{
	uint64_t until = clk_now() + PATIENCE_NS;
	int status = 0;

	while (waitpid(r->pid[i], &status, WNOHANG) == 0) {
		ck_assert_msg(clk_now() < until, "the worker does not end");
		poll(NULL, 0, 1);
	}
	r->pid[i] = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

static inline void rig_free(struct rig *r)
{
	for (uint32_t i = 0; i < r->nworkers; i++) {
		close(r->ctl_fd[i]);
		close(r->lst_fd[i]);
	}
	SSL_CTX_free(r->client);
	tls_srv_close(&r->srv);
	tls_tickets_close(&r->tickets);
	shm_seg_close(&r->seg);
}

/* ---- what the slot says ---- */

static inline uint64_t get(const struct shm_snap *s, const struct rig *r,
			   enum ctr_id id)
{
	return shm_snap_ctr(r->seg, s, id);
}

/* What holds in every snapshot, whatever goes on. */
static inline void check_identity(const struct rig *r, const struct shm_snap *s)
{
	uint64_t good =
		get(s, r, CTR_ID_hs_full) + get(s, r, CTR_ID_hs_resumed);
	uint64_t ended = get(s, r, CTR_ID_conn_closed_peer) +
			 get(s, r, CTR_ID_conn_closed_self) +
			 get(s, r, CTR_ID_conn_reset) +
			 get(s, r, CTR_ID_conn_idle_timeout) +
			 get(s, r, CTR_ID_conn_tls_error);
	uint64_t shaking = get(s, r, CTR_ID_hs_in_progress);

	ck_assert(!s->torn);
	ck_assert_uint_eq(get(s, r, CTR_ID_conn_accepted),
			  good + shm_snap_failed(r->seg, s) + shaking);
	ck_assert_uint_eq(good, ended + get(s, r, CTR_ID_conn_open) - shaking);
	ck_assert_uint_eq(good, get(s, r, CTR_ID_hs_tls12) +
					get(s, r, CTR_ID_hs_tls13));
	ck_assert_uint_eq(
		hist_count(shm_snap_hist(r->seg, s, HIST_ID_hs_full_time)),
		get(s, r, CTR_ID_hs_full));
	ck_assert_uint_eq(
		hist_count(shm_snap_hist(r->seg, s, HIST_ID_hs_full_cpu)),
		get(s, r, CTR_ID_hs_full));
	ck_assert_uint_eq(
		hist_count(shm_snap_hist(r->seg, s, HIST_ID_hs_resumed_cpu)),
		get(s, r, CTR_ID_hs_resumed));
	ck_assert_uint_eq(
		hist_count(shm_snap_hist(r->seg, s, HIST_ID_request_time)),
		get(s, r, CTR_ID_requests));
	ck_assert_uint_eq(shm_snap_hist(r->seg, s, HIST_ID_hs_full_cpu)->sum,
			  get(s, r, CTR_ID_crypto_full_ns));
	ck_assert_uint_eq(shm_snap_hist(r->seg, s, HIST_ID_hs_resumed_cpu)->sum,
			  get(s, r, CTR_ID_crypto_resumed_ns));
}

static inline uint64_t value_of(struct rig *r, uint32_t i, enum ctr_id id)
{
	struct shm_snap s;
	uint64_t v;

	ck_assert_int_eq(shm_snap_init(&s, r->seg), 0);
	shm_snap(r->seg, i, &s);
	check_identity(r, &s);
	v = shm_snap_ctr(r->seg, &s, id);
	shm_snap_fini(&s);
	return v;
}

static inline uint64_t value(struct rig *r, enum ctr_id id)
{
	return value_of(r, 0, id);
}

/* Waits until a counter has a value: the worker counts after it has acted. */
static inline void await(struct rig *r, enum ctr_id id, uint64_t want)
{
	uint64_t until = clk_now() + PATIENCE_NS;
	uint64_t v;

	while ((v = value(r, id)) != want) {
		ck_assert_msg(clk_now() < until, "%s is %lu, not %lu",
			      ctr_descs[id].name, v, want);
		poll(NULL, 0, 1);
	}
}

/* All connections are gone, and the worker ends as told. */
static inline void rig_stop(struct rig *r)
{
	await(r, CTR_ID_conn_open, 0);
	for (uint32_t i = 0; i < r->nworkers; i++) {
		ck_assert_int_eq(ctl_send(r->ctl_fd[i], CTL_QUIT, 0, NULL), 0);
		ck_assert_int_eq(rig_wait(r, i), EXIT_GOOD);
		value_of(r, i, CTR_ID_conn_open);
	}
	rig_free(r);
}

/* ---- clients ---- */

static inline void set_patience(int fd)
{
	struct timeval tv = {.tv_sec = (time_t)(PATIENCE_NS / NS_PER_S)};

	ck_assert_int_eq(
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	ck_assert_int_eq(
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)), 0);
}

static inline int dial(struct rig *r)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	ck_assert_int_ge(fd, 0);
	set_patience(fd);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	ck_assert_int_eq(
		connect(fd, (struct sockaddr *)&r->addr, sizeof(r->addr)), 0);
	return fd;
}

/* Its end is a reset. */
static inline void hang_up_hard(int fd)
{
	struct linger l = {.l_onoff = 1};

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)),
			 0);
	close(fd);
}

/* TLS over a socket; `session` may be NULL and stays the caller's. */
static inline SSL *shake(struct rig *r, int fd, SSL_SESSION *session)
{
	SSL *ssl = SSL_new(r->client);

	ck_assert_int_eq(SSL_set_fd(ssl, fd), 1);
	ck_assert_int_eq(SSL_set1_host(ssl, "localhost"), 1);
	if (session != NULL)
		ck_assert_int_eq(SSL_set_session(ssl, session), 1);
	ck_assert_msg(SSL_connect(ssl) == 1, "%s",
		      ERR_error_string(ERR_peek_error(), NULL));
	return ssl;
}

static inline SSL *visit(struct rig *r)
{
	return shake(r, dial(r), NULL);
}

/* As a polite client: close_notify, then the socket. */
static inline void leave(SSL *ssl)
{
	int fd = SSL_get_fd(ssl);

	SSL_shutdown(ssl);
	SSL_free(ssl);
	close(fd);
}

static inline void say_n(SSL *ssl, const char *text, size_t n)
{
	ck_assert_int_eq(SSL_write(ssl, text, (int)n), (int)n);
}

static inline void say(SSL *ssl, const char *text)
{
	say_n(ssl, text, strlen(text));
}

/* Reads just n bytes. */
static inline void hear(SSL *ssl, char *to, size_t n)
{
	size_t got = 0;

	while (got < n) {
		int k = SSL_read(ssl, to + got, (int)(n - got));

		ck_assert_msg(k > 0, "after %zu of %zu bytes: %s", got, n,
			      ERR_error_string(ERR_peek_error(), NULL));
		got += (size_t)k;
	}
}

/* The head of an answer, with a NUL. */
static inline void hear_head(SSL *ssl, char *to, size_t cap)
{
	size_t n = 0;

	do {
		ck_assert_uint_lt(n, cap - 1);
		hear(ssl, to + n++, 1);
	} while (n < 4 || memcmp(to + n - 4, "\r\n\r\n", 4) != 0);
	to[n] = '\0';
}

/* An answer, whole: its status; the body is read and dropped. */
static inline int hear_answer(SSL *ssl, bool head_only)
{
	char head[1024], body[16384];
	unsigned long left = 0;
	int status = 0;

	hear_head(ssl, head, sizeof(head));
	ck_assert_int_eq(sscanf(head, "HTTP/1.1 %d", &status), 1);
	ck_assert_int_eq(
		sscanf(strstr(head, "Content-Length: "), "%*s %lu", &left), 1);
	while (!head_only && left > 0) {
		size_t n = left < sizeof(body) ? left : sizeof(body);

		hear(ssl, body, n);
		left -= n;
	}
	return status;
}

/* The server ends it in order: close_notify, not a bare end of file. */
static inline void hear_goodbye(SSL *ssl)
{
	char c;
	int rc = SSL_read(ssl, &c, 1);

	ck_assert_int_le(rc, 0);
	ck_assert_int_eq(SSL_get_error(ssl, rc), SSL_ERROR_ZERO_RETURN);
}

#define GET_ROOT "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

#endif
