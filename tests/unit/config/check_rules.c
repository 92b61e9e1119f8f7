/* SPDX-License-Identifier: MIT */
#include "config/rules.h"

#include "shm/base.h"
#include "tests/unit/config/scenario.h"

struct golden {
	const char *yaml, *errs;
};

/* Each below a first line "scenario: x". */
static void all_refused(const struct golden *row, size_t n)
{
	char yaml[1024];

	for (size_t i = 0; i < n; i++) {
		snprintf(yaml, sizeof(yaml), "scenario: x\n%s", row[i].yaml);
		scenario_refused(yaml, NULL, 0, row[i].errs);
	}
}

static void all_good(const char *const *yaml, size_t n)
{
	char all[1024];

	for (size_t i = 0; i < n; i++) {
		struct cfg *cfg;

		snprintf(all, sizeof(all), "scenario: x\n%s", yaml[i]);
		cfg = scenario_good(all, NULL, 0);
		cfg_free(&cfg);
	}
}

START_TEST(what_goes_together_is_taken)
{
	static const char *const good[] = {
		"load: none\n",
		"load: {drivers: none}\nphases: []\n",
		"load:\nphases:\ntls: {}\nterminator: {respond: {}}\n",
		"tls: {certificate: {chain: a.pem, key: a.key}}\n",
		"tls: {certificate: {make: null, chain: a.pem, key: a.key}}\n",
		"tls: {client_auth: optional, ca: ca.pem}\n",
		"tls: {tickets: {key_file: k}}\n",
		"tls: {tickets: {key_file: k, lifetime: 7d}}\n",
		"tls: {tickets: {lifetime: 14h, rotate: 1h}}\n",
		"tls: {tickets: {lifetime: 7d, rotate: 0s}}\n",
		"tls: {tickets: {enabled: false}}\nphases: [{}]\n",
		"tls: {versions: TLSv1.3, ciphers: "
		"ECDHE-RSA-AES256-GCM-SHA384}\n",
		"tls: {versions: TLSv1.2, tickets: {per_handshake: 0}}\n"
		"phases: [{handshake: resumed}]\n",
		"phases: [{handshake: full}, {handshake: resumed}]\n",
		"phases: [{}, {name: again}]\n",
		"terminator: {respond: {mode: speak-first, body: 1B}}\n",
		"terminator: {respond: {mode: close, body: 0B}}\n",
		"terminator: {listen: ['[::]:0', '[fe80::1]:65535', "
		"'0.0.0.0:1', '[::ffff:1.2.3.4]:2']}\n",
		"workers: {pin: 0-3}\nload: {pin: none, server_name: "
		"a-b.c_d}\n",
	};

	all_good(good, ARRAY_LEN(good));
}
END_TEST

START_TEST(certificates_are_made_or_read)
{
	static const struct golden row[] = {
		{"tls:\n  certificate:\n    make: rsa-2048\n    chain: a\n"
		 "    key: b\n",
		 "s.yaml:4: tls.certificate.make: a certificate is made or "
		 "read "
		 "from files, not both; take out make, or chain and key\n"},
		{"tls: {certificate: {make: rsa-2048, key: b}}\n",
		 "s.yaml:2: tls.certificate.make: a certificate is made or "
		 "read "
		 "from files, not both; take out make, or key\n"},
		{"tls: {certificate: {chain: a}}\n",
		 "s.yaml:2: tls.certificate.chain: a chain needs its private "
		 "key; add key: FILE\n"},
		{"tls: {certificate: {key: a}}\n",
		 "s.yaml:2: tls.certificate.key: a key needs its certificate; "
		 "add chain: FILE\n"},
		/* Not also a key without a chain. */
		{"tls: {certificate: {chian: a, key: b}}\n",
		 "s.yaml:2: tls.certificate.chian: unknown key; did you mean "
		 "`chain`?\n"},
	};

	all_refused(row, ARRAY_LEN(row));
}
END_TEST

START_TEST(client_authentication_and_its_cas_need_each_other)
{
	static const struct golden row[] = {
		{"tls: {client_auth: required}\n",
		 "s.yaml:2: tls.client_auth: \"required\" needs the CAs that "
		 "sign clients; add tls.ca: FILE\n"},
		{"tls: {ca: a}\n",
		 "s.yaml:2: tls.ca: no client is asked for a certificate; set "
		 "client_auth to optional or required, or take ca out\n"},
	};

	all_refused(row, ARRAY_LEN(row));
}
END_TEST

START_TEST(tickets_contradict_nothing)
{
	static const struct golden row[] = {
		{"tls: {tickets: {key_file: k, shared: false}}\n",
		 "s.yaml:2: tls.tickets.key_file: keys of a file are shared by "
		 "all workers; take key_file out, or shared: false\n"},
		{"tls: {tickets: {key_file: k, enabled: false}}\n",
		 "s.yaml:2: tls.tickets.key_file: tickets are not enabled; "
		 "take "
		 "key_file out, or enabled: false\n"},
		{"tls:\n  tickets:\n    key_file: k\n    rotate: 1h\n",
		 "s.yaml:5: tls.tickets.rotate: keys of a file are never "
		 "rotated; take rotate out, or key_file\n"},
		{"tls:\n  tickets:\n    lifetime: 14.001h\n    rotate: 1h\n",
		 "s.yaml:5: tls.tickets.rotate: a lifetime of 14.001h is more "
		 "than 14 rotations; rotate less often, or shorten lifetime\n"},
		{"tls:\n  tickets:\n    lifetime: 15h\n",
		 "s.yaml:4: tls.tickets.lifetime: a lifetime of 15h is more "
		 "than 14 rotations; rotate less often, or shorten lifetime\n"},
		{"tls:\n  tickets:\n    rotate: 1ms\n",
		 "s.yaml:4: tls.tickets.rotate: a lifetime of 2h is more than "
		 "14 "
		 "rotations; rotate less often, or shorten lifetime\n"},
	};

	all_refused(row, ARRAY_LEN(row));
}
END_TEST

