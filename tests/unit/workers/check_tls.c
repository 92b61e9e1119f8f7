/* SPDX-License-Identifier: MIT */
/* The server's TLS against a real OpenSSL client, bytes moved by hand. */
#include "workers/tls_conn.h"
#include "workers/tls_ctx.h"

#include "shm/base.h"
#include "shm/clk.h"

#include <check.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUT_CAP (64 * 1024)

static struct tls_tickets *keys;
static struct tls_srv *srv;
static struct cfg *cfg;
static char err[512];

/* One client and one server with the bytes between them. */
struct pair {
	SSL_CTX *ctx;
	SSL *client;
	BIO *to_client, *from_client;
	struct tls_conn *server;
	uint8_t buf[OUT_CAP];
	struct tls_out out;
	SSL_SESSION *session;	/* the latest ticket */
	enum tls_status status; /* of the server's last step */
	bool done;		/* the server's handshake */
	size_t out_cap, chunk;	/* how narrow the way is */
};

static void load(const char *text)
{
	char path[] = "/tmp/check-tls.XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	fprintf(f, "scenario: check\n%s", text);
	fclose(f);
	ck_assert_int_eq(cfg_load(&cfg, path, NULL, 0, stderr), 0);
	unlink(path);
}

static int try_create(const char *text, uint32_t nworkers)
{
	int rc;

	load(text);
	err[0] = '\0';
	rc = tls_tickets_create(&keys, cfg, nworkers, err, sizeof(err));
	if (rc == 0)
		rc = tls_srv_create(&srv, cfg, keys, err, sizeof(err));
	if (rc == 0)
		tls_srv_start(srv, 0);
	return rc;
}

static void create(const char *text)
{
	ck_assert_msg(try_create(text, 1) == 0, "%s", err);
}

static void destroy(void)
{
	tls_srv_close(&srv);
	tls_tickets_close(&keys);
	cfg_free(&cfg);
}

static int keep_session(SSL *ssl, SSL_SESSION *s)
{
	struct pair *p = SSL_get_app_data(ssl);

	SSL_SESSION_free(p->session);
	p->session = s;
	return 1;
}

