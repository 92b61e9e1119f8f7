/* SPDX-License-Identifier: MIT */
/* What a scenario may say and this version cannot do yet. */
#ifndef TERMINATOR_CAN_H
#define TERMINATOR_CAN_H

#include "config/cfg.h"

#include <stddef.h>

/*
 * 0, or -EINVAL with a sentence in err that names the key: better no run than
 * one that leaves out what was asked for.
 */
int can_run(const struct cfg *cfg, char *err, size_t len);

#endif
