/* SPDX-License-Identifier: MIT */
/* The driver's pure parts: no socket, no ring, no TLS. */
#include "tools/tdrive_addr.h"
#include "tools/tdrive_args.h"
#include "tools/tdrive_count.h"
#include "tools/tdrive_phase.h"
#include "tools/tdrive_report.h"
#include "tools/tdrive_seat.h"
#include "tools/tdrive_tmr.h"

#include "shm/base.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- seats ---- */

START_TEST(seat_goes_round_the_loop)
{
	static const enum seat_state round[] = {
		SEAT_CONNECT, SEAT_HANDSHAKE, SEAT_TICKET, SEAT_CLOSE,
		SEAT_CONNECT, SEAT_HANDSHAKE, SEAT_CLOSE,  SEAT_PAUSE,
		SEAT_CONNECT, SEAT_CLOSE,     SEAT_IDLE};
	struct seat seat = {.state = SEAT_IDLE};

	for (size_t i = 0; i < ARRAY_LEN(round); i++) {
		seat_set_state(&seat, round[i]);
		ck_assert_int_eq(seat.state, round[i]);
	}
}
END_TEST

START_TEST(seat_allows_just_the_edges_of_the_table)
{
	static const struct {
		enum seat_state from, to;
	} edges[] = {
#define EDGE(from, to, ...) {SEAT_##from, SEAT_##to},
#include "tools/tdrive_states.def"
	};

	for (int from = 0; from < SEAT_STATES; from++) {
		for (int to = 0; to < SEAT_STATES; to++) {
			bool in_table = false;

			for (size_t i = 0; i < ARRAY_LEN(edges); i++)
				in_table |= (int)edges[i].from == from &&
					    (int)edges[i].to == to;
			ck_assert_int_eq(seat_may((enum seat_state)from,
						  (enum seat_state)to),
					 in_table);
		}
	}
	ck_assert_str_eq(seat_state_name(SEAT_TICKET), "TICKET");
}
END_TEST

START_TEST(seat_aborts_on_a_handshake_without_connect)
{
	struct seat seat = {.state = SEAT_IDLE};

	seat_set_state(&seat, SEAT_HANDSHAKE);
}
END_TEST

START_TEST(seat_pauses_from_1_to_100_ms)
{
	static const uint64_t ms[] = {1, 2, 4, 8, 16, 32, 64, 100, 100, 100};

	for (uint32_t fails = 1; fails <= ARRAY_LEN(ms); fails++)
		ck_assert_uint_eq(seat_pause_ns(seat_pause(fails)),
				  ms[fails - 1] * NS_PER_MS);
	ck_assert_uint_eq(seat_pause_ns(seat_pause(UINT32_MAX)),
			  100 * NS_PER_MS);
}
END_TEST

/* ---- timers ---- */

START_TEST(timers_come_in_the_order_of_setting)
{
	struct tmr_list list;
	struct tmr t[3] = {0};

	tmr_init(&list, 100);
	ck_assert_uint_eq(tmr_due(&list), TMR_NEVER);
	tmr_set(&list, &t[0], 10);
	tmr_set(&list, &t[1], 20);
	tmr_set(&list, &t[2], 30);
	ck_assert_uint_eq(tmr_due(&list), 110);
	ck_assert_ptr_null(tmr_pop(&list, 109));
	ck_assert_ptr_eq(tmr_pop(&list, 120), &t[0]);
	ck_assert_ptr_eq(tmr_pop(&list, 120), &t[1]);
	ck_assert_ptr_null(tmr_pop(&list, 120));
	ck_assert_uint_eq(tmr_due(&list), 130);
}
END_TEST

START_TEST(timer_set_again_goes_to_the_end)
{
	struct tmr_list a, b;
	struct tmr t[2] = {0};

	tmr_init(&a, 100);
	tmr_init(&b, 5);
	tmr_set(&a, &t[0], 0);
	tmr_set(&a, &t[1], 1);
	tmr_set(&a, &t[0], 2);
	ck_assert_uint_eq(tmr_due(&a), 101);
	tmr_set(&b, &t[1], 3); /* moves to another list */
	ck_assert_uint_eq(tmr_due(&a), 102);
	ck_assert_uint_eq(tmr_due(&b), 8);
	tmr_cancel(&t[1]);
	tmr_cancel(&t[1]); /* nothing left to do */
	ck_assert_uint_eq(tmr_due(&b), TMR_NEVER);
}
END_TEST

/* ---- addresses ---- */

static const struct {
	const char *text, *host, *port;
} good_urls[] = {
	{"https://127.0.0.1:8443", "127.0.0.1", "8443"},
	{"https://example.org", "example.org", "443"},
	{"https://example.org/", "example.org", "443"},
	{"https://[::1]:1/", "::1", "1"},
	{"https://[::1]", "::1", "443"},
	{"http://127.0.0.1:80", "127.0.0.1", "80"},
	{"http://localhost", "localhost", "80"},
	{"[fe80::1]:65535", "fe80::1", "65535"},
	{"localhost:443", "localhost", "443"},
};

