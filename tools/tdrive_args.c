/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_args.h"

#include "config/unit.h"
#include "shm/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	FLAG,
	TEXT,
	UINT,
	INT,
	DURATION,
	SIZE,
	RATE,
	PERCENT,
	REQUESTS,
	WORD
};

/* Which form knows an option; a managed one must be given, unless it may. */
enum form {
	HAND,
	MANAGED,
	MAY,
	BOTH
};

static const struct option {
	const char *name;
	enum kind kind;
	enum form form;
	size_t offset; /* in struct args */
	uint64_t min, max;
	const char *value; /* in the help */
	const char *help;
	const char *type; /* WORD: of config/enums.def */
	const char *head; /* in the help, above it */
} options[] = {
#define MEMBER(m) offsetof(struct args, m)
#define HOUR	  (3600 * NS_PER_S)
	{"kind", WORD, HAND, MEMBER(phase.kind), 0, 0, "WORD",
	 "handshakes (the default), bulk, burst, idle or ramp", "KIND",
	 "What a connection does"},
	{"handshake", WORD, HAND, MEMBER(phase.handshake), 0, 0, "WORD",
	 "full, resumed, mix or refused (default: full)", "HANDSHAKE", NULL},
	{"resume", PERCENT, HAND, MEMBER(phase.resume), 0, 0, "PERCENT",
	 "mix: the share that resumes (default: 50%)", NULL, NULL},
	{"ticket-use", WORD, HAND, MEMBER(phase.ticket_use), 0, 0, "WORD",
	 "once or chain (default: once)", "TICKET_USE", NULL},
	{"requests", REQUESTS, HAND, MEMBER(phase.requests), 0, 1000000000, "N",
	 "requests on each, or unlimited (default: 0)", NULL, NULL},
	{"path", TEXT, HAND, MEMBER(phase.path), 0, 0, "PATH",
	 "what they ask for (default: /)", NULL, NULL},
	{"body", SIZE, HAND, MEMBER(phase.body), 0, 1 << 30, "SIZE",
	 "... or /bytes/SIZE, as tterm serves it", NULL, NULL},
	{"think", DURATION, HAND, MEMBER(phase.think), 0, HOUR, "TIME",
	 "pause between two of them (default: 0s)", NULL, NULL},
	{"close", WORD, HAND, MEMBER(phase.close), 0, 0, "WORD",
	 "how it ends: fin, rst or notify (default: fin)", "CLOSE", NULL},
	{"transport", WORD, HAND, MEMBER(phase.transport), 0, 0, "WORD",
	 "tls or tcp (default: as the URL has it)", "TRANSPORT", NULL},
	{"speaks-first", WORD, HAND, MEMBER(phase.speaks_first), 0, 0, "WORD",
	 "client, or server: its first byte is waited for", "SPEAKS", NULL},

	{"connections", UINT, HAND, MEMBER(connections), 1, 100000, "N",
	 "in flight (default: 32); with --rate: at most", NULL,
	 "How many, and when"},
	{"rate", RATE, HAND, MEMBER(phase.rate), 1, 10000000000, "RATE",
	 "open loop: begun per time, such as 500/s", NULL, NULL},
	{"arrivals", WORD, HAND, MEMBER(phase.arrivals), 0, 0, "WORD",
	 "with it: constant or poisson (default: constant)", "ARRIVALS", NULL},
	{"every", DURATION, HAND, MEMBER(phase.every), NS_PER_MS, HOUR, "TIME",
	 "burst: from one to the next (default: 1s)", NULL, NULL},
	{"from", RATE, HAND, MEMBER(phase.from), 1, 10000000000, "RATE",
	 "ramp: rate of the first step", NULL, NULL},
	{"to", RATE, HAND, MEMBER(phase.to), 1, 10000000000, "RATE",
	 "ramp: highest rate", NULL, NULL},
	{"step", RATE, HAND, MEMBER(phase.step), 1, 10000000000, "RATE",
	 "ramp: from one step to the next", NULL, NULL},
	{"step-time", DURATION, HAND, MEMBER(phase.step_time), 10 * NS_PER_MS,
	 HOUR, "TIME", "ramp: length of a step (default: 1s)", NULL, NULL},
	{"p99", DURATION, HAND, MEMBER(phase.p99), NS_PER_US, HOUR, "TIME",
	 "ramp: its bound", NULL, NULL},
	{"duration", DURATION, HAND, MEMBER(duration_ns), 10 * NS_PER_MS,
	 24 * HOUR, "TIME", "length of the measurement (default: 5s)", NULL,
	 NULL},
	{"warmup", DURATION, HAND, MEMBER(warmup_ns), 0, HOUR, "TIME",
	 "load before it, not counted (default: 1s)", NULL, NULL},
	{"timeout", DURATION, HAND, MEMBER(timeout_ns), NS_PER_MS, HOUR, "TIME",
	 "deadline of each step (default: 5s)", NULL, NULL},

	{"ca", TEXT, HAND, MEMBER(ca), 0, 0, "FILE",
	 "PEM file of what is trusted (default: the system's)", NULL,
	 "Who is who"},
	{"name", TEXT, BOTH, MEMBER(name), 0, 0, "NAME",
	 "to ask for (SNI) and to verify (default: the host)", NULL, NULL},
	{"insecure", FLAG, HAND, MEMBER(insecure), 0, 0, NULL,
	 "do not verify the server's certificate", NULL, NULL},
	{"cert", TEXT, HAND, MEMBER(certificate), 0, 0, "FILE",
	 "the client's: PEM file, or OpenSSL store URI", NULL, NULL},
	{"key", TEXT, HAND, MEMBER(key), 0, 0, "FILE",
	 "likewise (default: in the certificate's file)", NULL, NULL},
	{"provider", TEXT, HAND, MEMBER(providers), 0, 0, "LIST",
	 "OpenSSL providers to load for it", NULL, NULL},
	{"source", TEXT, HAND, MEMBER(source), 0, 0, "LIST",
	 "addresses to connect from, in turn", NULL, NULL},

	{"versions", TEXT, HAND, MEMBER(versions), 0, 0, "LIST",
	 "protocol versions: TLSv1.2,TLSv1.3", NULL,
	 "What TLS offers (default: as the library has it)"},
	{"groups", TEXT, HAND, MEMBER(groups), 0, 0, "LIST",
	 "key-exchange groups: X25519,P-256", NULL, NULL},
	{"ciphers", TEXT, HAND, MEMBER(ciphers), 0, 0, "LIST",
	 "of TLS 1.3 and 1.2: TLS_AES_128_GCM_SHA256", NULL, NULL},
	{"sigalgs", TEXT, HAND, MEMBER(sigalgs), 0, 0, "LIST",
	 "signature algorithms: ecdsa_secp256r1_sha256", NULL, NULL},
	{"alpn", TEXT, HAND, MEMBER(alpn), 0, 0, "LIST",
	 "application protocols: http/1.1", NULL, NULL},

	{"records", FLAG, HAND, MEMBER(phase.records), 0, 0, NULL,
	 "show a full and a resumed handshake record by record", NULL,
	 "What is printed"},
	{"json", FLAG, HAND, MEMBER(json), 0, 0, NULL,
	 "print the result as JSON", NULL, NULL},
	{"help", FLAG, HAND, MEMBER(help), 0, 0, NULL, "print this", NULL,
	 NULL},
	{"version", FLAG, HAND, MEMBER(version), 0, 0, NULL,
	 "print the version", NULL, NULL},
	{"segment", TEXT, MANAGED, MEMBER(segment), 0, 0, NULL, NULL, NULL,
	 NULL},
	{"slot", UINT, MANAGED, MEMBER(slot), 0, 65535, NULL, NULL, NULL, NULL},
	{"number", UINT, MANAGED, MEMBER(number), 0, 65535, NULL, NULL, NULL,
	 NULL},
	{"drivers", UINT, MANAGED, MEMBER(drivers), 1, 65535, NULL, NULL, NULL,
	 NULL},
	{"cpu", INT, MANAGED, MEMBER(cpu), 0, 65535, NULL, NULL, NULL, NULL},
	{"target", TEXT, MANAGED, MEMBER(target), 0, 0, NULL, NULL, NULL, NULL},
	{"plain", TEXT, MAY, MEMBER(plain), 0, 0, NULL, NULL, NULL, NULL},
	{"config-fd", INT, MANAGED, MEMBER(config_fd), 0, 65535, NULL, NULL,
	 NULL, NULL},
	{"ca-fd", INT, MANAGED, MEMBER(ca_fd), 0, 65535, NULL, NULL, NULL,
	 NULL},
	{"ctl-fd", INT, MANAGED, MEMBER(ctl_fd), 0, 65535, NULL, NULL, NULL,
	 NULL},
#undef MEMBER
};