START_TEST(phases_that_cannot_be_run_are_refused)
{
	static const struct golden row[] = {
		{"load: none\nphases:\n- {}\n",
		 "s.yaml:4: phases: phases need a load, and there is none; "
		 "take "
		 "phases out, or load: none\n"},
		{"phases:\n- {handshake: resumed}\n"
		 "tls: {tickets: {enabled: false}}\n",
		 "s.yaml:3: phases.0.handshake: nothing can resume: "
		 "tls.tickets.enabled is false; change that, or write "
		 "handshake: full\n"},
		{"phases:\n- {}\n- {handshake: resumed}\n"
		 "tls: {tickets: {per_handshake: 0}}\n",
		 "s.yaml:4: phases.1.handshake: nothing can resume: "
		 "tls.tickets.per_handshake is 0, so TLS 1.3 gives no ticket; "
		 "change that, or write handshake: full\n"},
		{"phases:\n- {}\n- {}\n",
		 "s.yaml:4: phases.1.name: \"full\" is the name of phases.0 as "
		 "well; give each a name of its own, such as name: full-2\n"},
		{"phases:\n- {name: resumed}\n- {handshake: resumed}\n",
		 "s.yaml:4: phases.1.name: \"resumed\" is the name of phases.0 "
		 "as well; give each a name of its own, such as name: "
		 "resumed-2\n"},
		{"phases:\n- name: a b\n",
		 "s.yaml:3: phases.0.name: \"a b\" is no name; write letters, "
		 "digits, dots, underscores and dashes\n"},
	};

	all_refused(row, ARRAY_LEN(row));
}
END_TEST

START_TEST(sixty_four_phases_are_run_and_no_more)
{
	char *yaml, *errs;
	size_t len;
	FILE *f = open_memstream(&yaml, &len);
	struct cfg *cfg;

	fputs("scenario: x\nphases:\n", f);
	for (int i = 0; i < 64; i++)
		fprintf(f, "- {name: p%d}\n", i);
	fflush(f);
	cfg = scenario_good(yaml, NULL, 0);
	ck_assert_uint_eq(cfg->nphases, 64);
	ck_assert_str_eq(cfg->phases[63].name, "p63");
	cfg_free(&cfg);
	fputs("- {name: q}\n", f);
	fclose(f);
	ck_assert_int_eq(scenario_load(&cfg, yaml, NULL, 0, &errs), -EINVAL);
	ck_assert_str_eq(errs, "s.yaml:3: phases: 65 entries; at most 64 are "
			       "run\n");
	free(errs);
	free(yaml);
}
END_TEST

START_TEST(addresses_are_numbers_with_a_port)
{
	static const struct {
		const char *text, *fault;
	} row[] = {
		{"localhost:443",
		 "is no address; write an IPv4 or IPv6 address, such as "
		 "127.0.0.1:8443 or [::1]:8443, and no host name"},
		{":443", "is no address; write an IPv4 or IPv6 address, such "
			 "as 127.0.0.1:8443 or [::1]:8443, and no host name"},
		{"256.0.0.1:1", "is no address; write an IPv4 or IPv6 address, "
				"such as 127.0.0.1:8443 or [::1]:8443, and no "
				"host name"},
		{"127.0.0.1", "has no port; write one behind a colon, such as "
			      "127.0.0.1:8443 or [::1]:8443"},
		{"[::1]", "has no port; write one behind a colon, such as "
			  "127.0.0.1:8443 or [::1]:8443"},
		{"8443", "has no port; write one behind a colon, such as "
			 "127.0.0.1:8443 or [::1]:8443"},
		{"127.0.0.1:65536", "has no port that can be; write 0 to 65535 "
				    "behind the last colon"},
		{"127.0.0.1:", "has no port that can be; write 0 to 65535 "
			       "behind the last colon"},
		{"127.0.0.1:https", "has no port that can be; write 0 to 65535 "
				    "behind the last colon"},
		{"127.0.0.1:0443", "has no port that can be; write 0 to 65535 "
				   "behind the last colon"},
		{"::1:8443", "has colons; write an IPv6 address in brackets, "
			     "such as [::1]:8443"},
		{"[::g]:1", "is no IPv6 address; write one such as "
			    "[::1]:8443"},
		{"[]:1", "is no IPv6 address; write one such as [::1]:8443"},
		{"[::1]:8:8", "is no IPv6 address; write one such as "
			      "[::1]:8443"},
		{"[127.0.0.1]:8", "is no IPv6 address; write one such as "
				  "[::1]:8443"},
	};
	char yaml[128], errs[256];

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		sprintf(yaml, "scenario: x\nterminator: {listen: \"%s\"}\n",
			row[i].text);
		sprintf(errs, "s.yaml:2: terminator.listen.0: \"%s\" %s\n",
			row[i].text, row[i].fault);
		scenario_refused(yaml, NULL, 0, errs);
	}
}
END_TEST

