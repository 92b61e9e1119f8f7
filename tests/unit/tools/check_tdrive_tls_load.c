/* SPDX-License-Identifier: MIT */
/* What a phase can want of a load: mixes, requests, schedules, kinds. */
#include "tests/unit/tools/tdrive_tls_server.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "tools/tdrive_load.h"
#include "tools/tdrive_report.h"
#include "tools/tdrive_tls.h"

#include <poll.h>

/* Room for valgrind on a busy machine; a test that hangs still fails. */
#define SECONDS_AT_MOST 60
#define TIMEOUT_NS	(20 * NS_PER_S)

/* One server and one client of it. */
struct stage {
	struct server server;
	struct ctls *tls;
	struct load *load;
	struct shm_slot *slot;
	struct report_take took;
};

/* What the client is to be; 0 or NULL: default. */
struct client {
	const char *version;
	const char *certificate, *key, *group, *sigalg, *alpn;
	uint32_t seats, drivers, driver;
	uint64_t limit, timeout_ns;
	enum load_tickets tickets;
};

static struct cfg_list list_of(const char **item)
{
	return (struct cfg_list){(char **)(uintptr_t)item, *item != NULL};
}

static void open_tls(struct stage *st, struct client *c)
{
	struct ctls_want want = {.versions = list_of(&c->version),
				 .groups = list_of(&c->group),
				 .sigalgs = list_of(&c->sigalg),
				 .alpn = list_of(&c->alpn),
				 .certificate = c->certificate,
				 .key = c->key,
				 .ca_path = st->server.ca_path,
				 .name = "localhost"};
	char err[512] = "";

	ck_assert_msg(ctls_open(&st->tls, &want, err, sizeof(err)) == 0, "%s",
		      err);
}

static struct stage open_stage(struct server_want server, struct client c)
{
	struct stage st = {.server = server_start(server)};
	struct load_want want = {.host = "localhost",
				 .seats = c.seats > 0 ? c.seats : 1,
				 .seats_max = 2000,
				 .drivers = c.drivers,
				 .driver = c.driver,
				 .limit = c.limit,
				 .timeout_ns = c.timeout_ns > 0 ? c.timeout_ns
								: TIMEOUT_NS,
				 .ticket_wait_ns = TIMEOUT_NS,
				 .tickets = c.tickets};
	struct addr_name name = {.host = "127.0.0.1"};
	char err[512] = "";

	snprintf(name.port, sizeof(name.port), "%u", st.server.port);
	ck_assert_int_eq(addr_resolve(&want.target, &name, err, sizeof(err)),
			 0);
	want.plain = want.target;
	open_tls(&st, &c);
	st.slot = aligned_alloc(_Alignof(struct shm_slot), sizeof(*st.slot));
	ck_assert_ptr_nonnull(st.slot);
	memset(st.slot, 0, sizeof(*st.slot));
	want.tls = st.tls;
	want.slot = st.slot;
	ck_assert_msg(load_open(&st.load, &want, err, sizeof(err)) == 0, "%s",
		      err);
	return st;
}

static void close_stage(struct stage *st)
{
	load_close(&st->load);
	ctls_close(&st->tls);
	free(st->slot);
	server_stop(&st->server);
}

static uint64_t got(const struct stage *st, enum ctr_id id)
{
	return st->took.ctr[id];
}

static const struct hist_view *times(const struct stage *st, enum hist_id id)
{
	return &st->took.hist[id];
}

static void take(struct stage *st)
{
	report_take(&st->took, st->slot);
	ck_assert_uint_eq(got(st, CTR_ID_conn_started),
			  report_handshakes(&st->took) +
				  report_failed(&st->took) +
				  got(st, CTR_ID_hs_in_progress));
	ck_assert_uint_eq(hist_count(times(st, HIST_ID_request_time)),
			  got(st, CTR_ID_requests));
	ck_assert_uint_eq(st->slot->seq % 2, 0);
}

static void start(struct stage *st, struct load_phase phase)
{
	char err[256] = "";

	if (phase.seats == 0)
		phase.seats = 1;
	ck_assert_msg(load_start(st->load, &phase, err, sizeof(err)) == 0, "%s",
		      err);
}

static void run_to_rest(struct stage *st)
{
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;

	while (!load_idle(st->load)) {
		load_turn(st->load, end);
		ck_assert_uint_lt(clk_now(), end);
	}
	take(st);
	ck_assert_uint_eq(got(st, CTR_ID_hs_in_progress), 0);
	ck_assert_uint_eq(got(st, CTR_ID_conn_open), 0);
}

