/* SPDX-License-Identifier: MIT */
/* A whole worker, as a process, against TLS clients by OpenSSL. */
#include "tests/unit/workers/wrk_tls_fixture.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct rig rig;

/* ---- handshakes ---- */

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

START_TEST(a_full_handshake_and_a_resumed_one_are_counted_as_such)
{
	SSL_SESSION *session;
	SSL *ssl;

	rig_init(&rig);
	rig_start(&rig);
	SSL_CTX_set_max_proto_version(rig.client, versions[_i]);
	ssl = visit(&rig);
	say(ssl, GET_ROOT);
	ck_assert_int_eq(hear_answer(ssl, false), 200);
	session = SSL_get1_session(ssl);
	leave(ssl);
	await(&rig, CTR_ID_conn_closed_peer, 1);
	ck_assert_uint_eq(value(&rig, CTR_ID_hs_full), 1);
	ck_assert_uint_eq(value(&rig, CTR_ID_signatures), 1);

	ssl = shake(&rig, dial(&rig), session);
	ck_assert_int_eq(SSL_session_reused(ssl), 1);
	say(ssl, GET_ROOT);
	ck_assert_int_eq(hear_answer(ssl, false), 200);
	leave(ssl);
	await(&rig, CTR_ID_conn_closed_peer, 2);
	ck_assert_uint_eq(value(&rig, CTR_ID_hs_full), 1);
	ck_assert_uint_eq(value(&rig, CTR_ID_hs_resumed), 1);
	ck_assert_uint_eq(value(&rig, CTR_ID_signatures), 1);
	ck_assert_uint_eq(
		value(&rig, _i == 0 ? CTR_ID_hs_tls12 : CTR_ID_hs_tls13), 2);
	ck_assert_uint_gt(value(&rig, CTR_ID_crypto_full_ns), 20 * NS_PER_US);
	ck_assert_uint_gt(value(&rig, CTR_ID_crypto_resumed_ns), NS_PER_US);
	ck_assert_uint_eq(value(&rig, CTR_ID_requests), 2);
	SSL_SESSION_free(session);
	rig_stop(&rig);
}
END_TEST

/* What a client writes first, by a memory BIO. */
static size_t client_hello(char *to, size_t cap)
{
	SSL *ssl = SSL_new(rig.client);
	int n;

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	ck_assert_int_eq(SSL_connect(ssl), -1);
	n = BIO_read(SSL_get_wbio(ssl), to, (int)cap);
	ck_assert_int_gt(n, 100);
	SSL_free(ssl);
	return (size_t)n;
}

/* Moves what the client has written to the socket, a byte in each segment. */
static void dribble(SSL *ssl, int fd)
{
	char c;

	while (BIO_read(SSL_get_wbio(ssl), &c, 1) == 1)
		ck_assert_int_eq(send(fd, &c, 1, 0), 1);
}

START_TEST(a_handshake_and_a_request_byte_by_byte_succeed)
{
	char buf[4096];
	SSL *ssl;
	int fd, rc;

	rig_init(&rig);
	rig_start(&rig);
	fd = dial(&rig);
	ssl = SSL_new(rig.client);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	while ((rc = SSL_connect(ssl)) != 1) {
		ssize_t n;

		ck_assert_int_eq(SSL_get_error(ssl, rc), SSL_ERROR_WANT_READ);
		dribble(ssl, fd);
		n = recv(fd, buf, sizeof(buf), 0);
		ck_assert_int_gt(n, 0);
		BIO_write(SSL_get_rbio(ssl), buf, (int)n);
	}
	for (const char *p = GET_ROOT; *p != '\0'; p++)
		say_n(ssl, p, 1);
	dribble(ssl, fd);
	await(&rig, CTR_ID_requests, 1);
	SSL_free(ssl);
	close(fd);
	rig_stop(&rig);
}
END_TEST

/* ---- requests ---- */

