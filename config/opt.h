/* SPDX-License-Identifier: MIT */
/*
 * options.def and enums.def as tables: what the checks, the conversion, the
 * printed scenario and the reference page go by. Constant.
 */
#ifndef CONFIG_OPT_H
#define CONFIG_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPT_PHASES_MAX 64

enum opt_type {
	OPT_TYPE_STR,
	OPT_TYPE_LIST,
	OPT_TYPE_UINT,
	OPT_TYPE_COUNT,
	OPT_TYPE_DRIVERS,
	OPT_TYPE_BOOL,
	OPT_TYPE_DURATION,
	OPT_TYPE_SIZE,
	OPT_TYPE_REQUESTS,
	OPT_TYPE_PERCENT,
	OPT_TYPE_RATE,
	OPT_TYPE_ACCEPT, /* from here on: words of enums.def */
	OPT_TYPE_RESPOND,
	OPT_TYPE_CLIENT_AUTH,
	OPT_TYPE_CERT,
	OPT_TYPE_HANDSHAKE,
	OPT_TYPE_KIND,
	OPT_TYPE_CLOSE,
	OPT_TYPE_TRANSPORT,
	OPT_TYPE_SPEAKS,
	OPT_TYPE_ARRIVALS,
	OPT_TYPE_TICKET_USE,
	OPT_TYPE_MODE,
};

/* In the order of the reference page. A parent comes before its children. */
enum opt_section_id {
	OPT_IN_ROOT,
	OPT_IN_TERMINATOR,
	OPT_IN_RESPOND,
	OPT_IN_TARGET,
	OPT_IN_WORKERS,
	OPT_IN_TLS,
	OPT_IN_CERTIFICATE,
	OPT_IN_TICKETS,
	OPT_IN_LOAD,
	OPT_IN_PHASE,
	OPT_IN_SEGMENT,
	OPT_IN_RESULT,
	OPT_SECTIONS,
};

struct opt_section {
	const char *path; /* "tls.tickets"; "" is the root */
	const char *key;  /* "tickets" */
	enum opt_section_id parent;
	bool list;	   /* phases: a list of such mappings */
	size_t cfg_offset; /* in struct cfg; in its element for a list: 0 */
	size_t raw_offset; /* of the pointer, in the parent's struct */
	size_t raw_size;   /* of what it points to */
	const char *help;
};

struct opt_row {
	enum opt_section_id section;
	enum opt_type type;
	const char *key;
	const char *deflt; /* as in the file; NULL: none */
	uint64_t min, max;
	const char *help;
	size_t cfg_offset; /* in the section's struct */
	size_t raw_offset;
};

struct opt_word {
	enum opt_type type;
	int value;
	const char *word;
};

extern const struct opt_section opt_sections[OPT_SECTIONS];
extern const struct opt_row opt_rows[];
extern const size_t opt_nrows;
extern const struct opt_word opt_words[];
extern const size_t opt_nwords;

const char *opt_type_name(enum opt_type type); /* "CERT" */
bool opt_is_enum(enum opt_type type);

/* NULL where the section has no such key or child. */
const struct opt_row *opt_row(enum opt_section_id section, const char *key);
const struct opt_section *opt_child(enum opt_section_id section,
				    const char *key);
static inline enum opt_section_id opt_id(const struct opt_section *s)
{
	return (enum opt_section_id)(s - opt_sections);
}

/* "tls.groups": the dotted path of an option, or of phases[]. Returns buf. */
#define OPT_PATH_LEN 128
char *opt_path(char buf[static OPT_PATH_LEN], const struct opt_row *row);

/*
 * What may stand there, for a message or the page: "1 to 65535", "1ms to 1h",
 * "auto, or 1 to 256", "true or false", "reuseport or shared". Returns buf.
 */
#define OPT_ALLOWED_LEN 160
char *opt_allowed(char buf[static OPT_ALLOWED_LEN], const struct opt_row *row);

/* "whole number", "duration", "text", ... */
const char *opt_type_word(enum opt_type type);

/*
 * Comma separated text, as defaults of lists are written: the next item,
 * without the spaces around it, and its length; moves *rest on, to NULL after
 * the last.
 */
const char *opt_item(const char **rest, size_t *len);

/*
 * How far two words are apart: letters to insert, delete, change or swap, where
 * capitals, - and _ make no difference. Looks at the first 32 letters.
 */
unsigned opt_distance(const char *a, const char *b);

/* The word nearest to what was typed, if it can have been meant; or NULL. */
const char *opt_nearest(const char *typed, const char *const *words, size_t n);

/* Is this text, without quotes, YAML's way to say nothing? */
bool opt_is_null(const char *text);

#endif