static void run_until(struct stage *st, enum ctr_id id, uint64_t n)
{
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;

	for (take(st); got(st, id) < n; take(st)) {
		load_turn(st->load, end);
		ck_assert_uint_lt(clk_now(), end);
	}
}

static void run_for(struct stage *st, uint64_t ns)
{
	uint64_t end = clk_now() + ns;

	while (clk_now() < end)
		load_turn(st->load, end);
	take(st);
}

static void run_ready(struct stage *st)
{
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;

	while (!load_ready(st->load)) {
		load_turn(st->load, load_ready_by(st->load));
		ck_assert_uint_lt(clk_now(), end);
	}
	take(st);
}

static void nothing_failed(const struct stage *st)
{
	for (uint32_t i = 0; i < CTR_IDS; i++)
		ck_assert_msg(!ctr_is_failure(&ctr_descs[i]) ||
				      st->took.ctr[i] == 0,
			      "%s: %llu", ctr_descs[i].name,
			      (unsigned long long)st->took.ctr[i]);
}

/* The server counts a little later than the client. */
static void server_has_seen(const _Atomic uint64_t *what, uint64_t n)
{
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;

	while (*what < n && clk_now() < end)
		poll(NULL, 0, 1);
	ck_assert_uint_eq(*what, n);
}

static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};

/* ---- handshakes ---- */

START_TEST(a_mix_is_exact_once_tickets_are_there)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 2, .renews = true},
			   (struct client){.version = versions[_i],
					   .seats = 4,
					   .limit = 204,
					   .tickets = LOAD_TICKETS_WAIT});
	uint64_t begun, done;

	start(&st, (struct load_phase){.handshake = CFG_HANDSHAKE_MIX,
				       .resume = 70,
				       .seats = 4});
	run_ready(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_hs_resumed), 0);
	begun = got(&st, CTR_ID_conn_started);
	done = report_handshakes(&st.took);
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(report_handshakes(&st.took), 204);
	/* Those under way just then may have begun before or after. */
	ck_assert_uint_le(begun - done, 4);
	ck_assert_uint_ge(got(&st, CTR_ID_hs_resumed),
			  (204 - begun) * 70 / 100);
	ck_assert_uint_le(got(&st, CTR_ID_hs_resumed), (204 - done) * 70 / 100);
	ck_assert_uint_eq(got(&st, CTR_ID_hs_refused), 0);
	ck_assert_uint_eq(got(&st, CTR_ID_tickets_offered),
			  got(&st, CTR_ID_hs_resumed));
	server_has_seen(&st.server.seen->resumed, got(&st, CTR_ID_hs_resumed));
	close_stage(&st);
}
END_TEST

START_TEST(refused_tickets_are_offered_and_declined)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 2},
			   (struct client){.version = versions[_i],
					   .seats = 2,
					   .limit = 42,
					   .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.handshake = CFG_HANDSHAKE_REFUSED,
				       .seats = 2});
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_hs_resumed), 0);
	ck_assert_uint_eq(got(&st, CTR_ID_hs_full), 42);
	ck_assert_uint_ge(got(&st, CTR_ID_hs_refused), 40);
	ck_assert_uint_eq(got(&st, CTR_ID_hs_refused),
			  got(&st, CTR_ID_tickets_offered));
	server_has_seen(&st.server.seen->full, 42);
	ck_assert_uint_eq(st.server.seen->resumed, 0);
	close_stage(&st);
}
END_TEST

START_TEST(a_hundred_resume_in_one_chain)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 1, .renews = true},
			   (struct client){.version = versions[_i],
					   .limit = 101,
					   .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.handshake = CFG_HANDSHAKE_RESUMED,
				       .ticket_use = CFG_TICKET_USE_CHAIN});
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_hs_full), 1);
	ck_assert_uint_eq(got(&st, CTR_ID_hs_resumed), 100);
	ck_assert_uint_eq(got(&st, CTR_ID_tickets_received), 101);
	server_has_seen(&st.server.seen->resumed, 100);
	close_stage(&st);
}
END_TEST

/* A full handshake brings one or two tickets, as long as we listen. */
START_TEST(a_pool_uses_each_ticket_once)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 2},
			   (struct client){.version = "TLSv1.3",
					   .limit = 9,
					   .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.handshake = CFG_HANDSHAKE_RESUMED});
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(report_handshakes(&st.took), 9);
	ck_assert_uint_eq(got(&st, CTR_ID_hs_full), 1);
	ck_assert_uint_eq(got(&st, CTR_ID_tickets_offered), 8);
	ck_assert_uint_ge(got(&st, CTR_ID_tickets_received), 1 + 8);
	close_stage(&st);
}
END_TEST

