/* SPDX-License-Identifier: MIT */
/* One connection: a real OpenSSL client against our side, in memory. */
#include "tests/unit/workers/tls_fixture.h"

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

/* ---- works ---- */

static const char *const kinds[] = {"rsa-2048",	  "rsa-3072",	"rsa-4096",
				    "ecdsa-p256", "ecdsa-p384", "ed25519"};
static const char *const shown[] = {"RSA 2048",	   "RSA 3072",	  "RSA 4096",
				    "ECDSA P-256", "ECDSA P-384", "Ed25519"};

static void full_then_resumed(int version)
{
	bool tls13 = version == TLS1_3_VERSION;
	struct tls_counts c;
	struct pair p;
	SSL_SESSION *s;

	pair_open(&p, version);
	handshake(&p, NULL, false);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.signatures, 1);
	ck_assert_uint_eq(c.tickets_issued, tls13 ? 2 : 1);
	ck_assert_uint_eq(c.tickets_renewed, 0);
	s = take_session(&p);
	handshake(&p, s, true);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.signatures, 0);
	ck_assert_uint_eq(c.tickets_issued, tls13 ? 1 : 0);
	ck_assert_uint_eq(c.tickets_renewed, tls13 ? 1 : 0);
	ck_assert_uint_eq(c.tickets_unknown, 0);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.tickets_issued, 0);
	SSL_SESSION_free(s);
	pair_close(&p);
}

/* Signatures and tickets are counted exactly. */
START_TEST(full_then_resumed_with_every_certificate_and_version)
{
	char text[100];

	snprintf(text, sizeof(text), "tls: {certificate: {make: %s}}\n",
		 kinds[_i]);
	create(text);
	ck_assert_str_eq(tls_srv_certificate(srv), shown[_i]);
	full_then_resumed(TLS1_2_VERSION);
	full_then_resumed(TLS1_3_VERSION);
	destroy();
}
END_TEST

START_TEST(each_flight_of_the_server_is_one_output)
{
	struct pair p;

	create("tls: {certificate: {make: rsa-2048}}\n");
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		pair_open(&p, versions[i]);
		pair_connect(&p, NULL);
		pump(&p);
		ck_assert(p.done);
		ck_assert_int_eq(tls_conn_version(p.server),
				 i == 0 ? TLS_VERSION_12 : TLS_VERSION_13);
		/* Hello to Finished, then tickets; in TLS 1.2 hello to done,
		 * then the ticket with Finished. */
		ck_assert_uint_eq(p.flights, 2);
		pair_close(&p);
	}
	destroy();
}
END_TEST

