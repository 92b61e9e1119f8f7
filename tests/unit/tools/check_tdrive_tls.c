/* SPDX-License-Identifier: MIT */
/* The load against real TLS servers, good and bad, on loopback. */
#include "tests/unit/tools/tdrive_tls_server.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "tools/tdrive_load.h"
#include "tools/tdrive_report.h"
#include "tools/tdrive_tls.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

/* Room for valgrind on a busy machine; a test that hangs still fails. */
#define SECONDS_AT_MOST 60
#define TIMEOUT_NS	(20 * NS_PER_S)

/* One client: what it is to do, and what it holds. */
struct run {
	/* set by the test, 0 or NULL: default */
	const char *version; /* TLSv1.2 or TLSv1.3, or both */
	const char *name;
	const char *ca_path;
	uint32_t seats;
	uint64_t limit;
	uint64_t timeout_ns, ticket_wait_ns;
	enum load_tickets tickets;
	bool ipv6;
	/* made */
	struct ctls *tls;
	struct load *load;
	struct shm_slot *slot;
	struct report_take took;
};

static struct shm_slot *new_slot(void)
{
	struct shm_slot *slot =
		aligned_alloc(_Alignof(struct shm_slot), sizeof(*slot));

	ck_assert_ptr_nonnull(slot);
	memset(slot, 0, sizeof(*slot));
	return slot;
}

static void run_open_tls(struct run *r)
{
	char *item = (char *)(uintptr_t)r->version;
	struct ctls_want want = {
		.ca_path = r->ca_path,
		.name = r->name != NULL ? r->name : "localhost",
	};
	char err[512] = "";

	if (item != NULL)
		want.versions = (struct cfg_list){&item, 1};
	ck_assert_msg(ctls_open(&r->tls, &want, err, sizeof(err)) == 0, "%s",
		      err);
}

static void run_open(struct run *r, uint16_t port)
{
	struct load_want want = {
		.seats = r->seats > 0 ? r->seats : 1,
		.limit = r->limit,
		.timeout_ns = r->timeout_ns > 0 ? r->timeout_ns : TIMEOUT_NS,
		.ticket_wait_ns =
			r->ticket_wait_ns > 0 ? r->ticket_wait_ns : TIMEOUT_NS,
		.tickets = r->tickets,
	};
	struct addr_name name = {.host = "127.0.0.1"};
	char err[512] = "";

	if (r->ipv6)
		strcpy(name.host, "::1");
	snprintf(name.port, sizeof(name.port), "%u", port);
	ck_assert_int_eq(addr_resolve(&want.target, &name, err, sizeof(err)),
			 0);
	run_open_tls(r);
	r->slot = new_slot();
	want.tls = r->tls;
	want.slot = r->slot;
	ck_assert_msg(load_open(&r->load, &want, err, sizeof(err)) == 0, "%s",
		      err);
}

static void run_take(struct run *r)
{
	const uint64_t *c = r->took.ctr;

	report_take(&r->took, r->slot);
	ck_assert_uint_eq(c[CTR_ID_conn_started],
			  report_handshakes(&r->took) +
				  report_failed(&r->took) +
				  c[CTR_ID_hs_in_progress]);
	ck_assert_uint_eq(
		report_handshakes(&r->took),
		c[CTR_ID_conn_closed_self] + c[CTR_ID_conn_closed_peer] +
			c[CTR_ID_conn_reset] + c[CTR_ID_conn_tls_error] +
			c[CTR_ID_conn_open] - c[CTR_ID_hs_in_progress]);
	ck_assert_uint_eq(hist_count(&r->took.hist[HIST_ID_hs_full_time]),
			  c[CTR_ID_hs_full]);
	ck_assert_uint_eq(hist_count(&r->took.hist[HIST_ID_hs_resumed_cpu]),
			  c[CTR_ID_hs_resumed]);
	ck_assert_uint_eq(hist_count(&r->took.hist[HIST_ID_connect_time]),
			  c[CTR_ID_conn_connected]);
	ck_assert_uint_eq(r->slot->seq % 2, 0);
}