START_TEST(what_was_agreed_on_is_counted)
{
	struct stage st = open_stage(
		(struct server_want){.tickets = 1, .groups = "P-256:X25519"},
		(struct client){.version = versions[_i],
				.group = "P-256",
				.limit = 5,
				.tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){0});
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_group_p256), 5);
	ck_assert_uint_eq(got(&st, CTR_ID_suite_aes256), 5);
	ck_assert_uint_eq(got(&st, CTR_ID_sig_ecdsa_p256), 5);
	ck_assert_uint_eq(got(&st, CTR_ID_signatures), 0);
	ck_assert_uint_gt(got(&st, CTR_ID_hs_bytes_in), 5 * 500);
	ck_assert_uint_le(got(&st, CTR_ID_hs_bytes_in),
			  got(&st, CTR_ID_bytes_in));
	/* All that it sent: it closes without a word. */
	ck_assert_uint_eq(got(&st, CTR_ID_hs_bytes_out),
			  got(&st, CTR_ID_bytes_out));
	close_stage(&st);
}
END_TEST

static void write_key(EVP_PKEY *key, char path[static 64])
{
	int fd = memfd_create("key", 0);
	FILE *f = fdopen(dup(fd), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(
		PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(f);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
}

/* From a file, and from a store by its URI. */
START_TEST(the_clients_signatures_are_counted)
{
	bool resume = _i == 2;
	EVP_PKEY *key = EVP_EC_gen("P-384");
	X509 *cert = server_make_cert(key, "DNS:client");
	char cert_path[64], key_path[64], cert_uri[80], key_uri[80];
	struct stage st;

	server_write_pem(cert, cert_path);
	write_key(key, key_path);
	snprintf(cert_uri, sizeof(cert_uri), "file:%s", cert_path);
	snprintf(key_uri, sizeof(key_uri), "file:%s", key_path);
	st = open_stage(
		(struct server_want){.tickets = 1, .asks_client = true},
		(struct client){.limit = 5,
				.certificate = _i == 1 ? cert_uri : cert_path,
				.key = _i == 1 ? key_uri : key_path,
				.tickets = LOAD_TICKETS_WAIT});
	start(&st,
	      (struct load_phase){.handshake = resume ? CFG_HANDSHAKE_RESUMED
						      : CFG_HANDSHAKE_FULL});
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_hs_full), resume ? 1 : 5);
	ck_assert_uint_eq(got(&st, CTR_ID_signatures), resume ? 1 : 5);
	close_stage(&st);
	X509_free(cert);
	EVP_PKEY_free(key);
}
END_TEST

static const char *const full13[] = {
	"out handshake ClientHello",	    "in handshake ServerHello",
	"in handshake EncryptedExtensions", "in handshake Certificate",
	"in handshake CertificateVerify",   "in handshake Finished",
	"out handshake Finished",	    "in handshake NewSessionTicket",
};
static const char *const resumed13[] = {
	"out handshake ClientHello",	    "in handshake ServerHello",
	"in handshake EncryptedExtensions", "in handshake Finished",
	"out handshake Finished",	    "in handshake NewSessionTicket",
};

/* Takes the lines of one handshake; those of `want` come in that order, beside
 * change_cipher_spec records. The sum of the lengths. */
static size_t take_records(struct stage *st, const char *kind,
			   const char *const *want, size_t n)
{
	char note[LOAD_NOTE_MAX], says[LOAD_NOTE_MAX];
	size_t sum = 0, length;

	for (size_t i = 0; i < n;) {
		ck_assert(load_note(st->load, note));
		snprintf(says, sizeof(says), "record %s %s ", kind, want[i]);
		ck_assert_int_eq(sscanf(strrchr(note, ' '), "%zu", &length), 1);
		ck_assert_uint_gt(length, 0);
		sum += length;
		if (strstr(note, "change_cipher_spec") != NULL)
			ck_assert_uint_eq(length, 1);
		else
			ck_assert_msg(strncmp(note, says, strlen(says)) == 0,
				      "\"%s\", not \"%s\"", note, says);
		i += strstr(note, "change_cipher_spec") == NULL;
	}
	return sum;
}