START_TEST(addr_reads_a_url)
{
	struct addr_name name;
	char err[256];

	ck_assert_int_eq(
		addr_parse(&name, good_urls[_i].text, err, sizeof(err)), 0);
	ck_assert_str_eq(name.host, good_urls[_i].host);
	ck_assert_str_eq(name.port, good_urls[_i].port);
	ck_assert_int_eq(name.plain,
			 strncmp(good_urls[_i].text, "http:", 5) == 0);
}
END_TEST

static const char *const bad_urls[] = {
	"",
	"https://",
	"https://:443",
	"http://",
	"127.0.0.1",
	"https://127.0.0.1:0",
	"https://127.0.0.1:65536",
	"https://127.0.0.1:123456",
	"https://127.0.0.1:",
	"https://127.0.0.1:44x",
	"https://127.0.0.1:443/index.html",
	"https://::1:443",
	"https://[::1:443",
	"https://[::1]443",
	"https://[]:443",
};

START_TEST(addr_refuses_a_wrong_url_with_a_sentence)
{
	struct addr_name name = {.host = "untouched"};
	char err[256] = "";

	ck_assert_int_eq(addr_parse(&name, bad_urls[_i], err, sizeof(err)),
			 -EINVAL);
	ck_assert_str_eq(name.host, "untouched");
	ck_assert_uint_gt(strlen(err), 0);
}
END_TEST

START_TEST(addr_refuses_a_host_that_is_too_long)
{
	char text[400] = "https://", err[256];
	struct addr_name name;

	memset(text + 8, 'a', 300);
	ck_assert_int_eq(addr_parse(&name, text, err, sizeof(err)), -EINVAL);
}
END_TEST

static struct addr_target target(const char *text)
{
	struct addr_target out;
	struct addr_name name;
	char err[256];

	ck_assert_int_eq(addr_parse(&name, text, err, sizeof(err)), 0);
	ck_assert_int_eq(addr_resolve(&out, &name, err, sizeof(err)), 0);
	return out;
}

START_TEST(addr_rotates_on_ipv4_loopback_only)
{
	struct addr_target t = target("127.0.0.1:443");

	ck_assert(addr_rotates(&t));
	t = target("127.9.9.9:443");
	ck_assert(addr_rotates(&t));
	t = target("[::1]:443");
	ck_assert(!addr_rotates(&t));
	t = target("192.0.2.1:443");
	ck_assert(!addr_rotates(&t));
	ck_assert(addr_is_numeric("127.0.0.1"));
	ck_assert(addr_is_numeric("::1"));
	ck_assert(!addr_is_numeric("localhost"));
}
END_TEST

START_TEST(addr_sources_are_64_and_never_the_target)
{
	struct addr_target t = target("127.0.0.1:443");
	bool seen[256] = {false};
	unsigned count = 0;

	for (uint64_t turn = 0; turn < 3 * ADDR_SOURCES; turn++) {
		struct addr_target s = addr_source(&t, 0, turn);
		uint32_t a = ntohl(s.sa.v4.sin_addr.s_addr);

		ck_assert_uint_eq(s.sa.v4.sin_port, 0);
		ck_assert_uint_eq(a >> 8, 0x7f0000);
		ck_assert_uint_ne(a, INADDR_LOOPBACK);
		count += !seen[a & 255];
		seen[a & 255] = true;
	}
	ck_assert_uint_eq(count, ADDR_SOURCES);
}
END_TEST

static uint32_t address(struct addr_target t)
{
	return ntohl(t.sa.v4.sin_addr.s_addr);
}

START_TEST(addr_gives_each_driver_its_own_sources)
{
	struct addr_target t = target("127.1.1.1:443");
	uint32_t last = address(addr_source(&t, 0, ADDR_SOURCES - 1));
	uint32_t first = address(addr_source(&t, 1, 0));
	uint32_t far = address(addr_source(&t, 255, ADDR_SOURCES - 1));

	ck_assert_uint_eq(last + 1, first);
	ck_assert_uint_eq(far, 0x7f004000);
}
END_TEST

START_TEST(addr_shares_add_up_and_the_first_take_the_rest)
{
	for (uint32_t drivers = 1; drivers <= 7; drivers++) {
		for (uint64_t total = 1; total <= 40; total++) {
			uint64_t sum = 0;
			uint32_t before = UINT32_MAX;

			for (uint32_t i = 0; i < drivers; i++) {
				uint32_t s = addr_share(total, drivers, i);

				ck_assert_uint_le(s, before);
				ck_assert_uint_le(
					addr_share(total, drivers, 0) - s, 1);
				before = s;
				sum += s;
			}
			ck_assert_uint_eq(sum, total);
		}
	}
}
END_TEST

/* ---- arguments ---- */

