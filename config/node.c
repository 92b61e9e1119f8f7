/* SPDX-License-Identifier: MIT */
#include "config/node.h"

#include "config/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node *node_new(enum node_kind kind, const char *file, unsigned line,
		      const char *text, size_t len)
{
	struct node *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->kind = kind;
	n->file = file;
	n->line = line;
	if (text != NULL) {
		n->text = strndup(text, len);
		if (n->text == NULL)
			node_free(&n);
	}
	return n;
}

void node_clear(struct node *node, enum node_kind kind)
{
	for (size_t i = 0; i < node->nkids; i++)
		node_free(&node->kid[i]);
	free(node->kid);
	free(node->text);
	node->kid = NULL;
	node->text = NULL;
	node->nkids = 0;
	node->cap = 0;
	node->quoted = false;
	node->kind = kind;
}

/* The tree is no deeper than yaml.c lets it be. */
void node_free(struct node **node)
{
	if (node == NULL || *node == NULL)
		return;
	node_clear(*node, NODE_NULL);
	free((*node)->key);
	free(*node);
	*node = NULL;
}

static int make_room(struct node *parent)
{
	size_t cap = parent->cap == 0 ? 8 : 2 * parent->cap;
	struct node **kid;

	if (parent->nkids < parent->cap)
		return 0;
	kid = reallocarray(parent->kid, cap, sizeof(struct node *));
	if (kid == NULL)
		return -ENOMEM;
	parent->kid = kid;
	parent->cap = cap;
	return 0;
}

int node_add(struct node *parent, struct node **kid, const char *key)
{
	char *copy = key != NULL ? strdup(key) : NULL;

	if ((key != NULL && copy == NULL) || make_room(parent) < 0) {
		free(copy);
		return -ENOMEM;
	}
	free((*kid)->key);
	(*kid)->key = copy;
	parent->kid[parent->nkids++] = *kid;
	*kid = NULL;
	return 0;
}

void node_remove(struct node *parent, size_t index)
{
	node_free(&parent->kid[index]);
	parent->nkids--;
	memmove(&parent->kid[index], &parent->kid[index + 1],
		(parent->nkids - index) * sizeof(struct node *));
}

struct node *node_get(const struct node *map, const char *key)
{
	if (map->kind != NODE_MAP)
		return NULL;
	for (size_t i = 0; i < map->nkids; i++)
		if (strcmp(map->kid[i]->key, key) == 0)
			return map->kid[i];
	return NULL;
}

/* The kid that the path's first part names, or NULL. */
static const struct node *step(const struct node *n, const char *part,
			       size_t len)
{
	char *end;
	unsigned long index;

	for (size_t i = 0; n->kind == NODE_MAP && i < n->nkids; i++)
		if (strlen(n->kid[i]->key) == len &&
		    memcmp(n->kid[i]->key, part, len) == 0)
			return n->kid[i];
	if (n->kind != NODE_LIST || *part < '0' || *part > '9')
		return NULL;
	index = strtoul(part, &end, 10);
	return end == part + len && index < n->nkids ? n->kid[index] : NULL;
}

/* The deepest node on the way; *whole says whether the way was walked to its
 * end. */
static const struct node *walk(const struct node *root, const char *path,
			       bool *whole)
{
	const struct node *n = root;

	*whole = true;
	while (*path != '\0') {
		size_t len = strcspn(path, ".");
		const struct node *next = step(n, path, len);

		if (next == NULL) {
			*whole = false;
			return n;
		}
		n = next;
		path += len + (path[len] == '.');
	}
	return n;
}

const struct node *node_find(const struct node *root, const char *path)
{
	bool whole;
	const struct node *n = walk(root, path, &whole);

	return whole ? n : NULL;
}

const struct node *node_nearest(const struct node *root, const char *path)
{
	bool whole;

	return walk(root, path, &whole);
}

/* A key that is no plain word (a mistake, then) is shown in quotes. */
static bool plain_word(const char *key)
{
	size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyz"
			       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-<");

	return n > 0 && n <= 64 && key[n] == '\0';
}

size_t node_down(struct node_path *path, const char *key, size_t index)
{
	size_t old = path->len, room = sizeof(path->text) - old;
	const char *dot = old > 0 ? "." : "";
	char quoted[UNIT_QUOTE_LEN];
	int n;

	if (key == NULL)
		n = snprintf(path->text + old, room, "%s%zu", dot, index);
	else
		n = snprintf(path->text + old, room, "%s%s", dot,
			     plain_word(key) ? key : unit_quote(quoted, key));
	path->len += (size_t)n < room ? (size_t)n : room - 1;
	return old;
}

void node_up(struct node_path *path, size_t len)
{
	path->len = len;
	path->text[len] = '\0';
}