START_TEST(a_full_and_a_resumed_handshake_are_shown_by_record)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 1},
			   (struct client){.version = "TLSv1.3",
					   .limit = 6,
					   .tickets = LOAD_TICKETS_WAIT});
	char note[LOAD_NOTE_MAX];
	size_t full, resumed;

	start(&st, (struct load_phase){.handshake = CFG_HANDSHAKE_RESUMED,
				       .records = true});
	run_to_rest(&st);
	nothing_failed(&st);
	full = take_records(&st, "full", full13, ARRAY_LEN(full13));
	resumed = take_records(&st, "resumed", resumed13, ARRAY_LEN(resumed13));
	/* The certificate and its signature make the difference. */
	ck_assert_uint_gt(full, resumed);
	ck_assert(!load_note(st.load, note));
	close_stage(&st);
}
END_TEST

START_TEST(records_of_tls_1_2_are_shown_too)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 1},
			   (struct client){.version = "TLSv1.2",
					   .limit = 3,
					   .tickets = LOAD_TICKETS_WAIT});
	static const char *const want[] = {
		"out handshake ClientHello",
		"in handshake ServerHello",
		"in handshake Certificate",
		"in handshake ServerKeyExchange",
		"in handshake ServerHelloDone",
		"out handshake ClientKeyExchange",
		"out handshake Finished",
		"in handshake NewSessionTicket",
		"in handshake Finished",
	};

	start(&st, (struct load_phase){.records = true});
	run_to_rest(&st);
	take_records(&st, "full", want, ARRAY_LEN(want));
	close_stage(&st);
}
END_TEST

/* ---- requests ---- */

START_TEST(requests_are_answered_over_both_transports)
{
	bool plain = _i == 1;
	struct stage st = open_stage(
		(struct server_want){
			.tickets = 1, .http = true, .plain = plain},
		(struct client){.limit = 6, .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.transport = plain ? CFG_TRANSPORT_TCP
							  : CFG_TRANSPORT_TLS,
				       .requests = 7,
				       .body = 30000});
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_requests), 42);
	ck_assert_uint_eq(got(&st, CTR_ID_requests_bad), 0);
	ck_assert_uint_eq(hist_count(times(&st, HIST_ID_first_byte)), 6);
	ck_assert_uint_eq(hist_count(times(&st, HIST_ID_conn_latency)), 6);
	ck_assert_uint_gt(got(&st, CTR_ID_bytes_in), 42 * 30000);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_plain), plain ? 6 : 0);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_started), plain ? 0 : 6);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_connected), 6);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_closed_self), 6);
	server_has_seen(&st.server.seen->requests, 42);
	server_has_seen(&st.server.seen->fin, 6);
	close_stage(&st);
}
END_TEST

START_TEST(kept_connections_end_when_the_load_stops)
{
	bool plain = _i == 1;
	struct stage st = open_stage(
		(struct server_want){.tickets = 1,
				     .http = true,
				     .forks = true,
				     .plain = plain},
		(struct client){.seats = 3, .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.transport = plain ? CFG_TRANSPORT_TCP
							  : CFG_TRANSPORT_TLS,
				       .requests = CFG_UNLIMITED,
				       .think_ns = NS_PER_MS,
				       .seats = 3});
	run_until(&st, CTR_ID_requests, 60);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_connected), 3);
	load_stop(st.load);
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_requests_bad), 0);
	server_has_seen(&st.server.seen->requests, got(&st, CTR_ID_requests));
	server_has_seen(&st.server.seen->fin, 3);
	close_stage(&st);
}
END_TEST

START_TEST(bulk_pulls_large_bodies)
{
	bool plain = _i == 1;
	struct stage st = open_stage(
		(struct server_want){
			.tickets = 1, .http = true, .plain = plain},
		(struct client){.tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.kind = CFG_KIND_BULK,
				       .transport = plain ? CFG_TRANSPORT_TCP
							  : CFG_TRANSPORT_TLS,
				       .requests = CFG_UNLIMITED,
				       .body = 8 << 20});
	/* What is moved shows before an answer is complete. */
	run_until(&st, CTR_ID_bytes_in, 2 << 20);
	ck_assert_uint_eq(got(&st, CTR_ID_requests), 0);
	run_until(&st, CTR_ID_requests, 3);
	load_stop(st.load);
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_ge(got(&st, CTR_ID_requests), 3);
	ck_assert_uint_eq(got(&st, CTR_ID_requests_bad), 0);
	ck_assert_uint_ge(got(&st, CTR_ID_bytes_in),
			  got(&st, CTR_ID_requests) * (8 << 20));
	close_stage(&st);
}
END_TEST

