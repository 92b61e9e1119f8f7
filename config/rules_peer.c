/* SPDX-License-Identifier: MIT */
/* The drivers' own options, and the server that is not ours. */
#include "config/rules_int.h"

#include "config/unit.h"
#include "shm/base.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* ---- load ---- */

/* Each entry made of these characters alone; or `fault` is told. */
static void check_entries(const struct conv *c, const char *path,
			  const struct cfg_list *list, const char *characters,
			  const char *fault)
{
	char at[64], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < list->n; i++) {
		const char *text = list->item[i];

		if (text[strspn(text, characters)] == '\0')
			continue;
		snprintf(at, sizeof(at), "%s.%zu", path, i);
		conv_fault(c, at, "%s %s", unit_quote(quoted, text), fault);
	}
}

static void check_alpn(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_list *list = &cfg->load.alpn;
	char path[40], quoted[UNIT_QUOTE_LEN];

	/* One byte holds the length of a name (RFC 7301, 3.1). */
	for (size_t i = 0; i < list->n; i++) {
		if (strlen(list->item[i]) <= 255)
			continue;
		snprintf(path, sizeof(path), "load.alpn.%zu", i);
		conv_fault(c, path, "%s is too long; write 1 to 255 characters",
			   unit_quote(quoted, list->item[i]));
	}
}

/* Key and certificate go together; providers are loaded for a key. */
static void check_credentials(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_load *l = &cfg->load;

	if (!rules_clean(c, "load.certificate") ||
	    !rules_clean(c, "load.key") || !rules_clean(c, "load.providers"))
		return;
	if (l->certificate != NULL && l->key == NULL)
		conv_fault(
			c, "load.certificate",
			"a certificate needs its private key; add key: FILE");
	if (l->key != NULL && l->certificate == NULL)
		conv_fault(
			c, "load.key",
			"a key needs its certificate; add certificate: FILE");
	if (l->providers.n > 0 && l->key == NULL)
		conv_fault(
			c, "load.providers",
			"providers are loaded for the drivers' key; add key: "
			"URI, or take providers out");
}

static int family_of(const char *address)
{
	unsigned char binary[16];

	if (inet_pton(AF_INET, address, binary) == 1)
		return AF_INET;
	return inet_pton(AF_INET6, address, binary) == 1 ? AF_INET6 : AF_UNSPEC;
}

/* Where the drivers connect to, if that is known to be good; or NULL. */
static const char *server_address(const struct conv *c, const struct cfg *cfg)
{
	if (cfg->has_target)
		return rules_clean(c, "target.address") ? cfg->target.address
							: NULL;
	return rules_clean(c, "terminator.listen")
		       ? cfg->terminator.listen.item[0]
		       : NULL;
}

static void check_source(const struct conv *c, const struct cfg *cfg)
{
	const char *server = server_address(c, cfg);
	const struct cfg_list *list = &cfg->load.source;
	char path[40], quoted[UNIT_QUOTE_LEN];

	for (size_t i = 0; i < list->n; i++) {
		int family = family_of(list->item[i]);
		int wanted = server == NULL	? family
			     : server[0] == '[' ? AF_INET6
						: AF_INET;

		if (family == wanted && family != AF_UNSPEC)
			continue;
		snprintf(path, sizeof(path), "load.source.%zu", i);
		unit_quote(quoted, list->item[i]);
		if (family == AF_UNSPEC)
			conv_fault(c, path,
				   "%s is no address; write an IPv4 or IPv6 "
				   "address without a port, such as 127.0.0.2",
				   quoted);
		else
			conv_fault(c, path,
				   "%s cannot reach the server at %s; write "
				   "IPv%c addresses",
				   quoted, server,
				   wanted == AF_INET6 ? '6' : '4');
	}
}

static void check_client_auth(const struct conv *c, const struct cfg *cfg)
{
	if (rules_load(cfg) && !cfg->has_target &&
	    rules_clean(c, "tls.client_auth") &&
	    rules_clean(c, "load.certificate") && rules_clean(c, "load.key") &&
	    cfg->tls.client_auth == CFG_CLIENT_AUTH_REQUIRED &&
	    cfg->load.certificate == NULL)
		conv_fault(c, "tls.client_auth",
			   "the drivers have no client certificate: set "
			   "load.certificate and load.key");
}

