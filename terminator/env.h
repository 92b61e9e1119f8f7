/* SPDX-License-Identifier: MIT */
/* What a result has to say about the machine and the programs it ran on. */
#ifndef TERMINATOR_ENV_H
#define TERMINATOR_ENV_H

#include "config/plan.h"

#include <jansson.h>

/*
 * Kernel, CPU model, frequencies and governor, SMT, quota, limits, libraries. A
 * fact that this machine does not tell is null. The caller owns the object;
 * NULL only when out of memory.
 */
json_t *env_json(const struct plan_cpus *cpus, const char *ring_features);

#endif
