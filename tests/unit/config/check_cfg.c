/* SPDX-License-Identifier: MIT */
#include "config/cfg.h"

#include "config/opt.h"
#include "config/unit.h"
#include "shm/base.h"
#include "tests/unit/config/scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

/* ---- every row of options.def ---- */

/* The rows once more, beside opt.c's table: path, type and range as written. */
struct row {
	enum opt_section_id section;
	const char *path, *key, *type, *deflt;
	uint64_t min, max;
};

#define ROW(in, path, key, type, deflt, min, max, help) \
	{OPT_IN_##in, path #key, #key, #type, deflt, min, max},
static const struct row rows[] = {
#define OPT_ROOT(...)	     ROW(ROOT, "", __VA_ARGS__)
#define OPT_TERMINATOR(...)  ROW(TERMINATOR, "terminator.", __VA_ARGS__)
#define OPT_RESPOND(...)     ROW(RESPOND, "terminator.respond.", __VA_ARGS__)
#define OPT_TARGET(...)	     ROW(TARGET, "target.", __VA_ARGS__)
#define OPT_WORKERS(...)     ROW(WORKERS, "workers.", __VA_ARGS__)
#define OPT_TLS(...)	     ROW(TLS, "tls.", __VA_ARGS__)
#define OPT_CERTIFICATE(...) ROW(CERTIFICATE, "tls.certificate.", __VA_ARGS__)
#define OPT_TICKETS(...)     ROW(TICKETS, "tls.tickets.", __VA_ARGS__)
#define OPT_LOAD(...)	     ROW(LOAD, "load.", __VA_ARGS__)
#define OPT_PHASE(...)	     ROW(PHASE, "phases.0.", __VA_ARGS__)
#define OPT_SEGMENT(...)     ROW(SEGMENT, "segment.", __VA_ARGS__)
#define OPT_RESULT(...)	     ROW(RESULT, "result.", __VA_ARGS__)
#include "config/options.def"
};

#define TEXT_MAX 8192

static bool is_type(const struct row *r, const char *type)
{
	return strcmp(r->type, type) == 0;
}

static bool is_number(const struct row *r)
{
	static const char *const types[] = {"UINT",	"COUNT", "DRIVERS",
					    "DURATION", "SIZE",	 "REQUESTS",
					    "PERCENT",	"RATE"};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (is_type(r, types[i]))
			return true;
	return false;
}

static bool is_words(const struct row *r)
{
	return !is_number(r) && !is_type(r, "STR") && !is_type(r, "LIST") &&
	       !is_type(r, "BOOL");
}

/* The option's struct and member in cfg. */
static const void *member(const struct cfg *cfg, const struct row *r)
{
	const struct opt_row *o = opt_row(r->section, r->key);
	const char *in = r->section == OPT_IN_PHASE
				 ? (const char *)&cfg->phases[0]
				 : (const char *)cfg +
					   opt_sections[r->section].cfg_offset;

	ck_assert_ptr_nonnull(o);
	return in + o->cfg_offset;
}

/* The value as a text: numbers in ns and bytes, lists with commas. */
static char *value_of(const struct cfg *cfg, const struct row *r,
		      char buf[static TEXT_MAX])
{
	const void *m = member(cfg, r);
	const struct cfg_list *list = m;

	buf[0] = '\0';
	if (is_number(r))
		sprintf(buf, "%" PRIu64, *(const uint64_t *)m);
	else if (is_type(r, "BOOL"))
		strcpy(buf, *(const bool *)m ? "true" : "false");
	else if (is_words(r))
		strcpy(buf, cfg_word(r->type, *(const int *)m));
	else if (is_type(r, "STR") && *(char *const *)m != NULL)
		strcpy(buf, *(char *const *)m);
	for (size_t i = 0; is_type(r, "LIST") && i < list->n; i++)
		sprintf(buf + strlen(buf), "%s%s", i ? ", " : "",
			list->item[i]);
	return buf;
}

/* A default or a written value in the form of value_of(). */
static char *expected(const struct row *r, const char *text,
		      char buf[static TEXT_MAX])
{
	char err[256];
	uint64_t n = CFG_AUTO;
	int rc = 0;

	if (is_type(r, "DURATION"))
		rc = unit_duration(text, &n, err, sizeof(err));
	else if (is_type(r, "SIZE"))
		rc = unit_size(text, &n, err, sizeof(err));
	else if (is_type(r, "RATE"))
		rc = unit_rate(text, &n, err, sizeof(err));
	else if (is_type(r, "PERCENT"))
		rc = unit_percent(text, &n, err, sizeof(err));
	else if (is_number(r) && strcmp(text, "auto") != 0)
		rc = unit_uint(text, &n, err, sizeof(err));
	ck_assert_int_eq(rc, 0);
	if (is_number(r))
		sprintf(buf, "%" PRIu64, n);
	else
		strcpy(buf, text);
	return buf;
}

/* A number as it is written for an option of that type. */
static void write_number(const struct row *r, uint64_t n, char *buf, size_t len)
{
	if (is_type(r, "DURATION"))
		unit_print_duration(n, buf, len);
	else if (is_type(r, "SIZE"))
		unit_print_size(n, buf, len);
	else if (is_type(r, "RATE"))
		unit_print_rate(n, buf, len);
	else if (is_type(r, "PERCENT"))
		unit_print_percent(n, buf, len);
	else
		snprintf(buf, len, "%" PRIu64, n);
}

static const char base[] = "scenario: x\nphases: [{}]\n";

/* What else has to be said for an option, or for its word, to stand. */
static const struct {
	const char *path, *value, *set;
} besides[] = {
	{"tls.ca", NULL, "tls.client_auth=optional"},
	{"tls.client_auth", "optional", "tls.ca=ca.pem"},
	{"tls.client_auth", "required", "tls.ca=ca.pem"},
	{"tls.client_auth", "required", "load.key=a.key"},
	{"tls.client_auth", "required", "load.certificate=a.pem"},
	{"tls.certificate.chain", NULL, "tls.certificate.key=a.key"},
	{"tls.certificate.key", NULL, "tls.certificate.chain=a.pem"},
	{"tls.tickets.lifetime", NULL, "tls.tickets.rotate=7d"},
	{"tls.tickets.rotate", NULL, "tls.tickets.lifetime=1s"},
	{"load.certificate", NULL, "load.key=a.key"},
	{"load.key", NULL, "load.certificate=a.pem"},
	{"load.providers", NULL, "load.certificate=a.pem"},
	{"load.providers", NULL, "load.key=a.key"},
	{"target.name", NULL, "target.address=127.0.0.1:1"},
	{"target.pids", NULL, "target.address=127.0.0.1:1"},
	{"target.pid_file", NULL, "target.address=127.0.0.1:1"},
	{"target.cgroup", NULL, "target.address=127.0.0.1:1"},
	{"phases.0.kind", "burst", "phases.0.connections=5"},
	{"phases.0.kind", "ramp", "phases.0.from=1/s"},
	{"phases.0.kind", "ramp", "phases.0.to=2/s"},
	{"phases.0.kind", "ramp", "phases.0.step=1/s"},
	{"phases.0.kind", "ramp", "phases.0.p99=1s"},
	{"phases.0.resume", NULL, "phases.0.handshake=mix"},
	{"phases.0.ticket_use", NULL, "phases.0.handshake=resumed"},
	{"phases.0.path", NULL, "phases.0.requests=1"},
	{"phases.0.body", NULL, "phases.0.requests=1"},
	{"phases.0.think", NULL, "phases.0.requests=1"},
	{"phases.0.speaks_first", "server",
	 "terminator.respond.mode=speak-first"},
	{"phases.0.arrivals", NULL, "phases.0.rate=1/s"},
	{"phases.0.every", NULL, "phases.0.kind=burst"},
	{"phases.0.every", NULL, "phases.0.connections=5"},
	{"phases.0.from", NULL, "phases.0.kind=ramp"},
	{"phases.0.from", NULL, "phases.0.to=10000000/s"},
	{"phases.0.from", NULL, "phases.0.p99=1s"},
	{"phases.0.from", "0.001/s", "phases.0.step=1000/s"},
	{"phases.0.from", "9999999.999/s", "phases.0.step=0.001/s"},
	{"phases.0.to", NULL, "phases.0.kind=ramp"},
	{"phases.0.to", NULL, "phases.0.from=0.001/s"},
	{"phases.0.to", NULL, "phases.0.p99=1s"},
	{"phases.0.to", "0.002/s", "phases.0.step=0.001/s"},
	{"phases.0.to", "10000000/s", "phases.0.step=1000/s"},
	{"phases.0.step", NULL, "phases.0.kind=ramp"},
	{"phases.0.step", NULL, "phases.0.from=0.001/s"},
	{"phases.0.step", NULL, "phases.0.p99=1s"},
	{"phases.0.step", "0.001/s", "phases.0.to=1/s"},
	{"phases.0.step", "9999999.999/s", "phases.0.to=10000000/s"},
	{"phases.0.step_time", NULL, "phases.0.kind=ramp"},
	{"phases.0.step_time", NULL, "phases.0.from=1/s"},
	{"phases.0.step_time", NULL, "phases.0.to=2/s"},
	{"phases.0.step_time", NULL, "phases.0.step=1/s"},
	{"phases.0.step_time", NULL, "phases.0.p99=1s"},
	{"phases.0.p99", NULL, "phases.0.kind=ramp"},
	{"phases.0.p99", NULL, "phases.0.from=1/s"},
	{"phases.0.p99", NULL, "phases.0.to=2/s"},
	{"phases.0.p99", NULL, "phases.0.step=1/s"},
};

#define BESIDES_MAX 8

/* Adds them to `sets`; how many. */
static size_t say_besides(const struct row *r, const char *value,
			  const char **sets)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(besides); i++)
		if (strcmp(besides[i].path, r->path) == 0 &&
		    (besides[i].value == NULL ||
		     strcmp(besides[i].value, value) == 0))
			sets[n++] = besides[i].set;
	ck_assert_uint_le(n, BESIDES_MAX);
	return n;
}

