/* SPDX-License-Identifier: MIT */
/*
 * YAML to nodes and back, by libyaml. Takes any bytes: what cannot be a
 * scenario (not UTF-8, too large, too deep, tags, control characters, a second
 * document) is a fault with its line.
 */
#ifndef CONFIG_YAML_H
#define CONFIG_YAML_H

#include "config/fault.h"
#include "config/node.h"

#include <stddef.h>

#define YAML_BYTES_MAX (1u << 20) /* of a file */
#define YAML_TEXT_MAX  8192	  /* of one text */
#define YAML_NODES_MAX 4000	  /* aliases counted each time they are used */
#define YAML_DEPTH_MAX 12

/*
 * "-": standard input. 0, and the caller owns *out (NODE_NULL for an empty
 * file); -EINVAL with faults, -ENOMEM, or -errno (told as a fault too) if it
 * cannot be read. Keys given twice are faults, but the tree is made, and 0
 * returned.
 */
int yaml_read(struct node **out, const char *path, struct faults *f);

/*
 * As yaml_read() for a text. All nodes get `file`, which must outlive them, and
 * `line` if that is not 0. Paths in messages begin with *at.
 */
int yaml_parse(struct node **out, const char *text, size_t len,
	       const char *file, unsigned line, const struct node_path *at,
	       struct faults *f);

/* All texts in double quotes. 0, and the caller frees *out; or -ENOMEM. */
int yaml_emit(char **out, size_t *len, const struct node *root);

#endif