/* Bit per row of options[]. */
_Static_assert(ARRAY_LEN(options) <= 64, "a bit of `given` for each");
#define BIT(i) (UINT64_C(1) << (i))

static int refuse(char *err, size_t len, const char *what, const char *why)
{
	snprintf(err, len, "%.200s: %s", what, why);
	return -EINVAL;
}

/* Length of the name: "--name=value" or "--name". */
static const struct option *find(const char *arg, size_t *name_len)
{
	*name_len = strcspn(arg, "=");
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strlen(options[i].name) == *name_len &&
		    strncmp(options[i].name, arg, *name_len) == 0)
			return &options[i];
	return NULL;
}

static int set_number(void *to, const struct option *o, const char *value,
		      char *err, size_t len)
{
	uint64_t n;
	int rc;

	if (o->kind == INT && strcmp(value, "-1") == 0) {
		*(int32_t *)to = -1;
		return 0;
	}
	rc = unit_uint(value, &n, err, len);
	if (rc != 0)
		return rc;
	if (n < o->min || n > o->max) {
		snprintf(err, len, "%.200s is not in %llu to %llu", value,
			 (unsigned long long)o->min,
			 (unsigned long long)o->max);
		return -EINVAL;
	}
	if (o->kind == INT)
		*(int32_t *)to = (int32_t)n;
	else
		*(uint32_t *)to = (uint32_t)n;
	return 0;
}

