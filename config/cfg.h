/* SPDX-License-Identifier: MIT */
/*
 * The scenario: one YAML file in, one immutable struct cfg out.
 *
 * Members, defaults, ranges and the reference page come from options.def; key =
 * member = manual entry, letter for letter. Times are ns, sizes are bytes,
 * rates are thousandths per second. Not opaque: every layer reads it. Written
 * by cfg_load() only, then constant; the master makes it before the first fork,
 * workers inherit it, drivers load the text of cfg_print().
 */
#ifndef CONFIG_CFG_H
#define CONFIG_CFG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CFG_AUTO       0	  /* a COUNT or DRIVERS left to the machine */
#define CFG_NO_DRIVERS 65535	  /* load: none */
#define CFG_UNLIMITED  UINT64_MAX /* requests: unlimited */

/* Enumerators CFG_<type>_<member> of enums.def, each type counting from 0. */
enum cfg_accept {
#define ENUM_ACCEPT(member, word) CFG_ACCEPT_##member,
#include "config/enums.def"
};

enum cfg_respond_mode {
#define ENUM_RESPOND(member, word) CFG_RESPOND_##member,
#include "config/enums.def"
};

enum cfg_client_auth {
#define ENUM_CLIENT_AUTH(member, word) CFG_CLIENT_AUTH_##member,
#include "config/enums.def"
};

enum cfg_cert {
#define ENUM_CERT(member, word) CFG_CERT_##member,
#include "config/enums.def"
};

enum cfg_handshake {
#define ENUM_HANDSHAKE(member, word) CFG_HANDSHAKE_##member,
#include "config/enums.def"
};

enum cfg_kind {
#define ENUM_KIND(member, word) CFG_KIND_##member,
#include "config/enums.def"
};

enum cfg_close {
#define ENUM_CLOSE(member, word) CFG_CLOSE_##member,
#include "config/enums.def"
};

enum cfg_transport {
#define ENUM_TRANSPORT(member, word) CFG_TRANSPORT_##member,
#include "config/enums.def"
};

enum cfg_speaks {
#define ENUM_SPEAKS(member, word) CFG_SPEAKS_##member,
#include "config/enums.def"
};

enum cfg_arrivals {
#define ENUM_ARRIVALS(member, word) CFG_ARRIVALS_##member,
#include "config/enums.def"
};

enum cfg_ticket_use {
#define ENUM_TICKET_USE(member, word) CFG_TICKET_USE_##member,
#include "config/enums.def"
};

enum cfg_mode {
#define ENUM_MODE(member, word) CFG_MODE_##member,
#include "config/enums.def"
};

struct cfg_list {
	char **item; /* owns the array and the texts; NULL when n is 0 */
	size_t n;
};

#define CFG_CTYPE_STR	      char * /* owns; NULL when absent and no default */
#define CFG_CTYPE_LIST	      struct cfg_list
#define CFG_CTYPE_UINT	      uint64_t
#define CFG_CTYPE_COUNT	      uint64_t /* CFG_AUTO, or the number */
#define CFG_CTYPE_DRIVERS     uint64_t /* as COUNT, or CFG_NO_DRIVERS */
#define CFG_CTYPE_BOOL	      bool
#define CFG_CTYPE_DURATION    uint64_t
#define CFG_CTYPE_SIZE	      uint64_t
#define CFG_CTYPE_REQUESTS    uint64_t /* CFG_UNLIMITED, or the number */
#define CFG_CTYPE_PERCENT     uint64_t /* 0 to 100 */
#define CFG_CTYPE_RATE	      uint64_t /* thousandths per second; 0: absent */
#define CFG_CTYPE_ACCEPT      enum cfg_accept
#define CFG_CTYPE_RESPOND     enum cfg_respond_mode
#define CFG_CTYPE_CLIENT_AUTH enum cfg_client_auth
#define CFG_CTYPE_CERT	      enum cfg_cert
#define CFG_CTYPE_HANDSHAKE   enum cfg_handshake
#define CFG_CTYPE_KIND	      enum cfg_kind
#define CFG_CTYPE_CLOSE	      enum cfg_close
#define CFG_CTYPE_TRANSPORT   enum cfg_transport
#define CFG_CTYPE_SPEAKS      enum cfg_speaks
#define CFG_CTYPE_ARRIVALS    enum cfg_arrivals
#define CFG_CTYPE_TICKET_USE  enum cfg_ticket_use
#define CFG_CTYPE_MODE	      enum cfg_mode

#define CFG_MEMBER(key, type, ...) CFG_CTYPE_##type key;

struct cfg_respond {
#define OPT_RESPOND CFG_MEMBER
#include "config/options.def"
};

struct cfg_terminator {
#define OPT_TERMINATOR CFG_MEMBER
#include "config/options.def"
	struct cfg_respond respond;
};

struct cfg_target {
#define OPT_TARGET CFG_MEMBER
#include "config/options.def"
};

struct cfg_workers {
#define OPT_WORKERS CFG_MEMBER
#include "config/options.def"
};

struct cfg_certificate {
#define OPT_CERTIFICATE CFG_MEMBER
#include "config/options.def"
};

struct cfg_tickets {
#define OPT_TICKETS CFG_MEMBER
#include "config/options.def"
};

struct cfg_tls {
#define OPT_TLS CFG_MEMBER
#include "config/options.def"
	struct cfg_certificate certificate;
	struct cfg_tickets tickets;
};

struct cfg_load {
#define OPT_LOAD CFG_MEMBER
#include "config/options.def"
};

struct cfg_phase {
#define OPT_PHASE CFG_MEMBER
#include "config/options.def"
};

struct cfg_segment {
#define OPT_SEGMENT CFG_MEMBER
#include "config/options.def"
};

struct cfg_result {
#define OPT_RESULT CFG_MEMBER
#include "config/options.def"
};

struct cfg {
#define OPT_ROOT CFG_MEMBER
#include "config/options.def"
	struct cfg_terminator terminator;
	struct cfg_target target;
	bool has_target; /* `target` is there: no terminator, no workers */
	struct cfg_workers workers;
	struct cfg_tls tls;
	struct cfg_load load;
	struct cfg_phase *phases; /* owns; NULL when nphases is 0 */
	size_t nphases;
	struct cfg_segment segment;
	struct cfg_result result;
	char *path; /* owns; the file it came from, for messages */
};

/*
 * Loads `path` ("-": standard input), applies `sets` ("tls.groups=[P-256]",
 * "phases.0.duration=300ms"; each as if it stood in the file), fills in
 * defaults, checks. Every fault found is written to `errs`, one per line:
 *
 *     FILE:LINE: KEY.PATH: what is wrong, the value; what would be right
 *
 * in the order of lines; FILE is <stdin> for "-", and --set for an override,
 * whose LINE is then its number among them, from 1.
 *
 * 0, and the caller owns *out (cfg_free()); -EINVAL when something is wrong
 * with the content; -errno if the file cannot be read (also told in `errs`).
 */
int cfg_load(struct cfg **out, const char *path, const char *const *sets,
	     size_t nsets, FILE *errs);
void cfg_free(struct cfg **cfg);

/* The resolved scenario as YAML that loads to the same. 0 or -errno. */
int cfg_print(const struct cfg *cfg, FILE *out);

/* The reference page config/REFERENCE.md, as Markdown. */
void cfg_describe(FILE *out);

/* The word of an enumerated value, as in the file: cfg_word("CERT", 3). */
const char *cfg_word(const char *type, int value);

/* The segment's name: segment.name, or the scenario's. Borrowed. */
const char *cfg_segment_name(const struct cfg *cfg);

#endif