START_TEST(the_server_prefers_its_own_order_of_suites)
{
	struct pair p;

	create("tls: {ciphers: [TLS_CHACHA20_POLY1305_SHA256, "
	       "TLS_AES_128_GCM_SHA256, ECDHE-ECDSA-CHACHA20-POLY1305, "
	       "ECDHE-ECDSA-AES128-GCM-SHA256]}\n");
	pair_open(&p, TLS1_3_VERSION);
	SSL_CTX_set_ciphersuites(
		p.ctx, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256");
	pair_connect(&p, NULL);
	pump(&p);
	ck_assert_str_eq(SSL_get_cipher_name(p.client),
			 "TLS_CHACHA20_POLY1305_SHA256");
	pair_close(&p);
	pair_open(&p, TLS1_2_VERSION);
	SSL_CTX_set_cipher_list(p.ctx, "ECDHE-ECDSA-AES128-GCM-SHA256:"
				       "ECDHE-ECDSA-CHACHA20-POLY1305");
	pair_connect(&p, NULL);
	pump(&p);
	ck_assert_str_eq(SSL_get_cipher_name(p.client),
			 "ECDHE-ECDSA-CHACHA20-POLY1305");
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(suites_with_dhe_and_with_rsa_key_exchange_work)
{
	struct tls_counts c;
	struct pair p;

	create("tls:\n  versions: TLSv1.2\n"
	       "  ciphers: [DHE-RSA-AES128-GCM-SHA256, AES128-GCM-SHA256]\n"
	       "  certificate: {make: rsa-2048}\n");
	pair_open(&p, TLS1_2_VERSION);
	handshake(&p, NULL, false);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.signatures, 1);
	pair_close(&p);
	/* Without (EC)DHE nothing is signed. */
	pair_open(&p, TLS1_2_VERSION);
	SSL_CTX_set_cipher_list(p.ctx, "AES128-GCM-SHA256");
	handshake(&p, NULL, false);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.signatures, 0);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(tickets_are_counted_once_though_the_hello_is_repeated)
{
	struct tls_counts c;
	struct pair p;
	SSL_SESSION *s;

	create("tls: {versions: TLSv1.3, groups: [X25519]}\n");
	pair_open(&p, TLS1_3_VERSION);
	/* The first share is of a group that the server has not. */
	SSL_CTX_set1_groups_list(p.ctx, "P-384:X25519");
	handshake(&p, NULL, false);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.signatures, 1);
	ck_assert_uint_eq(c.tickets_issued, 2);
	s = take_session(&p);
	handshake(&p, s, true);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.tickets_renewed, 1);
	ck_assert_uint_eq(c.tickets_issued, 1);
	destroy();
	create("tls: {versions: TLSv1.3, groups: [X25519]}\n");
	handshake(&p, s, false);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.tickets_unknown, 1);
	ck_assert_uint_eq(c.tickets_renewed, 0);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

/* The bytes the client says first. */
static size_t first_flight(struct pair *p, uint8_t *wire, size_t cap)
{
	int n;

	client_step(p);
	n = BIO_read(p->from_client, wire, (int)cap);
	ck_assert_int_gt(n, 0);
	ERR_clear_error();
	return (size_t)n;
}

START_TEST(a_spoilt_ticket_of_a_known_key_renews_nothing)
{
	const uint8_t *ticket;
	uint8_t wire[4096], *at;
	size_t len, n;
	struct tls_counts c;
	struct pair p;
	SSL_SESSION *s;

	create("tls: {versions: TLSv1.3}\n");
	pair_open(&p, TLS1_3_VERSION);
	handshake(&p, NULL, false);
	s = take_session(&p);
	SSL_SESSION_get0_ticket(s, &ticket, &len);
	ck_assert_uint_gt(len, 64);
	tls_srv_take_counts(srv);
	pair_connect(&p, s);
	n = first_flight(&p, wire, sizeof(wire));
	at = memmem(wire, n, ticket, len);
	ck_assert_ptr_nonnull(at);
	at[len - 1] ^= 1; /* its MAC */
	serve(&p, wire, n);
	/* The ticket is ignored and a full handshake begins. */
	ck_assert_int_eq(p.status, TLS_AGAIN);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.signatures, 1);
	ck_assert_uint_eq(c.tickets_renewed, 0);
	ck_assert_uint_eq(c.tickets_unknown, 0);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
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
	pair_open(&p, versions[_i]);
	pair_connect(&p, NULL);
	pump(&p);
	ck_assert_int_eq(tls_conn_read(p.server, buf, sizeof(buf), &got),
			 TLS_AGAIN);
	ck_assert(!tls_conn_wants_room(p.server));
	ck_assert_int_eq(SSL_write(p.client, question, 4), 4);
	SSL_shutdown(p.client);
	n = BIO_read(p.from_client, wire, sizeof(wire));
	tls_conn_feed(p.server, wire, (size_t)n);
	ck_assert_int_eq(tls_conn_read(p.server, buf, 3, &got), TLS_OK);
	ck_assert_uint_eq(got, 3);
	ck_assert_uint_eq(tls_conn_pending(p.server), 1);
	ck_assert_uint_gt(tls_conn_left(p.server), 0);
	ck_assert_int_eq(tls_conn_read(p.server, buf + 3, 64 - 3, &got),
			 TLS_OK);
	ck_assert_uint_eq(got, 1);
	ck_assert_int_eq(memcmp(buf, question, 4), 0);
	ck_assert_uint_eq(tls_conn_pending(p.server), 0);
	ck_assert_int_eq(tls_conn_read(p.server, buf, sizeof(buf), &got),
			 TLS_EOF);
	ck_assert_uint_eq(tls_conn_left(p.server), 0);
	ck_assert_int_eq(tls_conn_write(p.server, "pong", 4, &got), TLS_OK);
	ck_assert_int_eq(tls_conn_shutdown(p.server), TLS_OK);
	flush_out(&p);
	ck_assert_int_eq(SSL_read(p.client, buf, sizeof(buf)), 4);
	ck_assert_int_eq(SSL_read(p.client, buf, sizeof(buf)), 0);
	ck_assert_int_eq(SSL_get_error(p.client, 0), SSL_ERROR_ZERO_RETURN);
	pair_close(&p);
	destroy();
}
END_TEST

