/* SPDX-License-Identifier: MIT */
#include "config/rules_int.h"

#include "config/unit.h"
#include "shm/base.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* The table of ticket keys holds these, the one that issues, and as many made
 * by hand (SIGHUP). */
#define OLDER_KEYS_MAX 14

/* No machine has more: it bounds a pin list. */
#define PIN_MAX 1024

bool rules_said(const struct conv *c, const char *path)
{
	return node_find(c->root, path) != NULL;
}

bool rules_clean(const struct conv *c, const char *path)
{
	return !fault_under(c->f, path);
}

/* ---- texts ---- */

void rules_name(const struct conv *c, const char *path, const char *name)
{
	char quoted[UNIT_QUOTE_LEN];

	if (name == NULL || name[strspn(name, LETTERS "._-")] == '\0')
		return;
	conv_fault(c, path,
		   "%s is no name; write letters, digits, dots, underscores "
		   "and dashes",
		   unit_quote(quoted, name));
}

static void check_scenario(const struct conv *c, const struct cfg *cfg)
{
	if (cfg->scenario == NULL && rules_clean(c, "scenario"))
		conv_fault(c, "scenario",
			   "missing; a scenario needs `scenario: NAME`");
	rules_name(c, "scenario", cfg->scenario);
	rules_name(c, "segment.name", cfg->segment.name);
}

/* "1.2.3.4" or "::1" */
static bool is_address(int family, const char *text, size_t len)
{
	unsigned char binary[16];
	char copy[64];

	if (len == 0 || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return inet_pton(family, copy, binary) == 1;
}

static bool is_port(const char *text)
{
	char err[8];
	uint64_t port;

	return unit_uint(text, &port, err, sizeof(err)) == 0 && port <= 65535;
}

const char *rules_address_fault(const char *text)
{
	const char *colon = strrchr(text, ':');
	bool bracket = text[0] == '[';
	size_t len;

	if (bracket ? strstr(text, "]:") == NULL : colon == NULL)
		return "has no port; write one behind a colon, such as "
		       "127.0.0.1:8443 or [::1]:8443";
	len = (size_t)(colon - text);
	if (!is_port(colon + 1))
		return "has no port that can be; write 0 to 65535 behind the "
		       "last colon";
	if (bracket && text[len - 1] == ']' &&
	    is_address(AF_INET6, text + 1, len - 2))
		return NULL;
	if (bracket)
		return "is no IPv6 address; write one such as [::1]:8443";
	if (is_address(AF_INET, text, len))
		return NULL;
	if (memchr(text, ':', len) != NULL)
		return "has colons; write an IPv6 address in brackets, such as "
		       "[::1]:8443";
	return "is no address; write an IPv4 or IPv6 address, such as "
	       "127.0.0.1:8443 or [::1]:8443, and no host name";
}

static void check_listen(const struct conv *c, const char *key,
			 const struct cfg_list *list)
{
	char path[64], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < list->n; i++) {
		const char *fault = rules_address_fault(list->item[i]);

		if (fault == NULL)
			continue;
		snprintf(path, sizeof(path), "terminator.%s.%zu", key, i);
		conv_fault(c, path, "%s %s", unit_quote(quoted, list->item[i]),
			   fault);
	}
}

/* Two listeners of one address would share what comes, half without TLS. */
static void check_listen_twice(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_list *tls = &cfg->terminator.listen;
	const struct cfg_list *plain = &cfg->terminator.listen_plain;
	char path[64], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < plain->n; i++)
		for (size_t k = 0; k < tls->n; k++) {
			const char *text = plain->item[i];
			const char *colon = strrchr(text, ':');

			if (strcmp(text, tls->item[k]) != 0 || colon == NULL ||
			    strcmp(colon, ":0") == 0)
				continue;
			snprintf(path, sizeof(path),
				 "terminator.listen_plain.%zu", i);
			conv_fault(c, path,
				   "%s is in listen as well; write another "
				   "port",
				   unit_quote(quoted, text));
		}
}

static void check_accept_doubt(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_list *list = &cfg->accept_doubt;
	char path[40], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < list->n; i++) {
		const char *word = list->item[i];

		if (word[strspn(word, "abcdefghijklmnopqrstuvwxyz-")] == '\0')
			continue;
		snprintf(path, sizeof(path), "accept_doubt.%zu", i);
		conv_fault(c, path,
			   "%s is no name of a doubt; write it as the result "
			   "does, in small letters and dashes",
			   unit_quote(quoted, word));
	}
}

