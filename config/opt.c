/* SPDX-License-Identifier: MIT */
#include "config/opt.h"

#include "config/cfg.h"
#include "config/raw.h"
#include "config/unit.h"
#include "shm/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* in: struct cfg_IN and raw_IN hold it; `member` is its way from struct cfg. */
#define SECTION(id, path, parent, in, key, member, help) \
	[OPT_IN_##id] = {path,                           \
			 #key,                           \
			 OPT_IN_##parent,                \
			 false,                          \
			 offsetof(struct cfg, member),   \
			 offsetof(struct raw##in, key),  \
			 sizeof(struct raw_##key),       \
			 help}

const struct opt_section opt_sections[OPT_SECTIONS] = {
	[OPT_IN_ROOT] = {"", "", OPT_IN_ROOT, false, 0, 0, sizeof(struct raw),
			 "The file itself. Only `scenario` must be there."},
	[OPT_IN_PHASE] = {"phases", "phases", OPT_IN_ROOT, true, 0, 0,
			  sizeof(struct raw_phase),
			  "What is measured, one after the other: a list of at "
			  "most 64 mappings. Without phases the terminator "
			  "serves until it is told to stop."},
	SECTION(TERMINATOR, "terminator", ROOT, , terminator, terminator,
		"The server's sockets and connections."),
	SECTION(RESPOND, "terminator.respond", TERMINATOR, _terminator, respond,
		terminator.respond, "What a client gets after its handshake."),
	SECTION(TARGET, "target", ROOT, , target, target,
		"Another server, which is loaded and measured in place of the "
		"terminator: no worker is started."),
	SECTION(WORKERS, "workers", ROOT, , workers, workers,
		"The server's processes."),
	SECTION(TLS, "tls", ROOT, , tls, tls,
		"What the server offers, and what the drivers ask for."),
	SECTION(CERTIFICATE, "tls.certificate", TLS, _tls, certificate,
		tls.certificate,
		"The server's certificate: made, or from files."),
	SECTION(TICKETS, "tls.tickets", TLS, _tls, tickets, tls.tickets,
		"Session tickets and their keys."),
	SECTION(LOAD, "load", ROOT, , load, load,
		"The load drivers. `load: none` is short for `load: {drivers: "
		"none}`."),
	SECTION(SEGMENT, "segment", ROOT, , segment, segment,
		"The shared memory that tstat reads."),
	SECTION(RESULT, "result", ROOT, , result, result,
		"What is left after a run."),
};

#define ROW(in, structure, key, type, deflt, min, max, help) \
	{OPT_IN_##in,                                        \
	 OPT_TYPE_##type,                                    \
	 #key,                                               \
	 deflt,                                              \
	 min,                                                \
	 max,                                                \
	 help,                                               \
	 offsetof(struct cfg##structure, key),               \
	 offsetof(struct raw##structure, key)},

const struct opt_row opt_rows[] = {
#define OPT_ROOT(...)	     ROW(ROOT, , __VA_ARGS__)
#define OPT_TERMINATOR(...)  ROW(TERMINATOR, _terminator, __VA_ARGS__)
#define OPT_RESPOND(...)     ROW(RESPOND, _respond, __VA_ARGS__)
#define OPT_TARGET(...)	     ROW(TARGET, _target, __VA_ARGS__)
#define OPT_WORKERS(...)     ROW(WORKERS, _workers, __VA_ARGS__)
#define OPT_TLS(...)	     ROW(TLS, _tls, __VA_ARGS__)
#define OPT_CERTIFICATE(...) ROW(CERTIFICATE, _certificate, __VA_ARGS__)
#define OPT_TICKETS(...)     ROW(TICKETS, _tickets, __VA_ARGS__)
#define OPT_LOAD(...)	     ROW(LOAD, _load, __VA_ARGS__)
#define OPT_PHASE(...)	     ROW(PHASE, _phase, __VA_ARGS__)
#define OPT_SEGMENT(...)     ROW(SEGMENT, _segment, __VA_ARGS__)
#define OPT_RESULT(...)	     ROW(RESULT, _result, __VA_ARGS__)
#include "config/options.def"
};
const size_t opt_nrows = ARRAY_LEN(opt_rows);

#define WORD(type, member, word) {OPT_TYPE_##type, CFG_##type##_##member, word},

const struct opt_word opt_words[] = {
#define ENUM_ACCEPT(...)      WORD(ACCEPT, __VA_ARGS__)
#define ENUM_RESPOND(...)     WORD(RESPOND, __VA_ARGS__)
#define ENUM_CLIENT_AUTH(...) WORD(CLIENT_AUTH, __VA_ARGS__)
#define ENUM_CERT(...)	      WORD(CERT, __VA_ARGS__)
#define ENUM_HANDSHAKE(...)   WORD(HANDSHAKE, __VA_ARGS__)
#define ENUM_KIND(...)	      WORD(KIND, __VA_ARGS__)
#define ENUM_CLOSE(...)	      WORD(CLOSE, __VA_ARGS__)
#define ENUM_TRANSPORT(...)   WORD(TRANSPORT, __VA_ARGS__)
#define ENUM_SPEAKS(...)      WORD(SPEAKS, __VA_ARGS__)
#define ENUM_ARRIVALS(...)    WORD(ARRIVALS, __VA_ARGS__)
#define ENUM_TICKET_USE(...)  WORD(TICKET_USE, __VA_ARGS__)
#define ENUM_MODE(...)	      WORD(MODE, __VA_ARGS__)
#include "config/enums.def"
};
const size_t opt_nwords = ARRAY_LEN(opt_words);

/* cfg.c writes every enumeration through an int. */
_Static_assert(sizeof(enum cfg_cert) == sizeof(int), "an enum is an int");

static const struct {
	const char *name, *word;
} types[] = {
	[OPT_TYPE_STR] = {"STR", "text"},
	[OPT_TYPE_LIST] = {"LIST", "list"},
	[OPT_TYPE_UINT] = {"UINT", "whole number"},
	[OPT_TYPE_COUNT] = {"COUNT", "whole number"},
	[OPT_TYPE_DRIVERS] = {"DRIVERS", "whole number"},
	[OPT_TYPE_BOOL] = {"BOOL", "true or false"},
	[OPT_TYPE_DURATION] = {"DURATION", "duration"},
	[OPT_TYPE_SIZE] = {"SIZE", "size"},
	[OPT_TYPE_REQUESTS] = {"REQUESTS", "whole number"},
	[OPT_TYPE_PERCENT] = {"PERCENT", "percentage"},
	[OPT_TYPE_RATE] = {"RATE", "rate"},
	[OPT_TYPE_ACCEPT] = {"ACCEPT", "word"},
	[OPT_TYPE_RESPOND] = {"RESPOND", "word"},
	[OPT_TYPE_CLIENT_AUTH] = {"CLIENT_AUTH", "word"},
	[OPT_TYPE_CERT] = {"CERT", "word"},
	[OPT_TYPE_HANDSHAKE] = {"HANDSHAKE", "word"},
	[OPT_TYPE_KIND] = {"KIND", "word"},
	[OPT_TYPE_CLOSE] = {"CLOSE", "word"},
	[OPT_TYPE_TRANSPORT] = {"TRANSPORT", "word"},
	[OPT_TYPE_SPEAKS] = {"SPEAKS", "word"},
	[OPT_TYPE_ARRIVALS] = {"ARRIVALS", "word"},
	[OPT_TYPE_TICKET_USE] = {"TICKET_USE", "word"},
	[OPT_TYPE_MODE] = {"MODE", "word"},
};

const char *opt_type_name(enum opt_type type)
{
	return types[type].name;
}

const char *opt_type_word(enum opt_type type)
{
	return types[type].word;
}

bool opt_is_enum(enum opt_type type)
{
	return type >= OPT_TYPE_ACCEPT;
}

const struct opt_row *opt_row(enum opt_section_id section, const char *key)
{
	for (size_t i = 0; i < opt_nrows; i++)
		if (opt_rows[i].section == section &&
		    strcmp(opt_rows[i].key, key) == 0)
			return &opt_rows[i];
	return NULL;
}

const struct opt_section *opt_child(enum opt_section_id section,
				    const char *key)
{
	for (size_t i = 1; i < OPT_SECTIONS; i++)
		if (opt_sections[i].parent == section &&
		    strcmp(opt_sections[i].key, key) == 0)
			return &opt_sections[i];
	return NULL;
}

char *opt_path(char buf[static OPT_PATH_LEN], const struct opt_row *row)
{
	const char *section = opt_sections[row->section].path;

	snprintf(buf, OPT_PATH_LEN, "%s%s%s", section,
		 section[0] == '\0' ? "" : ".", row->key);
	return buf;
}

/* "a, b or c" */
static void list_words(char *buf, size_t len, enum opt_type type)
{
	size_t n = 0, left = 0;

	for (size_t i = 0; i < opt_nwords; i++)
		left += opt_words[i].type == type;
	buf[0] = '\0';
	for (size_t i = 0; i < opt_nwords && n < len; i++) {
		if (opt_words[i].type != type)
			continue;
		left--;
		n += (size_t)snprintf(buf + n, len - n, "%s%s",
				      opt_words[i].word,
				      left == 0	  ? ""
				      : left == 1 ? " or "
						  : ", ");
	}
}

char *opt_allowed(char buf[static OPT_ALLOWED_LEN], const struct opt_row *row)
{
	char min[40], max[40];
	const char *also = "", *what = "";

	snprintf(min, sizeof(min), "%" PRIu64, row->min);
	snprintf(max, sizeof(max), "%" PRIu64, row->max);
	switch (row->type) {
	case OPT_TYPE_STR:
		what = row->max == 1 ? " character" : " characters";
		break;
	case OPT_TYPE_LIST:
		what = row->max == 1 ? " entry" : " entries";
		break;
	case OPT_TYPE_UINT:
		break;
	case OPT_TYPE_COUNT:
		also = "auto, or ";
		break;
	case OPT_TYPE_DRIVERS:
		also = "auto, none, or ";
		break;
	case OPT_TYPE_REQUESTS:
		also = "unlimited, or ";
		break;
	case OPT_TYPE_PERCENT:
		unit_print_percent(row->min, min, sizeof(min));
		unit_print_percent(row->max, max, sizeof(max));
		break;
	case OPT_TYPE_RATE:
		unit_print_rate(row->min, min, sizeof(min));
		unit_print_rate(row->max, max, sizeof(max));
		break;
	case OPT_TYPE_DURATION:
		unit_print_duration(row->min, min, sizeof(min));
		unit_print_duration(row->max, max, sizeof(max));
		break;
	case OPT_TYPE_SIZE:
		unit_print_size(row->min, min, sizeof(min));
		unit_print_size(row->max, max, sizeof(max));
		break;
	case OPT_TYPE_BOOL:
		strcpy(buf, "true or false");
		return buf;
	default:
		list_words(buf, OPT_ALLOWED_LEN, row->type);
		return buf;
	}
	snprintf(buf, OPT_ALLOWED_LEN, "%s%s to %s%s", also, min, max, what);
	return buf;
}

const char *opt_item(const char **rest, size_t *len)
{
	const char *p = *rest + strspn(*rest, " ");
	size_t n = strcspn(p, ",");

	*rest = p[n] == ',' ? p + n + 1 : NULL;
	while (n > 0 && p[n - 1] == ' ')
		n--;
	*len = n;
	return p;
}

#define DISTANCE_LETTERS 32

/* Cuts, and makes alike what shall not count. */
static size_t fold(char to[DISTANCE_LETTERS], const char *from)
{
	size_t n = 0;

	for (; from[n] != '\0' && n < DISTANCE_LETTERS; n++) {
		char c = from[n];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		to[n] = c == '-' ? '_' : c;
	}
	return n;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Row by row, as the sum of the best ways to every pair of beginnings. */
unsigned opt_distance(const char *a, const char *b)
{
	char s[DISTANCE_LETTERS], t[DISTANCE_LETTERS];
	size_t n = fold(s, a), m = fold(t, b);
	unsigned d[DISTANCE_LETTERS + 1][DISTANCE_LETTERS + 1];

	for (size_t j = 0; j <= m; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		d[i][0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned change = s[i - 1] != t[j - 1];

			d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
					d[i - 1][j - 1] + change);
			if (i > 1 && j > 1 && s[i - 1] == t[j - 2] &&
			    s[i - 2] == t[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[n][m];
}

/* One letter in three may be wrong, but a word of two has to be right in one.
 */
static bool near_enough(const char *typed, unsigned distance)
{
	size_t n = strlen(typed);

	return n <= DISTANCE_LETTERS && distance <= (n + 2) / 3 && distance < n;
}

const char *opt_nearest(const char *typed, const char *const *words, size_t n)
{
	const char *best = NULL;
	unsigned least = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned d = opt_distance(typed, words[i]);

		if (best == NULL || d < least) {
			best = words[i];
			least = d;
		}
	}
	return best != NULL && near_enough(typed, least) ? best : NULL;
}

bool opt_is_null(const char *text)
{
	return text[0] == '\0' || strcmp(text, "~") == 0 ||
	       strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
	       strcmp(text, "NULL") == 0;
}
