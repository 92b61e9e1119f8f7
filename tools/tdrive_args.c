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
	HANDSHAKE
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
} options[] = {
#define MEMBER(m) offsetof(struct args, m)
	{"handshake", HANDSHAKE, HAND, MEMBER(handshake), 0, 0, "KIND",
	 "full or resumed (default: full)"},
	{"connections", UINT, HAND, MEMBER(connections), 1, 100000, "N",
	 "connections in flight (default: 32)"},
	{"duration", DURATION, HAND, MEMBER(duration_ns), 10 * NS_PER_MS,
	 24 * 3600 * NS_PER_S, "TIME",
	 "length of the measurement (default: 5s)"},
	{"warmup", DURATION, HAND, MEMBER(warmup_ns), 0, 3600 * NS_PER_S,
	 "TIME", "load before it, not counted (default: 1s)"},
	{"ca", TEXT, HAND, MEMBER(ca), 0, 0, "FILE",
	 "PEM file of trusted certificates (default: the system's)"},
	{"name", TEXT, BOTH, MEMBER(name), 0, 0, "NAME",
	 "name to ask for (SNI) and to verify (default: the host)"},
	{"insecure", FLAG, HAND, MEMBER(insecure), 0, 0, NULL,
	 "do not verify the server's certificate"},
	{"groups", TEXT, HAND, MEMBER(groups), 0, 0, "LIST",
	 "key-exchange groups to offer: X25519,P-256"},
	{"versions", TEXT, HAND, MEMBER(versions), 0, 0, "LIST",
	 "protocol versions to offer: TLSv1.2,TLSv1.3"},
	{"json", FLAG, HAND, MEMBER(json), 0, 0, NULL,
	 "print the result as JSON"},
	{"help", FLAG, HAND, MEMBER(help), 0, 0, NULL, "print this"},
	{"version", FLAG, HAND, MEMBER(version), 0, 0, NULL,
	 "print the version"},
	{"segment", TEXT, MANAGED, MEMBER(segment), 0, 0, NULL, NULL},
	{"slot", UINT, MANAGED, MEMBER(slot), 0, 65535, NULL, NULL},
	{"number", UINT, MANAGED, MEMBER(number), 0, 65535, NULL, NULL},
	{"drivers", UINT, MANAGED, MEMBER(drivers), 1, 65535, NULL, NULL},
	{"cpu", INT, MANAGED, MEMBER(cpu), 0, 65535, NULL, NULL},
	{"target", TEXT, MANAGED, MEMBER(target), 0, 0, NULL, NULL},
	{"plain", TEXT, MAY, MEMBER(plain), 0, 0, NULL, NULL},
	{"config-fd", INT, MANAGED, MEMBER(config_fd), 0, 65535, NULL, NULL},
	{"ca-fd", INT, MANAGED, MEMBER(ca_fd), 0, 65535, NULL, NULL},
	{"ctl-fd", INT, MANAGED, MEMBER(ctl_fd), 0, 65535, NULL, NULL},
#undef MEMBER
};

/* Bit per row of options[]. */
_Static_assert(ARRAY_LEN(options) <= 32, "a bit of `given` for each");

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

static int set_handshake(enum cfg_handshake *to, const char *value, char *err,
			 size_t len)
{
	if (strcmp(value, "full") != 0 && strcmp(value, "resumed") != 0)
		return refuse(err, len, value, "write full or resumed");
	*to = value[0] == 'f' ? CFG_HANDSHAKE_FULL : CFG_HANDSHAKE_RESUMED;
	return 0;
}

static int set(struct args *args, const struct option *o, const char *value,
	       char *err, size_t len)
{
	char *to = (char *)args + o->offset;
	char why[256];
	int rc = 0;

	switch (o->kind) {
	case FLAG:
		*(bool *)to = true;
		break;
	case TEXT:
		memcpy(to, &value, sizeof(value));
		rc = value[0] == '\0' ? refuse(why, sizeof(why), "\"\"",
					       "a value is missing")
				      : 0;
		break;
	case UINT:
	case INT:
		rc = set_number(to, o, value, why, sizeof(why));
		break;
	case DURATION:
		rc = set_duration((uint64_t *)(void *)to, o, value, why,
				  sizeof(why));
		break;
	case HANDSHAKE:
		rc = set_handshake((enum cfg_handshake *)(void *)to, value, why,
				   sizeof(why));
		break;
	}
	if (rc != 0)
		snprintf(err, len, "--%s: %s", o->name, why);
	return rc;
}

/* One option at argv[*at]; *at is moved past its value. */
static int take(struct args *args, int argc, char *const *argv, int *at,
		uint32_t *given, char *err, size_t len)
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
	*given |= 1u << (o - options);
	return set(args, o, value, err, len);
}

static int refuse_option(char *err, size_t len, const struct option *o,
			 const char *why)
{
	snprintf(err, len, "--%s: %s", o->name, why);
	return -EINVAL;
}

/* What is given against what the form needs. */
static int check(const struct args *args, uint32_t given, char *err, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const struct option *o = &options[i];
		bool has = (given & (1u << i)) != 0;

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

int args_parse(struct args *out, int argc, char *const *argv, char *err,
	       size_t len)
{
	struct args args = {.connections = 32,
			    .duration_ns = 5 * NS_PER_S,
			    .warmup_ns = NS_PER_S,
			    .cpu = -1};
	uint32_t given = 0;
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
	if (rc == 0)
		*out = args;
	return rc;
}

void args_help(FILE *out)
{
	fputs("Usage: tdrive https://host:port [options]\n"
	      "\n"
	      "Loads a TLS server with handshakes and prints what they took: a "
	      "closed loop of\n"
	      "connections that each connect, shake hands and close.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const struct option *o = &options[i];
		char text[40];

		if (o->help == NULL)
			continue;
		snprintf(text, sizeof(text), "--%s%s%s", o->name,
			 o->value != NULL ? " " : "",
			 o->value != NULL ? o->value : "");
		fprintf(out, "  %-18s %s\n", text, o->help);
	}
	fputs("\n"
	      "exit status: 0 good, 1 the run failed, 2 wrong arguments, "
	      "3 finished but doubtful\n",
	      out);
}

/* ---- lists ---- */

#define SEPARATORS ",:"

int args_list(struct cfg_list *out, const char *text)
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
		size_t n = strcspn(p, SEPARATORS);

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