static void check_pin(const struct conv *c, const char *path, const char *pin)
{
	int cpus[PIN_MAX];
	char err[400], quoted[UNIT_QUOTE_LEN];

	if (pin == NULL || strcmp(pin, "auto") == 0 || strcmp(pin, "none") == 0)
		return;
	if (strspn(pin, "0123456789") == 0)
		conv_fault(c, path,
			   "%s is no CPU list; write auto, none, or one such "
			   "as 0-3,8",
			   unit_quote(quoted, pin));
	else if (unit_cpus(pin, cpus, PIN_MAX, err, sizeof(err)) < 0)
		conv_fault(c, path, "%s", err);
}

static void check_server_name(const struct conv *c, const struct cfg *cfg)
{
	const char *name = cfg->load.server_name;
	char quoted[UNIT_QUOTE_LEN];

	if (name == NULL || name[strspn(name, LETTERS "._-:")] == '\0')
		return;
	conv_fault(c, "load.server_name",
		   "%s is no name of a server; write auto, or one such as "
		   "www.example.org",
		   unit_quote(quoted, name));
}

/* ---- tls ---- */

static void check_versions(const struct conv *c, const char *path_of,
			   const struct cfg_list *list)
{
	static const char *const known[] = {"TLSv1.2", "TLSv1.3"};
	char path[64], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < list->n; i++) {
		const char *v = list->item[i];

		if (strcmp(v, known[0]) == 0 || strcmp(v, known[1]) == 0)
			continue;
		snprintf(path, sizeof(path), "%s.%zu", path_of, i);
		conv_fault(c, path, "%s is not known; write %s or %s",
			   unit_quote(quoted, v), known[0], known[1]);
	}
}

/* Names that OpenSSL takes joined by colons: one name must not be two. */
static void check_names(const struct conv *c, const char *path,
			const struct cfg_list *list)
{
	char at[64], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < list->n; i++) {
		const char *name = list->item[i];

		if (name[strspn(name, LETTERS "._-")] == '\0')
			continue;
		snprintf(at, sizeof(at), "%s.%zu", path, i);
		conv_fault(c, at, "%s is not one name; write [one, another]",
			   unit_quote(quoted, name));
	}
}

static void check_certificate(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_certificate *cert = &cfg->tls.certificate;
	const char *path = "tls.certificate";

	if (!rules_clean(c, path))
		return;
	if (rules_said(c, "tls.certificate.make") &&
	    (cert->chain != NULL || cert->key != NULL))
		conv_fault(
			c, "tls.certificate.make",
			"a certificate is made or read from files, not both; "
			"take out make, or %s",
			cert->key == NULL     ? "chain"
			: cert->chain == NULL ? "key"
					      : "chain and key");
	else if (cert->chain != NULL && cert->key == NULL)
		conv_fault(c, "tls.certificate.chain",
			   "a chain needs its private key; add key: FILE");
	else if (cert->key != NULL && cert->chain == NULL)
		conv_fault(c, "tls.certificate.key",
			   "a key needs its certificate; add chain: FILE");
}

static void check_client_auth(const struct conv *c, const struct cfg *cfg)
{
	bool asked = cfg->tls.client_auth != CFG_CLIENT_AUTH_NONE;

	if (!rules_clean(c, "tls.client_auth") || !rules_clean(c, "tls.ca"))
		return;
	if (asked && cfg->tls.ca == NULL)
		conv_fault(c, "tls.client_auth",
			   "\"%s\" needs the CAs that sign clients; add "
			   "tls.ca: FILE",
			   cfg_word("CLIENT_AUTH", (int)cfg->tls.client_auth));
	if (!asked && cfg->tls.ca != NULL)
		conv_fault(c, "tls.ca",
			   "no client is asked for a certificate; set "
			   "client_auth to optional or required, or take ca "
			   "out");
}

static void check_key_file(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_tickets *t = &cfg->tls.tickets;
	const char *path = "tls.tickets.key_file";

	if (!t->enabled)
		conv_fault(c, path,
			   "tickets are not enabled; take key_file out, or "
			   "enabled: false");
	if (!t->shared)
		conv_fault(c, path,
			   "keys of a file are shared by all workers; take "
			   "key_file out, or shared: false");
	if (rules_said(c, "tls.tickets.rotate"))
		conv_fault(c, "tls.tickets.rotate",
			   "keys of a file are never rotated; take rotate out, "
			   "or key_file");
}