/*
 * Loads with the option at this value; the caller frees *errs. What else has to
 * be said for the option to stand is said.
 */
static int load_with(struct cfg **out, const struct row *r, const char *value,
		     char **errs)
{
	const char *sets[1 + BESIDES_MAX];
	char *set;
	size_t n;
	int rc;

	ck_assert_int_gt(asprintf(&set, "%s=%s", r->path, value), 0);
	sets[0] = set;
	n = 1 + say_besides(r, value, sets + 1);
	rc = scenario_load(out, base, sets, n, errs);
	free(set);
	return rc;
}

static void takes(const struct row *r, const char *value, const char *expect)
{
	char got[TEXT_MAX], *errs;
	struct cfg *cfg = NULL;

	ck_assert_msg(load_with(&cfg, r, value, &errs) == 0, "%s", errs);
	ck_assert_str_eq(errs, "");
	ck_assert_str_eq(value_of(cfg, r, got), expect);
	free(errs);
	cfg_free(&cfg);
}

/* The value is refused with this one message, which follows the path. */
__attribute__((format(printf, 3, 4))) static void refuses(const struct row *r,
							  const char *value,
							  const char *fmt, ...)
{
	char message[1024], line[1280], *errs;
	struct cfg *cfg = NULL;
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	snprintf(line, sizeof(line), "--set:1: %s%s\n", r->path, message);
	ck_assert_msg(load_with(&cfg, r, value, &errs) == -EINVAL,
		      "%s=%.80s is not refused", r->path, value);
	ck_assert_str_eq(errs, line);
	ck_assert_ptr_null(cfg);
	free(errs);
}

