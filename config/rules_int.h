/* SPDX-License-Identifier: MIT */
/* What the files of rules share. */
#ifndef CONFIG_RULES_INT_H
#define CONFIG_RULES_INT_H

#include "config/rules.h"

#include <stdbool.h>

#define LETTERS                      \
	"abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789"

/* Is the option written in the file, or by --set? */
bool rules_said(const struct conv *c, const char *path);

/* Is nothing wrong so far with what stands at this path and below? */
bool rules_clean(const struct conv *c, const char *path);

/* "a.example-1_b" */
void rules_name(const struct conv *c, const char *path, const char *name);

/*
 * What is wrong with "127.0.0.1:8443" or "[::1]:8443", and what would be right;
 * or NULL.
 */
const char *rules_address_fault(const char *text);

/* Will drivers run? */
static inline bool rules_load(const struct cfg *cfg)
{
	return cfg->nphases > 0 && cfg->load.drivers != CFG_NO_DRIVERS;
}

/* Why the phase has no such option, as the end of a message; or NULL. */
const char *rules_misplaced(const struct cfg_phase *p, const char *key);

void rules_check_phases(const struct conv *c, const struct cfg *cfg);
void rules_check_target(const struct conv *c, const struct cfg *cfg);
void rules_check_drivers(const struct conv *c, const struct cfg *cfg);

#endif