static int set_duration(uint64_t *to, const struct option *o, const char *value,
			char *err, size_t len)
{
	uint64_t ns;
	int rc = unit_duration(value, &ns, err, len);

	if (rc != 0)
		return rc;
	if (ns < o->min || ns > o->max)
		return refuse(err, len, value,
			      ns < o->min ? "too short" : "too long");
	*to = ns;
	return 0;
}

/* The words of a type, as the scenario has them, count from 0. */
static int set_word(int *to, const struct option *o, const char *value,
		    char *err, size_t len)
{
	char words[128] = "";
	size_t at = 0;

	for (int i = 0;; i++) {
		const char *word = cfg_word(o->type, i);

		if (strcmp(word, "?") == 0)
			break;
		if (strcmp(word, value) == 0) {
			*to = i;
			return 0;
		}
		at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%s",
				       i > 0 ? ", " : "", word);
	}
	snprintf(err, len, "%.200s: write one of %s", value, words);
	return -EINVAL;
}

static int set_requests(uint64_t *to, const struct option *o, const char *value,
			char *err, size_t len)
{
	uint64_t n;
	int rc;

	if (strcmp(value, "unlimited") == 0) {
		*to = CFG_UNLIMITED;
		return 0;
	}
	rc = unit_uint(value, &n, err, len);
	if (rc == 0 && n > o->max)
		rc = refuse(err, len, value, "too many");
	if (rc == 0)
		*to = n;
	return rc;
}

/* What counts: sizes and rates have a range, a share has its own. */
static int set_amount(uint64_t *to, const struct option *o, const char *value,
		      char *err, size_t len)
{
	uint64_t n = 0;
	int rc = o->kind == SIZE   ? unit_size(value, &n, err, len)
		 : o->kind == RATE ? unit_rate(value, &n, err, len)
				   : unit_percent(value, &n, err, len);

	if (rc == 0 && o->kind == PERCENT && n > 100)
		rc = refuse(err, len, value, "more than all");
	if (rc == 0 && o->kind != PERCENT && (n < o->min || n > o->max))
		rc = refuse(err, len, value,
			    n < o->min ? "too little" : "too much");
	if (rc == 0)
		*to = n;
	return rc;
}