START_TEST(every_default_is_what_the_table_says)
{
	struct cfg *cfg = scenario_good(base, NULL, 0);
	char got[TEXT_MAX], want[TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];

		if (strcmp(r->path, "scenario") == 0)
			continue;
		if (strcmp(r->path, "phases.0.name") == 0)
			strcpy(want, "full");
		else if (r->deflt == NULL)
			strcpy(want, is_number(r) ? "0" : "");
		else
			expected(r, r->deflt, want);
		ck_assert_str_eq(value_of(cfg, r, got), want);
	}
	cfg_free(&cfg);
}
END_TEST

START_TEST(every_default_may_be_written)
{
	char want[TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].deflt != NULL)
			takes(&rows[i], rows[i].deflt,
			      expected(&rows[i], rows[i].deflt, want));
}
END_TEST

START_TEST(every_word_is_taken)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; k < opt_nwords; k++)
			if (is_type(&rows[i], opt_type_name(opt_words[k].type)))
				takes(&rows[i], opt_words[k].word,
				      opt_words[k].word);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (is_type(&rows[i], "BOOL")) {
			takes(&rows[i], "true", "true");
			takes(&rows[i], "false", "false");
		}
}
END_TEST

START_TEST(every_number_is_taken_from_min_to_max)
{
	char text[64], want[TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];

		if (!is_number(r))
			continue;
		write_number(r, r->min, text, sizeof(text));
		sprintf(want, "%" PRIu64, r->min);
		takes(r, text, want);
		write_number(r, r->max, text, sizeof(text));
		sprintf(want, "%" PRIu64, r->max);
		takes(r, text, want);
	}
}
END_TEST

START_TEST(every_number_is_refused_beyond_min_and_max)
{
	char text[64], min[64], max[64];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		const char *also = is_type(r, "COUNT")	    ? "auto, or "
				   : is_type(r, "DRIVERS")  ? "auto, none, or "
				   : is_type(r, "REQUESTS") ? "unlimited, or "
							    : "";

		if (!is_number(r))
			continue;
		write_number(r, r->min, min, sizeof(min));
		write_number(r, r->max, max, sizeof(max));
		write_number(r, r->max + 1, text, sizeof(text));
		refuses(r, text, ": \"%s\" is out of range; write %s%s to %s",
			text, also, min, max);
		if (r->min == 0)
			continue;
		write_number(r, r->min - 1, text, sizeof(text));
		refuses(r, text, ": \"%s\" is out of range; write %s%s to %s",
			text, also, min, max);
	}
}
END_TEST

/* A text of that length which the option takes; the caller frees it. */
static char *text_of_length(const struct row *r, uint64_t len)
{
	static const char *const last[] = {"",	   "7",	    "77",    "777",
					   "7777", "59999", "77,777"};
	char *text = calloc(1, len + 16);

	ck_assert_ptr_nonnull(text);
	if (strcmp(r->key, "pin") != 0) {
		memset(text, 'a', len);
		if (strcmp(r->key, "path") == 0)
			text[0] = '/';
		return text;
	}
	/* 100,101,...: as many as fit, then a number as long as is left. */
	for (int cpu = 100; len > 6; cpu++, len -= 4)
		sprintf(text + strlen(text), "%d,", cpu);
	sprintf(text + strlen(text), "%s", last[len]);
	return text;
}

/* One text that is none of its length alone. */
static bool is_address(const struct row *r)
{
	return strcmp(r->path, "target.address") == 0;
}

START_TEST(every_text_is_taken_from_min_to_max)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		char *text;

		if (!is_type(r, "STR") || is_address(r))
			continue;
		text = text_of_length(r, r->max);
		ck_assert_uint_eq(strlen(text), r->max);
		takes(r, text, text);
		free(text);
		text = text_of_length(r, r->min);
		takes(r, text, text);
		free(text);
	}
}
END_TEST

START_TEST(every_text_is_refused_beyond_min_and_max)
{
	char quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		char *text;

		if (!is_type(r, "STR"))
			continue;
		text = text_of_length(r, r->max + 1);
		refuses(r, text,
			": %s is too long; write %" PRIu64 " to %" PRIu64
			" characters",
			unit_quote(quoted, text), r->min, r->max);
		free(text);
		refuses(r, "\"\"",
			": \"\" is too short; write %" PRIu64 " to %" PRIu64
			" characters",
			r->min, r->max);
	}
}
END_TEST

