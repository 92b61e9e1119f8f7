/* SPDX-License-Identifier: MIT */
/*
 * The shape of a scenario: which keys there are, and whether a text, a list or
 * a mapping stands where one is due. What the values mean is cfg.c's.
 */
#ifndef CONFIG_SHAPE_H
#define CONFIG_SHAPE_H

#include "config/fault.h"
#include "config/node.h"
#include "config/opt.h"

#include <stdbool.h>

/*
 * Brings short forms to the long one: `load: none`, and a text where a list is
 * due ("a, b"). Says nothing of faults. 0 or -ENOMEM.
 */
int shape_unfold(struct node *root);

/*
 * One `--set PATH=VALUE`, the `number`th (from 1, told as the line): as if it
 * stood in the file, in the place of what is there. A number counts a list's
 * entries from 0; the one after the last adds an entry.
 * 0, -EINVAL with a fault, or -ENOMEM.
 */
int shape_set(struct node *root, const char *set, unsigned number,
	      struct faults *f);

/*
 * Tells all faults and takes out what is at fault, and what is null, so that
 * what is left has the shape that raw_load() needs. False if nothing is left:
 * the root is no mapping.
 */
bool shape_check(struct node *root, struct faults *f);

#endif