/* The cause, after the client has got what was sent to it. */
static enum tls_cause cause_with(struct pair *p)
{
	enum tls_cause cause;

	pair_connect(p, NULL);
	pump(p);
	ck_assert_int_eq(p->status, TLS_ERR);
	ck_assert_uint_eq(ERR_peek_error(), 0);
	cause = tls_conn_cause(p->server);
	pair_close(p);
	return cause;
}

/* ---- client certificates ---- */

/* A CA in ca.pem, and a client's certificate that it has signed. */
static void make_client(X509 **cert, EVP_PKEY **key, const char *ca_file)
{
	EVP_PKEY *ca_key = EVP_EC_gen("P-256");
	X509 *ca = make_cert(
		ca_key, &(struct made){.common_name = "ca", .is_ca = true});

	pem_cert(ca_file, "w", ca);
	*key = EVP_EC_gen("P-256");
	*cert = make_cert(*key, &(struct made){.common_name = "client",
					       .issuer = ca,
					       .issuer_key = ca_key});
	X509_free(ca);
	EVP_PKEY_free(ca_key);
}

START_TEST(a_client_with_a_good_certificate_is_taken_and_resumes)
{
	struct pair p;
	EVP_PKEY *key;
	X509 *cert;
	SSL_SESSION *s;

	make_client(&cert, &key, "ca.pem");
	create("tls: {client_auth: required, ca: @/ca.pem, "
	       "groups: [X25519, P-256]}\n");
	pair_open(&p, versions[_i]);
	ck_assert_int_eq(SSL_CTX_use_certificate(p.ctx, cert), 1);
	ck_assert_int_eq(SSL_CTX_use_PrivateKey(p.ctx, key), 1);
	handshake(&p, NULL, false);
	/* The client's own CertificateVerify is not a signature of ours. */
	ck_assert_uint_eq(tls_srv_take_counts(srv).signatures, 1);
	s = take_session(&p);
	handshake(&p, s, true);
	ck_assert_uint_eq(tls_srv_take_counts(srv).signatures, 0);
	SSL_SESSION_free(s);
	pair_close(&p);
	X509_free(cert);
	EVP_PKEY_free(key);
	destroy();
}
END_TEST

START_TEST(tls12_takes_only_client_certificates_on_its_own_curves)
{
	struct pair p;
	EVP_PKEY *key;
	X509 *cert;

	make_client(&cert, &key, "ca.pem");
	create("tls: {client_auth: optional, ca: @/ca.pem, "
	       "groups: [X25519]}\n");
	pair_open(&p, TLS1_2_VERSION);
	SSL_CTX_use_certificate(p.ctx, cert);
	SSL_CTX_use_PrivateKey(p.ctx, key);
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_NO_SHARED);
	X509_free(cert);
	EVP_PKEY_free(key);
	destroy();
}
END_TEST