/* [..] of n entries that the option takes; without brackets as value_of(). */
static void list_of(const struct row *r, uint64_t n, bool brackets,
		    char buf[static TEXT_MAX])
{
	strcpy(buf, brackets ? "[" : "");
	for (uint64_t i = 0; i < n; i++) {
		char *at = buf + strlen(buf);

		at += sprintf(at, "%s", i ? ", " : "");
		if (strcmp(r->key, "versions") == 0)
			sprintf(at, "TLSv1.%" PRIu64, i + 2);
		else if (strncmp(r->key, "listen", 6) == 0)
			sprintf(at, "127.0.0.1:%" PRIu64, i);
		else if (strcmp(r->key, "source") == 0)
			sprintf(at, "127.0.0.%" PRIu64, i + 1);
		else if (strcmp(r->key, "pids") == 0)
			sprintf(at, "%" PRIu64, i + 1);
		else if (strcmp(r->key, "accept_doubt") == 0)
			sprintf(at, "doubt-%c%c", (char)('a' + i / 26),
				(char)('a' + i % 26));
		else
			sprintf(at, "%s%" PRIu64, r->key, i);
	}
	strcat(buf, brackets ? "]" : "");
}

START_TEST(every_list_is_taken_from_min_to_max)
{
	char text[TEXT_MAX], want[TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];

		if (!is_type(r, "LIST"))
			continue;
		for (uint64_t n = r->min; n <= r->max; n += r->max - r->min) {
			list_of(r, n, true, text);
			list_of(r, n, false, want);
			takes(r, text, want);
			takes(r, want, want);
		}
	}
}
END_TEST

START_TEST(every_list_is_refused_beyond_min_and_max)
{
	char text[TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];

		if (!is_type(r, "LIST"))
			continue;
		list_of(r, r->max + 1, true, text);
		refuses(r, text,
			": a list of %" PRIu64 "; write %" PRIu64 " to %" PRIu64
			" entries",
			r->max + 1, r->min, r->max);
		refuses(r, "[]",
			": a list of 0; write %" PRIu64 " to %" PRIu64
			" entries",
			r->min, r->max);
		refuses(r, "[a, A]",
			".1: \"A\" is there twice; take one of them out");
		refuses(r, "[\"a, b\"]",
			".0: \"a, b\" is not one entry; write [one, another]");
		refuses(r, "a,",
			".1: \"\" is not one entry; write [one, another]");
		refuses(r, "['~']",
			".0: \"~\" means nothing in YAML; write another text, "
			"or ./~ for a file of that name");
	}
}
END_TEST

START_TEST(every_option_refuses_another_type)
{
	char allowed[OPT_ALLOWED_LEN];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		const struct opt_row *o = opt_row(r->section, r->key);

		opt_allowed(allowed, o);
		if (is_type(r, "LIST")) {
			refuses(r, "{a: 1}",
				": a mapping where a list is due; write [one, "
				"another]");
			continue;
		}
		/* The scenario's name would be missed as well. */
		if (r->section != OPT_IN_ROOT) {
			refuses(r, "{a: 1}",
				": a mapping where one value is due; write %s",
				allowed);
			refuses(r, "[1]",
				": a list where one value is due; write %s",
				allowed);
		}
		if (is_type(r, "BOOL"))
			refuses(r, "yes",
				": \"yes\" is no boolean; write true or false");
		if (is_words(r))
			refuses(r, "qqqqqqqq",
				": \"qqqqqqqq\" is not known; write %s",
				allowed);
		if (is_type(r, "COUNT") || is_type(r, "DRIVERS") ||
		    is_type(r, "REQUESTS"))
			refuses(r, "many", ": \"many\" is no number; write %s",
				allowed);
		if (is_type(r, "DURATION"))
			refuses(r, "400",
				": \"400\" has no unit: write 400ms or 400s");
		if (is_type(r, "SIZE"))
			refuses(r, "400",
				": \"400\" has no unit: write 400B or 400KiB");
		if (is_type(r, "RATE"))
			refuses(r, "400",
				": \"400\" has no unit: write 400/s or "
				"400/min");
		if (is_type(r, "PERCENT"))
			refuses(r, "40", ": \"40\" has no unit: write 40%%");
		if (is_type(r, "UINT"))
			refuses(r, "1_000",
				": \"1_000\" has a _: write the digits alone");
	}
}
END_TEST

START_TEST(every_option_may_be_null)
{
	char got[TEXT_MAX], want[TEXT_MAX], *errs;
	struct cfg *plain = scenario_good(base, NULL, 0), *cfg;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char set[64];
		const char *sets[] = {set, "target.address=127.0.0.1:1"};
		size_t n = rows[i].section == OPT_IN_TARGET ? 2 : 1;

		/* These must be there. */
		if (strcmp(rows[i].path, "scenario") == 0 ||
		    is_address(&rows[i]))
			continue;
		sprintf(set, "%s=null", rows[i].path);
		cfg = NULL;
		ck_assert_int_eq(scenario_load(&cfg, base, sets, n, &errs), 0);
		ck_assert_str_eq(value_of(cfg, &rows[i], got),
				 value_of(plain, &rows[i], want));
		free(errs);
		cfg_free(&cfg);
	}
	cfg_free(&plain);
}
END_TEST

