/* SPDX-License-Identifier: MIT */
/*
 * What options may not say together, and what a text must look like beyond its
 * length: names, addresses, CPU lists.
 *
 * rules.c the server's, rules_phase.c those of phases, rules_peer.c those of
 * `load` and `target`.
 */
#ifndef CONFIG_RULES_H
#define CONFIG_RULES_H

#include "config/cfg.h"
#include "config/conv.h"

/*
 * Tells every fault. A rule is passed over where one of its options is at fault
 * already.
 */
void rules_check(const struct conv *c, const struct cfg *cfg);

/*
 * Has the option no say in this scenario (`phase` counts in phases)? Such a one
 * is refused if it is written, and is not printed.
 */
bool rules_moot(const struct cfg *cfg, const struct opt_row *row, size_t phase);

/* How long a ramp takes, from its first step to its last; its options are good.
 */
uint64_t rules_ramp_length(const struct cfg_phase *p);

#endif