START_TEST(a_missing_or_foreign_client_certificate_is_a_verify_failure)
{
	struct pair p;
	EVP_PKEY *key;
	X509 *cert;

	make_client(&cert, &key, "other.pem");
	X509_free(cert);
	EVP_PKEY_free(key);
	make_client(&cert, &key, "ca.pem");
	create("tls: {client_auth: required, ca: @/other.pem}\n");
	pair_open(&p, versions[_i]);
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_VERIFY);
	/* Signed by a CA of the same name and another key. */
	pair_open(&p, versions[_i]);
	SSL_CTX_use_certificate(p.ctx, cert);
	SSL_CTX_use_PrivateKey(p.ctx, key);
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_VERIFY);
	destroy();
	create("tls: {client_auth: optional, ca: @/other.pem}\n");
	pair_open(&p, versions[_i]);
	handshake(&p, NULL, false);
	pair_close(&p);
	pair_open(&p, versions[_i]);
	SSL_CTX_use_certificate(p.ctx, cert);
	SSL_CTX_use_PrivateKey(p.ctx, key);
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_VERIFY);
	X509_free(cert);
	EVP_PKEY_free(key);
	destroy();
}
END_TEST

/* ---- limits ---- */

static const size_t narrow[] = {1, 2, 3, 7, 100, 1000};