/* ---- words ---- */

START_TEST(words_and_values_belong_together)
{
	ck_assert_str_eq(cfg_word("CERT", CFG_CERT_ECDSA_P256), "ecdsa-p256");
	ck_assert_str_eq(cfg_word("CERT", CFG_CERT_ED25519), "ed25519");
	ck_assert_str_eq(cfg_word("MODE", CFG_MODE_0640), "0640");
	ck_assert_str_eq(cfg_word("RESPOND", CFG_RESPOND_SPEAK_FIRST),
			 "speak-first");
	ck_assert_str_eq(cfg_word("HANDSHAKE", 4), "?");
	ck_assert_str_eq(cfg_word("NOTHING", 0), "?");
}
END_TEST

START_TEST(booleans_are_no_other_words)
{
	static const char *const words[] = {"no", "on", "off",	"True",
					    "1",  "y",	"FALSE"};
	char expect[160], set[64];
	const char *sets[] = {set};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		sprintf(set, "terminator.nodelay=%s", words[i]);
		sprintf(expect,
			"--set:1: terminator.nodelay: \"%s\" is no boolean; "
			"write true or false\n",
			words[i]);
		scenario_refused("scenario: x\n", sets, 1, expect);
	}
}
END_TEST

START_TEST(words_that_are_nearly_right_get_a_proposal)
{
	scenario_refused(
		"scenario: x\nterminator: {accept: sharde}\n"
		"tls: {certificate: {make: ECDSA-P256}}\n"
		"segment: {mode: 600}\n",
		NULL, 0,
		"s.yaml:2: terminator.accept: \"sharde\" is not known; "
		"did you mean shared? Write reuseport or shared\n"
		"s.yaml:3: tls.certificate.make: \"ECDSA-P256\" is not "
		"known; did you mean ecdsa-p256? Write rsa-2048, "
		"rsa-3072, rsa-4096, ecdsa-p256, ecdsa-p384 or "
		"ed25519\n"
		"s.yaml:4: segment.mode: \"600\" is not known; did you "
		"mean 0600? Write 0600, 0640 or 0644\n");
}
END_TEST

START_TEST(the_segment_is_called_by_its_name_or_the_scenarios)
{
	struct cfg *cfg = scenario_good("scenario: x\n", NULL, 0);

	ck_assert_str_eq(cfg_segment_name(cfg), "x");
	cfg_free(&cfg);
	cfg = scenario_good("scenario: x\nsegment: {name: y}\n", NULL, 0);
	ck_assert_str_eq(cfg_segment_name(cfg), "y");
	ck_assert_str_eq(cfg->path, "s.yaml");
	cfg_free(&cfg);
	cfg_free(&cfg);
	cfg_free(NULL);
}
END_TEST

/* ---- print ---- */

/* All options of a phase but name and path are numbers in the end. */
static void same_phase(const struct cfg_phase *a, const struct cfg_phase *b)
{
	struct cfg_phase x = *a, y = *b;

	ck_assert_str_eq(x.name, y.name);
	ck_assert_str_eq(x.path, y.path);
	x.name = y.name = x.path = y.path = NULL;
	ck_assert_mem_eq(&x, &y, sizeof(x));
}

static void same_value(const struct cfg *a, const struct cfg *b,
		       const char *yaml)
{
	char x[TEXT_MAX], y[TEXT_MAX];

	ck_assert_uint_eq(a->nphases, b->nphases);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].section == OPT_IN_PHASE && a->nphases == 0)
			continue;
		ck_assert_msg(strcmp(value_of(a, &rows[i], x),
				     value_of(b, &rows[i], y)) == 0,
			      "%s: %s is not %s\n%s", rows[i].path, x, y, yaml);
	}
	ck_assert_int_eq(a->has_target, b->has_target);
	for (size_t i = 0; i < a->nphases; i++)
		same_phase(&a->phases[i], &b->phases[i]);
}

/* What is printed loads to the same, and is printed as the same. */
static void round_trip(const struct cfg *cfg)
{
	char *once = scenario_printed(cfg), *twice;
	struct cfg *again = scenario_good(once, NULL, 0);

	same_value(cfg, again, once);
	twice = scenario_printed(again);
	ck_assert_str_eq(once, twice);
	free(once);
	free(twice);
	cfg_free(&again);
}