#define URL "https://127.0.0.1:1"

#define PARSE(out, err, ...)                                                   \
	args_parse(out,                                                        \
		   (int)ARRAY_LEN(((const char *[]){"tdrive", __VA_ARGS__})),  \
		   (char *const *)(const void *)(const char *[]){"tdrive",     \
								 __VA_ARGS__}, \
		   err, sizeof(err))

START_TEST(args_by_hand_have_defaults)
{
	struct args a;
	char err[256];

	ck_assert_int_eq(PARSE(&a, err, "https://127.0.0.1:1"), 0);
	ck_assert(!a.managed && !a.json && !a.insecure && !a.help);
	ck_assert_uint_eq(a.connections, 32);
	ck_assert_uint_eq(a.duration_ns, 5 * NS_PER_S);
	ck_assert_uint_eq(a.warmup_ns, NS_PER_S);
	ck_assert_int_eq(a.phase.handshake, CFG_HANDSHAKE_FULL);
	ck_assert_ptr_null(a.groups);
}
END_TEST

START_TEST(args_take_both_spellings_of_a_value)
{
	struct args a;
	char err[256];

	ck_assert_int_eq(PARSE(&a, err, "--connections", "7",
			       "https://127.0.0.1:1", "--handshake=resumed",
			       "--duration=1.5s", "--warmup", "0s", "--json",
			       "--groups=X25519,P-256", "--ca=f.pem"),
			 0);
	ck_assert_uint_eq(a.connections, 7);
	ck_assert_int_eq(a.phase.handshake, CFG_HANDSHAKE_RESUMED);
	ck_assert_uint_eq(a.duration_ns, 1500 * NS_PER_MS);
	ck_assert_uint_eq(a.warmup_ns, 0);
	ck_assert(a.json);
	ck_assert_str_eq(a.groups, "X25519,P-256");
	ck_assert_str_eq(a.ca, "f.pem");
}
END_TEST

#define MANAGED                                                              \
	"--managed", "--segment", "s", "--slot", "3", "--number", "1",       \
		"--drivers", "2", "--target", "127.0.0.1:4433", "--name",    \
		"localhost", "--config-fd", "5", "--ca-fd", "6", "--ctl-fd", \
		"7"

START_TEST(args_say_all_that_a_phase_can_want)
{
	struct args a;
	char err[256];

	ck_assert_int_eq(PARSE(&a, err, URL, "--handshake=mix", "--resume=70%",
			       "--requests=unlimited", "--think=2ms",
			       "--body=1KiB", "--close=notify", "--rate=2.5/s",
			       "--arrivals=poisson", "--records",
			       "--alpn=http/1.1", "--cert=c", "--key=k"),
			 0);
	ck_assert_int_eq(a.phase.handshake, CFG_HANDSHAKE_MIX);
	ck_assert_uint_eq(a.phase.resume, 70);
	ck_assert_uint_eq(a.phase.requests, CFG_UNLIMITED);
	ck_assert_uint_eq(a.phase.think, 2 * NS_PER_MS);
	ck_assert_uint_eq(a.phase.body, 1024);
	ck_assert_int_eq(a.phase.close, CFG_CLOSE_NOTIFY);
	ck_assert_uint_eq(a.phase.rate, 2500);
	ck_assert_int_eq(a.phase.arrivals, CFG_ARRIVALS_POISSON);
	ck_assert(a.phase.records);
	ck_assert_uint_eq(a.phase.connections, CFG_AUTO);
	ck_assert_str_eq(a.certificate, "c");
	ck_assert_int_eq(PARSE(&a, err, URL, "--kind=ramp", "--from=10/s",
			       "--to=50/s", "--step=10/s", "--step-time=2s"),
			 0);
	ck_assert_uint_eq(a.duration_ns, 10 * NS_PER_S);
	ck_assert_uint_eq(a.warmup_ns, 0);
}
END_TEST

static void help_line_fits(const char *line)
{
	ck_assert_msg(strlen(line) <= 80, "too long: %s", line);
	if (strncmp(line, "  --", 4) != 0)
		return;
	/* one column for all descriptions */
	ck_assert_msg(strlen(line) > 24 && line[23] == ' ' && line[24] != ' ',
		      "not aligned: %s", line);
}

START_TEST(args_help_names_each_option_once_and_is_aligned)
{
	char *text = NULL, *save = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	args_help(out);
	ck_assert_int_eq(fclose(out), 0);
	ck_assert_ptr_nonnull(strstr(text, "--rate RATE"));
	ck_assert_ptr_null(strstr(text, "--slot"));
	for (char *l = strtok_r(text, "\n", &save); l != NULL;
	     l = strtok_r(NULL, "\n", &save))
		help_line_fits(l);
	free(text);
}
END_TEST