START_TEST(texts_must_look_like_what_they_are)
{
	static const struct golden row[] = {
		{"segment: {name: a/b}\n",
		 "s.yaml:2: segment.name: \"a/b\" is no name; write letters, "
		 "digits, dots, underscores and dashes\n"},
		{"segment: {name: \"null\"}\n",
		 "s.yaml:2: segment.name: \"null\" means nothing in YAML; "
		 "write "
		 "another text, or ./null for a file of that name\n"},
		{"tls: {versions: [TLSv1.1, tlsv1.3]}\n",
		 "s.yaml:2: tls.versions.0: \"TLSv1.1\" is not known; write "
		 "TLSv1.2 or TLSv1.3\n"
		 "s.yaml:2: tls.versions.1: \"tlsv1.3\" is not known; write "
		 "TLSv1.2 or TLSv1.3\n"},
		{"tls: {groups: X25519:P-256}\n",
		 "s.yaml:2: tls.groups.0: \"X25519:P-256\" is not one name; "
		 "write [one, another]\n"},
		{"tls: {ciphers: [A B]}\n", "s.yaml:2: tls.ciphers.0: \"A B\" "
					    "is not one name; write [one, "
					    "another]\n"},
		{"workers: {pin: all}\n",
		 "s.yaml:2: workers.pin: \"all\" is no CPU list; write auto, "
		 "none, or one such as 0-3,8\n"},
		{"load: {pin: 0-1-2}\n",
		 "s.yaml:2: load.pin: \"0-1-2\" is not a CPU list: write one "
		 "such as 0-3,8\n"},
		{"load: {pin: '0,0'}\n",
		 "s.yaml:2: load.pin: \"0,0\" names CPU 0 twice\n"},
		{"load: {server_name: 'a b'}\n",
		 "s.yaml:2: load.server_name: \"a b\" is no name of a server; "
		 "write auto, or one such as www.example.org\n"},
		{"terminator: {respond: {mode: speak-first, body: 0B}}\n",
		 "s.yaml:2: terminator.respond.body: speak-first has to send "
		 "something; write 1B or more, or mode: close\n"},
	};

	all_refused(row, ARRAY_LEN(row));
	scenario_refused("scenario: a b\n", NULL, 0,
			 "s.yaml:1: scenario: \"a b\" is no name; write "
			 "letters, digits, dots, underscores and dashes\n");
}
END_TEST

START_TEST(all_faults_are_told_at_once_in_order)
{
	scenario_refused(
		"terminator:\n"
		"  backlog: 0\n"
		"  backlg: 1\n"
		"  idle_timeout: 60\n"
		"tls:\n"
		"  certificate: {chain: a}\n"
		"  tickets: []\n"
		"phases: [{duration: 1h}, {duration: 1}]\n",
		NULL, 0,
		"s.yaml:1: scenario: missing; a scenario needs "
		"`scenario: NAME`\n"
		"s.yaml:2: terminator.backlog: \"0\" is out of range; "
		"write 1 to 65535\n"
		"s.yaml:3: terminator.backlg: unknown key; did you mean "
		"`backlog`?\n"
		"s.yaml:4: terminator.idle_timeout: \"60\" has no "
		"unit: write 60ms or 60s\n"
		"s.yaml:6: tls.certificate.chain: a chain needs its "
		"private key; add key: FILE\n"
		"s.yaml:7: tls.tickets: a list where a mapping is due; "
		"its keys are enabled, shared, per_handshake, lifetime, "
		"rotate, key_file\n"
		"s.yaml:8: phases.1.duration: \"1\" has no unit: write "
		"1ms or 1s\n");
}
END_TEST

/* ---- phases ---- */

/* "phases:\n- {OPTIONS}\n", below "scenario: x\n"; and what is told, or "". */
struct phase {
	const char *options, *told;
};

static void all_phases(const struct phase *row, size_t n, const char *below)
{
	char yaml[1024], errs[1024];

	for (size_t i = 0; i < n; i++) {
		snprintf(yaml, sizeof(yaml), "scenario: x\nphases:\n- {%s}\n%s",
			 row[i].options, below);
		snprintf(errs, sizeof(errs), "s.yaml:3: phases.0.%s\n",
			 row[i].told);
		if (row[i].told[0] != '\0') {
			scenario_refused(yaml, NULL, 0, errs);
		} else {
			struct cfg *cfg = scenario_good(yaml, NULL, 0);

			cfg_free(&cfg);
		}
	}
}