START_TEST(a_connection_answers_requests_one_after_the_other)
{
	SSL *ssl;

	rig_init(&rig);
	rig_start(&rig);
	ssl = visit(&rig);
	for (int i = 0; i < 50; i++) {
		say(ssl, GET_ROOT);
		ck_assert_int_eq(hear_answer(ssl, false), 200);
	}
	say(ssl, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" GET_ROOT);
	ck_assert_int_eq(hear_answer(ssl, true), 200);
	ck_assert_int_eq(hear_answer(ssl, false), 200);
	say(ssl, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde"
		 "GET /bytes/x HTTP/1.1\r\nHost: a\r\n\r\n");
	ck_assert_int_eq(hear_answer(ssl, false), 405);
	ck_assert_int_eq(hear_answer(ssl, false), 400);
	say(ssl, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	ck_assert_int_eq(hear_answer(ssl, false), 200);
	hear_goodbye(ssl);
	leave(ssl);
	await(&rig, CTR_ID_conn_closed_self, 1);
	ck_assert_uint_eq(value(&rig, CTR_ID_requests), 55);
	ck_assert_uint_eq(value(&rig, CTR_ID_requests_refused), 2);
	rig_stop(&rig);
}
END_TEST

/* Answers went out, and no more for a while: the worker waits for the client.
 */
static void await_standstill(void)
{
	uint64_t before, now = 0;

	while (value(&rig, CTR_ID_requests) == 0)
		poll(NULL, 0, 1);
	do {
		before = now;
		poll(NULL, 0, 100);
		now = value(&rig, CTR_ID_bytes_out);
	} while (now != before);
}

/* More requests at once than answers fit: the rest waits its turn. */
START_TEST(many_pipelined_requests_are_all_answered)
{
	enum {
		N = 2000
	};
	size_t len = strlen(GET_ROOT);
	char *all = malloc(N * len);
	SSL *ssl;

	rig_init(&rig);
	rig.cfg.terminator.respond.body = 20000;
	rig_start(&rig);
	for (size_t i = 0; i < N; i++)
		memcpy(all + i * len, GET_ROOT, len);
	ssl = visit(&rig);
	say_n(ssl, all, N * len);
	await_standstill();
	ck_assert_uint_lt(value(&rig, CTR_ID_requests), N);
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(hear_answer(ssl, false), 200);
	leave(ssl);
	await(&rig, CTR_ID_requests, N);
	free(all);
	rig_stop(&rig);
}
END_TEST

START_TEST(bodies_of_many_sizes_come_whole)
{
	static const unsigned long sizes[] = {
		0, 1, 15000, 16384, 16385, 65536, 1000000, 1048576, 50000000};
	char request[100], head[1024];
	char *body = malloc(50000000);
	SSL *ssl;

	rig_init(&rig);
	rig_start(&rig);
	ssl = visit(&rig);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		snprintf(request, sizeof(request),
			 "GET /bytes/%lu HTTP/1.1\r\nHost: a\r\n\r\n",
			 sizes[i]);
		say(ssl, request);
		hear_head(ssl, head, sizeof(head));
		hear(ssl, body, sizes[i]);
		/* The text repeats every 64 bytes, over all records. */
		if (sizes[i] > 64)
			ck_assert_int_eq(memcmp(body, body + 64, sizes[i] - 64),
					 0);
	}
	leave(ssl);
	await(&rig, CTR_ID_requests, ARRAY_LEN(sizes));
	ck_assert_uint_gt(value(&rig, CTR_ID_bytes_out), 52000000);
	free(body);
	rig_stop(&rig);
}
END_TEST

/* Closing with bytes unread would reset the connection and the answer with it.
 */
START_TEST(a_client_that_is_refused_while_it_sends_can_read_why)
{
	static char junk[256 * 1024];
	SSL *ssl;

	rig_init(&rig);
	rig_start(&rig);
	ssl = visit(&rig);
	say(ssl,
	    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n");
	for (int i = 0; i < 8; i++)
		say_n(ssl, junk, sizeof(junk));
	ck_assert_int_eq(hear_answer(ssl, false), 413);
	hear_goodbye(ssl);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_open), 1);
	leave(ssl);
	await(&rig, CTR_ID_conn_closed_self, 1);
	rig_stop(&rig);
}
END_TEST

START_TEST(a_client_that_stays_after_its_refusal_is_closed)
{
	SSL *ssl;

	rig_init(&rig);
	rig_start(&rig);
	ssl = visit(&rig);
	say(ssl, "nonsense\r\n\r\n");
	ck_assert_int_eq(hear_answer(ssl, false), 400);
	hear_goodbye(ssl);
	await(&rig, CTR_ID_conn_closed_self, 1);
	leave(ssl);
	rig_stop(&rig);
}
END_TEST

/* It said close_notify, but still reads: the answer comes first. */
START_TEST(a_client_that_ended_its_side_gets_its_answer)
{
	SSL *ssl;

	rig_init(&rig);
	rig_start(&rig);
	ssl = visit(&rig);
	say(ssl, "GET /bytes/3000000 HTTP/1.1\r\nHost: a\r\n\r\n");
	SSL_shutdown(ssl);
	ck_assert_int_eq(shutdown(SSL_get_fd(ssl), SHUT_WR), 0);
	ck_assert_int_eq(hear_answer(ssl, false), 200);
	hear_goodbye(ssl);
	leave(ssl);
	await(&rig, CTR_ID_conn_closed_peer, 1);
	rig_stop(&rig);
}
END_TEST

/* ---- the other modes ---- */

START_TEST(mode_close_ends_after_the_handshake)
{
	SSL *ssl;

	rig_init(&rig);
	rig.cfg.terminator.respond.mode = CFG_RESPOND_CLOSE;
	rig_start(&rig);
	ssl = visit(&rig);
	hear_goodbye(ssl);
	leave(ssl);
	await(&rig, CTR_ID_conn_closed_self, 1);
	rig_stop(&rig);
}
END_TEST

START_TEST(mode_speak_first_sends_its_body_and_ends)
{
	enum {
		BODY = 3000000
	};
	char *body = malloc(BODY);
	SSL *ssl;

	rig_init(&rig);
	rig.cfg.terminator.respond.mode = CFG_RESPOND_SPEAK_FIRST;
	rig.cfg.terminator.respond.body = BODY;
	rig_start(&rig);
	ssl = visit(&rig);
	say(ssl, "not waiting for you");
	hear(ssl, body, BODY);
	hear_goodbye(ssl);
	leave(ssl);
	await(&rig, CTR_ID_conn_closed_self, 1);
	free(body);
	rig_stop(&rig);
}
END_TEST