START_TEST(args_of_the_master_are_all_taken)
{
	struct args a;
	char err[256];

	ck_assert_int_eq(PARSE(&a, err, MANAGED, "--cpu", "-1"), 0);
	ck_assert(a.managed);
	ck_assert_str_eq(a.segment, "s");
	ck_assert_uint_eq(a.slot, 3);
	ck_assert_uint_eq(a.number, 1);
	ck_assert_uint_eq(a.drivers, 2);
	ck_assert_int_eq(a.cpu, -1);
	ck_assert_str_eq(a.target, "127.0.0.1:4433");
	ck_assert_str_eq(a.name, "localhost");
	ck_assert_int_eq(a.config_fd, 5);
	ck_assert_int_eq(a.ca_fd, 6);
	ck_assert_int_eq(a.ctl_fd, 7);
	ck_assert_int_eq(PARSE(&a, err, MANAGED, "--cpu", "11"), 0);
	ck_assert_int_eq(a.cpu, 11);
}
END_TEST

START_TEST(args_of_the_master_must_be_complete)
{
	struct args a = {.slot = 99};
	char err[256];

	ck_assert_int_eq(PARSE(&a, err, MANAGED), -EINVAL);
	ck_assert_str_eq(err, "--cpu: --managed needs it");
	ck_assert_uint_eq(a.slot, 99);
}
END_TEST

START_TEST(args_ask_for_help_without_a_server)
{
	struct args a;
	char err[256];

	ck_assert_int_eq(PARSE(&a, err, "--help"), 0);
	ck_assert(a.help);
	ck_assert_int_eq(PARSE(&a, err, "--version"), 0);
	ck_assert(a.version);
}
END_TEST

static const struct {
	const char *argv[4];
	const char *says; /* part of the sentence */
} bad_args[] = {
	{{NULL}, "write tdrive https://host:port"},
	{{URL, URL}, "one server"},
	{{URL, "-x"}, "no such option"},
	{{URL, "--conections", "3"}, "--conections: no such option"},
	{{URL, "--connections"}, "a value is missing"},
	{{URL, "--connections", "0"}, "--connections: 0 is not in 1 to"},
	{{URL, "--connections", "-1"}, "--connections"},
	{{URL, "--connections=1x"}, "--connections"},
	{{URL, "--duration", "5"}, "--duration"},
	{{URL, "--duration", "1ms"}, "too short"},
	{{URL, "--duration", "25h"}, "too long"},
	{{URL, "--handshake", "half"}, "full, resumed, mix, refused"},
	{{URL, "--json=1"}, "takes no value"},
	{{URL, "--ca="}, "a value is missing"},
	{{URL, "--insecure", "--ca", "f"}, "--insecure"},
	{{URL, "--slot", "1"}, "--managed"},
	{{URL, "--cpu", "70000"}, "--cpu"},
	{{URL, "--plain", "127.0.0.1:1"}, "--managed"},
	{{URL, "--rate", "500"}, "--rate"},
	{{URL, "--rate", "0/s"}, "--rate"},
	{{URL, "--resume", "101%"}, "--resume"},
	{{URL, "--requests", "many"}, "--requests"},
	{{URL, "--kind", "ramp"}, "--from"},
	{{URL, "--kind=idle", "--rate=5/s"}, "--rate"},
};

START_TEST(args_refuse_with_a_sentence)
{
	char *argv[8] = {(char *)(uintptr_t) "tdrive"};
	char err[256] = "";
	struct args a;
	int argc = 1;

	while (argc < 5 && bad_args[_i].argv[argc - 1] != NULL) {
		argv[argc] = (char *)(uintptr_t)bad_args[_i].argv[argc - 1];
		argc++;
	}
	ck_assert_int_eq(args_parse(&a, argc, argv, err, sizeof(err)), -EINVAL);
	ck_assert_msg(strstr(err, bad_args[_i].says) != NULL, "\"%s\"", err);
}
END_TEST

START_TEST(args_list_cuts_at_commas_and_colons)
{
	struct cfg_list list;

	ck_assert_int_eq(args_list(&list, "X25519,P-256:P-384", ",:"), 0);
	ck_assert_uint_eq(list.n, 3);
	ck_assert_str_eq(list.item[0], "X25519");
	ck_assert_str_eq(list.item[1], "P-256");
	ck_assert_str_eq(list.item[2], "P-384");
	args_list_free(&list);
	ck_assert_int_eq(args_list(&list, NULL, ","), 0);
	ck_assert_uint_eq(list.n, 0);
}
END_TEST

START_TEST(args_list_refuses_an_empty_item)
{
	struct cfg_list list;

	ck_assert_int_eq(args_list(&list, "", ","), -EINVAL);
	ck_assert_int_eq(args_list(&list, "a,,b", ","), -EINVAL);
	ck_assert_int_eq(args_list(&list, "a,", ","), -EINVAL);
	ck_assert_int_eq(args_list(&list, ",a", ","), -EINVAL);
}
END_TEST

/* ---- phases ---- */