static void pair_open(struct pair *p, int version)
{
	memset(p, 0, sizeof(*p));
	p->out_cap = OUT_CAP;
	p->chunk = OUT_CAP;
	p->ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_min_proto_version(p->ctx, version);
	SSL_CTX_set_max_proto_version(p->ctx, version);
	SSL_CTX_set_session_cache_mode(
		p->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(p->ctx, keep_session);
}

static void pair_connect(struct pair *p, SSL_SESSION *offer)
{
	p->client = SSL_new(p->ctx);
	p->to_client = BIO_new(BIO_s_mem());
	p->from_client = BIO_new(BIO_s_mem());
	SSL_set_bio(p->client, p->to_client, p->from_client);
	SSL_set_connect_state(p->client);
	SSL_set_app_data(p->client, p);
	if (offer != NULL) {
		/* OpenSSL spoils a TLS 1.3 session when it has resumed once. */
		SSL_SESSION *copy = SSL_SESSION_dup(offer);

		ck_assert_int_eq(SSL_set_session(p->client, copy), 1);
		SSL_SESSION_free(copy);
	}
	p->out = (struct tls_out){.data = p->buf, .cap = p->out_cap};
	p->server = tls_conn_new(srv, &p->out);
	ck_assert_ptr_nonnull(p->server);
	p->status = TLS_AGAIN;
	p->done = false;
}

static void pair_drop(struct pair *p)
{
	tls_conn_free(&p->server);
	/* Or OpenSSL spoils the session of a connection that was cut. */
	if (p->client != NULL)
		SSL_set_shutdown(p->client,
				 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(p->client);
	p->client = NULL;
}

static void pair_close(struct pair *p)
{
	pair_drop(p);
	SSL_SESSION_free(p->session);
	SSL_CTX_free(p->ctx);
}

static bool flush_out(struct pair *p)
{
	bool some = p->out.len > 0;

	if (some)
		BIO_write(p->to_client, p->buf, (int)p->out.len);
	p->out.len = 0;
	return some;
}

/* The server's turn on some bytes. True if anything moved. */
static bool serve(struct pair *p, const void *data, size_t len)
{
	bool moved = len > 0;

	tls_conn_feed(p->server, data, len);
	do {
		if (p->done)
			break;
		p->status = tls_conn_handshake(p->server);
		p->done = p->status == TLS_OK;
		moved |= flush_out(p);
	} while (p->status == TLS_AGAIN && tls_conn_wants_room(p->server));
	return moved;
}

static bool client_step(struct pair *p)
{
	char buf[256];

	if (!SSL_is_init_finished(p->client))
		return SSL_do_handshake(p->client) == 1;
	return SSL_read(p->client, buf, sizeof(buf)) > 0;
}

/* Until nothing moves any more. */
static void pump(struct pair *p)
{
	uint8_t buf[OUT_CAP];
	int idle = 0;

	while (idle < 3 && p->status != TLS_ERR) {
		int n;

		client_step(p);
		n = BIO_read(p->from_client, buf, (int)p->chunk);
		idle = serve(p, buf, n > 0 ? (size_t)n : 0) ? 0 : idle + 1;
		if (p->done) /* what follows the handshake is not ours to test
			      */
			tls_conn_feed(p->server, NULL, 0);
	}
	client_step(p);
	ERR_clear_error();
}

static void handshake(struct pair *p, SSL_SESSION *offer, bool resumed)
{
	pair_connect(p, offer);
	pump(p);
	ck_assert(p->done);
	ck_assert(SSL_is_init_finished(p->client));
	ck_assert_int_eq(tls_conn_resumed(p->server), resumed);
	ck_assert_int_eq(SSL_session_reused(p->client), resumed);
	pair_drop(p);
}

/* The session that came, taken out of the pair. */
static SSL_SESSION *take_session(struct pair *p)
{
	SSL_SESSION *s = p->session;

	ck_assert_ptr_nonnull(s);
	p->session = NULL;
	return s;
}

/* ---- works ---- */

static const char *const kinds[] = {"rsa-2048", "rsa-3072", "ecdsa-p256",
				    "ecdsa-p384", "ed25519"};

START_TEST(full_then_resumed_with_every_certificate_and_version)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	const char *kind = kinds[_i / 2];
	int version = versions[_i % 2];
	struct tls_counts c;
	struct pair p;
	SSL_SESSION *s;
	char text[100];

	snprintf(text, sizeof(text), "tls: {certificate: {make: %s}}\n", kind);
	create(text);
	pair_open(&p, version);
	handshake(&p, NULL, false);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.signatures, 1);
	ck_assert_uint_eq(c.tickets_issued, version == TLS1_3_VERSION ? 2 : 1);
	s = take_session(&p);
	handshake(&p, s, true);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.signatures, 0);
	ck_assert_uint_eq(c.tickets_issued, version == TLS1_3_VERSION ? 1 : 0);
	ck_assert_uint_eq(c.tickets_renewed, version == TLS1_3_VERSION ? 1 : 0);
	ck_assert_uint_eq(c.tickets_unknown, 0);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(the_client_verifies_the_made_certificate)
{
	struct pair p;
	size_t len;
	const char *pem;
	BIO *bio;
	X509 *ca;

	create("");
	pair_open(&p, TLS1_3_VERSION);
	pem = tls_srv_trust_pem(srv, &len);
	bio = BIO_new_mem_buf(pem, (int)len);
	ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	ck_assert_ptr_nonnull(ca);
	X509_STORE_add_cert(SSL_CTX_get_cert_store(p.ctx), ca);
	SSL_CTX_set_verify(p.ctx, SSL_VERIFY_PEER, NULL);
	ck_assert_str_eq(tls_srv_name(srv), "localhost");
	ck_assert_str_eq(tls_srv_certificate(srv), "ECDSA P-256");
	pair_connect(&p, NULL);
	SSL_set1_host(p.client, tls_srv_name(srv));
	pump(&p);
	ck_assert(p.done);
	pair_drop(&p);
	pair_connect(&p, NULL);
	X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(p.client), "::1");
	pump(&p);
	ck_assert(p.done);
	X509_free(ca);
	BIO_free(bio);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(a_ticket_outlives_a_rotation_and_not_its_lifetime)
{
	struct tls_counts c;
	struct pair p;
	SSL_SESSION *old, *renewed;

	create("tls: {tickets: {lifetime: 10s, rotate: 5s}}\n");
	pair_open(&p, TLS1_3_VERSION);
	handshake(&p, NULL, false);
	old = take_session(&p);
	ck_assert_int_eq(tls_tickets_rotate(keys), 0);
	ck_assert_uint_eq(tls_tickets_generation(keys), 2);
	tls_srv_take_counts(srv);
	handshake(&p, old, true);
	renewed = take_session(&p);
	/* The old key's time is over, the new one still issues. */
	tls_tickets_tick(keys, clk_now() + 11 * NS_PER_S);
	tls_srv_take_counts(srv);
	handshake(&p, old, false);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.tickets_unknown, 1);
	handshake(&p, renewed, true);
	SSL_SESSION_free(old);
	SSL_SESSION_free(renewed);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(tls12_renews_only_when_the_key_is_old)
{
	struct tls_counts c;
	struct pair p;
	SSL_SESSION *s;

	create("");
	pair_open(&p, TLS1_2_VERSION);
	handshake(&p, NULL, false);
	s = take_session(&p);
	tls_tickets_rotate(keys);
	tls_srv_take_counts(srv);
	handshake(&p, s, true);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.tickets_renewed, 1);
	ck_assert_uint_eq(c.tickets_issued, 1);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(many_rotations_keep_the_newest_keys)
{
	struct pair p;
	SSL_SESSION *s;

	create("");
	pair_open(&p, TLS1_3_VERSION);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(tls_tickets_rotate(keys), 0);
	handshake(&p, NULL, false);
	s = take_session(&p);
	for (int i = 0; i < 30; i++)
		tls_tickets_rotate(keys);
	handshake(&p, s, true);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(private_keys_do_not_open_another_workers_ticket)
{
	struct pair p;
	SSL_SESSION *s;

	ck_assert_msg(try_create("tls: {tickets: {shared: false}}\n", 3) == 0,
		      "%s", err);
	pair_open(&p, TLS1_3_VERSION);
	handshake(&p, NULL, false);
	s = take_session(&p);
	tls_srv_start(srv, 1);
	handshake(&p, s, false);
	ck_assert_uint_eq(tls_srv_take_counts(srv).tickets_unknown, 1);
	tls_srv_start(srv, 0);
	handshake(&p, s, true);
	/* A worker that is replaced is a new one. */
	tls_tickets_renew(keys, 0);
	handshake(&p, s, false);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

static void write_keys(const char *path, size_t bytes)
{
	FILE *f = fopen(path, "w");

	for (size_t i = 0; i < bytes; i++)
		fputc((int)(i * 7 % 251), f);
	fclose(f);
}

START_TEST(a_key_file_outlives_a_restart_and_does_not_rotate)
{
	char text[200];
	struct pair p;
	SSL_SESSION *s;

	write_keys("/tmp/check-tls.keys", 160);
	snprintf(text, sizeof(text),
		 "tls: {tickets: {key_file: /tmp/check-tls.keys}}\n");
	create(text);
	pair_open(&p, TLS1_3_VERSION);
	handshake(&p, NULL, false);
	s = take_session(&p);
	ck_assert_int_eq(tls_tickets_rotate(keys), -EPERM);
	destroy();
	create(text);
	handshake(&p, s, true);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
	unlink("/tmp/check-tls.keys");
}
END_TEST

START_TEST(application_data_goes_both_ways_and_close_notify_is_eof)
{
	static const char question[] = "ping";
	char buf[64];
	uint8_t wire[4096];
	struct pair p;
	size_t got;
	int n;

	create("");
	pair_open(&p, TLS1_3_VERSION);
	pair_connect(&p, NULL);
	pump(&p);
	ck_assert_int_eq(SSL_write(p.client, question, 4), 4);
	SSL_shutdown(p.client);
	n = BIO_read(p.from_client, wire, sizeof(wire));
	tls_conn_feed(p.server, wire, (size_t)n);
	ck_assert_int_eq(tls_conn_read(p.server, buf, sizeof(buf), &got),
			 TLS_OK);
	ck_assert_uint_eq(got, 4);
	ck_assert_int_eq(memcmp(buf, question, 4), 0);
	ck_assert_int_eq(tls_conn_read(p.server, buf, sizeof(buf), &got),
			 TLS_EOF);
	ck_assert_uint_eq(tls_conn_left(p.server), 0);
	ck_assert_int_eq(tls_conn_write(p.server, "pong", 4, &got), TLS_OK);
	ck_assert_int_eq(tls_conn_shutdown(p.server), TLS_OK);
	flush_out(&p);
	ck_assert_int_eq(SSL_read(p.client, buf, sizeof(buf)), 4);
	ck_assert_int_eq(SSL_read(p.client, buf, sizeof(buf)), 0);
	pair_close(&p);
	destroy();
}
END_TEST

/* ---- limits ---- */

START_TEST(narrow_ways_in_and_out_still_complete)
{
	static const size_t narrow[] = {1, 2, 3, 7, 100, 1000};
	struct pair p;
	SSL_SESSION *s;

	create("tls: {certificate: {make: rsa-4096}}\n");
	for (size_t i = 0; i < ARRAY_LEN(narrow); i++) {
		pair_open(&p, TLS1_3_VERSION);
		p.chunk = p.out_cap = narrow[i];
		handshake(&p, NULL, false);
		s = take_session(&p);
		handshake(&p, s, true);
		SSL_SESSION_free(s);
		pair_close(&p);
	}
	destroy();
}
END_TEST

START_TEST(a_thousand_connections_leave_nothing)
{
	struct pair p;

	create("");
	pair_open(&p, TLS1_3_VERSION);
	for (int i = 0; i < 1000; i++) {
		pair_connect(&p, NULL);
		if (i % 3 != 0)
			client_step(&p);
		if (i % 3 == 2)
			pump(&p);
		pair_drop(&p);
	}
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(no_tickets_when_they_are_off)
{
	struct pair p;

	create("tls: {tickets: {enabled: false}}\n");
	for (int v = TLS1_2_VERSION; v <= TLS1_3_VERSION; v++) {
		pair_open(&p, v);
		handshake(&p, NULL, false);
		ck_assert_uint_eq(tls_srv_take_counts(srv).tickets_issued, 0);
		if (p.session != NULL)
			handshake(&p, p.session, false);
		pair_close(&p);
	}
	destroy();
}
END_TEST

START_TEST(the_number_of_tickets_is_as_asked)
{
	struct pair p;
	char text[100];

	for (unsigned n = 0; n <= 4; n += 2) {
		snprintf(text, sizeof(text),
			 "tls: {tickets: {per_handshake: %u}}\n", n);
		create(text);
		pair_open(&p, TLS1_3_VERSION);
		handshake(&p, NULL, false);
		ck_assert_uint_eq(tls_srv_take_counts(srv).tickets_issued, n);
		pair_close(&p);
		destroy();
	}
}
END_TEST

/* ---- refuses ---- */

static enum tls_cause cause_of_bytes(const void *bytes, size_t len)
{
	struct pair p;
	enum tls_cause cause;

	pair_open(&p, TLS1_3_VERSION);
	pair_connect(&p, NULL);
	serve(&p, bytes, len);
	ck_assert_int_eq(p.status, TLS_ERR);
	cause = tls_conn_cause(p.server);
	ck_assert_uint_eq(ERR_peek_error(), 0);
	pair_close(&p);
	return cause;
}

START_TEST(what_is_not_tls_is_a_protocol_failure)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	uint8_t junk[512];

	create("");
	ck_assert_int_eq(cause_of_bytes(http, sizeof(http) - 1),
			 TLS_CAUSE_PROTOCOL);
	memset(junk, 0xaa, sizeof(junk));
	ck_assert_int_eq(cause_of_bytes(junk, sizeof(junk)),
			 TLS_CAUSE_PROTOCOL);
	memset(junk, 0, sizeof(junk));
	ck_assert_int_eq(cause_of_bytes(junk, sizeof(junk)),
			 TLS_CAUSE_PROTOCOL);
	destroy();
}
END_TEST

static enum tls_cause cause_with(struct pair *p)
{
	enum tls_cause cause;

	pair_connect(p, NULL);
	pump(p);
	ck_assert_int_eq(p->status, TLS_ERR);
	cause = tls_conn_cause(p->server);
	pair_close(p);
	return cause;
}

START_TEST(nothing_in_common_has_a_cause_of_its_own)
{
	struct pair p;

	create("tls: {versions: [TLSv1.3], groups: [X25519]}\n");
	pair_open(&p, TLS1_2_VERSION);
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_NO_SHARED);
	pair_open(&p, TLS1_3_VERSION);
	SSL_CTX_set_ciphersuites(p.ctx, "TLS_AES_128_GCM_SHA256");
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_NO_SHARED);
	pair_open(&p, TLS1_3_VERSION);
	SSL_CTX_set1_groups_list(p.ctx, "P-256");
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_NO_SHARED);
	pair_open(&p, TLS1_3_VERSION);
	SSL_CTX_set1_sigalgs_list(p.ctx, "RSA-PSS+SHA256");
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_NO_SHARED);
	destroy();
}
END_TEST