void rules_check_drivers(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_load *l = &cfg->load;

	check_entries(c, "load.sigalgs", &l->sigalgs, LETTERS "._-+",
		      "is not one name; write [one, another]");
	check_entries(c, "load.providers", &l->providers, LETTERS "._-",
		      "is not one name; write [one, another]");
	check_entries(c, "load.alpn", &l->alpn, LETTERS "._-/",
		      "is no name of a protocol; write one such as http/1.1");
	check_alpn(c, cfg);
	check_credentials(c, cfg);
	check_source(c, cfg);
	check_client_auth(c, cfg);
}

/* ---- target ---- */

static void check_address(const struct conv *c, const struct cfg *cfg)
{
	const char *text = cfg->target.address, *fault;
	char quoted[UNIT_QUOTE_LEN];

	if (!rules_clean(c, "target.address"))
		return;
	if (text == NULL) {
		conv_fault(c, "target.address",
			   "missing; a target needs `address: 127.0.0.1:8443` "
			   "or such");
		return;
	}
	fault = rules_address_fault(text);
	if (fault == NULL && strcmp(strrchr(text, ':'), ":0") == 0)
		fault = "has port 0, where nobody listens; write the server's "
			"port";
	if (fault != NULL)
		conv_fault(c, "target.address", "%s %s",
			   unit_quote(quoted, text), fault);
}

/* The kernel's own limit (PID_MAX_LIMIT). */
#define PID_MAX (4 * 1024 * 1024)

static void check_pids(const struct conv *c, const struct cfg *cfg)
{
	const struct cfg_list *list = &cfg->target.pids;
	char path[40], quoted[UNIT_QUOTE_LEN], err[400];
	uint64_t pid;

	for (size_t i = 0; i < list->n; i++) {
		if (unit_uint(list->item[i], &pid, err, sizeof(err)) == 0 &&
		    pid > 0 && pid <= PID_MAX)
			continue;
		snprintf(path, sizeof(path), "target.pids.%zu", i);
		conv_fault(c, path,
			   "%s is no process number; write one such as 1234",
			   unit_quote(quoted, list->item[i]));
	}
}

/* The processes are found in one way. */
static void check_processes(const struct conv *c, const struct cfg *cfg)
{
	const struct {
		const char *path, *key;
		bool there;
	} way[] = {
		{"target.pids", "pids", cfg->target.pids.n > 0},
		{"target.pid_file", "pid_file", cfg->target.pid_file != NULL},
		{"target.cgroup", "cgroup", cfg->target.cgroup != NULL}};
	const char *before = NULL;

	for (size_t i = 0; i < ARRAY_LEN(way); i++) {
		if (!way[i].there)
			continue;
		if (before != NULL)
			conv_fault(c, way[i].path,
				   "%s says already which processes are the "
				   "server's; take one of them out",
				   before);
		else
			before = way[i].key;
	}
}

/* What says how our own server is to be, where it is not started. */
static void check_no_server(const struct conv *c)
{
	static const char *const ours[] = {"terminator",      "workers",
					   "tls.certificate", "tls.tickets",
					   "tls.client_auth", "tls.ca"};

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (rules_said(c, ours[i]) && rules_clean(c, ours[i]))
			conv_fault(
				c, ours[i],
				"says how our own server is to be, which a "
				"target stands in for; take one of them out");
}

void rules_check_target(const struct conv *c, const struct cfg *cfg)
{
	if (cfg->nphases == 0 && rules_clean(c, "phases"))
		conv_fault(c, "target",
			   "is loaded by phases, and there are none; add "
			   "phases");
	check_address(c, cfg);
	rules_name(c, "target.name", cfg->target.name);
	check_pids(c, cfg);
	check_processes(c, cfg);
	check_no_server(c);
}