START_TEST(phase_shares_seats_over_drivers)
{
	struct cfg cfg = {.load = {.connections = 5}};
	struct cfg_phase p = {.kind = CFG_KIND_BULK, .connections = CFG_AUTO};

	ck_assert_uint_eq(phase_of(&cfg, &p, 2, 0).seats, 3);
	ck_assert_uint_eq(phase_of(&cfg, &p, 2, 1).seats, 2);
	ck_assert_uint_eq(phase_of(&cfg, &p, 7, 6).seats, 0);
	ck_assert_uint_eq(phase_of(&cfg, &p, 2, 0).requests, CFG_UNLIMITED);
	/* Open: as many as a stall needs, or as the phase says. */
	p = (struct cfg_phase){.rate = 1000};
	ck_assert_uint_eq(phase_of(&cfg, &p, 2, 0).most, PHASE_MOST / 2);
	ck_assert_uint_eq(phase_of(&cfg, &p, 7, 6).seats, 1);
	p.connections = 3;
	ck_assert_uint_eq(phase_of(&cfg, &p, 2, 0).most, 2);
	ck_assert_uint_eq(phase_of(&cfg, &p, 7, 6).most, 1);
}
END_TEST

/* ---- accounting ---- */

static struct shm_slot *slot;

static void slot_setup(void)
{
	slot = aligned_alloc(_Alignof(struct shm_slot), sizeof(*slot));
	ck_assert_ptr_nonnull(slot);
	memset(slot, 0, sizeof(*slot));
}

static void slot_teardown(void)
{
	free(slot);
}

static uint64_t value(const struct report_take *t, const char *name)
{
	for (uint32_t i = 0; i < CTR_IDS; i++)
		if (strcmp(ctr_descs[i].name, name) == 0)
			return t->ctr[i];
	ck_abort_msg("no counter %s", name);
}

/* Of every histogram of the driver: as many values as its counter says. */
static void histograms_agree(const struct report_take *t)
{
	for (uint32_t i = 0; i < HIST_IDS; i++) {
		const struct ctr_desc *d = &ctr_descs[CTR_IDS + i];

		if ((d->role & CTR_DRIVER) != 0 && strcmp(d->counter, "-") != 0)
			ck_assert_uint_eq(hist_count(&t->hist[i]),
					  value(t, d->counter));
	}
}

static void identity_holds(const struct report_take *t)
{
	ck_assert_uint_eq(t->ctr[CTR_ID_conn_started],
			  report_handshakes(t) + report_failed(t) +
				  t->ctr[CTR_ID_hs_in_progress]);
	ck_assert_uint_eq(report_handshakes(t),
			  t->ctr[CTR_ID_conn_closed_self] +
				  t->ctr[CTR_ID_conn_closed_peer] +
				  t->ctr[CTR_ID_conn_reset] +
				  t->ctr[CTR_ID_conn_tls_error] +
				  t->ctr[CTR_ID_conn_open] -
				  t->ctr[CTR_ID_hs_in_progress]);
	histograms_agree(t);
}

static struct report_take taken(void)
{
	struct report_take t;

	report_take(&t, slot);
	identity_holds(&t);
	return t;
}

START_TEST(count_keeps_the_identity_over_every_failure)
{
	struct count_bytes bytes = {3, 5};
	struct report_take t;

	for (int why = 0; why < COUNT_FAILS; why++) {
		count_started(slot);
		t = taken();
		ck_assert_uint_eq(t.ctr[CTR_ID_hs_in_progress], 1);
		ck_assert_uint_eq(t.ctr[CTR_ID_conn_open], 1);
		count_failed(slot, (enum count_fail)why, 10, bytes);
		t = taken();
		ck_assert_uint_eq(
			value(&t, count_fail_name((enum count_fail)why)), 1);
		ck_assert_uint_eq(report_failed(&t), (uint64_t)why + 1);
		ck_assert_uint_eq(t.ctr[CTR_ID_conn_open], 0);
	}
	ck_assert_uint_eq(t.ctr[CTR_ID_crypto_failed_ns], 10 * COUNT_FAILS);
	ck_assert_uint_eq(t.ctr[CTR_ID_bytes_in], 3 * COUNT_FAILS);
	ck_assert_uint_eq(t.ctr[CTR_ID_bytes_out], 5 * COUNT_FAILS);
}
END_TEST

