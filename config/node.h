/* SPDX-License-Identifier: MIT */
/*
 * The scenario as a tree of nodes, each with the place it came from, so that
 * every later message can name file and line. Made by yaml.c, trimmed by
 * shape.c, asked by cfg.c for lines; lives inside cfg_load().
 */
#ifndef CONFIG_NODE_H
#define CONFIG_NODE_H

#include <stdbool.h>
#include <stddef.h>

enum node_kind {
	NODE_NULL,
	NODE_TEXT,
	NODE_LIST,
	NODE_MAP
};

struct node {
	enum node_kind kind;
	bool quoted;	   /* a text that stood in quotes */
	unsigned line;	   /* from 1 */
	const char *file;  /* borrowed: outlives the tree */
	char *key;	   /* owns; in a map: the key it has there */
	char *text;	   /* owns; NODE_TEXT only */
	struct node **kid; /* owns the array and the nodes; LIST and MAP */
	size_t nkids, cap;
};

/* NULL without memory; `text` (NULL: none) is copied. */
struct node *node_new(enum node_kind kind, const char *file, unsigned line,
		      const char *text, size_t len);
void node_free(struct node **node);

/*
 * Takes over *kid and sets it to NULL; `key` is copied, NULL in a list. 0 or
 * -ENOMEM; then the caller still owns *kid.
 */
int node_add(struct node *parent, struct node **kid, const char *key);

/* Frees the kid at `index` and closes the gap. */
void node_remove(struct node *parent, size_t index);

/* The kid of that key, or NULL; also for what is no map. Borrowed. */
struct node *node_get(const struct node *map, const char *key);

/*
 * The node at a dotted path ("phases.0.duration"), or NULL. Borrowed.
 * node_nearest() gives the deepest one on the way that exists, at least root.
 */
const struct node *node_find(const struct node *root, const char *path);
const struct node *node_nearest(const struct node *root, const char *path);

/*
 * The dotted path of where one is, for messages: node_down() goes into a kid,
 * by its key or, with NULL, its index, and returns what node_up() takes.
 */
struct node_path {
	char text[256]; /* cut where it would be longer */
	size_t len;
};

size_t node_down(struct node_path *path, const char *key, size_t index);
void node_up(struct node_path *path, size_t len);

/* Makes *node, whatever it was, an empty one of that kind; key and place stay.
 */
void node_clear(struct node *node, enum node_kind kind);

#endif