/* The client writes all before it reads: both directions fill up on the way. */
START_TEST(mode_echo_sends_back_what_comes)
{
	enum {
		SIZE = 1 << 20
	};
	char *there = malloc(SIZE), *back = malloc(SIZE);
	SSL *ssl;

	for (size_t i = 0; i < SIZE; i++)
		there[i] = (char)(i * 7 + i / 255);
	rig_init(&rig);
	rig.cfg.terminator.respond.mode = CFG_RESPOND_ECHO;
	rig_start(&rig);
	ssl = visit(&rig);
	for (size_t at = 0; at < SIZE; at += 10000) {
		size_t n = base_min(10000, SIZE - at);

		say_n(ssl, there + at, n);
	}
	hear(ssl, back, SIZE);
	ck_assert_int_eq(memcmp(there, back, SIZE), 0);
	leave(ssl);
	await(&rig, CTR_ID_conn_closed_peer, 1);
	free(there);
	free(back);
	rig_stop(&rig);
}
END_TEST

/* ---- clients that do not behave ---- */

START_TEST(mute_clients_are_closed_at_the_handshake_timeout)
{
	enum {
		N = 100
	};
	uint64_t timeout = 500 * NS_PER_MS;
	uint64_t began;
	int fd[N];
	char c;

	rig_init(&rig);
	rig.cfg.terminator.handshake_timeout = timeout;
	rig_start(&rig);
	began = clk_now();
	for (int i = 0; i < N; i++)
		fd[i] = dial(&rig);
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(recv(fd[i], &c, 1, 0), 0);
		ck_assert_uint_ge(clk_now() - began, timeout);
		close(fd[i]);
	}
	ck_assert_uint_lt(clk_now() - began, timeout + 500 * NS_PER_MS);
	await(&rig, CTR_ID_failed_timeout, N);
	rig_stop(&rig);
}
END_TEST

START_TEST(a_client_that_rests_is_told_and_closed)
{
	SSL *ssl;

	rig_init(&rig);
	rig.cfg.terminator.idle_timeout = 200 * NS_PER_MS;
	rig_start(&rig);
	ssl = visit(&rig);
	say(ssl, GET_ROOT);
	ck_assert_int_eq(hear_answer(ssl, false), 200);
	hear_goodbye(ssl);
	leave(ssl);
	await(&rig, CTR_ID_conn_idle_timeout, 1);
	rig_stop(&rig);
}
END_TEST

/* Resident memory of the worker, in bytes. */
static uint64_t memory_of(pid_t pid)
{
	char name[64];
	unsigned long pages = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/statm", (int)pid);
	f = fopen(name, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%*u %lu", &pages), 1);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Requests for 1 GiB each, never read; some clients go on sending. */
START_TEST(clients_that_never_read_hold_little_memory_and_are_closed)
{
	enum {
		N = 20
	};
	static char junk[16384];
	uint64_t before;
	SSL *ssl[N];

	rig_init(&rig);
	rig.cfg.terminator.idle_timeout = 700 * NS_PER_MS;
	rig_start(&rig);
	before = memory_of(rig.pid[0]);
	for (int i = 0; i < N; i++) {
		ssl[i] = visit(&rig);
		say(ssl[i],
		    "GET /bytes/1073741824 HTTP/1.1\r\nHost: a\r\n\r\n");
		fcntl(SSL_get_fd(ssl[i]), F_SETFL, O_NONBLOCK);
		while (i % 2 == 1 && SSL_write(ssl[i], junk, sizeof(junk)) > 0)
			;
	}
	await(&rig, CTR_ID_hs_full, N);
	/* 0.5 MiB each, sanitizers and valgrind aside; 1 GiB was asked for. */
	ck_assert_uint_lt(memory_of(rig.pid[0]) - before, N * (8 << 20));
	await(&rig, CTR_ID_conn_idle_timeout, N);
	for (int i = 0; i < N; i++) {
		close(SSL_get_fd(ssl[i]));
		SSL_free(ssl[i]);
	}
	ck_assert_uint_eq(value(&rig, CTR_ID_requests), 0);
	rig_stop(&rig);
}
END_TEST

START_TEST(a_reset_after_any_part_of_the_client_hello_is_counted)
{
	char hello[2048];
	size_t n, tries = 0;

	rig_init(&rig);
	rig_start(&rig);
	n = client_hello(hello, sizeof(hello));
	for (size_t cut = 0; cut <= n; cut += 13, tries++) {
		int fd = dial(&rig);

		ck_assert_int_eq(send(fd, hello, cut, 0), (ssize_t)cut);
		hang_up_hard(fd);
	}
	/* One that is reset in the listen queue is accepted all the same. */
	await(&rig, CTR_ID_conn_accepted, tries);
	await(&rig, CTR_ID_failed_reset, tries);
	rig_stop(&rig);
}
END_TEST

START_TEST(an_end_after_any_part_of_the_client_hello_is_counted)
{
	char hello[2048];
	size_t n, tries = 0;

	rig_init(&rig);
	rig_start(&rig);
	n = client_hello(hello, sizeof(hello));
	for (size_t cut = 0; cut < n; cut += 13, tries++) {
		int fd = dial(&rig);
		char c;

		ck_assert_int_eq(send(fd, hello, cut, 0), (ssize_t)cut);
		ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
		ck_assert_int_eq(recv(fd, &c, 1, 0), 0);
		close(fd);
	}
	await(&rig, CTR_ID_failed_eof, tries);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_accepted), tries);
	ck_assert_uint_gt(value(&rig, CTR_ID_crypto_failed_ns), 0);
	rig_stop(&rig);
}
END_TEST