START_TEST(count_keeps_the_identity_over_every_end)
{
	struct count_bytes bytes = {3, 5};
	struct report_take t;

	for (int how = 0; how < COUNT_ENDS; how++) {
		struct count_hs hs = {.resumed = how % 2 == 1,
				      .tls13 = how > 1,
				      .time_ns = 1000,
				      .cpu_ns = 100};

		count_started(slot);
		taken();
		count_connected(slot, 50);
		taken();
		count_done(slot, &hs, bytes);
		taken();
		count_ended(slot, (enum count_end)how, how == 0, bytes);
		t = taken();
	}
	ck_assert_uint_eq(t.ctr[CTR_ID_hs_full], 2);
	ck_assert_uint_eq(t.ctr[CTR_ID_hs_resumed], 2);
	ck_assert_uint_eq(t.ctr[CTR_ID_hs_tls12], 2);
	ck_assert_uint_eq(t.ctr[CTR_ID_hs_tls13], 2);
	ck_assert_uint_eq(t.ctr[CTR_ID_crypto_full_ns], 200);
	ck_assert_uint_eq(t.ctr[CTR_ID_crypto_resumed_ns], 200);
	ck_assert_uint_eq(t.ctr[CTR_ID_tickets_missed], 1);
	ck_assert_uint_eq(t.ctr[CTR_ID_conn_closed_self], 1);
	ck_assert_uint_eq(t.ctr[CTR_ID_conn_closed_peer], 1);
	ck_assert_uint_eq(t.ctr[CTR_ID_conn_reset], 1);
	ck_assert_uint_eq(t.ctr[CTR_ID_conn_tls_error], 1);
	ck_assert_uint_eq(t.ctr[CTR_ID_conn_open], 0);
}
END_TEST

START_TEST(count_leaves_the_sequence_even)
{
	struct count_bytes none = {0, 0};

	count_started(slot);
	count_failed(slot, COUNT_EOF, 0, none);
	count_moved(slot, none);
	count_turn(slot, 9, true);
	count_alive(slot, 77, 88, 99);
	ck_assert_uint_eq(slot->seq, 10);
	ck_assert_uint_eq(slot->ctr.ring_batch_max, 9);
	ck_assert_uint_eq(slot->ctr.ring_cq_overflow, 1);
	ck_assert_uint_eq(slot->ctr.cpu_ns, 88);
	ck_assert_uint_eq(slot->ctr.run_delay_ns, 99);
	ck_assert_uint_eq(slot->heartbeat_ns, 77);
}
END_TEST

/* ---- report ---- */

static struct load_phase phase;

static struct report report_of(enum cfg_handshake handshake, uint64_t full,
			       uint64_t resumed, uint64_t failed)
{
	struct report r = {.url = URL,
			   .library = "OpenSSL x",
			   .ring = "",
			   .phase = &phase,
			   .asked_ns = NS_PER_S};

	phase = (struct load_phase){
		.handshake = handshake, .seats = 1, .resume = 50};
	r.took.ns = NS_PER_S;
	r.took.ctr[CTR_ID_hs_full] = full;
	r.took.ctr[CTR_ID_hs_resumed] = resumed;
	r.took.ctr[CTR_ID_failed_verify] = failed;
	return r;
}

static const struct {
	enum cfg_handshake handshake;
	uint64_t full, resumed, failed, tickets;
	bool interrupted;
	int status;
	const char *says;
} verdicts[] = {
	{CFG_HANDSHAKE_FULL, 9, 0, 0, 0, false, EXIT_GOOD, ""},
	{CFG_HANDSHAKE_RESUMED, 0, 9, 0, 9, false, EXIT_GOOD, ""},
	{CFG_HANDSHAKE_FULL, 0, 0, 0, 0, false, EXIT_RUN, "no handshake ended"},
	{CFG_HANDSHAKE_FULL, 0, 0, 5, 0, false, EXIT_RUN, "failed_verify"},
	{CFG_HANDSHAKE_RESUMED, 9, 0, 0, 0, false, EXIT_RUN, "sent no ticket"},
	{CFG_HANDSHAKE_RESUMED, 9, 0, 0, 9, false, EXIT_RUN,
	 "accepted no ticket"},
	{CFG_HANDSHAKE_RESUMED, 1, 9, 0, 9, false, EXIT_DOUBTFUL, "1 of 10"},
	{CFG_HANDSHAKE_FULL, 9, 0, 2, 0, false, EXIT_DOUBTFUL,
	 "2 connections failed"},
	{CFG_HANDSHAKE_FULL, 9, 0, 0, 0, true, EXIT_DOUBTFUL, "interrupted"},
	{CFG_HANDSHAKE_MIX, 50, 50, 0, 50, false, EXIT_GOOD, ""},
	{CFG_HANDSHAKE_MIX, 60, 40, 0, 50, false, EXIT_DOUBTFUL, "not 50 %"},
	{CFG_HANDSHAKE_MIX, 9, 0, 0, 9, false, EXIT_RUN, "accepted no ticket"},
	{CFG_HANDSHAKE_REFUSED, 9, 0, 0, 0, false, EXIT_RUN,
	 "none was offered"},
};

START_TEST(report_gives_the_exit_status_and_why)
{
	struct report r = report_of(verdicts[_i].handshake, verdicts[_i].full,
				    verdicts[_i].resumed, verdicts[_i].failed);
	char why[256];

	r.interrupted = verdicts[_i].interrupted;
	r.whole.ctr[CTR_ID_tickets_received] = verdicts[_i].tickets;
	ck_assert_int_eq(report_verdict(&r, why, sizeof(why)),
			 verdicts[_i].status);
	ck_assert_msg(strstr(why, verdicts[_i].says) != NULL, "\"%s\"", why);
}
END_TEST