START_TEST(a_server_that_speaks_first_is_heard)
{
	bool plain = _i == 1;
	struct stage st = open_stage(
		(struct server_want){
			.tickets = 1, .speaks_first = true, .plain = plain},
		(struct client){.limit = 5, .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.transport = plain ? CFG_TRANSPORT_TCP
							  : CFG_TRANSPORT_TLS,
				       .speaks_first = CFG_SPEAKS_SERVER});
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(hist_count(times(&st, HIST_ID_first_byte)), 5);
	ck_assert_uint_eq(got(&st, CTR_ID_requests), 0);
	ck_assert_uint_eq(got(&st, CTR_ID_requests_bad), 0);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_closed_self), 5);
	close_stage(&st);
}
END_TEST

static const struct {
	const char *answer;
	uint64_t requests;
} bad_answers[] = {
	{"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 3},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
	{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy", 0},
	{"what?\r\n\r\n", 0},
};

START_TEST(bad_answers_are_counted_and_end_the_connection)
{
	struct stage st = open_stage(
		(struct server_want){.tickets = 1,
				     .http = true,
				     .answer = bad_answers[_i].answer},
		(struct client){.limit = 3, .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.requests = 1});
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_requests), bad_answers[_i].requests);
	ck_assert_uint_eq(got(&st, CTR_ID_requests_bad), 3);
	close_stage(&st);
}
END_TEST

START_TEST(an_answer_that_does_not_come_ends_in_time)
{
	bool plain = _i == 1;
	struct stage st =
		open_stage((struct server_want){.tickets = 1, .plain = plain},
			   (struct client){.limit = 2,
					   .timeout_ns = 1500 * NS_PER_MS,
					   .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.transport = plain ? CFG_TRANSPORT_TCP
							  : CFG_TRANSPORT_TLS,
				       .requests = 1});
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_requests), 0);
	ck_assert_uint_eq(got(&st, CTR_ID_requests_bad), 2);
	close_stage(&st);
}
END_TEST

START_TEST(a_plain_connect_that_fails_is_counted_by_its_cause)
{
	struct stage st = open_stage((struct server_want){.plain = true},
				     (struct client){.limit = 3});

	kill(st.server.pid, SIGKILL);
	waitpid(st.server.pid, NULL, 0);
	st.server.pid = fork();
	if (st.server.pid == 0)
		_exit(0);
	start(&st, (struct load_phase){.transport = CFG_TRANSPORT_TCP});
	run_to_rest(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_failed_connect), 3);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_plain), 3);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_started), 3);
	close_stage(&st);
}
END_TEST

static const struct {
	enum cfg_close close;
	uint64_t fin, reset;
} closes[] = {
	{CFG_CLOSE_FIN, 0, 0},
	{CFG_CLOSE_RST, 0, 4},
	{CFG_CLOSE_NOTIFY, 4, 0},
};

START_TEST(a_connection_ends_as_it_is_to)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 1, .strict = true},
			   (struct client){.version = "TLSv1.3",
					   .limit = 4,
					   .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.close = closes[_i].close});
	run_to_rest(&st);
	nothing_failed(&st);
	server_has_seen(&st.server.seen->full, 4);
	server_has_seen(&st.server.seen->fin, closes[_i].fin);
	server_has_seen(&st.server.seen->not_fin, 4 - closes[_i].fin);
	server_has_seen(&st.server.seen->reset, closes[_i].reset);
	close_stage(&st);
}
END_TEST

/* ---- open loop ---- */

START_TEST(an_open_loop_keeps_its_rate)
{
	struct stage st =
		open_stage((struct server_want){.plain = true},
			   (struct client){.drivers = 2, .driver = 1});
	uint64_t due;

	start(&st,
	      (struct load_phase){.transport = CFG_TRANSPORT_TCP,
				  .rate = 400000,
				  .arrivals = _i == 0 ? CFG_ARRIVALS_CONSTANT
						      : CFG_ARRIVALS_POISSON,
				  .most = 200});
	run_for(&st, NS_PER_S);
	load_stop(st.load);
	run_to_rest(&st);
	nothing_failed(&st);
	/* Half of 400/s are this driver's; a random number spreads. */
	due = got(&st, CTR_ID_arrivals);
	ck_assert_uint_ge(due, _i == 0 ? 200 : 140);
	ck_assert_uint_le(due, _i == 0 ? 220 : 270);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_plain), due);
	ck_assert_uint_eq(hist_count(times(&st, HIST_ID_conn_latency)), due);
	close_stage(&st);
}
END_TEST

/* Stops the server from 1 s to 2 s of a run of 4 s. */
static void run_with_a_stop(struct stage *st)
{
	run_for(st, NS_PER_S);
	kill(st->server.pid, SIGSTOP);
	run_for(st, NS_PER_S);
	kill(st->server.pid, SIGCONT);
	run_for(st, 2 * NS_PER_S);
	load_stop(st->load);
	run_to_rest(st);
}

