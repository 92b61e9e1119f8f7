/* SPDX-License-Identifier: MIT */
/* The command line of tdrive, both forms: by hand, and managed by the master.
 */
#ifndef TOOLS_TDRIVE_ARGS_H
#define TOOLS_TDRIVE_ARGS_H

#include "config/cfg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Not opaque: plain values. Texts are borrowed from argv. */
struct args {
	bool help, version, managed;

	/* managed */
	const char *segment; /* its name, or a path */
	const char *target;  /* ADDR:PORT */
	const char *plain;   /* likewise, without TLS; NULL: none */
	uint32_t slot, number, drivers;
	int32_t cpu; /* -1: not pinned */
	int32_t config_fd, ca_fd, ctl_fd;

	/* by hand; lists are comma-separated texts, or NULL */
	const char *url;
	const char *ca, *certificate, *key;
	const char *groups, *versions, *ciphers, *sigalgs, *alpn;
	const char *providers, *source;
	struct cfg_phase phase; /* what of it makes sense by hand */
	uint32_t connections;
	uint64_t timeout_ns, duration_ns, warmup_ns;
	bool insecure, json;

	const char *name; /* both; by hand NULL: the URL's host */
};

/* 0, or -EINVAL with one sentence in err. */
int args_parse(struct args *out, int argc, char *const *argv, char *err,
	       size_t len);

void args_help(FILE *out);

/*
 * Cuts "a,b" into a list, at each of `separators`. 0, and the caller owns *out;
 * -EINVAL for an empty item; -ENOMEM. NULL gives an empty list.
 */
int args_list(struct cfg_list *out, const char *text, const char *separators);
void args_list_free(struct cfg_list *list);

#endif