START_TEST(narrow_ways_in_and_out_still_complete)
{
	struct pair p;
	SSL_SESSION *s;

	create("tls: {certificate: {make: rsa-2048}}\n");
	for (size_t i = 0; i < ARRAY_LEN(narrow); i++) {
		pair_open(&p, versions[_i]);
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

/* Writes all of `data`, the output emptied to the client as it fills. */
static void write_all(struct pair *p, const uint8_t *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t done = 0;
		enum tls_status rc =
			tls_conn_write(p->server, data + at, len - at, &done);

		ck_assert(rc == TLS_OK ||
			  (rc == TLS_AGAIN && tls_conn_wants_room(p->server)));
		flush_out(p);
		at += done;
		ck_assert(rc == TLS_AGAIN || done > 0);
	}
}

START_TEST(large_writes_pass_an_output_of_any_size)
{
	static uint8_t data[100 * 1000], back[sizeof(data)];
	static const size_t room[] = {5, 600, 16384, 17 * 1024, OUT_CAP};
	struct pair p;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 >> 3);
	create("");
	pair_open(&p, versions[_i]);
	for (size_t i = 0; i < ARRAY_LEN(room); i++) {
		size_t at = 0;
		int n;

		pair_connect(&p, NULL);
		pump(&p);
		ck_assert(p.done);
		p.out.cap = room[i];
		write_all(&p, data, sizeof(data));
		while ((n = SSL_read(p.client, back + at,
				     (int)(sizeof(back) - at))) > 0)
			at += (size_t)n;
		ck_assert_uint_eq(at, sizeof(data));
		ck_assert_int_eq(memcmp(data, back, sizeof(data)), 0);
		pair_drop(&p);
	}
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(the_largest_record_fits_seventeen_kib)
{
	static uint8_t data[16384];
	struct pair p;
	size_t done;

	create("");
	pair_open(&p, versions[_i]);
	pair_connect(&p, NULL);
	pump(&p);
	p.out.cap = 17 * 1024;
	ck_assert_int_eq(tls_conn_write(p.server, data, sizeof(data), &done),
			 TLS_OK);
	ck_assert_uint_eq(done, sizeof(data));
	ck_assert_uint_gt(p.out.len, sizeof(data));
	pair_close(&p);
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

START_TEST(a_client_that_leaves_without_a_word_can_resume)
{
	struct pair p;
	SSL_SESSION *s;

	create("");
	pair_open(&p, versions[_i]);
	handshake(&p, NULL, false);
	s = take_session(&p);
	for (int i = 0; i < 3; i++) {
		pair_connect(&p, s);
		pump(&p);
		ck_assert(p.done);
		ck_assert(tls_conn_resumed(p.server));
		tls_conn_free(&p.server);
		pair_drop(&p);
	}
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(no_tickets_when_they_are_off)
{
	struct pair p;

	create("tls: {tickets: {enabled: false}}\n");
	pair_open(&p, versions[_i]);
	handshake(&p, NULL, false);
	ck_assert_uint_eq(tls_srv_take_counts(srv).tickets_issued, 0);
	/* In TLS 1.2 a session still comes, with an id and no cache behind. */
	if (p.session != NULL) {
		SSL_SESSION *s = take_session(&p);

		handshake(&p, s, false);
		SSL_SESSION_free(s);
	}
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(the_number_of_tickets_is_as_asked)
{
	struct pair p;
	char text[100];

	for (unsigned n = 0; n <= 16; n += 4) {
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
	static const char proxy[] = "CONNECT a:443 HTTP/1.1\r\n\r\n";
	uint8_t junk[1024];

	create("");
	ck_assert_int_eq(cause_of_bytes(http, sizeof(http) - 1),
			 TLS_CAUSE_PROTOCOL);
	ck_assert_int_eq(cause_of_bytes(proxy, sizeof(proxy) - 1),
			 TLS_CAUSE_PROTOCOL);
	for (unsigned c = 0; c < 256; c++) {
		/* 3 makes the longest record that is worth waiting for. */
		memset(junk, (int)c, sizeof(junk));
		ck_assert_int_eq(cause_of_bytes(junk, sizeof(junk)),
				 TLS_CAUSE_PROTOCOL);
	}
	destroy();
}
END_TEST

START_TEST(a_hello_cut_short_waits_or_is_a_protocol_failure)
{
	uint8_t wire[4096];
	struct pair p;
	size_t n, len;

	create("");
	pair_open(&p, versions[_i]);
	pair_connect(&p, NULL);
	n = first_flight(&p, wire, sizeof(wire));
	serve(&p, wire, n - 1);
	ck_assert_int_eq(p.status, TLS_AGAIN);
	ck_assert_uint_eq(tls_conn_left(p.server), 0);
	serve(&p, wire + n - 1, 1);
	ck_assert_int_eq(p.status, TLS_AGAIN);
	ck_assert_uint_gt(p.flights, 0);
	pair_close(&p);
	/* Record and message say that this is all. */
	len = n - 5 - 7;
	wire[3] = (uint8_t)(len >> 8);
	wire[4] = (uint8_t)len;
	wire[7] = (uint8_t)((len - 4) >> 8);
	wire[8] = (uint8_t)(len - 4);
	ck_assert_int_eq(cause_of_bytes(wire, len + 5), TLS_CAUSE_PROTOCOL);
	destroy();
}
END_TEST

START_TEST(a_key_share_of_zeros_is_a_protocol_failure)
{
	/* Extension key_share: one entry, X25519, 32 bytes. */
	static const uint8_t head[] = {0x00, 0x33, 0x00, 0x26, 0x00,
				       0x24, 0x00, 0x1d, 0x00, 0x20};
	uint8_t wire[4096], *at;
	struct pair p;
	size_t n;

	create("");
	pair_open(&p, TLS1_3_VERSION);
	SSL_CTX_set1_groups_list(p.ctx, "X25519");
	pair_connect(&p, NULL);
	n = first_flight(&p, wire, sizeof(wire));
	at = memmem(wire, n, head, sizeof(head));
	ck_assert_ptr_nonnull(at);
	memset(at + sizeof(head), 0, 32);
	pair_close(&p);
	ck_assert_int_eq(cause_of_bytes(wire, n), TLS_CAUSE_PROTOCOL);
	destroy();
}
END_TEST

START_TEST(every_byte_of_a_hello_may_be_wrong)
{
	uint8_t wire[4096];
	struct pair p;
	size_t n;

	create("");
	pair_open(&p, versions[_i]);
	pair_connect(&p, NULL);
	n = first_flight(&p, wire, sizeof(wire));
	pair_drop(&p);
	for (size_t i = 0; i < n; i++) {
		wire[i] ^= (uint8_t)(1u << i % 8);
		pair_connect(&p, NULL);
		serve(&p, wire, n);
		ck_assert(p.status == TLS_AGAIN || p.status == TLS_ERR);
		if (p.status == TLS_ERR)
			ck_assert_int_ne(tls_conn_cause(p.server),
					 TLS_CAUSE_INTERNAL);
		ck_assert_uint_eq(ERR_peek_error(), 0);
		pair_drop(&p);
		wire[i] ^= (uint8_t)(1u << i % 8);
	}
	pair_close(&p);
	destroy();
}
END_TEST

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
	create("tls: {versions: [TLSv1.2], groups: [X25519]}\n");
	pair_open(&p, TLS1_3_VERSION);
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_NO_SHARED);
	pair_open(&p, TLS1_2_VERSION);
	SSL_CTX_set_cipher_list(p.ctx, "ECDHE-RSA-AES256-GCM-SHA384");
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_NO_SHARED);
	pair_open(&p, TLS1_2_VERSION);
	SSL_CTX_set1_groups_list(p.ctx, "P-256");
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_NO_SHARED);
	destroy();
}
END_TEST

START_TEST(the_alert_of_a_failure_reaches_the_client)
{
	uint8_t wire[4096];
	struct pair p;
	size_t n;
	int rc;

	create("tls: {versions: [TLSv1.3], groups: [X25519]}\n");
	pair_open(&p, TLS1_3_VERSION);
	SSL_CTX_set1_groups_list(p.ctx, "P-256");
	pair_connect(&p, NULL);
	n = first_flight(&p, wire, sizeof(wire));
	tls_conn_feed(p.server, wire, n);
	ck_assert_int_eq(tls_conn_handshake(p.server), TLS_ERR);
	ck_assert_uint_eq(p.out.len, 7);
	ck_assert_uint_eq(p.buf[0], SSL3_RT_ALERT);
	flush_out(&p);
	rc = SSL_do_handshake(p.client);
	ck_assert_int_eq(SSL_get_error(p.client, rc), SSL_ERROR_SSL);
	ck_assert_int_eq(ERR_GET_REASON(ERR_peek_error()),
			 SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE);
	ERR_clear_error();
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(a_client_that_does_not_trust_us_sends_an_alert)
{
	struct pair p;

	create("");
	pair_open(&p, versions[_i]);
	SSL_CTX_set_verify(p.ctx, SSL_VERIFY_PEER, NULL);
	ck_assert_int_eq(cause_with(&p), TLS_CAUSE_ALERT);
	destroy();
}
END_TEST

START_TEST(a_client_that_gives_up_in_order_is_an_eof)
{
	/* An alert in the clear: warning, close_notify. */
	static const uint8_t bye[] = {21, 3, 3, 0, 2, 1, 0};
	uint8_t wire[4096];
	struct pair p;
	size_t n;

	create("");
	pair_open(&p, TLS1_2_VERSION);
	pair_connect(&p, NULL);
	n = first_flight(&p, wire, sizeof(wire));
	serve(&p, wire, n);
	ck_assert_int_eq(p.status, TLS_AGAIN);
	serve(&p, bye, sizeof(bye));
	ck_assert_int_eq(p.status, TLS_EOF);
	pair_close(&p);
	/* Before anything else it is none. */
	ck_assert_int_eq(cause_of_bytes(bye, sizeof(bye)), TLS_CAUSE_PROTOCOL);
	destroy();
}
END_TEST

START_TEST(no_handshake_is_begun_anew)
{
	uint8_t wire[4096];
	char buf[16];
	struct pair p;
	size_t got;
	int n;

	create("");
	pair_open(&p, TLS1_2_VERSION);
	pair_connect(&p, NULL);
	pump(&p);
	tls_srv_take_counts(srv);
	SSL_renegotiate(p.client);
	SSL_do_handshake(p.client);
	n = BIO_read(p.from_client, wire, sizeof(wire));
	ck_assert_int_gt(n, 0);
	tls_conn_feed(p.server, wire, (size_t)n);
	ck_assert_int_ne(tls_conn_read(p.server, buf, sizeof(buf), &got),
			 TLS_OK);
	ck_assert_uint_eq(tls_srv_take_counts(srv).signatures, 0);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(a_spoilt_record_after_the_handshake_is_an_error_with_an_alert)
{
	uint8_t wire[4096];
	char buf[16];
	struct pair p;
	size_t got;
	int n;

	create("");
	pair_open(&p, versions[_i]);
	pair_connect(&p, NULL);
	pump(&p);
	ck_assert_int_eq(SSL_write(p.client, "ping", 4), 4);
	n = BIO_read(p.from_client, wire, sizeof(wire));
	wire[n - 1] ^= 1;
	tls_conn_feed(p.server, wire, (size_t)n);
	ck_assert_int_eq(tls_conn_read(p.server, buf, sizeof(buf), &got),
			 TLS_ERR);
	ck_assert_int_eq(tls_conn_cause(p.server), TLS_CAUSE_PROTOCOL);
	ck_assert_uint_gt(p.out.len, 0);
	ck_assert_uint_eq(ERR_peek_error(), 0);
	pair_close(&p);
	destroy();
}
END_TEST

static void add_works(Suite *s)
{
	TCase *t = add_case(s, "works");

	tcase_add_loop_test(
		t, full_then_resumed_with_every_certificate_and_version, 0,
		(int)ARRAY_LEN(kinds));
	tcase_add_test(t, each_flight_of_the_server_is_one_output);
	tcase_add_test(t, the_server_prefers_its_own_order_of_suites);
	tcase_add_test(t, suites_with_dhe_and_with_rsa_key_exchange_work);
	tcase_add_test(t,
		       tickets_are_counted_once_though_the_hello_is_repeated);
	tcase_add_test(t, a_spoilt_ticket_of_a_known_key_renews_nothing);
	tcase_add_loop_test(
		t, application_data_goes_both_ways_and_close_notify_is_eof, 0,
		2);
	tcase_add_loop_test(
		t, a_client_with_a_good_certificate_is_taken_and_resumes, 0, 2);
}

static void add_limits(Suite *s)
{
	TCase *t = add_case(s, "limits");

	tcase_add_loop_test(t, narrow_ways_in_and_out_still_complete, 0, 2);
	tcase_add_loop_test(t, large_writes_pass_an_output_of_any_size, 0, 2);
	tcase_add_loop_test(t, the_largest_record_fits_seventeen_kib, 0, 2);
	tcase_add_test(t, a_thousand_connections_leave_nothing);
	tcase_add_loop_test(t, a_client_that_leaves_without_a_word_can_resume,
			    0, 2);
	tcase_add_loop_test(t, no_tickets_when_they_are_off, 0, 2);
	tcase_add_test(t, the_number_of_tickets_is_as_asked);
}

static void add_refuses(Suite *s)
{
	TCase *t = add_case(s, "refuses");

	tcase_add_test(t, what_is_not_tls_is_a_protocol_failure);
	tcase_add_loop_test(t, a_hello_cut_short_waits_or_is_a_protocol_failure,
			    0, 2);
	tcase_add_test(t, a_key_share_of_zeros_is_a_protocol_failure);
	tcase_add_loop_test(t, every_byte_of_a_hello_may_be_wrong, 0, 2);
	tcase_add_test(t, nothing_in_common_has_a_cause_of_its_own);
	tcase_add_test(t, the_alert_of_a_failure_reaches_the_client);
	tcase_add_loop_test(t, a_client_that_does_not_trust_us_sends_an_alert,
			    0, 2);
	tcase_add_test(t, a_client_that_gives_up_in_order_is_an_eof);
	tcase_add_loop_test(
		t, a_missing_or_foreign_client_certificate_is_a_verify_failure,
		0, 2);
	tcase_add_test(t,
		       tls12_takes_only_client_certificates_on_its_own_curves);
	tcase_add_test(t, no_handshake_is_begun_anew);
	tcase_add_loop_test(
		t,
		a_spoilt_record_after_the_handshake_is_an_error_with_an_alert,
		0, 2);
}

int main(void)
{
	Suite *s = suite_create("tls_conn");

	add_works(s);
	add_limits(s);
	add_refuses(s);
	return run_suite(s);
}