START_TEST(a_stopped_server_shows_in_the_open_loop_only)
{
	bool open = _i == 0;
	struct stage st =
		open_stage((struct server_want){.plain = true, .http = true},
			   (struct client){0});
	const struct hist_view *latency = times(&st, HIST_ID_conn_latency);

	start(&st, (struct load_phase){.transport = CFG_TRANSPORT_TCP,
				       .requests = 1,
				       .think_ns = 0,
				       .rate = open ? 100000 : 0,
				       .most = 2000});
	run_with_a_stop(&st);
	nothing_failed(&st);
	ck_assert_uint_gt(hist_count(latency), 200);
	ck_assert_uint_lt(hist_percentile(latency, 50), 100 * NS_PER_MS);
	if (open)
		ck_assert_uint_ge(hist_percentile(latency, 99),
				  900 * NS_PER_MS);
	else
		ck_assert_uint_lt(hist_percentile(latency, 99),
				  900 * NS_PER_MS);
	close_stage(&st);
}
END_TEST

START_TEST(arrivals_without_a_seat_wait_and_are_late)
{
	struct stage st =
		open_stage((struct server_want){.plain = true, .http = true},
			   (struct client){.limit = 40});
	const struct hist_view *latency = times(&st, HIST_ID_conn_latency);

	kill(st.server.pid, SIGSTOP);
	start(&st, (struct load_phase){.transport = CFG_TRANSPORT_TCP,
				       .requests = 1,
				       .rate = 100000,
				       .most = 5});
	run_until(&st, CTR_ID_arrivals, 40);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_plain), 5);
	kill(st.server.pid, SIGCONT);
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_arrivals), 40);
	ck_assert_uint_ge(got(&st, CTR_ID_arrivals_late), 35);
	ck_assert_uint_eq(hist_count(latency), 40);
	/* The first was due at the start, the last 390 ms later. */
	ck_assert_uint_ge(hist_percentile(latency, 99), 350 * NS_PER_MS);
	close_stage(&st);
}
END_TEST

START_TEST(an_open_loop_gathers_tickets_first)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 2, .renews = true},
			   (struct client){.seats = 4,
					   .limit = 180,
					   .tickets = LOAD_TICKETS_WAIT});
	uint64_t full;

	start(&st, (struct load_phase){.handshake = CFG_HANDSHAKE_RESUMED,
				       .rate = 100000,
				       .seats = 4,
				       .most = 100});
	run_ready(&st);
	full = got(&st, CTR_ID_hs_full);
	ck_assert_uint_ge(full, 4);
	ck_assert_uint_le(got(&st, CTR_ID_arrivals), 1); /* due at once */
	run_until(&st, CTR_ID_conn_started, 180);
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(report_handshakes(&st.took), 180);
	ck_assert_uint_gt(got(&st, CTR_ID_arrivals), 0);
	ck_assert_uint_eq(hist_count(times(&st, HIST_ID_conn_latency)),
			  got(&st, CTR_ID_arrivals));
	close_stage(&st);
}
END_TEST

/* ---- kinds ---- */

START_TEST(a_burst_begins_at_one_instant_again_and_again)
{
	struct stage st =
		open_stage((struct server_want){.plain = true, .http = true},
			   (struct client){.seats = 20});
	unsigned n, slow, failed, notes = 0;
	unsigned long long max;
	char note[LOAD_NOTE_MAX];

	start(&st, (struct load_phase){.kind = CFG_KIND_BURST,
				       .transport = CFG_TRANSPORT_TCP,
				       .requests = 1,
				       .seats = 20,
				       .every_ns = 100 * NS_PER_MS});
	run_until(&st, CTR_ID_requests, 60);
	load_stop(st.load);
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_plain) % 20, 0);
	while (load_note(st.load, note)) {
		ck_assert_int_eq(sscanf(note, "burst %u %llu %u %u", &n, &max,
					&slow, &failed),
				 4);
		ck_assert_uint_eq(n, 20);
		ck_assert_uint_gt(max, 0);
		ck_assert_uint_eq(failed, 0);
		notes++;
	}
	ck_assert_uint_eq(notes, got(&st, CTR_ID_conn_plain) / 20);
	close_stage(&st);
}
END_TEST

