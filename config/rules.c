/* SPDX-License-Identifier: MIT */
#include "config/rules.h"

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

#define LETTERS                      \
	"abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789"

static bool said(const struct conv *c, const char *path)
{
	return node_find(c->root, path) != NULL;
}

static bool clean(const struct conv *c, const char *path)
{
	return !fault_under(c->f, path);
}

/* ---- texts ---- */

static void check_name(const struct conv *c, const char *path, const char *name)
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
	if (cfg->scenario == NULL && clean(c, "scenario"))
		conv_fault(c, "scenario",
			   "missing; a scenario needs `scenario: NAME`");
	check_name(c, "scenario", cfg->scenario);
	check_name(c, "segment.name", cfg->segment.name);
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

/* What is wrong with an address to listen on, and what would be right; or NULL.
 */
static const char *address_fault(const char *text)
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

static void check_listen(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_list *list = &cfg->terminator.listen;
	char path[64], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < list->n; i++) {
		const char *fault = address_fault(list->item[i]);

		if (fault == NULL)
			continue;
		snprintf(path, sizeof(path), "terminator.listen.%zu", i);
		conv_fault(c, path, "%s %s", unit_quote(quoted, list->item[i]),
			   fault);
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

static void check_versions(const struct conv *c, const struct cfg *cfg)
{
	static const char *const known[] = {"TLSv1.2", "TLSv1.3"};
	const struct cfg_list *list = &cfg->tls.versions;
	char path[64], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < list->n; i++) {
		const char *v = list->item[i];

		if (strcmp(v, known[0]) == 0 || strcmp(v, known[1]) == 0)
			continue;
		snprintf(path, sizeof(path), "tls.versions.%zu", i);
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

	if (!clean(c, path))
		return;
	if (said(c, "tls.certificate.make") &&
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

	if (!clean(c, "tls.client_auth") || !clean(c, "tls.ca"))
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
	if (said(c, "tls.tickets.rotate"))
		conv_fault(c, "tls.tickets.rotate",
			   "keys of a file are never rotated; take rotate out, "
			   "or key_file");
}

static void check_tickets(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_tickets *t = &cfg->tls.tickets;
	char text[40];

	if (!clean(c, "tls.tickets"))
		return;
	if (t->key_file != NULL) {
		check_key_file(c, cfg);
	} else if (t->rotate > 0 && t->lifetime > OLDER_KEYS_MAX * t->rotate) {
		unit_print_duration(t->lifetime, text, sizeof(text));
		conv_fault(c,
			   said(c, "tls.tickets.rotate")
				   ? "tls.tickets.rotate"
				   : "tls.tickets.lifetime",
			   "a lifetime of %s is more than %d rotations; rotate "
			   "less often, or shorten lifetime",
			   text, OLDER_KEYS_MAX);
	}
}

/* ---- phases ---- */

static void check_phase_names(const struct conv *c, const struct cfg *cfg)
{
	char path[64], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < cfg->nphases; i++) {
		const char *name = cfg->phases[i].name;

		snprintf(path, sizeof(path), "phases.%zu.name", i);
		if (name == NULL || !clean(c, path))
			continue;
		check_name(c, path, name);
		for (size_t k = 0; k < i; k++) {
			if (cfg->phases[k].name == NULL ||
			    strcmp(cfg->phases[k].name, name) != 0)
				continue;
			conv_fault(c, path,
				   "%s is the name of phases.%zu as well; give "
				   "each a name of its own, such as name: "
				   "%.40s-%zu",
				   unit_quote(quoted, name), k, name, i + 1);
			break;
		}
	}
}

static bool offers(const struct cfg *cfg, const char *version)
{
	for (size_t i = 0; i < cfg->tls.versions.n; i++)
		if (strcmp(cfg->tls.versions.item[i], version) == 0)
			return true;
	return false;
}

/* Why no handshake could resume, or NULL. */
static const char *no_resuming(const struct conv *c, const struct cfg *cfg)
{
	if (!clean(c, "tls.tickets") || !clean(c, "tls.versions"))
		return NULL;
	if (!cfg->tls.tickets.enabled)
		return "tls.tickets.enabled is false";
	if (cfg->tls.tickets.per_handshake == 0 && offers(cfg, "TLSv1.3"))
		return "tls.tickets.per_handshake is 0, so TLS 1.3 gives no "
		       "ticket";
	return NULL;
}

static void check_resumed(const struct conv *c, const struct cfg *cfg)
{
	const char *why = no_resuming(c, cfg);
	char path[64];

	for (size_t i = 0; i < cfg->nphases && why != NULL; i++) {
		snprintf(path, sizeof(path), "phases.%zu.handshake", i);
		if (cfg->phases[i].handshake == CFG_HANDSHAKE_RESUMED)
			conv_fault(c, path,
				   "nothing can resume: %s; change that, or "
				   "write handshake: full",
				   why);
	}
}

static void check_load(const struct conv *c, const struct cfg *cfg)
{
	if (cfg->nphases > 0 && cfg->load.drivers == CFG_NO_DRIVERS &&
	    clean(c, "load.drivers"))
		conv_fault(c, "phases",
			   "phases need a load, and there is none; take phases "
			   "out, or load: none");
}

static void check_respond(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_respond *r = &cfg->terminator.respond;

	if (clean(c, "terminator.respond") &&
	    r->mode == CFG_RESPOND_SPEAK_FIRST && r->body == 0)
		conv_fault(c, "terminator.respond.body",
			   "speak-first has to send something; write 1B or "
			   "more, or mode: close");
}

void rules_check(const struct conv *c, const struct cfg *cfg)
{
	check_scenario(c, cfg);
	check_listen(c, cfg);
	check_respond(c, cfg);
	check_pin(c, "workers.pin", cfg->workers.pin);
	check_versions(c, cfg);
	check_names(c, "tls.groups", &cfg->tls.groups);
	check_names(c, "tls.ciphers", &cfg->tls.ciphers);
	check_client_auth(c, cfg);
	check_certificate(c, cfg);
	check_tickets(c, cfg);
	check_pin(c, "load.pin", cfg->load.pin);
	check_server_name(c, cfg);
	check_load(c, cfg);
	check_phase_names(c, cfg);
	check_resumed(c, cfg);
}