START_TEST(each_kind_of_phase_has_its_options)
{
	static const struct phase row[] = {
		{"handshake: mix, resume: 0%", ""},
		{"handshake: mix, resume: 100%, ticket_use: chain", ""},
		{"handshake: refused, ticket_use: once", ""},
		{"requests: 1, path: '/a?b=c&d=%20', think: 1ms", ""},
		{"requests: unlimited, body: 1GiB, close: rst", ""},
		{"kind: bulk, path: /big.bin, think: 1s", ""},
		{"kind: bulk, body: 1MiB, requests: 5, transport: tcp", ""},
		{"kind: bulk, requests: unlimited", ""},
		{"rate: 2000/s", ""},
		{"rate: 2000/s, arrivals: poisson, connections: 50", ""},
		{"kind: burst, connections: 500, every: 100ms, requests: 1",
		 ""},
		{"kind: idle, connections: 1000, requests: 1", ""},
		{"kind: idle", ""},
		{"kind: ramp, from: 1/s, to: 3/s, step: 1/s, p99: 1ms, "
		 "step_time: 100ms, arrivals: poisson, duration: 300ms",
		 ""},
		{"transport: tcp, handshake: full, records: false, close: rst",
		 ""},
		{"records: true, close: notify", ""},
	};

	all_phases(row, ARRAY_LEN(row), "");
}
END_TEST

START_TEST(options_that_a_phase_has_not_got_are_refused)
{
	static const struct phase row[] = {
		{"resume: 50%",
		 "resume: is the share of a mix; write handshake: mix, or take "
		 "resume out"},
		{"handshake: resumed, resume: 100%",
		 "resume: is the share of a mix; write handshake: mix, or take "
		 "resume out"},
		{"ticket_use: once",
		 "ticket_use: full handshakes offer no ticket; write another "
		 "handshake, or take ticket_use out"},
		{"path: /",
		 "path: nothing is requested; write requests: 1 or more, or "
		 "kind: bulk, or take path out"},
		{"body: 1KiB",
		 "body: nothing is requested; write requests: 1 or more, or "
		 "kind: bulk, or take body out"},
		{"kind: idle, think: 1s",
		 "think: nothing is requested; write requests: 1 or more, or "
		 "kind: bulk, or take think out"},
		{"requests: 1, body: 1KiB, path: /a",
		 "path: body asks for /bytes/N instead; take path out, or "
		 "body"},
		{"arrivals: constant",
		 "arrivals: arrivals are those of an open loop; add a rate "
		 "such as 500/s, or take arrivals out"},
		{"every: 1s", "every: belongs to bursts; write kind: burst, or "
			      "take every out"},
		{"from: 1/s", "from: belongs to a ramp; write kind: ramp, or "
			      "take from out"},
		{"rate: 1/s, to: 1/s", "to: belongs to a ramp; write kind: "
				       "ramp, or take to out"},
		{"step: 1/s", "step: belongs to a ramp; write kind: ramp, or "
			      "take step out"},
		{"step_time: 1s", "step_time: belongs to a ramp; write kind: "
				  "ramp, or take step_time out"},
		{"p99: 1s", "p99: belongs to a ramp; write kind: ramp, or take "
			    "p99 out"},
		{"kind: burst, connections: 1, rate: 1/s",
		 "rate: only kind: handshakes has a rate; take rate out, or "
		 "kind"},
		{"kind: idle, rate: 1/s",
		 "rate: only kind: handshakes has a rate; take rate out, or "
		 "kind"},
		{"kind: bulk, rate: 1/s",
		 "rate: only kind: handshakes has a rate; take rate out, or "
		 "kind"},
		/* One word at fault hides what hangs on it. */
		{"handshake: mixx, resume: 10%",
		 "handshake: \"mixx\" is not known; did you mean mix? Write "
		 "full, resumed, mix or refused"},
	};

	all_phases(row, ARRAY_LEN(row), "");
}
END_TEST

START_TEST(ramps_rise_step_by_step_in_their_time)
{
	static const struct phase row[] = {
		{"kind: ramp",
		 "kind: a ramp needs from, to, step and p99; add from, to, "
		 "step and p99"},
		{"kind: ramp, from: 1/s, to: 2/s, step: 1/s",
		 "kind: a ramp needs from, to, step and p99; add p99"},
		{"kind: ramp, from: 1/s, to: 1/s, step: 1/s, p99: 1s",
		 "to: a ramp rises, and this one begins at 1/s; write more"},
		{"kind: ramp, from: 2.5/s, to: 1/s, step: 1/s, p99: 1s",
		 "to: a ramp rises, and this one begins at 2.5/s; write more"},
		{"kind: ramp, from: 1/s, to: 2/s, step: 1.001/s, p99: 1s",
		 "step: a ramp has two steps at least; write no more than "
		 "from `from` to `to`"},
		{"kind: ramp, from: 1/s, to: 2/s, step: 0.5/s, p99: 1s, "
		 "duration: 2999ms",
		 "duration: the ramp takes 3s; write that, or take duration "
		 "out"},
		{"kind: ramp, from: 1/s, to: 86401/s, step: 1/s, p99: 1s",
		 "step: the ramp takes more than 1d; write a larger step, or a "
		 "shorter step_time"},
		{"kind: ramp, from: 0.001/s, to: 10000000/s, step: 0.001/s, "
		 "p99: 1s, step_time: 1h, duration: 1d",
		 "step: the ramp takes more than 1d; write a larger step, or a "
		 "shorter step_time"},
		{"kind: ramp, from: 1/s, to: 86400/s, step: 1/s, p99: 1s", ""},
		{"kind: ramp, from: 1/s, to: 2/s, step: 1/s, p99: 1s, "
		 "duration: 1h",
		 ""},
	};

	all_phases(row, ARRAY_LEN(row), "");
}
END_TEST