START_TEST(idle_connections_are_held_until_the_stop)
{
	bool plain = _i == 1;
	struct stage st = open_stage(
		(struct server_want){
			.tickets = 1, .forks = true, .plain = plain},
		(struct client){.seats = 24, .tickets = LOAD_TICKETS_WAIT});

	start(&st, (struct load_phase){.kind = CFG_KIND_IDLE,
				       .transport = plain ? CFG_TRANSPORT_TCP
							  : CFG_TRANSPORT_TLS,
				       .seats = 24});
	ck_assert(!load_primed(st.load));
	run_ready(&st);
	ck_assert(load_primed(st.load));
	ck_assert_uint_eq(got(&st, CTR_ID_conn_open), 24);
	run_for(&st, 200 * NS_PER_MS);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_open), 24);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_connected), 24);
	load_stop(st.load);
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_eq(got(&st, CTR_ID_conn_closed_self), 24);
	close_stage(&st);
}
END_TEST

START_TEST(an_idle_connection_that_the_server_ends_is_opened_again)
{
	struct stage st =
		open_stage((struct server_want){.plain = true, .closes = true},
			   (struct client){.seats = 2});

	start(&st, (struct load_phase){.kind = CFG_KIND_IDLE,
				       .transport = CFG_TRANSPORT_TCP,
				       .seats = 2});
	run_until(&st, CTR_ID_conn_closed_peer, 6);
	load_stop(st.load);
	run_to_rest(&st);
	nothing_failed(&st);
	ck_assert_uint_ge(got(&st, CTR_ID_conn_plain), 6);
	close_stage(&st);
}
END_TEST

/* A server that is stopped breaks the bound: the ramp goes back and stays. */
START_TEST(a_ramp_rises_to_its_bound)
{
	struct stage st =
		open_stage((struct server_want){.plain = true, .http = true},
			   (struct client){0});
	char note[LOAD_NOTE_MAX], rate[32], verdict[8];
	unsigned long long p99;
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;
	int rising = 0;
	bool over = false;

	start(&st, (struct load_phase){.kind = CFG_KIND_RAMP,
				       .transport = CFG_TRANSPORT_TCP,
				       .requests = 1,
				       .from = 20000,
				       .to = 400000,
				       .step = 20000,
				       .step_time_ns = 250 * NS_PER_MS,
				       .p99_ns = 500 * NS_PER_MS,
				       .most = 2000});
	while (!over && clk_now() < end) {
		load_turn(st.load, end);
		if (!load_note(st.load, note))
			continue;
		ck_assert_int_eq(
			sscanf(note, "ramp %31s %llu %7s", rate, &p99, verdict),
			3);
		if (strcmp(verdict, "ok") == 0 && ++rising == 2)
			kill(st.server.pid, SIGSTOP);
		if (rising == 2 && strcmp(verdict, "ok") != 0) {
			kill(st.server.pid, SIGCONT);
			over = true;
		}
	}
	ck_assert(over);
	ck_assert_str_eq(rate, "60/s");
	while (!load_note(st.load, note) && clk_now() < end)
		load_turn(st.load, end);
	/* back to the last that was kept */
	ck_assert_int_eq(strncmp(note, "ramp 40/s ", 10), 0);
	load_stop(st.load);
	run_to_rest(&st);
	close_stage(&st);
}
END_TEST

static const struct {
	struct load_phase phase;
	const char *says;
} bad_phases[] = {
	{{.speaks_first = CFG_SPEAKS_SERVER, .requests = 1}, "speaks_first"},
	{{.handshake = CFG_HANDSHAKE_RESUMED,
	  .ticket_use = CFG_TICKET_USE_CHAIN,
	  .rate = 1000},
	 "chain"},
	{{.kind = CFG_KIND_RAMP}, "ramp"},
	{{.kind = CFG_KIND_BURST}, "burst"},
};

START_TEST(a_phase_that_no_load_can_do_is_refused)
{
	struct stage st = open_stage((struct server_want){.plain = true},
				     (struct client){0});
	char err[256] = "";

	ck_assert_int_eq(
		load_start(st.load, &bad_phases[_i].phase, err, sizeof(err)),
		-EINVAL);
	ck_assert_msg(strstr(err, bad_phases[_i].says) != NULL, "%s", err);
	ck_assert(load_idle(st.load));
	close_stage(&st);
}
END_TEST

static const struct {
	const char *certificate, *key, *sigalg, *alpn, *says;
} bad_wants[] = {
	{"/dev/null", NULL, NULL, NULL, "certificate: /dev/null"},
	{NULL, "/dev/null", NULL, NULL, "certificate is missing"},
	{"none:1", NULL, NULL, NULL, "certificate: none:1"},
	{NULL, NULL, "no-such", NULL, "sigalgs: no-such"},
	{NULL, NULL, NULL, "", "alpn: "},
};