/* Turns until all seats rest; the identity holds after each turn. */
static void run_to_rest(struct run *r)
{
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;

	while (!load_idle(r->load)) {
		load_turn(r->load, end);
		run_take(r);
		ck_assert_uint_lt(clk_now(), end);
	}
	ck_assert_uint_eq(r->took.ctr[CTR_ID_hs_in_progress], 0);
	ck_assert_uint_eq(r->took.ctr[CTR_ID_conn_open], 0);
}

static void run_close(struct run *r)
{
	load_close(&r->load);
	ctls_close(&r->tls);
	free(r->slot);
}

/* A closed loop on all seats. */
static void run_start(struct run *r, enum cfg_handshake handshake)
{
	struct load_phase phase = {.handshake = handshake,
				   .seats = r->seats > 0 ? r->seats : 1};
	char err[256] = "";

	ck_assert_msg(load_start(r->load, &phase, err, sizeof(err)) == 0, "%s",
		      err);
}

/* `limit` connections from start to rest. */
static void run_all(struct run *r, uint16_t port, enum cfg_handshake handshake)
{
	run_open(r, port);
	run_start(r, handshake);
	run_to_rest(r);
}

/* Fails by the name of the first failure that was counted. */
static void nothing_failed(const struct run *r)
{
	for (uint32_t i = 0; i < CTR_IDS; i++)
		ck_assert_msg(
			!ctr_is_failure(&ctr_descs[i]) || r->took.ctr[i] == 0,
			"%s: %" PRIu64, ctr_descs[i].name, r->took.ctr[i]);
}

static uint64_t got(const struct run *r, enum ctr_id id)
{
	return r->took.ctr[id];
}

/* The server counts a little later than the client. */
static void server_has_seen(const _Atomic uint64_t *what, uint64_t n)
{
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;

	while (*what < n && clk_now() < end)
		sched_yield();
	ck_assert_uint_eq(*what, n);
}

/* ---- works ---- */

static const struct {
	const char *name;
	int version;
} versions[] = {{"TLSv1.2", TLS1_2_VERSION}, {"TLSv1.3", TLS1_3_VERSION}};

START_TEST(fifty_full_handshakes_end_by_fin)
{
	struct server s = server_start((struct server_want){.tickets = 1});
	struct run r = {.version = versions[_i].name,
			.ca_path = s.ca_path,
			.limit = 50,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 50);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_resumed), 0);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_tls12), _i == 0 ? 50 : 0);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_tls13), _i == 1 ? 50 : 0);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_offered), 0);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_received), 50);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_missed), 0);
	ck_assert_uint_eq(got(&r, CTR_ID_conn_closed_self), 50);
	ck_assert_uint_gt(got(&r, CTR_ID_bytes_in), 50 * 500);
	ck_assert_uint_gt(got(&r, CTR_ID_bytes_out), 50 * 200);
	ck_assert_uint_gt(got(&r, CTR_ID_crypto_full_ns), 0);
	server_has_seen(&s.seen->full, 50);
	server_has_seen(&s.seen->fin, 50);
	ck_assert_uint_eq(s.seen->not_fin, 0);
	ck_assert_uint_eq(s.seen->failed, 0);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(all_but_the_first_of_fifty_resume)
{
	struct server s = server_start((struct server_want){.tickets = 1});
	struct run r = {.version = versions[_i].name,
			.ca_path = s.ca_path,
			.limit = 50,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_RESUMED);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 1);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_resumed), 49);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_offered), 49);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_missed), 0);
	/* TLS 1.2 keeps its session, TLS 1.3 uses each ticket once. */
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_received), _i == 0 ? 1 : 50);
	server_has_seen(&s.seen->resumed, 49);
	server_has_seen(&s.seen->full, 1);
	server_has_seen(&s.seen->fin, 50);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(renewed_tickets_replace_the_old)
{
	struct server s = server_start(
		(struct server_want){.tickets = 2, .renews = true});
	struct run r = {.version = versions[_i].name,
			.ca_path = s.ca_path,
			.limit = 20,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_RESUMED);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 1);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_resumed), 19);
	ck_assert_uint_ge(got(&r, CTR_ID_tickets_received), 20);
	server_has_seen(&s.seen->resumed, 19);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(many_seats_share_the_limit)
{
	struct server s = server_start((struct server_want){.tickets = 1});
	struct run r = {.ca_path = s.ca_path,
			.seats = 16,
			.limit = 200,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_RESUMED);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_conn_started), 200);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 16);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_resumed), 184);
	ck_assert(load_primed(r.load));
	server_has_seen(&s.seen->resumed, 184);
	run_close(&r);
	server_stop(&s);
}
END_TEST