START_TEST(phases_contradict_nothing)
{
	static const struct phase row[] = {
		{"kind: burst",
		 "kind: a burst needs connections; add how many, such as "
		 "connections: 500"},
		{"transport: tcp, handshake: mix",
		 "handshake: transport: tcp has no handshakes; take handshake "
		 "out, or transport"},
		{"transport: tcp, records: true",
		 "records: transport: tcp has no records; take records out, or "
		 "transport"},
		{"transport: tcp, close: notify",
		 "close: transport: tcp has no close_notify; write fin or "
		 "rst"},
		{"rate: 1/s, requests: unlimited",
		 "requests: \"unlimited\" keeps connections busy, and those of "
		 "an open loop have to end; write a number"},
		{"kind: burst, connections: 1, requests: unlimited",
		 "requests: \"unlimited\" keeps connections busy, and those of "
		 "a burst have to end; write a number"},
		{"kind: idle, requests: unlimited",
		 "requests: \"unlimited\" keeps connections busy, and those of "
		 "kind: idle have to fall silent; write a number"},
		{"kind: ramp, from: 1/s, to: 2/s, step: 1/s, p99: 1s, "
		 "requests: unlimited",
		 "requests: \"unlimited\" keeps connections busy, and those of "
		 "a ramp have to end; write a number"},
		{"requests: 1, path: a",
		 "path: \"a\" is no path; write one that begins with a slash, "
		 "with %20 and the like for other characters"},
		{"requests: 1, path: '/a b'",
		 "path: \"/a b\" is no path; write one that begins with a "
		 "slash, with %20 and the like for other characters"},
		{"requests: 1, path: '/#a'",
		 "path: \"/#a\" is no path; write one that begins with a "
		 "slash, with %20 and the like for other characters"},
		{"requests: 1, path: /\xc3\xa4",
		 "path: \"/\xc3\xa4\" is no path; write one that begins with a "
		 "slash, with %20 and the like for other characters"},
		{"requests: -1", "requests: \"-1\" is negative: write a whole "
				 "number such as 4"},
		{"requests: all", "requests: \"all\" is no number; write "
				  "unlimited, or 0 to 1000000000"},
	};

	all_phases(row, ARRAY_LEN(row), "");
}
END_TEST

START_TEST(who_speaks_first_is_agreed)
{
	static const struct phase http[] = {
		{"speaks_first: server",
		 "speaks_first: terminator.respond.mode is http; write "
		 "speak-first there, or take speaks_first out"},
		{"speaks_first: server, requests: 2",
		 "speaks_first: a client that waits for the server asks for "
		 "nothing; take speaks_first out, or requests"},
		{"speaks_first: server, kind: bulk",
		 "speaks_first: a client that waits for the server asks for "
		 "nothing; take speaks_first out, or kind: bulk"},
		{"speaks_first: client, requests: 1", ""},
	};
	static const struct phase speaks[] = {
		{"speaks_first: server", ""},
		{"speaks_first: server, transport: tcp", ""},
		{"", ""},
		{"requests: 1",
		 "requests: terminator.respond.mode is speak-first, which "
		 "answers no requests; write http there, or take requests "
		 "out"},
		{"kind: bulk",
		 "kind: terminator.respond.mode is speak-first, which answers "
		 "no requests; write http there, or take kind out"},
	};

	all_phases(http, ARRAY_LEN(http), "");
	all_phases(speaks, ARRAY_LEN(speaks),
		   "terminator: {respond: {mode: speak-first}}\n");
}
END_TEST

START_TEST(every_handshake_with_a_ticket_needs_tickets)
{
	static const struct phase row[] = {
		{"handshake: mix",
		 "handshake: nothing can resume: tls.tickets.enabled is false; "
		 "change that, or write handshake: full"},
		{"handshake: refused",
		 "handshake: nothing can resume: tls.tickets.enabled is false; "
		 "change that, or write handshake: full"},
	};

	all_phases(row, ARRAY_LEN(row), "tls: {tickets: {enabled: false}}\n");
}
END_TEST

START_TEST(phases_are_called_by_what_they_are)
{
	static const char yaml[] =
		"scenario: x\nphases:\n- {}\n- {handshake: mix}\n"
		"- {handshake: refused}\n- {transport: tcp}\n- {kind: bulk}\n"
		"- {kind: burst, connections: 1, handshake: resumed}\n"
		"- {kind: idle, transport: tcp}\n"
		"- {kind: ramp, from: 1/s, to: 2/s, step: 1/s, p99: 1s}\n";
	static const char *const names[] = {"full", "mix",   "refused", "tcp",
					    "bulk", "burst", "idle",	"ramp"};
	struct cfg *cfg = scenario_good(yaml, NULL, 0);

	ck_assert_uint_eq(cfg->nphases, ARRAY_LEN(names));
	for (size_t i = 0; i < cfg->nphases; i++)
		ck_assert_str_eq(cfg->phases[i].name, names[i]);
	cfg_free(&cfg);
	scenario_refused("scenario: x\nphases:\n- {kind: idle}\n"
			 "- {kind: idle}\n",
			 NULL, 0,
			 "s.yaml:4: phases.1.name: \"idle\" is the name of "
			 "phases.0 as well; give each a name of its own, such "
			 "as name: idle-2\n");
}
END_TEST