START_TEST(credentials_that_are_not_there_are_refused_by_name)
{
	struct ctls_want want = {
		.name = "n",
		.insecure = true,
		.certificate = bad_wants[_i].certificate,
		.key = bad_wants[_i].key,
		.sigalgs = list_of(
			(const char **)(uintptr_t)&bad_wants[_i].sigalg),
		.alpn = list_of((const char **)(uintptr_t)&bad_wants[_i].alpn)};
	struct ctls *tls = NULL;
	char err[512] = "";

	ck_assert_int_eq(ctls_open(&tls, &want, err, sizeof(err)), -EINVAL);
	ck_assert_ptr_null(tls);
	ck_assert_msg(strstr(err, bad_wants[_i].says) != NULL, "%s", err);
	ck_assert_uint_eq(ERR_peek_error(), 0);
}
END_TEST

START_TEST(a_provider_that_is_not_there_is_refused_by_name)
{
	char *names[] = {(char *)(uintptr_t) "no-such-provider"};
	struct ctls_want want = {
		.name = "n", .insecure = true, .providers = {names, 1}};
	struct ctls *tls = NULL;
	char err[512] = "";

	ck_assert_int_eq(ctls_open(&tls, &want, err, sizeof(err)), -EINVAL);
	ck_assert_msg(strstr(err, "no-such-provider") != NULL, "%s", err);
	names[0] = (char *)(uintptr_t) "default";
	ck_assert_int_eq(ctls_open(&tls, &want, err, sizeof(err)), 0);
	ctls_close(&tls);
}
END_TEST

static void add_works(TCase *t)
{
	tcase_add_loop_test(t, a_mix_is_exact_once_tickets_are_there, 0, 2);
	tcase_add_loop_test(t, refused_tickets_are_offered_and_declined, 0, 2);
	tcase_add_loop_test(t, a_hundred_resume_in_one_chain, 0, 2);
	tcase_add_test(t, a_pool_uses_each_ticket_once);
	tcase_add_loop_test(t, what_was_agreed_on_is_counted, 0, 2);
	tcase_add_loop_test(t, the_clients_signatures_are_counted, 0, 3);
	tcase_add_test(t, a_full_and_a_resumed_handshake_are_shown_by_record);
	tcase_add_test(t, records_of_tls_1_2_are_shown_too);
	tcase_add_loop_test(t, requests_are_answered_over_both_transports, 0,
			    2);
	tcase_add_loop_test(t, kept_connections_end_when_the_load_stops, 0, 2);
	tcase_add_loop_test(t, bulk_pulls_large_bodies, 0, 2);
	tcase_add_loop_test(t, a_server_that_speaks_first_is_heard, 0, 2);
	tcase_add_loop_test(t, a_connection_ends_as_it_is_to, 0,
			    ARRAY_LEN(closes));
	tcase_add_loop_test(t, an_open_loop_keeps_its_rate, 0, 2);
	tcase_add_test(t, an_open_loop_gathers_tickets_first);
	tcase_add_test(t, a_burst_begins_at_one_instant_again_and_again);
	tcase_add_loop_test(t, idle_connections_are_held_until_the_stop, 0, 2);
	tcase_add_test(t, a_ramp_rises_to_its_bound);
}

static void add_limits(TCase *t)
{
	tcase_add_loop_test(t, an_answer_that_does_not_come_ends_in_time, 0, 2);
	tcase_add_loop_test(t, a_stopped_server_shows_in_the_open_loop_only, 0,
			    2);
	tcase_add_test(t, arrivals_without_a_seat_wait_and_are_late);
	tcase_add_test(t,
		       an_idle_connection_that_the_server_ends_is_opened_again);
}

static void add_refuses(TCase *t)
{
	tcase_add_loop_test(t, bad_answers_are_counted_and_end_the_connection,
			    0, ARRAY_LEN(bad_answers));
	tcase_add_test(t, a_plain_connect_that_fails_is_counted_by_its_cause);
	tcase_add_loop_test(t, a_phase_that_no_load_can_do_is_refused, 0,
			    ARRAY_LEN(bad_phases));
	tcase_add_loop_test(t,
			    credentials_that_are_not_there_are_refused_by_name,
			    0, ARRAY_LEN(bad_wants));
	tcase_add_test(t, a_provider_that_is_not_there_is_refused_by_name);
}

int main(void)
{
	Suite *s = suite_create("tdrive_tls_load");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	add_works(works);
	add_limits(limits);
	add_refuses(refuses);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	tcase_set_timeout(works, 2 * SECONDS_AT_MOST);
	tcase_set_timeout(limits, 2 * SECONDS_AT_MOST);
	tcase_set_timeout(refuses, 2 * SECONDS_AT_MOST);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