static void check_tickets(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_tickets *t = &cfg->tls.tickets;
	char text[40];

	if (!rules_clean(c, "tls.tickets"))
		return;
	if (t->key_file != NULL) {
		check_key_file(c, cfg);
	} else if (t->rotate > 0 && t->lifetime > OLDER_KEYS_MAX * t->rotate) {
		unit_print_duration(t->lifetime, text, sizeof(text));
		conv_fault(c,
			   rules_said(c, "tls.tickets.rotate")
				   ? "tls.tickets.rotate"
				   : "tls.tickets.lifetime",
			   "a lifetime of %s is more than %d rotations; rotate "
			   "less often, or shorten lifetime",
			   text, OLDER_KEYS_MAX);
	}
}

static void check_load(const struct conv *c, const struct cfg *cfg)
{
	if (cfg->nphases > 0 && cfg->load.drivers == CFG_NO_DRIVERS &&
	    rules_clean(c, "load.drivers"))
		conv_fault(c, "phases",
			   "phases need a load, and there is none; take phases "
			   "out, or load: none");
}

static void check_respond(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_respond *r = &cfg->terminator.respond;

	if (rules_clean(c, "terminator.respond") &&
	    r->mode == CFG_RESPOND_SPEAK_FIRST && r->body == 0)
		conv_fault(c, "terminator.respond.body",
			   "speak-first has to send something; write 1B or "
			   "more, or mode: close");
}

static void check_server(const struct conv *c, const struct cfg *cfg)
{
	check_listen(c, "listen", &cfg->terminator.listen);
	if (rules_said(c, "terminator.listen_plain"))
		check_listen(c, "listen_plain", &cfg->terminator.listen_plain);
	check_listen_twice(c, cfg);
	check_respond(c, cfg);
	check_pin(c, "workers.pin", cfg->workers.pin);
	check_client_auth(c, cfg);
	check_certificate(c, cfg);
	check_tickets(c, cfg);
}

void rules_check(const struct conv *c, const struct cfg *cfg)
{
	check_scenario(c, cfg);
	check_accept_doubt(c, cfg);
	check_versions(c, "tls.versions", &cfg->tls.versions);
	check_names(c, "tls.groups", &cfg->tls.groups);
	check_names(c, "tls.ciphers", &cfg->tls.ciphers);
	check_pin(c, "load.pin", cfg->load.pin);
	check_server_name(c, cfg);
	check_versions(c, "load.versions", &cfg->load.versions);
	check_names(c, "load.groups", &cfg->load.groups);
	check_names(c, "load.ciphers", &cfg->load.ciphers);
	check_load(c, cfg);
	if (cfg->has_target)
		rules_check_target(c, cfg);
	else
		check_server(c, cfg);
	rules_check_drivers(c, cfg);
	rules_check_phases(c, cfg);
}

/* Does it say how our own server is to be? */
static bool is_ours(const struct opt_row *row)
{
	switch (row->section) {
	case OPT_IN_TERMINATOR:
	case OPT_IN_RESPOND:
	case OPT_IN_WORKERS:
	case OPT_IN_CERTIFICATE:
	case OPT_IN_TICKETS:
		return true;
	case OPT_IN_TLS:
		return strcmp(row->key, "client_auth") == 0 ||
		       strcmp(row->key, "ca") == 0;
	default:
		return false;
	}
}

bool rules_moot(const struct cfg *cfg, const struct opt_row *row, size_t phase)
{
	if (row->section == OPT_IN_PHASE)
		return rules_misplaced(&cfg->phases[phase], row->key) != NULL;
	if (row->section == OPT_IN_TARGET)
		return !cfg->has_target;
	if (is_ours(row) && cfg->has_target)
		return true;
	/* Defaults that would contradict what was said in their stead. */
	if (row->section == OPT_IN_CERTIFICATE)
		return strcmp(row->key, "make") == 0 &&
		       cfg->tls.certificate.chain != NULL;
	return row->section == OPT_IN_TICKETS &&
	       strcmp(row->key, "rotate") == 0 &&
	       cfg->tls.tickets.key_file != NULL;
}