static int set_text(char *to, const char *value, char *err, size_t len)
{
	if (value[0] == '\0')
		return refuse(err, len, "\"\"", "a value is missing");
	memcpy(to, &value, sizeof(value));
	return 0;
}

static int set(struct args *args, const struct option *o, const char *value,
	       char *err, size_t len)
{
	char *to = (char *)args + o->offset;
	uint64_t *number = (uint64_t *)(void *)to;
	char why[400];
	int rc = 0;

	switch (o->kind) {
	case FLAG:
		*(bool *)to = true;
		break;
	case TEXT:
		rc = set_text(to, value, why, sizeof(why));
		break;
	case UINT:
	case INT:
		rc = set_number(to, o, value, why, sizeof(why));
		break;
	case DURATION:
		rc = set_duration(number, o, value, why, sizeof(why));
		break;
	case SIZE:
	case RATE:
	case PERCENT:
		rc = set_amount(number, o, value, why, sizeof(why));
		break;
	case REQUESTS:
		rc = set_requests(number, o, value, why, sizeof(why));
		break;
	case WORD:
		rc = set_word((int *)(void *)to, o, value, why, sizeof(why));
		break;
	}
	if (rc != 0)
		snprintf(err, len, "--%s: %s", o->name, why);
	return rc;
}

/* One option at argv[*at]; *at is moved past its value. */
static int take(struct args *args, int argc, char *const *argv, int *at,
		uint64_t *given, char *err, size_t len)
{
	const char *arg = argv[*at] + 2, *value = NULL;
	size_t name_len;
	const struct option *o = find(arg, &name_len);

	if (o == NULL)
		return refuse(err, len, argv[*at],
			      "no such option; see tdrive --help");
	if (arg[name_len] == '=')
		value = arg + name_len + 1;
	if (o->kind == FLAG && value != NULL)
		return refuse(err, len, argv[*at], "takes no value");
	if (o->kind != FLAG && value == NULL) {
		if (*at + 1 >= argc)
			return refuse(err, len, argv[*at],
				      "a value is missing");
		value = argv[++*at];
	}
	*given |= BIT(o - options);
	return set(args, o, value, err, len);
}

static int refuse_option(char *err, size_t len, const struct option *o,
			 const char *why)
{
	snprintf(err, len, "--%s: %s", o->name, why);
	return -EINVAL;
}

/* What is given against what the form needs. */
static int check(const struct args *args, uint64_t given, char *err, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const struct option *o = &options[i];
		bool has = (given & BIT(i)) != 0;

		if (args->managed && o->form == HAND && has)
			return refuse_option(err, len, o,
					     "has no use with --managed");
		if (!args->managed && has &&
		    (o->form == MANAGED || o->form == MAY))
			return refuse_option(
				err, len, o,
				"is for --managed, by the master only");
		if (args->managed && !has &&
		    (o->form == MANAGED || o->form == BOTH))
			return refuse_option(err, len, o, "--managed needs it");
	}
	if (args->managed && args->url != NULL)
		return refuse(err, len, args->url, "has no use with --managed");
	if (!args->managed && args->url == NULL)
		return refuse(err, len, "which server",
			      "write tdrive https://host:port; see tdrive "
			      "--help");
	if (args->insecure && args->ca != NULL)
		return refuse(err, len, "--ca", "has no use with --insecure");
	if (args->managed && args->number >= args->drivers)
		return refuse(err, len, "--number", "is less than --drivers");
	return 0;
}

static size_t index_of(const char *name)
{
	size_t i = 0;

	while (strcmp(options[i].name, name) != 0)
		i++;
	return i;
}