START_TEST(a_reset_in_the_middle_of_an_answer_is_counted)
{
	char some[1000];
	SSL *ssl;

	rig_init(&rig);
	rig_start(&rig);
	for (int i = 0; i < 20; i++) {
		ssl = visit(&rig);
		say(ssl, "GET /bytes/100000000 HTTP/1.1\r\nHost: a\r\n\r\n");
		if (i % 2 == 0)
			hear(ssl, some, sizeof(some));
		hang_up_hard(SSL_get_fd(ssl));
		SSL_free(ssl);
	}
	await(&rig, CTR_ID_conn_reset, 20);
	ck_assert_uint_eq(value(&rig, CTR_ID_requests), 0);
	rig_stop(&rig);
}
END_TEST

/* What is not TLS gets an alert (or what OpenSSL thinks fit), and a counter. */
START_TEST(what_is_not_tls_is_refused)
{
	static const char *const junk[] = {
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"SSH-2.0-OpenSSH_9.2\r\n",
		"\x16\x03\x01\xff\xff\x01",
		("\x80\x2e\x01\x03\x01 as SSL 2 would say it, were it any "
		 "sense at all"),
	};
	char buf[256];

	rig_init(&rig);
	rig_start(&rig);
	for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
		int fd = dial(&rig);

		ck_assert_int_gt(send(fd, junk[i], strlen(junk[i]), 0), 0);
		while (recv(fd, buf, sizeof(buf), 0) > 0)
			;
		close(fd);
	}
	await(&rig, CTR_ID_failed_protocol, ARRAY_LEN(junk));
	rig_stop(&rig);
}
END_TEST

START_TEST(a_client_without_a_common_group_hears_an_alert)
{
	SSL *ssl;
	int fd;

	rig_init(&rig);
	rig_start(&rig);
	SSL_CTX_set1_groups_list(rig.client, "P-384");
	SSL_CTX_set_min_proto_version(rig.client, TLS1_3_VERSION);
	fd = dial(&rig);
	ssl = SSL_new(rig.client);
	SSL_set_fd(ssl, fd);
	ck_assert_int_eq(SSL_connect(ssl), -1);
	ck_assert_int_eq(ERR_GET_REASON(ERR_peek_error()),
			 SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE);
	SSL_free(ssl);
	close(fd);
	await(&rig, CTR_ID_failed_no_shared, 1);
	rig_stop(&rig);
}
END_TEST

/* It does not know our CA, and says so while the handshake is under way. */
START_TEST(a_client_that_does_not_trust_us_is_counted_as_an_alert)
{
	X509_STORE *none = X509_STORE_new();
	SSL *ssl;
	int fd;

	rig_init(&rig);
	rig_start(&rig);
	SSL_CTX_set_cert_store(rig.client, none);
	SSL_CTX_set_max_proto_version(rig.client, versions[_i]);
	fd = dial(&rig);
	ssl = SSL_new(rig.client);
	SSL_set_fd(ssl, fd);
	ck_assert_int_eq(SSL_connect(ssl), -1);
	SSL_free(ssl);
	await(&rig, CTR_ID_failed_alert, 1);
	close(fd);
	rig_stop(&rig);
}
END_TEST

