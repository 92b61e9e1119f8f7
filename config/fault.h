/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a scenario: collected, so that all of it can be told at
 * once, in the order of the file's lines. Lives inside cfg_load().
 */
#ifndef CONFIG_FAULT_H
#define CONFIG_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct fault {
	const char *file; /* borrowed */
	unsigned line;	  /* 0: none */
	size_t order;	  /* of finding */
	char *path;	  /* owns; "tls.groups", "" */
	char *text;	  /* owns */
};

struct faults {
	struct fault *item; /* owns */
	size_t n, cap;
	bool no_memory; /* something could not be told: the load fails with it
			 */
};

/* Text is one line. Always -EINVAL, for the caller to hand on. */
int fault_add(struct faults *f, const char *file, unsigned line,
	      const char *path, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* Was something found at this path or below it ("" : anywhere)? */
bool fault_under(const struct faults *f, const char *path);

/* One per line, FILE:LINE: PATH: TEXT. What --set brought comes last. */
void fault_print(struct faults *f, FILE *out);
void fault_fini(struct faults *f);

#endif