/* A ramp lasts as long as all its steps, unless it is said otherwise. */
static int fit_ramp(struct args *args, uint64_t given, char *err, size_t len)
{
	const struct cfg_phase *p = &args->phase;

	if (p->from == 0 || p->step == 0 || p->to < p->from)
		return refuse(err, len, "--kind ramp",
			      "needs --from, --to and --step, such as 100/s, "
			      "2000/s and 100/s");
	if ((given & BIT(index_of("duration"))) == 0)
		args->duration_ns =
			((p->to - p->from) / p->step + 1) * p->step_time;
	if ((given & BIT(index_of("warmup"))) == 0)
		args->warmup_ns = 0;
	return 0;
}

int args_parse(struct args *out, int argc, char *const *argv, char *err,
	       size_t len)
{
	struct args args = {.connections = 32,
			    .timeout_ns = 5 * NS_PER_S,
			    .duration_ns = 5 * NS_PER_S,
			    .warmup_ns = NS_PER_S,
			    .phase = {.resume = 50,
				      .every = NS_PER_S,
				      .step_time = NS_PER_S},
			    .cpu = -1};
	uint64_t given = 0;
	int rc = 0;

	for (int i = 1; i < argc && rc == 0; i++) {
		if (strcmp(argv[i], "--managed") == 0)
			args.managed = true;
		else if (strncmp(argv[i], "--", 2) == 0)
			rc = take(&args, argc, argv, &i, &given, err, len);
		else if (argv[i][0] == '-')
			rc = refuse(err, len, argv[i],
				    "no such option; see tdrive --help");
		else if (args.url != NULL)
			rc = refuse(err, len, argv[i], "one server at a time");
		else
			args.url = argv[i];
	}
	if (rc == 0 && !args.help && !args.version)
		rc = check(&args, given, err, len);
	if (rc == 0 && args.phase.kind == CFG_KIND_RAMP)
		rc = fit_ramp(&args, given, err, len);
	if (rc == 0 && args.phase.rate > 0 &&
	    args.phase.kind != CFG_KIND_HANDSHAKES)
		rc = refuse(err, len, "--rate", "is for --kind handshakes");
	/* As in a scenario: where it is not said, the load decides. */
	if ((given & BIT(index_of("connections"))) != 0)
		args.phase.connections = args.connections;
	if (rc == 0)
		*out = args;
	return rc;
}

static void help_row(FILE *out, const struct option *o)
{
	char text[40];

	if (o->head != NULL)
		fprintf(out, "\n%s\n", o->head);
	snprintf(text, sizeof(text), "--%s%s%s", o->name,
		 o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
	fprintf(out, "  %-21s %s\n", text, o->help);
}

void args_help(FILE *out)
{
	fputs("Usage: tdrive https://host:port [options]\n"
	      "       tdrive http://host:port [options]    the same without "
	      "TLS\n"
	      "\n"
	      "Loads a server with connections and prints what they took. "
	      "Without --rate it is\n"
	      "a closed loop: a connection begins when another one is over. "
	      "With --rate it is\n"
	      "an open loop: connections begin when they are due, and "
	      "latencies count from\n"
	      "then.\n",
	      out);
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].help != NULL)
			help_row(out, &options[i]);
	fputs("\n"
	      "exit status: 0 good, 1 the run failed, 2 wrong arguments, "
	      "3 doubtful\n",
	      out);
}

/* ---- lists ---- */

int args_list(struct cfg_list *out, const char *text, const char *separators)
{
	struct cfg_list list = {0};
	int rc = -ENOMEM;

	if (text == NULL) {
		*out = list;
		return 0;
	}
	list.item = calloc(strlen(text) + 1, sizeof(*list.item));
	if (list.item == NULL)
		return rc;
	for (const char *p = text;; p++) {
		size_t n = strcspn(p, separators);

		rc = n > 0 ? -ENOMEM : -EINVAL;
		list.item[list.n] = n > 0 ? strndup(p, n) : NULL;
		if (list.item[list.n] == NULL)
			goto fail;
		list.n++;
		p += n;
		if (*p == '\0')
			break;
	}
	*out = list;
	return 0;
fail:
	args_list_free(&list);
	return rc;
}

void args_list_free(struct cfg_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->item[i]);
	free(list->item);
	*list = (struct cfg_list){0};
}
