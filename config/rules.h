/* SPDX-License-Identifier: MIT */
/*
 * What options may not say together, and what a text must look like beyond its
 * length: names, addresses, CPU lists.
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

#endif