/* Turns until `done` or the time is up. */
static void run_until(struct run *r, bool (*done)(const struct run *r))
{
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;

	while (!done(r)) {
		load_turn(r->load, end);
		run_take(r);
		ck_assert_uint_lt(clk_now(), end);
	}
}

static bool is_primed(const struct run *r)
{
	return load_primed(r->load);
}

static bool has_thirty(const struct run *r)
{
	return report_handshakes(&r->took) >= 30;
}

START_TEST(phases_follow_each_other)
{
	struct server s = server_start((struct server_want){.tickets = 2});
	struct run r = {
		.ca_path = s.ca_path, .seats = 4, .tickets = LOAD_TICKETS_WAIT};
	uint64_t full;

	run_open(&r, s.port);
	ck_assert(load_idle(r.load));
	run_start(&r, CFG_HANDSHAKE_FULL);
	run_until(&r, has_thirty);
	ck_assert(!load_primed(r.load)); /* keeps nothing in a full phase */
	load_stop(r.load);
	run_to_rest(&r);
	full = got(&r, CTR_ID_hs_full);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_resumed), 0);

	run_start(&r, CFG_HANDSHAKE_RESUMED);
	run_until(&r, is_primed);
	load_stop(r.load);
	run_to_rest(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), full + 4);
	ck_assert_uint_eq(report_failed(&r.took), 0);
	ck_assert_uint_gt(r.slot->heartbeat_ns, 0);
	ck_assert_uint_gt(got(&r, CTR_ID_cpu_ns), 0);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(ipv6_loopback_and_an_address_as_name)
{
	struct server s =
		server_start((struct server_want){.ipv6 = true, .tickets = 1});
	struct run r = {.ca_path = s.ca_path,
			.ipv6 = true,
			.name = "::1",
			.limit = 5,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 5);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(a_watched_descriptor_is_reported)
{
	struct run r = {.ca_path = NULL};
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;
	uint32_t ready = 0;
	int fd[2];

	ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
	run_open(&r, 1);
	load_watch(r.load, fd[0]);
	ck_assert_uint_eq(load_turn(r.load, 0), 0);
	for (int i = 0; i < 2; i++) { /* and once more: it is armed again */
		char c;

		ck_assert_int_eq(write(fd[1], "x", 1), 1);
		while ((ready = load_turn(r.load, end)) == 0)
			ck_assert_uint_lt(clk_now(), end);
		ck_assert_uint_eq(ready, 1);
		ck_assert_int_eq(read(fd[0], &c, 1), 1);
	}
	run_close(&r);
}
END_TEST

/* ---- limits ---- */

START_TEST(a_chain_longer_than_the_buffer_is_read)
{
	struct server s = server_start(
		(struct server_want){.tickets = 1, .long_chain = true});
	struct run r = {.version = versions[_i].name,
			.ca_path = s.ca_path,
			.limit = 5,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 5);
	ck_assert_uint_gt(got(&r, CTR_ID_bytes_in), 5 * 8000);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(missing_tickets_are_counted_and_come_out_full)
{
	struct server s = server_start((struct server_want){.tickets = 0});
	struct run r = {.version = "TLSv1.3",
			.ca_path = s.ca_path,
			.limit = 3,
			.ticket_wait_ns = 20 * NS_PER_MS,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_RESUMED);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 3);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_missed), 3);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_received), 0);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_offered), 0);
	ck_assert(!load_primed(r.load));
	server_has_seen(&s.seen->fin, 3);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(a_learning_load_stops_to_wait_for_tickets)
{
	struct server s = server_start((struct server_want){.tickets = 0});
	struct run r = {.version = "TLSv1.3",
			.ca_path = s.ca_path,
			.limit = 100,
			.ticket_wait_ns = 20 * NS_PER_MS,
			.tickets = LOAD_TICKETS_LEARN};

	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 100);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_missed), 1);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(without_tickets_a_connection_closes_at_once)
{
	struct server s =
		server_start((struct server_want){.no_tickets = true});
	struct run r = {.version = versions[_i].name,
			.ca_path = s.ca_path,
			.limit = 20,
			.tickets = LOAD_TICKETS_NONE};

	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 20);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_missed), 0);
	server_has_seen(&s.seen->fin, 20);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(refused_tickets_come_out_full)
{
	struct server s = server_start(
		(struct server_want){.tickets = 1, .forgets = true});
	struct run r = {.version = versions[_i].name,
			.ca_path = s.ca_path,
			.limit = 10,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_RESUMED);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 10);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_resumed), 0);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_offered), 9);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(data_that_comes_with_the_tickets_is_read_away)
{
	struct server s = server_start((struct server_want){
		.tickets = 1, .speaks_first = true, .closes = true});
	struct run r = {.version = "TLSv1.3",
			.ca_path = s.ca_path,
			.limit = 10,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_RESUMED);
	nothing_failed(&r);
	ck_assert_uint_eq(report_handshakes(&r.took), 10);
	ck_assert_uint_eq(got(&r, CTR_ID_hs_resumed), 9);
	ck_assert_uint_eq(got(&r, CTR_ID_conn_tls_error), 0);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(a_peer_that_closes_without_ticket_is_missed)
{
	struct server s = server_start(
		(struct server_want){.tickets = 0, .closes = true});
	struct run r = {.version = "TLSv1.3",
			.ca_path = s.ca_path,
			.limit = 5,
			.ticket_wait_ns = 10 * NS_PER_S,
			.tickets = LOAD_TICKETS_WAIT};

	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	nothing_failed(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_conn_closed_peer), 5);
	ck_assert_uint_eq(got(&r, CTR_ID_tickets_missed), 5);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(a_mute_server_times_out)
{
	uint16_t port;
	int fd = server_listen(false, 64, &port);
	struct run r = {.seats = 4, .limit = 8, .timeout_ns = 100 * NS_PER_MS};
	uint64_t start;

	run_open(&r, port);
	start = clk_now();
	run_start(&r, CFG_HANDSHAKE_FULL);
	run_to_rest(&r);
	ck_assert_uint_eq(got(&r, CTR_ID_failed_timeout), 8);
	ck_assert_uint_eq(got(&r, CTR_ID_conn_connected), 8);
	ck_assert_uint_eq(report_handshakes(&r.took), 0);
	/* two rounds of 100 ms; bounded above with room for a busy machine */
	ck_assert_uint_ge(clk_now() - start, 200 * NS_PER_MS);
	ck_assert_uint_lt(clk_now() - start, 5 * NS_PER_S);
	run_close(&r);
	close(fd);
}
END_TEST

START_TEST(a_full_listen_queue_times_out_as_connect)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint16_t port;
	int fd = server_listen(false, 0, &port), first;
	struct run r = {.seats = 2, .limit = 2, .timeout_ns = 100 * NS_PER_MS};

	/* A queue of 0 holds one; after it SYNs get no answer. */
	sa.sin_port = htons(port);
	first = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(first, (struct sockaddr *)&sa, sizeof(sa)), 0);
	run_all(&r, port, CFG_HANDSHAKE_FULL);
	ck_assert_uint_eq(got(&r, CTR_ID_failed_connect), 2);
	ck_assert_uint_eq(got(&r, CTR_ID_conn_connected), 0);
	run_close(&r);
	close(first);
	close(fd);
}
END_TEST