START_TEST(what_follows_from_other_options_is_filled_in)
{
	struct cfg *cfg = scenario_good(
		"scenario: x\nphases:\n- {kind: bulk}\n"
		"- {kind: bulk, name: b, path: /}\n"
		"- {kind: bulk, name: c, body: 5B}\n"
		"- {kind: ramp, from: 100/s, to: 450/s, step: 100/s, "
		"p99: 20ms, step_time: 2s}\n"
		"- {kind: ramp, name: d, from: 1/s, to: 2/s, step: 1/s, "
		"p99: 20ms, duration: 9s}\n",
		NULL, 0);

	ck_assert_uint_eq(cfg->phases[0].body, 64 << 20);
	ck_assert_uint_eq(cfg->phases[0].requests, 0);
	ck_assert_uint_eq(cfg->phases[1].body, 0);
	ck_assert_uint_eq(cfg->phases[2].body, 5);
	/* 100, 200, 300 and 400 a second. */
	ck_assert_uint_eq(cfg->phases[3].duration, 8 * NS_PER_S);
	ck_assert_uint_eq(cfg->phases[3].from, 100000);
	ck_assert_uint_eq(cfg->phases[4].duration, 9 * NS_PER_S);
	ck_assert_uint_eq(cfg->terminator.listen_plain.n, 0);
	cfg_free(&cfg);
}
END_TEST

/* The plain listeners of the scenario, with spaces between. */
static void plain_is(const char *yaml, const char *expected)
{
	struct cfg *cfg = scenario_good(yaml, NULL, 0);
	const struct cfg_list *list = &cfg->terminator.listen_plain;
	char all[256] = "";

	for (size_t i = 0; i < list->n; i++)
		sprintf(all + strlen(all), "%s%s", i > 0 ? " " : "",
			list->item[i]);
	ck_assert_str_eq(all, expected);
	cfg_free(&cfg);
}

START_TEST(a_phase_without_tls_gets_a_plain_listener)
{
	static const char tcp[] = "phases: [{}, {transport: tcp}]\n";
	char yaml[256];

	plain_is("scenario: x\nphases: [{}]\n", "");
	sprintf(yaml, "scenario: x\n%s", tcp);
	plain_is(yaml, "127.0.0.1:0");
	sprintf(yaml,
		"scenario: x\nterminator: {listen: ['[::1]:8443', "
		"'127.0.0.1:1']}\n%s",
		tcp);
	plain_is(yaml, "[::1]:0");
	sprintf(yaml,
		"scenario: x\nterminator: {listen_plain: ['[::]:80', "
		"'1.2.3.4:5']}\n%s",
		tcp);
	plain_is(yaml, "[::]:80 1.2.3.4:5");
	sprintf(yaml, "scenario: x\ntarget: {address: '[::1]:80'}\n%s", tcp);
	plain_is(yaml, "");
	plain_is("scenario: x\nterminator: {listen: 127.0.0.1:0, "
		 "listen_plain: 127.0.0.1:0}\n",
		 "127.0.0.1:0");
	scenario_refused("scenario: x\nterminator:\n  listen: 127.0.0.1:443\n"
			 "  listen_plain: [127.0.0.1:80, 127.0.0.1:443, a]\n",
			 NULL, 0,
			 "s.yaml:4: terminator.listen_plain.2: \"a\" has no "
			 "port; write one behind a colon, such as "
			 "127.0.0.1:8443 or [::1]:8443\n"
			 "s.yaml:4: terminator.listen_plain.1: "
			 "\"127.0.0.1:443\" is in listen as well; write "
			 "another port\n");
	/* Told once. */
	sprintf(yaml, "scenario: x\nterminator: {listen: 'a:1'}\n%s", tcp);
	scenario_refused(yaml, NULL, 0,
			 "s.yaml:2: terminator.listen.0: \"a:1\" is no "
			 "address; write an IPv4 or IPv6 address, such as "
			 "127.0.0.1:8443 or [::1]:8443, and no host name\n");
}
END_TEST

/* ---- load and target ---- */