static const struct {
	struct load_phase phase;
	enum ctr_id id;
	uint64_t value;
	int status;
	const char *says;
} phase_verdicts[] = {
	{{.requests = 1}, CTR_ID_hs_full, 9, EXIT_RUN, "no request"},
	{{.requests = 1}, CTR_ID_requests, 9, EXIT_GOOD, ""},
	{{.transport = CFG_TRANSPORT_TCP},
	 CTR_ID_conn_connected,
	 9,
	 EXIT_GOOD,
	 ""},
	{{.transport = CFG_TRANSPORT_TCP},
	 CTR_ID_hs_full,
	 9,
	 EXIT_RUN,
	 "no connection"},
	{{.kind = CFG_KIND_IDLE}, CTR_ID_conn_open, 9, EXIT_GOOD, ""},
};

START_TEST(report_judges_by_what_the_phase_is_for)
{
	struct report r = {.phase = &phase_verdicts[_i].phase};
	char why[256];

	r.took.ctr[phase_verdicts[_i].id] = phase_verdicts[_i].value;
	ck_assert_int_eq(report_verdict(&r, why, sizeof(why)),
			 phase_verdicts[_i].status);
	ck_assert_msg(strstr(why, phase_verdicts[_i].says) != NULL, "\"%s\"",
		      why);
}
END_TEST

START_TEST(report_doubts_an_open_loop_that_was_late)
{
	struct report r = report_of(CFG_HANDSHAKE_FULL, 95, 0, 0);
	char why[256], loop[REPORT_LOOP_LEN];

	phase.rate = 500000;
	phase.most = 10;
	report_loop(&r, loop);
	ck_assert_str_eq(loop, "open loop, 500/s constant");
	r.took.ctr[CTR_ID_arrivals] = 100;
	r.took.hist[HIST_ID_conn_latency].bucket[100] = 95;
	ck_assert_int_eq(report_verdict(&r, why, sizeof(why)), EXIT_GOOD);
	r.took.hist[HIST_ID_conn_latency].bucket[100] = 50;
	ck_assert_int_eq(report_verdict(&r, why, sizeof(why)), EXIT_DOUBTFUL);
	ck_assert_ptr_nonnull(strstr(why, "rate was not kept"));
	r.took.ctr[CTR_ID_arrivals_late] = 3;
	ck_assert_int_eq(report_verdict(&r, why, sizeof(why)), EXIT_DOUBTFUL);
	ck_assert_ptr_nonnull(strstr(why, "3 of 100"));
}
END_TEST

static char *printed(const struct report *r, bool json)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(out);
	if (json)
		ck_assert_int_eq(report_json(r, out), 0);
	else
		report_table(r, out);
	ck_assert_int_eq(fclose(out), 0);
	return text;
}

START_TEST(report_prints_no_resumed_figure_where_none_was)
{
	struct report r = report_of(CFG_HANDSHAKE_RESUMED, 9, 0, 0);
	char *text;

	r.took.hist[HIST_ID_hs_full_time].bucket[100] = 9;
	text = printed(&r, true);
	ck_assert_ptr_null(strstr(text, "hs_resumed"));
	ck_assert_ptr_null(strstr(text, "crypto_resumed"));
	ck_assert_ptr_nonnull(strstr(text, "\"hs_full\": 9"));
	free(text);
	text = printed(&r, false);
	ck_assert_ptr_null(strstr(text, "0 resumed"));
	ck_assert_ptr_nonnull(strstr(text, "none was resumed"));
	free(text);
}
END_TEST

START_TEST(report_of_nothing_has_no_nan)
{
	struct report r = report_of(CFG_HANDSHAKE_FULL, 0, 0, 0);
	char *text = printed(&r, false);

	ck_assert_ptr_null(strcasestr(text, "nan"));
	ck_assert_ptr_null(strcasestr(text, "inf"));
	ck_assert_ptr_nonnull(strstr(text, "n/a"));
	free(text);
	text = printed(&r, true);
	ck_assert_ptr_nonnull(strstr(text, "\"cpu_ns_per_handshake\": null"));
	free(text);
}
END_TEST