START_TEST(a_scenario_is_printed_with_every_key)
{
	struct cfg *cfg = scenario_good("scenario: x\n", NULL, 0);
	char *text = scenario_printed(cfg);

	ck_assert_str_eq(
		text,
		"scenario: x\n"
		"terminator:\n"
		"  listen: ['127.0.0.1:0']\n"
		"  accept: reuseport\n"
		"  backlog: 4096\n"
		"  nodelay: true\n"
		"  v6only: true\n"
		"  handshake_timeout: 10s\n"
		"  idle_timeout: 1m\n"
		"  drain_timeout: 10s\n"
		"  respond:\n"
		"    mode: http\n"
		"    body: 1KiB\n"
		"workers:\n"
		"  count: auto\n"
		"  pin: auto\n"
		"tls:\n"
		"  versions: [TLSv1.2, TLSv1.3]\n"
		"  groups: [X25519]\n"
		"  ciphers: [TLS_AES_256_GCM_SHA384, "
		"ECDHE-ECDSA-AES256-GCM-SHA384, ECDHE-RSA-AES256-GCM-SHA384]\n"
		"  client_auth: none\n"
		"  certificate:\n"
		"    make: ecdsa-p256\n"
		"  tickets:\n"
		"    enabled: true\n"
		"    shared: true\n"
		"    per_handshake: 2\n"
		"    lifetime: 2h\n"
		"    rotate: 1h\n"
		"load:\n"
		"  drivers: auto\n"
		"  connections: 32\n"
		"  pin: auto\n"
		"  server_name: auto\n"
		"  timeout: 5s\n"
		"  ticket_wait: 500ms\n"
		"segment:\n"
		"  mode: 0600\n"
		"result:\n"
		"  dir: results\n");
	free(text);
	cfg_free(&cfg);
}
END_TEST

/* What is printed of a scenario between two of its lines. */
static char *part_of(const struct cfg *cfg, const char *from, const char *to)
{
	char *text = scenario_printed(cfg), *part, *end;

	part = strstr(text, from);
	ck_assert_ptr_nonnull(part);
	end = strstr(part, to);
	ck_assert_ptr_nonnull(end);
	part = strndup(part, (size_t)(end - part));
	free(text);
	return part;
}

START_TEST(a_phase_is_printed_with_what_it_has)
{
	struct cfg *cfg = scenario_good(
		"scenario: x\nphases:\n"
		"- {handshake: mix, resume: 70%, requests: unlimited, "
		"think: 2ms}\n"
		"- {rate: 30/min, arrivals: poisson, transport: tcp, requests: "
		"2, body: 1MiB}\n"
		"- {kind: ramp, from: 0.5/s, to: 2000/s, step: 100/s, p99: "
		"20ms}\n",
		NULL, 0);
	char *text = part_of(cfg, "phases:\n", "segment:\n");

	ck_assert_str_eq(text, "phases:\n"
			       "- name: mix\n"
			       "  kind: handshakes\n"
			       "  handshake: mix\n"
			       "  resume: 70%\n"
			       "  ticket_use: once\n"
			       "  requests: unlimited\n"
			       "  path: /\n"
			       "  body: 0B\n"
			       "  think: 2ms\n"
			       "  close: fin\n"
			       "  transport: tls\n"
			       "  speaks_first: client\n"
			       "  connections: auto\n"
			       "  records: false\n"
			       "  warmup: 1s\n"
			       "  duration: 5s\n"
			       "- name: tcp\n"
			       "  kind: handshakes\n"
			       "  handshake: full\n"
			       "  requests: 2\n"
			       "  body: 1MiB\n"
			       "  think: 0s\n"
			       "  close: fin\n"
			       "  transport: tcp\n"
			       "  speaks_first: client\n"
			       "  connections: auto\n"
			       "  rate: 0.5/s\n"
			       "  arrivals: poisson\n"
			       "  records: false\n"
			       "  warmup: 1s\n"
			       "  duration: 5s\n"
			       "- name: ramp\n"
			       "  kind: ramp\n"
			       "  handshake: full\n"
			       "  requests: 0\n"
			       "  close: fin\n"
			       "  transport: tls\n"
			       "  speaks_first: client\n"
			       "  connections: auto\n"
			       "  arrivals: constant\n"
			       "  from: 0.5/s\n"
			       "  to: 2000/s\n"
			       "  step: 100/s\n"
			       "  step_time: 1s\n"
			       "  p99: 20ms\n"
			       "  records: false\n"
			       "  warmup: 1s\n"
			       "  duration: 20s\n");
	free(text);
	cfg_free(&cfg);
}
END_TEST

START_TEST(a_target_is_printed_in_place_of_our_own_server)
{
	struct cfg *cfg = scenario_good(
		"scenario: x\naccept_doubt: noise\ntarget: {address: "
		"'[::1]:443', "
		"name: nginx, pids: 12}\nload: {alpn: http/1.1}\n"
		"phases: [{}]\n",
		NULL, 0);
	char *text = part_of(cfg, "scenario:", "phases:\n");

	ck_assert_str_eq(text, "scenario: x\n"
			       "accept_doubt: [noise]\n"
			       "target:\n"
			       "  address: '[::1]:443'\n"
			       "  name: nginx\n"
			       "  pids: [12]\n"
			       "tls:\n"
			       "  versions: [TLSv1.2, TLSv1.3]\n"
			       "  groups: [X25519]\n"
			       "  ciphers: [TLS_AES_256_GCM_SHA384, "
			       "ECDHE-ECDSA-AES256-GCM-SHA384, "
			       "ECDHE-RSA-AES256-GCM-SHA384]\n"
			       "load:\n"
			       "  drivers: auto\n"
			       "  connections: 32\n"
			       "  pin: auto\n"
			       "  server_name: auto\n"
			       "  timeout: 5s\n"
			       "  ticket_wait: 500ms\n"
			       "  alpn: [http/1.1]\n");
	free(text);
	cfg_free(&cfg);
}
END_TEST