START_TEST(a_client_that_does_not_trust_us_sends_an_alert)
{
	struct pair p;

	create("");
	pair_open(&p, TLS1_3_VERSION);
	SSL_CTX_set_verify(p.ctx, SSL_VERIFY_PEER, NULL);
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_ALERT);
	destroy();
}
END_TEST

static void write_pem(const char *path)
{
	size_t len;
	const char *pem = tls_srv_trust_pem(srv, &len);
	FILE *f = fopen(path, "w");

	fwrite(pem, 1, len, f);
	fclose(f);
}

START_TEST(a_missing_client_certificate_is_a_verify_failure)
{
	struct pair p;

	create("");
	write_pem("/tmp/check-tls.ca");
	destroy();
	create("tls: {client_auth: required, ca: /tmp/check-tls.ca}\n");
	pair_open(&p, TLS1_3_VERSION);
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_VERIFY);
	destroy();
	create("tls: {client_auth: optional, ca: /tmp/check-tls.ca}\n");
	pair_open(&p, TLS1_3_VERSION);
	handshake(&p, NULL, false);
	pair_close(&p);
	destroy();
	unlink("/tmp/check-tls.ca");
}
END_TEST

static const struct {
	const char *text, *says;
} wrong[] = {
	{"tls: {groups: [X25519, NoSuch]}\n", "tls.groups: NoSuch is no group"},
	{"tls: {ciphers: [TLS_NO_SUCH]}\n",
	 "tls.ciphers: TLS_NO_SUCH is unknown"},
	{"tls: {ciphers: [NO-SUCH, TLS_AES_256_GCM_SHA384]}\n",
	 "tls.ciphers: NO-SUCH is unknown"},
	{"tls: {ciphers: [TLS_AES_256_GCM_SHA384]}\n", "no suite for TLSv1.2"},
	{"tls: {ciphers: [ECDHE-ECDSA-AES256-GCM-SHA384]}\n",
	 "no suite for TLSv1.3"},
	{"tls: {ciphers: [TLS_AES_256_GCM_SHA384, "
	 "ECDHE-RSA-AES256-GCM-SHA384]}\n",
	 "fits the ECDSA or Ed25519 certificate"},
	{"tls: {certificate: {chain: /nope/a.pem, key: /nope/a.key}}\n",
	 "tls.certificate.chain: /nope/a.pem: No such file"},
	{"tls: {certificate: {chain: /dev/null, key: /dev/null}}\n",
	 "tls.certificate.chain: /dev/null: no PEM certificate"},
	{"tls: {tickets: {key_file: /nope/keys}}\n",
	 "tls.tickets.key_file: /nope/keys: No such file"},
	{"tls: {tickets: {key_file: /dev/null}}\n",
	 "tls.tickets.key_file: /dev/null: 0 bytes"},
	{"tls: {client_auth: required, ca: /nope/ca.pem}\n",
	 "tls.ca: /nope/ca.pem"},
};