START_TEST(what_drivers_offer_is_checked)
{
	static const struct golden row[] = {
		{"load: {versions: [TLSv1.3, SSLv3]}\n",
		 "s.yaml:2: load.versions.1: \"SSLv3\" is not known; write "
		 "TLSv1.2 or TLSv1.3\n"},
		{"load: {groups: 'a:b'}\n",
		 "s.yaml:2: load.groups.0: \"a:b\" is not one name; write "
		 "[one, another]\n"},
		{"load: {ciphers: 'a:b'}\n",
		 "s.yaml:2: load.ciphers.0: \"a:b\" is not one name; write "
		 "[one, another]\n"},
		{"load: {sigalgs: 'a:b'}\n",
		 "s.yaml:2: load.sigalgs.0: \"a:b\" is not one name; write "
		 "[one, another]\n"},
		{"load: {alpn: [http/1.1, 'a b']}\n",
		 "s.yaml:2: load.alpn.1: \"a b\" is no name of a protocol; "
		 "write one such as http/1.1\n"},
		{"load: {certificate: a}\n",
		 "s.yaml:2: load.certificate: a certificate needs its private "
		 "key; add key: FILE\n"},
		{"load: {key: a}\n",
		 "s.yaml:2: load.key: a key needs its certificate; add "
		 "certificate: FILE\n"},
		{"load: {providers: [tpm2]}\n",
		 "s.yaml:2: load.providers: providers are loaded for the "
		 "drivers' key; add key: URI, or take providers out\n"},
		{"load: {providers: ['a/b'], key: k, certificate: c}\n",
		 "s.yaml:2: load.providers.0: \"a/b\" is not one name; write "
		 "[one, another]\n"},
		{"load: {source: [127.0.0.2, '127.0.0.3:80', '::1']}\n",
		 "s.yaml:2: load.source.1: \"127.0.0.3:80\" is no address; "
		 "write an IPv4 or IPv6 address without a port, such as "
		 "127.0.0.2\n"
		 "s.yaml:2: load.source.2: \"::1\" cannot reach the server at "
		 "127.0.0.1:0; write IPv4 addresses\n"},
		{"terminator: {listen: '[::1]:0'}\nload: {source: 10.0.0.1}\n",
		 "s.yaml:3: load.source.0: \"10.0.0.1\" cannot reach the "
		 "server at [::1]:0; write IPv6 addresses\n"},
		{"tls: {client_auth: required, ca: a}\nphases: [{}]\n",
		 "s.yaml:2: tls.client_auth: the drivers have no client "
		 "certificate: set load.certificate and load.key\n"},
		{"accept_doubt: [noisy, too_short, Noise]\n",
		 "s.yaml:2: accept_doubt.1: \"too_short\" is no name of a "
		 "doubt; write it as the result does, in small letters and "
		 "dashes\n"
		 "s.yaml:2: accept_doubt.2: \"Noise\" is no name of a doubt; "
		 "write it as the result does, in small letters and dashes\n"},
	};
	static const char *const good[] = {
		"load: {versions: TLSv1.2, groups: [P-256], sigalgs: "
		"[ECDSA+SHA256, rsa_pss_rsae_sha256], alpn: [h2, http/1.1]}\n",
		"load: {certificate: 'file:/a.pem', key: 'pkcs11:object=a', "
		"providers: [pkcs11, default]}\n",
		"load: {source: [127.0.0.2, 127.0.0.3]}\nphases: [{}]\n",
		"terminator: {listen: '[::1]:0'}\nload: {source: '::1'}\n",
		"tls: {client_auth: required, ca: a}\n",
		"tls: {client_auth: required, ca: a}\nload: {certificate: c, "
		"key: k}\nphases: [{}]\n",
		"tls: {client_auth: optional, ca: a}\nphases: [{}]\n",
		"accept_doubt: [noise, too-short]\n",
		"accept_doubt: noise\n",
	};

	all_refused(row, ARRAY_LEN(row));
	all_good(good, ARRAY_LEN(good));
}
END_TEST

START_TEST(a_name_of_a_protocol_fits_its_byte)
{
	char yaml[400], errs[400], name[257];

	memset(name, 'a', 256);
	name[256] = '\0';
	sprintf(yaml, "scenario: x\nload: {alpn: [%s]}\n", name + 1);
	plain_is(yaml, "");
	sprintf(yaml, "scenario: x\nload: {alpn: [%s]}\n", name);
	sprintf(errs,
		"s.yaml:2: load.alpn.0: \"%.60s\"... is too long; write 1 to "
		"255 characters\n",
		name);
	scenario_refused(yaml, NULL, 0, errs);
}
END_TEST

