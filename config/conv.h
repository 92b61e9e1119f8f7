/* SPDX-License-Identifier: MIT */
/*
 * One option between its text (struct raw) and its value (struct cfg), by its
 * row. Lives inside cfg_load() and cfg_print().
 */
#ifndef CONFIG_CONV_H
#define CONFIG_CONV_H

#include "config/fault.h"
#include "config/node.h"
#include "config/opt.h"

struct conv {
	const struct node *root; /* borrowed: the places of what is at fault */
	struct faults *f;	 /* borrowed */
};

/* A fault of the option at `path`, or of the deepest there is above it. */
void conv_fault(const struct conv *c, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Text to value; the default where the text, or `raw`, is NULL. `raw` and `cfg`
 * are the section's structs, whose members now own their copies. What is wrong
 * is a fault and leaves the member as it was. 0 or -ENOMEM.
 */
int conv_take(const struct conv *c, const struct opt_row *row, const char *path,
	      const void *raw, void *cfg);

/* Value to text. 0 or -ENOMEM. */
int conv_give(const struct opt_row *row, const void *cfg, void *raw);

/* Frees what the member owns. */
void conv_free(const struct opt_row *row, void *cfg);

#endif