START_TEST(a_damaged_record_after_the_handshake_is_a_tls_error)
{
	SSL *ssl;
	char c;

	rig_init(&rig);
	rig_start(&rig);
	ssl = visit(&rig);
	ck_assert_int_eq(send(SSL_get_fd(ssl),
			      "\x17\x03\x03\x00\x20"
			      "abcdefghijklmnopqrstuvwxyz012345",
			      37, 0),
			 37);
	ck_assert_int_le(SSL_read(ssl, &c, 1), 0);
	ck_assert_int_eq(ERR_GET_REASON(ERR_peek_error()),
			 SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
	leave(ssl);
	await(&rig, CTR_ID_conn_tls_error, 1);
	rig_stop(&rig);
}
END_TEST

/* ---- a storm ---- */

/* Numbers that are the same in every run (a linear congruence). */
static uint32_t dice;

static uint32_t roll(uint32_t sides)
{
	dice = dice * 1664525 + 1013904223;
	return (dice >> 8) % sides;
}

/* A client whose socket does not block, in whatever state it got to. */
struct rude {
	SSL *ssl; /* owns; NULL: no client here */
	int fd;
};

/* Every other one shakes hands first, so that there are some in any weather. */
static void rude_begin(struct rude *r)
{
	if (roll(2) == 0) {
		r->ssl = visit(&rig);
		r->fd = SSL_get_fd(r->ssl);
	} else {
		r->fd = dial(&rig);
		r->ssl = SSL_new(rig.client);
		SSL_set_fd(r->ssl, r->fd);
		SSL_set_connect_state(r->ssl);
	}
	ck_assert_int_ge(fcntl(r->fd, F_SETFL, O_NONBLOCK), 0);
}

static void rude_end(struct rude *r)
{
	if (roll(2) == 0)
		SSL_shutdown(r->ssl);
	SSL_free(r->ssl);
	r->ssl = NULL;
	if (roll(2) == 0)
		hang_up_hard(r->fd);
	else
		close(r->fd);
}

/* One thing that a client may do, at any time; failures are the point. */
static void rude_act(struct rude *r)
{
	static const char *const texts[] = {
		GET_ROOT GET_ROOT GET_ROOT,
		"GET /bytes/300000 HTTP/1.1\r\nHost: a\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n",
		"nonsense\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"G",
	};
	const char *text = texts[roll(ARRAY_LEN(texts))];
	char buf[20000];

	switch (roll(6)) {
	case 0:
		SSL_write(r->ssl, text, (int)strlen(text));
		break;
	case 1:
		SSL_shutdown(r->ssl);
		break;
	case 2:
		send(r->fd, text, strlen(text), 0); /* not TLS */
		break;
	case 3:
		shutdown(r->fd, SHUT_WR);
		break;
	default:
		SSL_read(r->ssl, buf, (int)(1 + roll(sizeof(buf))));
		break;
	}
	ERR_clear_error();
}

START_TEST(a_storm_of_rude_clients_leaves_nothing_behind)
{
	enum {
		CLIENTS = 50
	};
	int acts = under_valgrind() ? 1000 : 5000;
	struct rude rude[CLIENTS] = {0};
	SSL *ssl;

	rig_init(&rig);
	rig.cfg.terminator.handshake_timeout = 5 * NS_PER_S;
	rig.cfg.terminator.idle_timeout = 200 * NS_PER_MS;
	rig_start(&rig);
	dice = (uint32_t)_i;
	for (int i = 0; i < acts; i++) {
		struct rude *r = &rude[roll(CLIENTS)];

		if (r->ssl == NULL)
			rude_begin(r);
		else if (roll(10) == 0)
			rude_end(r);
		else
			rude_act(r);
		if (i % 100 == 0)
			value(&rig, CTR_ID_conn_open); /* the identity */
	}
	for (int i = 0; i < CLIENTS; i++) {
		if (rude[i].ssl != NULL)
			rude_end(&rude[i]);
	}
	await(&rig, CTR_ID_conn_open, 0);
	ck_assert_uint_gt(value(&rig, CTR_ID_hs_full), 10);
	ssl = visit(&rig);
	say(ssl, GET_ROOT);
	ck_assert_int_eq(hear_answer(ssl, false), 200);
	leave(ssl);
	rig_stop(&rig);
}
END_TEST

/* ---- limits ---- */

START_TEST(without_descriptors_it_waits_and_then_goes_on)
{
	enum {
		N = 60
	};
	uint64_t cpu;
	SSL *ssl;
	int fd[N];

	if (under_valgrind())
		return; /* it takes the descriptors that the limit leaves */
	rig_init(&rig);
	rig.nofile = (struct rlimit){32, 32};
	rig_start(&rig);
	for (int i = 0; i < N; i++)
		fd[i] = dial(&rig);
	while (value(&rig, CTR_ID_accept_no_fd) < 2)
		poll(NULL, 0, 1);
	ck_assert_uint_lt(value(&rig, CTR_ID_conn_accepted), 32);
	ck_assert_int_eq(clk_pid_cpu(rig.pid[0], &cpu), 0);
	/* 10 tries in a second at most; a loop without a wait has thousands. */
	for (uint64_t until = clk_now() + NS_PER_S; clk_now() < until;)
		poll(NULL, 0, 10);
	ck_assert_uint_le(value(&rig, CTR_ID_accept_no_fd), 20);
	{
		uint64_t after;

		ck_assert_int_eq(clk_pid_cpu(rig.pid[0], &after), 0);
		ck_assert_uint_lt(after - cpu, NS_PER_S / 20);
	}
	for (int i = 0; i < N; i++)
		close(fd[i]);
	await(&rig, CTR_ID_conn_accepted, N);
	ssl = visit(&rig);
	say(ssl, GET_ROOT);
	ck_assert_int_eq(hear_answer(ssl, false), 200);
	leave(ssl);
	rig_stop(&rig);
}
END_TEST

START_TEST(an_idle_worker_uses_no_cpu_and_shows_that_it_lives)
{
	struct shm_slot *slot;
	uint64_t before, after, beat;
	SSL *ssl;

	rig_init(&rig);
	rig_start(&rig);
	ssl = visit(&rig);
	await(&rig, CTR_ID_hs_full, 1);
	slot = shm_seg_slot(rig.seg, 0);
	beat = atomic_load(&slot->heartbeat_ns);
	ck_assert_int_eq(clk_pid_cpu(rig.pid[0], &before), 0);
	for (uint64_t until = clk_now() + NS_PER_S; clk_now() < until;)
		poll(NULL, 0, 100);
	ck_assert_int_eq(clk_pid_cpu(rig.pid[0], &after), 0);
	ck_assert_uint_lt(after - before, 10 * NS_PER_MS);
	ck_assert_uint_ge(atomic_load(&slot->heartbeat_ns),
			  beat + 700 * NS_PER_MS);
	ck_assert_uint_gt(value(&rig, CTR_ID_cpu_ns), 0);
	ck_assert_uint_le(value(&rig, CTR_ID_cpu_ns), after);
	leave(ssl);
	rig_stop(&rig);
}
END_TEST

/* More at once than a turn takes, and than the listener's requests. */
START_TEST(a_burst_of_connections_is_served_whole)
{
	enum {
		N = 600
	};
	SSL *ssl[N];
	int fd[N];

	rig_init(&rig);
	rig.cfg.terminator.handshake_timeout = 100 * NS_PER_S;
	rig.cfg.terminator.idle_timeout = 100 * NS_PER_S;
	rig_start(&rig);
	for (int i = 0; i < N; i++)
		fd[i] = dial(&rig);
	for (int i = 0; i < N; i++)
		ssl[i] = shake(&rig, fd[i], NULL);
	for (int i = 0; i < N; i++)
		say(ssl[i], GET_ROOT);
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(hear_answer(ssl[i], false), 200);
		leave(ssl[i]);
	}
	await(&rig, CTR_ID_conn_closed_peer, N);
	ck_assert_uint_eq(value(&rig, CTR_ID_requests), N);
	ck_assert_uint_eq(value(&rig, CTR_ID_accept_errors), 0);
	rig_stop(&rig);
}
END_TEST