START_TEST(what_is_printed_loads_to_the_same)
{
	static const char *const yaml[] = {
		"scenario: x\n",
		"scenario: x\nload: none\n",
		"scenario: '5'\nload: {drivers: 4}\n",
		"scenario: x\nphases: [{}, {handshake: resumed}, {name: "
		"'true', "
		"duration: 12345678ns, warmup: 0s}]\n",
		"scenario: x\ntls: {certificate: {chain: 'a: b #c', key: ' d "
		"'}}\n",
		"scenario: x\ntls: {tickets: {key_file: '- x', lifetime: "
		"7d}}\n",
		"scenario: x\ntls: {client_auth: required, ca: '*a'}\n",
		"scenario: x\nresult: {dir: \"\xc3\xa4 \xe2\x80\xa8 "
		"\xf0\x9f\x98\x80 'x' \\\"y\\\" \\\\ z\"}\n",
		"scenario: x\nresult: {dir: 'no'}\nload: {ca: '!x', pin: "
		"'0'}\n",
		"scenario: x\nterminator: {listen: ['[::1]:0', '1.2.3.4:5']}\n",
		"scenario: x\ntarget: {address: '[::1]:443', cgroup: '/a b'}\n"
		"phases: [{kind: bulk}, {handshake: mix, resume: 1%}]\n",
		"scenario: x\ntarget: {address: '1.2.3.4:5', pids: [7, 8]}\n"
		"phases: [{transport: tcp, requests: 3, path: '/%20?a'}]\n",
		"scenario: x\nphases: [{kind: bulk, path: /}, {kind: burst, "
		"connections: 9, every: 20ms}, {transport: tcp}, {rate: "
		"0.001/s, requests: 1000000000}, {kind: idle}]\n",
		"scenario: x\nload: {source: [127.0.0.9], sigalgs: [a+b], "
		"providers: [p], key: 'pkcs11:a;b=c', certificate: c}\n"
		"accept_doubt: [a, b-c]\n",
		"scenario: x\nresult: {dir: 'a long name of a folder with "
		"many, "
		"many words in it,   some apart, that a line of eighty letters "
		"could not hold, so that it must be folded: or must it'}\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(yaml); i++) {
		struct cfg *cfg = scenario_good(yaml[i], NULL, 0);

		round_trip(cfg);
		cfg_free(&cfg);
	}
}
END_TEST

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695041);
	return (uint32_t)((*seed >> 33) % n);
}

/* A value that the option by itself takes; the caller frees it. */
static char *random_value(const struct row *r, uint64_t *seed)
{
	char *text = calloc(1, TEXT_MAX);
	const char *word = NULL;

	ck_assert_ptr_nonnull(text);
	if (is_number(r)) {
		uint64_t span = r->max - r->min;

		write_number(r, r->min + span / (1 + random_below(seed, 1000)),
			     text, TEXT_MAX);
	} else if (is_type(r, "BOOL")) {
		strcpy(text, random_below(seed, 2) ? "true" : "false");
	} else if (is_type(r, "LIST")) {
		list_of(r, 1 + random_below(seed, (uint32_t)r->max), true,
			text);
	} else if (is_type(r, "STR")) {
		free(text);
		return text_of_length(r, 1 + random_below(seed, 60));
	} else {
		while (word == NULL) {
			const struct opt_word *w = &opt_words[random_below(
				seed, (uint32_t)opt_nwords)];

			if (is_type(r, opt_type_name(w->type)))
				word = w->word;
		}
		strcpy(text, word);
	}
	return text;
}

/* Some options at random; many of these contradict each other. */
START_TEST(any_scenario_that_loads_is_printed_and_loads_again)
{
	uint64_t seed = 7;
	size_t good = 0;

	for (int run = 0; run < 600; run++) {
		const char *sets[8 * (1 + BESIDES_MAX)];
		char *own[8], *errs;
		size_t nown = 1 + random_below(&seed, ARRAY_LEN(own)), n = 0;
		struct cfg *cfg = NULL;

		for (size_t i = 0; i < nown; i++) {
			const struct row *r =
				&rows[random_below(&seed, ARRAY_LEN(rows))];
			char *value = random_value(r, &seed);

			ck_assert_int_gt(
				asprintf(&own[i], "%s=%s", r->path, value), 0);
			n += say_besides(r, value, sets + n);
			sets[n++] = own[i];
			free(value);
		}
		if (scenario_load(&cfg, base, sets, n, &errs) == 0) {
			round_trip(cfg);
			good++;
		} else {
			ck_assert_str_ne(errs, "");
		}
		cfg_free(&cfg);
		free(errs);
		for (size_t i = 0; i < nown; i++)
			free(own[i]);
	}
	ck_assert_uint_gt(good, 150);
}
END_TEST

static const char rich[] =
	"# a comment\nscenario: &n rich\nterminator:\n"
	"  listen: [127.0.0.1:0, \"[::1]:0\"]\n  accept: shared\n"
	"  respond: {mode: http, body: 1KiB}\nworkers: {count: 3, pin: 0-1}\n"
	"tls:\n  versions: TLSv1.2, TLSv1.3\n  certificate: {make: rsa-2048}\n"
	"  tickets: {lifetime: 2h, rotate: 10m}\nload: {drivers: auto}\n"
	"phases:\n  - {name: *n, handshake: full, duration: 1.5s}\n"
	"  - {handshake: mix, resume: 70%, requests: 3, rate: 120/min}\n"
	"  - {kind: ramp, from: 1/s, to: 9/s, step: 1/s, p99: 20ms}\n"
	"  - name: two\n    handshake: resumed\nsegment: {mode: 0640}\n"
	"accept_doubt: [a, b]\n";