START_TEST(a_target_stands_in_for_our_own_server)
{
	static const char *const good[] = {
		"target: {address: '127.0.0.1:8443'}\nphases: [{}]\n",
		"target: {address: '[::1]:443', name: nginx, pids: [1, "
		"4194304]}\nphases: [{handshake: resumed}]\n",
		"target: {address: '1.2.3.4:1', pid_file: /run/a.pid}\n"
		"phases: [{speaks_first: server, requests: 1}]\n"
		"tls: {versions: TLSv1.2}\n",
		"target: {address: '1.2.3.4:1', cgroup: /system.slice/a}\n"
		"phases: [{kind: bulk, path: /a}]\n",
		"target: {address: '[::1]:443'}\nterminator:\nworkers: ~\n"
		"load: {source: ['::1']}\nphases: [{}]\n",
	};
	static const struct golden row[] = {
		{"target: {}\nphases: [{}]\n",
		 "s.yaml:2: target.address: missing; a target needs `address: "
		 "127.0.0.1:8443` or such\n"},
		{"target: {address: '127.0.0.1:1'}\n",
		 "s.yaml:2: target: is loaded by phases, and there are none; "
		 "add phases\n"},
		{"target: {address: '127.0.0.1:1'}\nphases: [{}]\nload: none\n",
		 "s.yaml:3: phases: phases need a load, and there is none; "
		 "take phases out, or load: none\n"},
		{"target: {address: '127.0.0.1:0'}\nphases: [{}]\n",
		 "s.yaml:2: target.address: \"127.0.0.1:0\" has port 0, where "
		 "nobody listens; write the server's port\n"},
		{"target: {address: '::1:80'}\nphases: [{}]\n",
		 "s.yaml:2: target.address: \"::1:80\" has colons; write an "
		 "IPv6 address in brackets, such as [::1]:8443\n"},
		{"target: {address: 'a:80'}\nphases: [{}]\n",
		 "s.yaml:2: target.address: \"a:80\" is no address; write an "
		 "IPv4 or IPv6 address, such as 127.0.0.1:8443 or "
		 "[::1]:8443, and no host name\n"},
		{"target: {address: '127.0.0.1:1', name: a b}\n"
		 "phases: [{}]\n",
		 "s.yaml:2: target.name: \"a b\" is no name; write letters, "
		 "digits, dots, underscores and dashes\n"},
		{"target: {address: '127.0.0.1:1', pids: [0, 4194305, x]}\n"
		 "phases: [{}]\n",
		 "s.yaml:2: target.pids.0: \"0\" is no process number; write "
		 "one such as 1234\n"
		 "s.yaml:2: target.pids.1: \"4194305\" is no process number; "
		 "write one such as 1234\n"
		 "s.yaml:2: target.pids.2: \"x\" is no process number; write "
		 "one such as 1234\n"},
		{"target:\n  address: '127.0.0.1:1'\n  pids: 1\n"
		 "  pid_file: a\n  cgroup: b\nphases: [{}]\n",
		 "s.yaml:5: target.pid_file: pids says already which processes "
		 "are the server's; take one of them out\n"
		 "s.yaml:6: target.cgroup: pids says already which processes "
		 "are the server's; take one of them out\n"},
		{"target: {address: '127.0.0.1:1'}\nphases: [{}]\n"
		 "terminator: {}\nworkers: {count: 1}\n"
		 "tls:\n  client_auth: none\n  ca: a\n  tickets: {}\n"
		 "  certificate: {key: a}\n",
		 "s.yaml:4: terminator: says how our own server is to be, "
		 "which a target stands in for; take one of them out\n"
		 "s.yaml:5: workers: says how our own server is to be, which a "
		 "target stands in for; take one of them out\n"
		 "s.yaml:7: tls.client_auth: says how our own server is to be, "
		 "which a target stands in for; take one of them out\n"
		 "s.yaml:8: tls.ca: says how our own server is to be, which a "
		 "target stands in for; take one of them out\n"
		 "s.yaml:9: tls.tickets: says how our own server is to be, "
		 "which a target stands in for; take one of them out\n"
		 "s.yaml:10: tls.certificate: says how our own server is to "
		 "be, which a target stands in for; take one of them out\n"},
		{"target: 127.0.0.1:80\nphases: [{}]\n",
		 "s.yaml:2: target: a text where a mapping is due; its keys "
		 "are address, name, pids, pid_file, cgroup\n"},
	};

	all_good(good, ARRAY_LEN(good));
	all_refused(row, ARRAY_LEN(row));
}
END_TEST

START_TEST(a_target_that_is_null_is_none)
{
	struct cfg *cfg = scenario_good("scenario: x\ntarget:\n", NULL, 0);

	ck_assert(!cfg->has_target);
	cfg_free(&cfg);
	cfg = scenario_good("scenario: x\nphases: [{}]\n"
			    "target: {address: '[::1]:443'}\n",
			    NULL, 0);
	ck_assert(cfg->has_target);
	cfg_free(&cfg);
}
END_TEST

static TCase *with_file(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, scenario_setup, scenario_teardown);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	return t;
}

static void add_works(TCase *t)
{
	tcase_add_test(t, what_goes_together_is_taken);
	tcase_add_test(t, each_kind_of_phase_has_its_options);
	tcase_add_test(t, phases_are_called_by_what_they_are);
	tcase_add_test(t, what_follows_from_other_options_is_filled_in);
	tcase_add_test(t, a_phase_without_tls_gets_a_plain_listener);
	tcase_add_test(t, a_target_that_is_null_is_none);
}

static void add_limits(TCase *t)
{
	tcase_add_test(t, sixty_four_phases_are_run_and_no_more);
	tcase_add_test(t, a_name_of_a_protocol_fits_its_byte);
}

static void add_refuses(TCase *t)
{
	tcase_add_test(t, certificates_are_made_or_read);
	tcase_add_test(t, client_authentication_and_its_cas_need_each_other);
	tcase_add_test(t, tickets_contradict_nothing);
	tcase_add_test(t, phases_that_cannot_be_run_are_refused);
	tcase_add_test(t, addresses_are_numbers_with_a_port);
	tcase_add_test(t, texts_must_look_like_what_they_are);
	tcase_add_test(t, all_faults_are_told_at_once_in_order);
	tcase_add_test(t, options_that_a_phase_has_not_got_are_refused);
	tcase_add_test(t, ramps_rise_step_by_step_in_their_time);
	tcase_add_test(t, phases_contradict_nothing);
	tcase_add_test(t, who_speaks_first_is_agreed);
	tcase_add_test(t, every_handshake_with_a_ticket_needs_tickets);
	tcase_add_test(t, what_drivers_offer_is_checked);
	tcase_add_test(t, a_target_stands_in_for_our_own_server);
}

int main(void)
{
	Suite *s = suite_create("rules");
	SRunner *r;
	int failed;

	add_works(with_file(s, "works"));
	add_limits(with_file(s, "limits"));
	add_refuses(with_file(s, "refuses"));
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