START_TEST(report_labels_its_loop_and_prints_notes)
{
	static const char note[][LOAD_NOTE_MAX] = {
		"burst 200 253000000 3 1", "ramp 500/s 1500000 ok",
		"record full out handshake ClientHello 314"};
	struct report r = report_of(CFG_HANDSHAKE_FULL, 9, 0, 0);
	char *text;

	r.note = note;
	r.notes = ARRAY_LEN(note);
	r.took.ctr[CTR_ID_group_x25519] = 9;
	r.took.hist[HIST_ID_conn_latency].bucket[100] = 9;
	text = printed(&r, false);
	ck_assert_ptr_nonnull(strstr(text, "closed loop, 1 connections"));
	ck_assert_ptr_nonnull(strstr(text, "coordinated omission"));
	ck_assert_ptr_nonnull(strstr(text, "x25519 9"));
	ck_assert_ptr_nonnull(strstr(text, "3 over 500 ms, 1 failed"));
	ck_assert_ptr_nonnull(strstr(text, "ClientHello 314"));
	ck_assert_ptr_null(strstr(text, "record full"));
	free(text);
	phase.rate = 1000;
	text = printed(&r, false);
	ck_assert_ptr_nonnull(strstr(text, "open loop, 1/s constant"));
	ck_assert_ptr_null(strstr(text, "coordinated omission"));
	free(text);
	text = printed(&r, true);
	ck_assert_ptr_nonnull(strstr(text, "\"loop\": \"open\""));
	ck_assert_ptr_nonnull(strstr(text, "\"full out handshake"));
	free(text);
}
END_TEST

START_TEST(report_is_a_difference_of_two_takes)
{
	static struct report_take a, b, diff;
	struct count_hs hs = {.time_ns = 1000, .cpu_ns = 100};
	struct count_bytes none = {0, 0};

	for (int i = 0; i < 5; i++) {
		if (i == 2)
			report_take(&a, slot);
		count_started(slot);
		count_connected(slot, 50);
		count_done(slot, &hs, none);
		count_ended(slot, COUNT_CLOSED_SELF, false, none);
	}
	report_take(&b, slot);
	report_diff(&diff, &b, &a);
	ck_assert_uint_eq(report_handshakes(&diff), 3);
	ck_assert_uint_eq(hist_count(&diff.hist[HIST_ID_hs_full_time]), 3);
	ck_assert_uint_gt(diff.ns, 0);
	identity_holds(&diff);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("tdrive");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");

	tcase_add_checked_fixture(works, slot_setup, slot_teardown);
	tcase_add_test(works, seat_goes_round_the_loop);
	tcase_add_test(works, timers_come_in_the_order_of_setting);
	tcase_add_test(works, timer_set_again_goes_to_the_end);
	tcase_add_loop_test(works, addr_reads_a_url, 0, ARRAY_LEN(good_urls));
	tcase_add_test(works, addr_rotates_on_ipv4_loopback_only);
	tcase_add_test(works, addr_gives_each_driver_its_own_sources);
	tcase_add_test(works, addr_shares_add_up_and_the_first_take_the_rest);
	tcase_add_test(works, args_by_hand_have_defaults);
	tcase_add_test(works, args_take_both_spellings_of_a_value);
	tcase_add_test(works, args_of_the_master_are_all_taken);
	tcase_add_test(works, args_say_all_that_a_phase_can_want);
	tcase_add_test(works, args_help_names_each_option_once_and_is_aligned);
	tcase_add_test(works, phase_shares_seats_over_drivers);
	tcase_add_test(works, args_ask_for_help_without_a_server);
	tcase_add_test(works, args_list_cuts_at_commas_and_colons);
	tcase_add_test(works, count_keeps_the_identity_over_every_failure);
	tcase_add_test(works, count_keeps_the_identity_over_every_end);
	tcase_add_test(works, count_leaves_the_sequence_even);
	tcase_add_test(works, report_is_a_difference_of_two_takes);
	tcase_add_test(works, report_doubts_an_open_loop_that_was_late);
	tcase_add_test(works, report_labels_its_loop_and_prints_notes);
	tcase_add_loop_test(works, report_judges_by_what_the_phase_is_for, 0,
			    ARRAY_LEN(phase_verdicts));
	tcase_add_loop_test(works, report_gives_the_exit_status_and_why, 0,
			    ARRAY_LEN(verdicts));

	tcase_add_test(limits, seat_pauses_from_1_to_100_ms);
	tcase_add_test(limits, addr_sources_are_64_and_never_the_target);
	tcase_add_test(limits, report_of_nothing_has_no_nan);

	tcase_add_test(refuses, seat_allows_just_the_edges_of_the_table);
	tcase_add_test_raise_signal(
		refuses, seat_aborts_on_a_handshake_without_connect, SIGABRT);
	tcase_add_loop_test(refuses, addr_refuses_a_wrong_url_with_a_sentence,
			    0, ARRAY_LEN(bad_urls));
	tcase_add_test(refuses, addr_refuses_a_host_that_is_too_long);
	tcase_add_test(refuses, args_of_the_master_must_be_complete);
	tcase_add_loop_test(refuses, args_refuse_with_a_sentence, 0,
			    ARRAY_LEN(bad_args));
	tcase_add_test(refuses, args_list_refuses_an_empty_item);
	tcase_add_test(refuses, report_prints_no_resumed_figure_where_none_was);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	return s;
}

int main(void)
{
	SRunner *r = srunner_create(suite());
	int failed;

	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