START_TEST(a_shared_listener_feeds_both_workers)
{
	enum {
		N = 200
	};
	uint64_t a, b;

	rig_init(&rig);
	rig.nworkers = 2;
	rig.cfg.terminator.accept = CFG_ACCEPT_SHARED;
	rig_start(&rig);
	for (int i = 0; i < N; i += 20) {
		int fd[20];

		for (int k = 0; k < 20; k++)
			fd[k] = dial(&rig);
		for (int k = 0; k < 20; k++)
			leave(shake(&rig, fd[k], NULL));
	}
	do {
		a = value_of(&rig, 0, CTR_ID_hs_full);
		b = value_of(&rig, 1, CTR_ID_hs_full);
	} while (a + b < N);
	ck_assert_msg(a > N / 10 && b > N / 10, "%lu and %lu", a, b);
	rig_stop(&rig);
}
END_TEST

/* ---- the end ---- */

START_TEST(drain_ends_resting_clients_and_lets_others_finish)
{
	enum {
		SIZE = 30000000
	};
	char *body = malloc(SIZE), head[1024];
	SSL *resting, *busy;
	int late;

	rig_init(&rig);
	rig.cfg.terminator.drain_timeout = 100 * NS_PER_S;
	rig_start(&rig);
	resting = visit(&rig);
	say(resting, GET_ROOT);
	ck_assert_int_eq(hear_answer(resting, false), 200);
	busy = visit(&rig);
	say(busy, "GET /bytes/30000000 HTTP/1.1\r\nHost: a\r\n\r\n");
	hear_head(busy, head, sizeof(head));
	ck_assert_int_eq(ctl_send(rig.ctl_fd[0], CTL_DRAIN, 0, NULL), 0);
	hear_goodbye(resting);
	leave(resting);
	late = dial(&rig); /* the listener is still there, the accept is not */
	hear(busy, body, SIZE);
	hear_goodbye(busy);
	leave(busy);
	ck_assert_int_eq(rig_wait(&rig, 0), EXIT_GOOD);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_accepted), 2);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_closed_self), 2);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_open), 0);
	close(late);
	free(body);
	rig_free(&rig);
}
END_TEST

START_TEST(drain_answers_a_request_that_has_begun_and_then_closes)
{
	SSL *half, *fresh;
	uint64_t before;
	int late;

	rig_init(&rig);
	rig.cfg.terminator.drain_timeout = 100 * NS_PER_S;
	rig_start(&rig);
	late = dial(&rig);
	half = visit(&rig);
	say(half, GET_ROOT);
	ck_assert_int_eq(hear_answer(half, false), 200);
	before = value(&rig, CTR_ID_bytes_in);
	say(half, "GET / HTTP/1.1\r\n");
	while (value(&rig, CTR_ID_bytes_in) == before)
		poll(NULL, 0, 1);
	ck_assert_int_eq(ctl_send(rig.ctl_fd[0], CTL_DRAIN, 0, NULL), 0);
	while (atomic_load(&shm_seg_slot(rig.seg, 0)->state) !=
	       SHM_SLOT_DRAINING)
		poll(NULL, 0, 1);
	/* This one's handshake only begins now: it has its one request. */
	fresh = shake(&rig, late, NULL);
	say(fresh, GET_ROOT);
	ck_assert_int_eq(hear_answer(fresh, false), 200);
	hear_goodbye(fresh);
	leave(fresh);
	say(half, "Host: a\r\n\r\n");
	ck_assert_int_eq(hear_answer(half, false), 200);
	hear_goodbye(half);
	leave(half);
	ck_assert_int_eq(rig_wait(&rig, 0), EXIT_GOOD);
	ck_assert_uint_eq(value(&rig, CTR_ID_requests), 3);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_closed_self), 2);
	rig_free(&rig);
}
END_TEST