/* Bytes changed, left out, doubled; pieces moved. */
static size_t mutate(char *to, uint64_t *seed)
{
	static const char odd[] = "\t\r\n:-?[]{},#&*!|>'\"%@`~ 0aZ\x80\xff\xc2";
	size_t len = sizeof(rich) - 1;

	memcpy(to, rich, len);
	for (uint32_t i = 1 + random_below(seed, 4); i > 0; i--) {
		size_t at = random_below(seed, (uint32_t)len);
		size_t n = random_below(seed, 12);

		n = at + n < len ? n : 0;
		switch (random_below(seed, 4)) {
		case 0:
			to[at] = (char)random_below(seed, 256);
			break;
		case 1:
			to[at] = odd[random_below(seed, sizeof(odd) - 1)];
			break;
		case 2:
			memmove(to + at, to + at + n, len - at - n);
			len -= n;
			break;
		default:
			memmove(to + at + n, to + at, len - at);
			len += n;
		}
	}
	return len;
}

START_TEST(damaged_files_are_refused_or_load)
{
	uint64_t seed = 11;
	size_t good = 0, bad = 0;
	char text[2048];

	for (int run = 0; run < 3000; run++) {
		struct cfg *cfg = NULL;
		char *errs;
		int rc;

		scenario_write(text, mutate(text, &seed));
		rc = scenario_reload(&cfg, NULL, 0, &errs);
		if (rc == 0) {
			good++;
			if (good % 10 == 0)
				round_trip(cfg);
			ck_assert_str_eq(errs, "");
		} else {
			bad++;
			ck_assert_int_eq(rc, -EINVAL);
			ck_assert_int_eq(strncmp(errs, "s.yaml:", 7), 0);
			/* The shape was checked: libcyaml has no objection. */
			ck_assert_ptr_null(strstr(errs, "libcyaml"));
		}
		free(errs);
		cfg_free(&cfg);
	}
	ck_assert_uint_gt(good, 50);
	ck_assert_uint_gt(bad, 1000);
}
END_TEST

START_TEST(the_page_has_every_option)
{
	char *page, cell[64];
	size_t len;
	FILE *f = open_memstream(&page, &len);

	cfg_describe(f);
	fclose(f);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(cell, sizeof(cell), "\n| `%s` | ", rows[i].key);
		ck_assert_ptr_nonnull(strstr(page, cell));
	}
	ck_assert_ptr_nonnull(strstr(page, "\n## tls.tickets\n"));
	ck_assert_ptr_nonnull(strstr(page, "`10s` | 1ms to 1h |"));
	free(page);
}
END_TEST

/* ---- near words ---- */

START_TEST(distance_counts_letters)
{
	ck_assert_uint_eq(opt_distance("", ""), 0);
	ck_assert_uint_eq(opt_distance("", "abc"), 3);
	ck_assert_uint_eq(opt_distance("duration", "duration"), 0);
	ck_assert_uint_eq(opt_distance("duraton", "duration"), 1);
	ck_assert_uint_eq(opt_distance("druation", "duration"), 1);
	ck_assert_uint_eq(opt_distance("KEY-FILE", "key_file"), 0);
	ck_assert_uint_eq(opt_distance("kitten", "sitting"), 3);
	ck_assert_uint_eq(opt_distance("sitting", "kitten"), 3);
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
	tcase_add_test(t, every_default_is_what_the_table_says);
	tcase_add_test(t, every_default_may_be_written);
	tcase_add_test(t, every_word_is_taken);
	tcase_add_test(t, every_option_may_be_null);
	tcase_add_test(t, words_and_values_belong_together);
	tcase_add_test(t, the_segment_is_called_by_its_name_or_the_scenarios);
	tcase_add_test(t, a_scenario_is_printed_with_every_key);
	tcase_add_test(t, a_phase_is_printed_with_what_it_has);
	tcase_add_test(t, a_target_is_printed_in_place_of_our_own_server);
	tcase_add_test(t, what_is_printed_loads_to_the_same);
	tcase_add_test(t, any_scenario_that_loads_is_printed_and_loads_again);
	tcase_add_test(t, the_page_has_every_option);
	tcase_add_test(t, distance_counts_letters);
}

static void add_limits(TCase *t)
{
	tcase_add_test(t, every_number_is_taken_from_min_to_max);
	tcase_add_test(t, every_text_is_taken_from_min_to_max);
	tcase_add_test(t, every_list_is_taken_from_min_to_max);
}

static void add_refuses(TCase *t)
{
	tcase_add_test(t, every_number_is_refused_beyond_min_and_max);
	tcase_add_test(t, every_text_is_refused_beyond_min_and_max);
	tcase_add_test(t, every_list_is_refused_beyond_min_and_max);
	tcase_add_test(t, every_option_refuses_another_type);
	tcase_add_test(t, booleans_are_no_other_words);
	tcase_add_test(t, words_that_are_nearly_right_get_a_proposal);
	tcase_add_test(t, damaged_files_are_refused_or_load);
}

int main(void)
{
	Suite *s = suite_create("cfg");
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