START_TEST(what_cannot_be_is_named)
{
	ck_assert_int_eq(try_create(wrong[_i].text, 1), -EINVAL);
	ck_assert_msg(strstr(err, wrong[_i].says) != NULL, "%s", err);
	ck_assert_uint_eq(ERR_peek_error(), 0);
	destroy();
}
END_TEST

START_TEST(the_hybrid_group_works_or_is_refused_with_the_version)
{
	static const char text[] =
		"tls: {versions: [TLSv1.3], groups: [X25519MLKEM768]}\n";
	struct pair p;

	if (OPENSSL_version_major() > 3 || OPENSSL_version_minor() >= 5) {
		create(text);
		pair_open(&p, TLS1_3_VERSION);
		SSL_CTX_set1_groups_list(p.ctx, "X25519MLKEM768");
		handshake(&p, NULL, false);
		pair_close(&p);
	} else {
		ck_assert_int_eq(try_create(text, 1), -EINVAL);
		ck_assert_msg(strstr(err, "X25519MLKEM768 needs OpenSSL 3.5; "
					  "this is 3.") != NULL,
			      "%s", err);
	}
	destroy();
}
END_TEST

START_TEST(a_key_file_of_odd_length_is_refused)
{
	static const size_t odd[] = {1, 48, 79, 81, 33 * 80};

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		write_keys("/tmp/check-tls.odd", odd[i]);
		ck_assert_int_eq(try_create("tls: {tickets: {key_file: "
					    "/tmp/check-tls.odd}}\n",
					    1),
				 -EINVAL);
		ck_assert_msg(strstr(err, "80 bytes each") != NULL, "%s", err);
		destroy();
	}
	unlink("/tmp/check-tls.odd");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tls");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits"),
	      *refuses = tcase_create("refuses");
	SRunner *r;
	int failed;

	tcase_set_timeout(works, 60);
	tcase_set_timeout(limits, 120);
	tcase_add_loop_test(
		works, full_then_resumed_with_every_certificate_and_version, 0,
		2 * (int)ARRAY_LEN(kinds));
	tcase_add_test(works, the_client_verifies_the_made_certificate);
	tcase_add_test(works,
		       a_ticket_outlives_a_rotation_and_not_its_lifetime);
	tcase_add_test(works, tls12_renews_only_when_the_key_is_old);
	tcase_add_test(works, many_rotations_keep_the_newest_keys);
	tcase_add_test(works, private_keys_do_not_open_another_workers_ticket);
	tcase_add_test(works,
		       a_key_file_outlives_a_restart_and_does_not_rotate);
	tcase_add_test(works,
		       application_data_goes_both_ways_and_close_notify_is_eof);
	tcase_add_test(limits, narrow_ways_in_and_out_still_complete);
	tcase_add_test(limits, a_thousand_connections_leave_nothing);
	tcase_add_test(limits, no_tickets_when_they_are_off);
	tcase_add_test(limits, the_number_of_tickets_is_as_asked);
	tcase_add_test(refuses, what_is_not_tls_is_a_protocol_failure);
	tcase_add_test(refuses, nothing_in_common_has_a_cause_of_its_own);
	tcase_add_test(refuses, a_client_that_does_not_trust_us_sends_an_alert);
	tcase_add_test(refuses,
		       a_missing_client_certificate_is_a_verify_failure);
	tcase_add_loop_test(refuses, what_cannot_be_is_named, 0,
			    (int)ARRAY_LEN(wrong));
	tcase_add_test(refuses,
		       the_hybrid_group_works_or_is_refused_with_the_version);
	tcase_add_test(refuses, a_key_file_of_odd_length_is_refused);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