START_TEST(drain_is_bounded_by_its_timeout)
{
	SSL *busy;
	int mute;

	rig_init(&rig);
	rig.cfg.terminator.drain_timeout = 300 * NS_PER_MS;
	rig_start(&rig);
	busy = visit(&rig);
	say(busy, "GET /bytes/1073741824 HTTP/1.1\r\nHost: a\r\n\r\n");
	mute = dial(&rig);
	await(&rig, CTR_ID_conn_accepted, 2);
	await(&rig, CTR_ID_hs_full, 1);
	ck_assert_int_eq(ctl_send(rig.ctl_fd[0], CTL_DRAIN, 0, NULL), 0);
	ck_assert_int_eq(rig_wait(&rig, 0), EXIT_GOOD);
	ck_assert_uint_eq(value(&rig, CTR_ID_failed_drain), 1);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_closed_self), 1);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_open), 0);
	close(SSL_get_fd(busy));
	SSL_free(busy);
	close(mute);
	rig_free(&rig);
}
END_TEST

/* Quit, and the end of the channel: at once, with everything counted. */
START_TEST(quit_and_a_lost_master_end_it_at_once)
{
	SSL *ssl;
	int mute;

	rig_init(&rig);
	rig_start(&rig);
	ssl = visit(&rig);
	mute = dial(&rig);
	await(&rig, CTR_ID_conn_accepted, 2);
	if (_i == 0)
		ck_assert_int_eq(ctl_send(rig.ctl_fd[0], CTL_QUIT, 0, NULL), 0);
	else
		ck_assert_int_eq(shutdown(rig.ctl_fd[0], SHUT_RDWR), 0);
	ck_assert_int_eq(rig_wait(&rig, 0), EXIT_GOOD);
	ck_assert_uint_eq(value(&rig, CTR_ID_failed_drain), 1);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_closed_self), 1);
	ck_assert_uint_eq(value(&rig, CTR_ID_conn_open), 0);
	close(SSL_get_fd(ssl));
	SSL_free(ssl);
	close(mute);
	rig_free(&rig);
}
END_TEST

START_TEST(signals_of_the_terminal_are_the_masters_business)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	SSL *ssl;

	rig_init(&rig);
	rig_start(&rig);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		ck_assert_int_eq(kill(rig.pid[0], signals[i]), 0);
	ssl = visit(&rig);
	leave(ssl);
	rig_stop(&rig);
}
END_TEST

START_TEST(a_listener_that_cannot_accept_ends_the_worker_with_a_reason)
{
	struct ctl_msg m;

	rig_init(&rig);
	signal(SIGPIPE, SIG_IGN);
	log_init("check", LOG_ERROR);
	rig_make(&rig);
	rig.client = client_ctx(&rig);
	/* Bound, and no longer listening. */
	ck_assert_int_eq(shutdown(rig.lst_fd[0], SHUT_RD), 0);
	rig_fork(&rig, 0);
	ck_assert_uint_eq(rig_message(&rig, 0, &m), CTL_READY);
	ck_assert_uint_eq(rig_message(&rig, 0, &m), CTL_FAIL);
	ck_assert_ptr_nonnull(strstr(m.text, "accept"));
	ck_assert_int_eq(rig_wait(&rig, 0), EXIT_RUN);
	ck_assert_uint_eq(value(&rig, CTR_ID_accept_errors), 5);
	rig_free(&rig);
}
END_TEST

START_TEST(a_cpu_that_is_not_there_is_refused_with_a_reason)
{
	struct wrk_args args = {.cpu = 4095, .listen_fd = {-1}, .nlisten = 1};
	struct ctl_msg m;
	int child_fd;

	rig_init(&rig);
	log_init("check", LOG_ERROR);
	rig_make(&rig);
	ck_assert_int_eq(ctl_pair(&rig.ctl_fd[0], &child_fd), 0);
	rig.pid[0] = fork();
	ck_assert_int_ge(rig.pid[0], 0);
	if (rig.pid[0] == 0) {
		close(rig.ctl_fd[0]);
		args.cfg = &rig.cfg;
		args.slot = shm_seg_slot(rig.seg, 0);
		args.tls = rig.srv;
		args.ctl_fd = child_fd;
		wrk_main(&args);
	}
	close(child_fd);
	ck_assert_uint_eq(rig_message(&rig, 0, &m), CTL_FAIL);
	ck_assert_ptr_nonnull(strstr(m.text, "CPU 4095"));
	ck_assert_int_eq(rig_wait(&rig, 0), EXIT_RUN);
	rig_free(&rig);
}
END_TEST

START_TEST(a_worker_dies_with_its_master)
{
	struct pollfd p = {.events = POLLIN};
	int pipe_fd[2], status;
	pid_t master;

	rig_init(&rig);
	ck_assert_int_eq(pipe2(pipe_fd, O_CLOEXEC), 0);
	master = fork();
	ck_assert_int_ge(master, 0);
	if (master == 0) {
		close(pipe_fd[0]);
		rig_start(&rig);
		raise(SIGKILL);
	}
	close(pipe_fd[1]);
	ck_assert_int_eq(waitpid(master, &status, 0), master);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* The worker holds the pipe's other end: its end is the worker's. */
	p.fd = pipe_fd[0];
	ck_assert_int_eq(poll(&p, 1, (int)(PATIENCE_NS / NS_PER_MS)), 1);
	close(pipe_fd[0]);
	/* Nobody else takes down the dead master's segment. */
	{
		char name[64];

		snprintf(name, sizeof(name), "/dev/shm/tterm.unit-wrk-%d",
			 (int)master);
		ck_assert_int_eq(unlink(name), 0);
	}
}
END_TEST

