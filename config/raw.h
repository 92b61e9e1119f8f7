/* SPDX-License-Identifier: MIT */
/*
 * The scenario as libcyaml carries it: every value still a text, NULL where the
 * file says nothing (libcyaml 1.3.1 cannot tell an absent number from 0). Lives
 * inside cfg_load() and cfg_print() only.
 *
 * All memory is from realloc() and ends with free(), as cyaml_mem() does, so
 * that a tree made by hand and a loaded one end the same way: raw_free().
 */
#ifndef CONFIG_RAW_H
#define CONFIG_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct raw_list {
	char **item; /* owns; NULL when absent */
	uint32_t n;
};

/* All own their texts. */
#define RAW_CTYPE_STR	      char *
#define RAW_CTYPE_LIST	      struct raw_list
#define RAW_CTYPE_UINT	      char *
#define RAW_CTYPE_COUNT	      char *
#define RAW_CTYPE_DRIVERS     char *
#define RAW_CTYPE_BOOL	      char *
#define RAW_CTYPE_DURATION    char *
#define RAW_CTYPE_SIZE	      char *
#define RAW_CTYPE_REQUESTS    char *
#define RAW_CTYPE_PERCENT     char *
#define RAW_CTYPE_RATE	      char *
#define RAW_CTYPE_ACCEPT      char *
#define RAW_CTYPE_RESPOND     char *
#define RAW_CTYPE_CLIENT_AUTH char *
#define RAW_CTYPE_CERT	      char *
#define RAW_CTYPE_HANDSHAKE   char *
#define RAW_CTYPE_KIND	      char *
#define RAW_CTYPE_CLOSE	      char *
#define RAW_CTYPE_TRANSPORT   char *
#define RAW_CTYPE_SPEAKS      char *
#define RAW_CTYPE_ARRIVALS    char *
#define RAW_CTYPE_TICKET_USE  char *
#define RAW_CTYPE_MODE	      char *

#define RAW_MEMBER(key, type, ...) RAW_CTYPE_##type key;

struct raw_respond {
#define OPT_RESPOND RAW_MEMBER
#include "config/options.def"
};

struct raw_terminator {
#define OPT_TERMINATOR RAW_MEMBER
#include "config/options.def"
	struct raw_respond *respond;
};

struct raw_target {
#define OPT_TARGET RAW_MEMBER
#include "config/options.def"
};

struct raw_workers {
#define OPT_WORKERS RAW_MEMBER
#include "config/options.def"
};

struct raw_certificate {
#define OPT_CERTIFICATE RAW_MEMBER
#include "config/options.def"
};

struct raw_tickets {
#define OPT_TICKETS RAW_MEMBER
#include "config/options.def"
};

struct raw_tls {
#define OPT_TLS RAW_MEMBER
#include "config/options.def"
	struct raw_certificate *certificate;
	struct raw_tickets *tickets;
};

struct raw_load {
#define OPT_LOAD RAW_MEMBER
#include "config/options.def"
};

struct raw_phase {
#define OPT_PHASE RAW_MEMBER
#include "config/options.def"
};

struct raw_segment {
#define OPT_SEGMENT RAW_MEMBER
#include "config/options.def"
};

struct raw_result {
#define OPT_RESULT RAW_MEMBER
#include "config/options.def"
};

/* Owns its sections; NULL where the file says nothing. So do these. */
struct raw {
#define OPT_ROOT RAW_MEMBER
#include "config/options.def"
	struct raw_terminator *terminator;
	struct raw_target *target;
	struct raw_workers *workers;
	struct raw_tls *tls;
	struct raw_load *load;
	struct raw_phase *phases; /* owns */
	uint32_t nphases;
	struct raw_segment *segment;
	struct raw_result *result;
};

/*
 * `yaml` has the shape of the schema already (shape.h): anything else is our
 * own mistake. 0, and the caller owns *out; -ENOMEM; or -EINVAL with one line
 * in err.
 */
int raw_load(struct raw **out, const char *yaml, size_t yaml_len, char *err,
	     size_t len);

/* As YAML in block style; what is NULL is left out. 0 or -errno. */
int raw_save(const struct raw *raw, FILE *out);

void raw_free(struct raw **raw);

#endif