START_TEST(stop_ends_what_hangs_within_the_timeout)
{
	uint16_t port;
	int fd = server_listen(false, 64, &port);
	struct run r = {.seats = 8, .timeout_ns = 200 * NS_PER_MS};
	uint64_t start;

	run_open(&r, port);
	run_start(&r, CFG_HANDSHAKE_FULL);
	load_turn(r.load, clk_now() + 50 * NS_PER_MS);
	start = clk_now();
	load_stop(r.load);
	run_to_rest(&r);
	ck_assert_uint_lt(clk_now() - start, 5 * NS_PER_S);
	ck_assert_uint_eq(got(&r, CTR_ID_conn_started), 8);
	ck_assert_uint_eq(got(&r, CTR_ID_failed_timeout) +
				  got(&r, CTR_ID_failed_drain),
			  8);
	run_close(&r);
	close(fd);
}
END_TEST

START_TEST(closing_in_the_middle_leaks_nothing)
{
	struct server s = server_start((struct server_want){.tickets = 1});
	struct run r = {
		.ca_path = s.ca_path, .seats = 8, .tickets = LOAD_TICKETS_WAIT};

	run_open(&r, s.port);
	run_start(&r, CFG_HANDSHAKE_RESUMED);
	run_until(&r, has_thirty);
	run_close(&r); /* the sanitizer and valgrind look */
	server_stop(&s);
}
END_TEST