/* ---- sockets ---- */

/* A descriptor of the worker that is connected to `port`, as a copy. */
static int worker_socket(pid_t pid, in_port_t port)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0 && errno == ENOSYS)
		return -1;
	ck_assert_int_ge(pidfd, 0);
	for (int fd = 3; fd < 64; fd++) {
		int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
		struct sockaddr_in peer = {0};
		socklen_t len = sizeof(peer);

		if (copy < 0 && errno == EPERM) {
			close(pidfd);
			return -1;
		}
		if (copy >= 0 &&
		    getpeername(copy, (struct sockaddr *)&peer, &len) == 0 &&
		    peer.sin_port == port) {
			close(pidfd);
			return copy;
		}
		close(copy);
	}
	ck_abort_msg("the worker has no such connection");
	return -1;
}

START_TEST(accepted_sockets_inherit_nodelay_from_the_listener)
{
	struct sockaddr_in own = {0};
	socklen_t len = sizeof(own);
	int fd, copy, on = 0;

	rig_init(&rig);
	rig_start(&rig);
	fd = dial(&rig);
	await(&rig, CTR_ID_conn_accepted, 1);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	copy = worker_socket(rig.pid[0], own.sin_port);
	if (copy >= 0) { /* else a container or valgrind forbids to look */
		len = sizeof(on);
		ck_assert_int_eq(
			getsockopt(copy, IPPROTO_TCP, TCP_NODELAY, &on, &len),
			0);
		ck_assert_int_eq(on, 1);
		close(copy);
	}
	close(fd);
	await(&rig, CTR_ID_failed_eof, 1);
	rig_stop(&rig);
}
END_TEST

static TCase *works(void)
{
	TCase *t = tcase_create("works");

	tcase_add_loop_test(
		t, a_full_handshake_and_a_resumed_one_are_counted_as_such, 0,
		2);
	tcase_add_test(t, a_handshake_and_a_request_byte_by_byte_succeed);
	tcase_add_test(t, a_connection_answers_requests_one_after_the_other);
	tcase_add_test(t, many_pipelined_requests_are_all_answered);
	tcase_add_test(t, bodies_of_many_sizes_come_whole);
	tcase_add_test(t, a_client_that_ended_its_side_gets_its_answer);
	tcase_add_test(t, mode_close_ends_after_the_handshake);
	tcase_add_test(t, mode_speak_first_sends_its_body_and_ends);
	tcase_add_test(t, mode_echo_sends_back_what_comes);
	tcase_add_test(t, accepted_sockets_inherit_nodelay_from_the_listener);
	tcase_add_test(t, a_shared_listener_feeds_both_workers);
	tcase_add_test(t, drain_ends_resting_clients_and_lets_others_finish);
	tcase_add_test(t,
		       drain_answers_a_request_that_has_begun_and_then_closes);
	tcase_add_loop_test(t, quit_and_a_lost_master_end_it_at_once, 0, 2);
	tcase_add_test(t, signals_of_the_terminal_are_the_masters_business);
	tcase_add_test(t, a_worker_dies_with_its_master);
	return t;
}

static TCase *limits(void)
{
	TCase *t = tcase_create("limits");

	tcase_add_test(t, mute_clients_are_closed_at_the_handshake_timeout);
	tcase_add_test(t, a_client_that_rests_is_told_and_closed);
	tcase_add_test(
		t, clients_that_never_read_hold_little_memory_and_are_closed);
	tcase_add_test(t, without_descriptors_it_waits_and_then_goes_on);
	tcase_add_test(t, an_idle_worker_uses_no_cpu_and_shows_that_it_lives);
	tcase_add_test(t, a_burst_of_connections_is_served_whole);
	tcase_add_test(t, drain_is_bounded_by_its_timeout);
	tcase_add_test(t, a_client_that_stays_after_its_refusal_is_closed);
	return t;
}

static TCase *refuses(void)
{
	TCase *t = tcase_create("refuses");

	tcase_add_test(t, a_client_that_is_refused_while_it_sends_can_read_why);
	tcase_add_test(t,
		       a_reset_after_any_part_of_the_client_hello_is_counted);
	tcase_add_test(t, an_end_after_any_part_of_the_client_hello_is_counted);
	tcase_add_test(t, a_reset_in_the_middle_of_an_answer_is_counted);
	tcase_add_test(t, what_is_not_tls_is_refused);
	tcase_add_test(t, a_client_without_a_common_group_hears_an_alert);
	tcase_add_loop_test(
		t, a_client_that_does_not_trust_us_is_counted_as_an_alert, 0,
		2);
	tcase_add_test(t, a_damaged_record_after_the_handshake_is_a_tls_error);
	tcase_add_loop_test(t, a_storm_of_rude_clients_leaves_nothing_behind, 0,
			    4);
	tcase_add_test(
		t, a_listener_that_cannot_accept_ends_the_worker_with_a_reason);
	tcase_add_test(t, a_cpu_that_is_not_there_is_refused_with_a_reason);
	return t;
}

int main(void)
{
	Suite *s = suite_create("wrk");
	TCase *cases[] = {works(), limits(), refuses()};
	SRunner *r = srunner_create(s);
	int failed;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		tcase_set_timeout(cases[i], 60);
		suite_add_tcase(s, cases[i]);
	}
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