START_TEST(no_seats_are_primed_and_idle)
{
	struct load_phase phase = {.handshake = CFG_HANDSHAKE_RESUMED};
	struct load_want want = {.target = {.len = 0}};
	struct run r = {.ca_path = NULL};
	struct load *load;
	char err[256];

	run_open_tls(&r);
	want.slot = new_slot();
	want.tls = r.tls;
	ck_assert_int_eq(load_open(&load, &want, err, sizeof(err)), 0);
	ck_assert_int_eq(load_start(load, &phase, err, sizeof(err)), 0);
	ck_assert(load_primed(load));
	load_stop(load);
	ck_assert(load_idle(load));
	load_close(&load);
	load_close(&load); /* nothing left to do */
	ctls_close(&r.tls);
	free(want.slot);
}
END_TEST

/* ---- refuses ---- */

static const struct {
	enum server_kind kind;
	enum ctr_id id;
} bad_servers[] = {
	{SERVER_CLOSES, CTR_ID_failed_eof},
	{SERVER_RESETS, CTR_ID_failed_reset},
	{SERVER_GARBAGE, CTR_ID_failed_protocol},
	{SERVER_ALERTS, CTR_ID_failed_alert},
};

START_TEST(a_bad_server_fails_by_its_cause)
{
	struct server s = server_start(
		(struct server_want){.kind = bad_servers[_i].kind});
	struct run r = {.ca_path = s.ca_path, .seats = 2, .limit = 6};

	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	ck_assert_uint_eq(got(&r, bad_servers[_i].id), 6);
	ck_assert_uint_eq(report_failed(&r.took), 6);
	ck_assert_uint_eq(report_handshakes(&r.took), 0);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(a_certificate_of_another_key_does_not_verify)
{
	struct server s = server_start((struct server_want){.tickets = 1});
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *other = server_make_cert(key, SERVER_SANS);
	char path[64];
	struct run r = {.ca_path = path, .limit = 3};

	server_write_pem(other, path);
	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	ck_assert_uint_eq(got(&r, CTR_ID_failed_verify), 3);
	ck_assert_uint_eq(report_failed(&r.took), 3);
	/* It hears why: an alert, and no bare end. */
	server_has_seen(&s.seen->failed, 3);
	run_close(&r);
	server_stop(&s);
	X509_free(other);
	EVP_PKEY_free(key);
}
END_TEST

START_TEST(a_certificate_of_another_name_does_not_verify)
{
	struct server s = server_start((struct server_want){.tickets = 1});
	struct run r = {.ca_path = s.ca_path,
			.name = _i == 0 ? "example.org" : "127.0.0.2",
			.limit = 3};

	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	ck_assert_uint_eq(got(&r, CTR_ID_failed_verify), 3);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(no_version_in_common_is_no_shared)
{
	struct server s = server_start((struct server_want){
		.tickets = 1, .version = versions[1 - _i].version});
	struct run r = {
		.version = versions[_i].name, .ca_path = s.ca_path, .limit = 3};

	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	ck_assert_uint_eq(got(&r, CTR_ID_failed_no_shared), 3);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(a_refused_port_fails_by_connect_and_pauses)
{
	uint16_t port;
	int fd = server_listen(false, 1, &port);
	struct run r = {.limit = 8};
	uint64_t start = clk_now();

	close(fd);
	run_all(&r, port, CFG_HANDSHAKE_FULL);
	ck_assert_uint_eq(got(&r, CTR_ID_failed_connect), 8);
	/* 1 + 2 + 4 + 8 + 16 + 32 + 64 ms of back-off between eight */
	ck_assert_uint_ge(clk_now() - start, 127 * NS_PER_MS);
	run_close(&r);
}
END_TEST

START_TEST(no_descriptor_left_fails_by_its_cause)
{
	struct server s = server_start((struct server_want){.tickets = 1});
	struct run r = {.ca_path = s.ca_path, .seats = 2, .limit = 6};
	struct rlimit limit, none;

	run_open(&r, s.port);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){3, limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	run_start(&r, CFG_HANDSHAKE_FULL);
	run_to_rest(&r);
	/* Back, for what the sanitizer opens at the end. */
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_uint_eq(got(&r, CTR_ID_failed_no_fd), 6);
	ck_assert_uint_eq(report_failed(&r.took), 6);
	run_close(&r);
	server_stop(&s);
}
END_TEST

START_TEST(too_many_seats_for_the_limit_are_refused_with_the_number)
{
	struct rlimit limit;
	struct load_want want = {.slot = new_slot()};
	struct load *load = NULL;
	char err[256] = "", says[64];

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	want.seats = (uint32_t)limit.rlim_max;
	snprintf(says, sizeof(says), "%u connections need %u ", want.seats,
		 want.seats + 32);
	ck_assert_int_eq(load_open(&load, &want, err, sizeof(err)), -EMFILE);
	ck_assert_ptr_null(load);
	ck_assert_msg(strstr(err, says) != NULL, "%s", err);
	free(want.slot);
}
END_TEST

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* A network of our own with two source ports per address. False: refused. */
static bool enter_small_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWNET) != 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	return true;
}

START_TEST(no_port_left_fails_by_its_cause_on_all_addresses)
{
	struct run r = {.limit = 300, .tickets = LOAD_TICKETS_WAIT};
	struct server s;

	if (!enter_small_network()) {
		fputs("not checked here: no network namespace allowed\n",
		      stderr);
		return;
	}
	s = server_start((struct server_want){.tickets = 1});
	write_file("/proc/sys/net/ipv4/ip_local_port_range", "40000 40001");
	write_file("/proc/sys/net/ipv4/tcp_tw_reuse", "0");
	r.ca_path = s.ca_path;
	r.seats = 8;
	run_all(&r, s.port, CFG_HANDSHAKE_FULL);
	/* 64 addresses of two ports each, all in TIME_WAIT after one use */
	ck_assert_uint_eq(got(&r, CTR_ID_hs_full), 128);
	ck_assert_uint_eq(got(&r, CTR_ID_failed_no_port), 172);
	run_close(&r);
	server_stop(&s);
}
END_TEST

static const struct {
	const char *version, *group, *cipher, *name, *ca, *says;
} bad_wants[] = {
	{"TLSv1.1", NULL, NULL, "n", NULL, "versions: TLSv1.1"},
	{NULL, "X25520", NULL, "n", NULL, "groups: X25520"},
	{NULL, NULL, "TLS_NO_SUCH", "n", NULL, "ciphers: TLS_NO_SUCH"},
	{NULL, NULL, "NO-SUCH", "n", NULL, "ciphers: NO-SUCH"},
	{"TLSv1.2", NULL, "TLS_AES_256_GCM_SHA384", "n", NULL, "versions"},
	{NULL, NULL, NULL, "n", "/dev/null/none.pem", "none.pem"},
	{NULL, NULL, NULL, "n", "/dev/null", "/dev/null"},
};

START_TEST(what_the_library_lacks_is_refused_by_name)
{
	char *version = (char *)(uintptr_t)bad_wants[_i].version;
	char *group = (char *)(uintptr_t)bad_wants[_i].group;
	char *cipher = (char *)(uintptr_t)bad_wants[_i].cipher;
	struct ctls_want want = {.versions = {&version, version != NULL},
				 .groups = {&group, group != NULL},
				 .ciphers = {&cipher, cipher != NULL},
				 .name = bad_wants[_i].name,
				 .ca_path = bad_wants[_i].ca};
	struct ctls *ctls = NULL;
	char err[512] = "";

	ck_assert_int_eq(ctls_open(&ctls, &want, err, sizeof(err)), -EINVAL);
	ck_assert_ptr_null(ctls);
	ck_assert_msg(strstr(err, bad_wants[_i].says) != NULL, "\"%s\"", err);
	ck_assert_ptr_nonnull(strstr(err, "OpenSSL"));
	ck_assert_uint_eq(ERR_peek_error(), 0);
}
END_TEST

static void add_works(TCase *t)
{
	tcase_add_loop_test(t, fifty_full_handshakes_end_by_fin, 0, 2);
	tcase_add_loop_test(t, all_but_the_first_of_fifty_resume, 0, 2);
	tcase_add_loop_test(t, renewed_tickets_replace_the_old, 0, 2);
	tcase_add_test(t, many_seats_share_the_limit);
	tcase_add_test(t, phases_follow_each_other);
	tcase_add_test(t, ipv6_loopback_and_an_address_as_name);
	tcase_add_test(t, a_watched_descriptor_is_reported);
}

static void add_limits(TCase *t)
{
	tcase_add_loop_test(t, a_chain_longer_than_the_buffer_is_read, 0, 2);
	tcase_add_test(t, missing_tickets_are_counted_and_come_out_full);
	tcase_add_test(t, a_learning_load_stops_to_wait_for_tickets);
	tcase_add_loop_test(t, without_tickets_a_connection_closes_at_once, 0,
			    2);
	tcase_add_loop_test(t, refused_tickets_come_out_full, 0, 2);
	tcase_add_test(t, data_that_comes_with_the_tickets_is_read_away);
	tcase_add_test(t, a_peer_that_closes_without_ticket_is_missed);
	tcase_add_test(t, a_mute_server_times_out);
	tcase_add_test(t, a_full_listen_queue_times_out_as_connect);
	tcase_add_test(t, stop_ends_what_hangs_within_the_timeout);
	tcase_add_test(t, closing_in_the_middle_leaks_nothing);
	tcase_add_test(t, no_seats_are_primed_and_idle);
}

static void add_refuses(TCase *t)
{
	tcase_add_loop_test(t, a_bad_server_fails_by_its_cause, 0,
			    ARRAY_LEN(bad_servers));
	tcase_add_test(t, a_certificate_of_another_key_does_not_verify);
	tcase_add_loop_test(t, a_certificate_of_another_name_does_not_verify, 0,
			    2);
	tcase_add_loop_test(t, no_version_in_common_is_no_shared, 0, 2);
	tcase_add_test(t, a_refused_port_fails_by_connect_and_pauses);
	tcase_add_test(t, no_descriptor_left_fails_by_its_cause);
	tcase_add_test(
		t, too_many_seats_for_the_limit_are_refused_with_the_number);
	tcase_add_test(t, no_port_left_fails_by_its_cause_on_all_addresses);
	tcase_add_loop_test(t, what_the_library_lacks_is_refused_by_name, 0,
			    ARRAY_LEN(bad_wants));
}

int main(void)
{
	Suite *s = suite_create("tdrive_tls");
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
