/* SPDX-License-Identifier: MIT */
#include "config/shape.h"

#include "config/unit.h"
#include "config/yaml.h"
#include "shm/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- short forms ---- */

/* A text of a list option becomes a list of its comma-separated parts. */
static int text_to_list(struct node *n)
{
	struct node list = *n;
	const char *rest = n->text;

	list.kind = NODE_LIST;
	list.text = NULL;
	list.quoted = false;
	while (rest != NULL) {
		size_t len;
		const char *item = opt_item(&rest, &len);
		struct node *kid =
			node_new(NODE_TEXT, n->file, n->line, item, len);

		if (kid == NULL || node_add(&list, &kid, NULL) < 0) {
			node_free(&kid);
			node_clear(&list, NODE_NULL);
			return -ENOMEM;
		}
	}
	free(n->text);
	*n = list;
	return 0;
}

static int none_to_map(struct node *n)
{
	struct node *kid = node_new(NODE_TEXT, n->file, n->line, "none", 4);

	if (kid == NULL)
		return -ENOMEM;
	node_clear(n, NODE_MAP);
	if (node_add(n, &kid, "drivers") < 0) {
		node_free(&kid);
		return -ENOMEM;
	}
	return 0;
}

static int unfold(struct node *map, enum opt_section_id section);

static int unfold_kid(struct node *n, enum opt_section_id section)
{
	const struct opt_row *row = opt_row(section, n->key);
	const struct opt_section *child = opt_child(section, n->key);
	int rc = 0;

	if (row != NULL && row->type == OPT_TYPE_LIST && n->kind == NODE_TEXT)
		return text_to_list(n);
	if (child == NULL)
		return 0;
	if (opt_id(child) == OPT_IN_LOAD && n->kind == NODE_TEXT &&
	    strcmp(n->text, "none") == 0)
		return none_to_map(n);
	if (!child->list)
		return unfold(n, opt_id(child));
	for (size_t i = 0; rc == 0 && n->kind == NODE_LIST && i < n->nkids; i++)
		rc = unfold(n->kid[i], opt_id(child));
	return rc;
}

static int unfold(struct node *map, enum opt_section_id section)
{
	int rc = 0;

	if (map->kind != NODE_MAP)
		return 0;
	for (size_t i = 0; rc == 0 && i < map->nkids; i++)
		rc = unfold_kid(map->kid[i], section);
	return rc;
}

int shape_unfold(struct node *root)
{
	return unfold(root, OPT_IN_ROOT);
}

/* ---- --set ---- */

struct set {
	struct node_path path;
	const char *file;
	unsigned number;
	struct faults *f;
};

#define SET_FAULT(s, ...) \
	fault_add((s)->f, (s)->file, (s)->number, (s)->path.text, __VA_ARGS__)

/* Adds an empty node, which `put` fills. */
static int add_null(struct set *s, struct node *to, const char *key,
		    struct node **out)
{
	struct node *kid = node_new(NODE_NULL, s->file, s->number, NULL, 0);
	int rc = kid == NULL ? -ENOMEM : node_add(to, &kid, key);

	node_free(&kid);
	if (rc == 0)
		*out = to->kid[to->nkids - 1];
	return rc;
}

static bool is_number(const char *part)
{
	return part[0] != '\0' && strspn(part, "0123456789") == strlen(part);
}

/* The entry `part` of a list, made if it is the one after the last. */
static int set_entry(struct set *s, struct node *list, const char *part,
		     struct node **out)
{
	char *end;
	size_t index = strtoul(part, &end, 10);

	if (!is_number(part))
		return SET_FAULT(s,
				 "is a list; write the number of the entry, "
				 "from 0: %s.0",
				 s->path.text);
	if (index < list->nkids) {
		*out = list->kid[index];
		return 0;
	}
	if (index > list->nkids)
		return SET_FAULT(s,
				 "has %zu entr%s, numbered from 0; the next "
				 "one is %s.%zu",
				 list->nkids, list->nkids == 1 ? "y" : "ies",
				 s->path.text, list->nkids);
	return add_null(s, list, NULL, out);
}

static int set_step(struct set *s, struct node *at, const char *part,
		    struct node **out)
{
	if (at->kind == NODE_NULL)
		node_clear(at, is_number(part) ? NODE_LIST : NODE_MAP);
	if (at->kind == NODE_LIST)
		return set_entry(s, at, part, out);
	if (at->kind == NODE_TEXT)
		return SET_FAULT(s, "is one value; nothing is below it");
	*out = node_get(at, part);
	return *out != NULL ? 0 : add_null(s, at, part, out);
}

/* Walks and makes the way to the path's last part. */
static int set_way(struct set *s, struct node *at, char *path,
		   struct node **out)
{
	char *save = NULL;
	char *part = strtok_r(path, ".", &save);

	for (; part != NULL; part = strtok_r(NULL, ".", &save)) {
		int rc = set_step(s, at, part, &at);

		if (rc < 0)
			return rc;
		node_down(&s->path, part, 0);
	}
	*out = at;
	return 0;
}

/* Puts the value's content in the place of the node's; both keys stay. */
static void put(struct node *to, struct node *value)
{
	struct node old = *to;
	char *key = to->key;

	*to = *value;
	to->key = key;
	*value = old;
	value->key = NULL;
}

static int set_value(struct set *s, struct node *root, char *path,
		     const char *value)
{
	struct node_path at = {0};
	struct node *to, *from = NULL;
	int rc;

	snprintf(at.text, sizeof(at.text), "%s", path);
	at.len = strlen(at.text);
	rc = yaml_parse(&from, value, strlen(value), s->file, s->number, &at,
			s->f);
	if (rc < 0)
		return rc;
	rc = set_way(s, root, path, &to);
	if (rc == 0)
		put(to, from);
	node_free(&from);
	return rc;
}

/* Words with a dot between. */
static bool is_path(const char *path)
{
	size_t len = strlen(path);

	return len > 0 && path[0] != '.' && path[len - 1] != '.' &&
	       strstr(path, "..") == NULL;
}

int shape_set(struct node *root, const char *set, unsigned number,
	      struct faults *f)
{
	struct set s = {.file = "--set", .number = number, .f = f};
	const char *equals = strchr(set, '=');
	char quoted[UNIT_QUOTE_LEN];
	char *path;
	int rc;

	path = strndup(set, equals != NULL ? (size_t)(equals - set) : 0);
	if (path == NULL)
		return -ENOMEM;
	if (is_path(path))
		rc = set_value(&s, root, path, equals + 1);
	else
		rc = SET_FAULT(&s,
			       "%s is not PATH=VALUE; write it as in "
			       "tls.tickets.rotate=10m",
			       unit_quote(quoted, set));
	free(path);
	return rc;
}

/* ---- check ---- */

struct check {
	struct node_path path;
	struct faults *f;
};

#define FAULT(c, n, ...) \
	fault_add((c)->f, (n)->file, (n)->line, (c)->path.text, __VA_ARGS__)

static const char *kind_word(const struct node *n)
{
	switch (n->kind) {
	case NODE_MAP:
		return "a mapping";
	case NODE_LIST:
		return "a list";
	case NODE_TEXT:
		return "a text";
	default:
		return "nothing";
	}
}

/* More than any section has; opt.c's tables are small. */
#define KEYS_MAX 32

static size_t keys_of(enum opt_section_id section, const char **keys)
{
	size_t n = 0;

	for (size_t i = 0; i < opt_nrows && n < KEYS_MAX; i++)
		if (opt_rows[i].section == section)
			keys[n++] = opt_rows[i].key;
	for (size_t i = 1; i < OPT_SECTIONS && n < KEYS_MAX; i++)
		if (opt_sections[i].parent == section)
			keys[n++] = opt_sections[i].key;
	return n;
}

/* The path of another section that has this key, or NULL. */
static const char *elsewhere(const char *key)
{
	for (size_t i = 0; i < opt_nrows; i++)
		if (strcmp(opt_rows[i].key, key) == 0)
			return opt_sections[opt_rows[i].section].path;
	for (size_t i = 1; i < OPT_SECTIONS; i++)
		if (strcmp(opt_sections[i].key, key) == 0)
			return opt_sections[opt_sections[i].parent].path;
	return NULL;
}

static void join(char *to, size_t len, const char *const *words, size_t n)
{
	size_t used = 0;

	to[0] = '\0';
	for (size_t i = 0; i < n && used < len; i++)
		used += (size_t)snprintf(to + used, len - used, "%s%s",
					 i == 0 ? "" : ", ", words[i]);
}

static void unknown_key(struct check *c, const struct node *n,
			enum opt_section_id section)
{
	const char *keys[KEYS_MAX], *other = elsewhere(n->key);
	size_t nkeys = keys_of(section, keys);
	const char *near = opt_nearest(n->key, keys, nkeys);
	char all[400];

	join(all, sizeof(all), keys, nkeys);
	if (near != NULL)
		FAULT(c, n, "unknown key; did you mean `%s`?", near);
	else if (other != NULL && other[0] != '\0')
		FAULT(c, n, "unknown key here; it belongs under `%s`", other);
	else if (other != NULL)
		FAULT(c, n, "unknown key here; it belongs at the left margin");
	else
		FAULT(c, n, "unknown key; known are %s", all);
}

/* Is the entry a text? Tells if not. */
static bool check_item(struct check *c, const struct node *n)
{
	if (n->kind == NODE_TEXT)
		return true;
	if (n->kind == NODE_NULL)
		FAULT(c, n, "an empty entry; take it out");
	else
		FAULT(c, n, "%s where a text is due", kind_word(n));
	return false;
}

static bool check_list(struct check *c, const struct node *n)
{
	bool good = true;

	if (n->kind != NODE_LIST) {
		FAULT(c, n, "%s where a list is due; write [one, another]",
		      kind_word(n));
		return false;
	}
	for (size_t i = 0; i < n->nkids; i++) {
		size_t up = node_down(&c->path, NULL, i);

		good = check_item(c, n->kid[i]) && good;
		node_up(&c->path, up);
	}
	return good;
}

static bool check_value(struct check *c, const struct node *n,
			const struct opt_row *row)
{
	char allowed[OPT_ALLOWED_LEN];

	if (row->type == OPT_TYPE_LIST)
		return check_list(c, n);
	if (n->kind == NODE_TEXT)
		return true;
	FAULT(c, n, "%s where one value is due; write %s", kind_word(n),
	      opt_allowed(allowed, row));
	return false;
}

static bool check_map(struct check *c, struct node *n,
		      enum opt_section_id section);

static bool check_maps(struct check *c, struct node *n,
		       const struct opt_section *child)
{
	if (n->kind != NODE_LIST) {
		FAULT(c, n,
		      "%s where a list is due; begin each entry with a dash: "
		      "- {name: one}",
		      kind_word(n));
		return false;
	}
	if (n->nkids > OPT_PHASES_MAX) {
		FAULT(c, n, "%zu entries; at most %d are run", n->nkids,
		      OPT_PHASES_MAX);
		return false;
	}
	for (size_t i = 0; i < n->nkids; i++) {
		size_t up = node_down(&c->path, NULL, i);

		/* It keeps its place, so that later paths count right. */
		if (!check_map(c, n->kid[i], opt_id(child)))
			node_clear(n->kid[i], NODE_MAP);
		node_up(&c->path, up);
	}
	return true;
}

/* Does the kid stay? */
static bool check_kid(struct check *c, struct node *n,
		      enum opt_section_id section)
{
	const struct opt_row *row = opt_row(section, n->key);
	const struct opt_section *child = opt_child(section, n->key);

	if (row == NULL && child == NULL) {
		unknown_key(c, n, section);
		return false;
	}
	if (n->kind == NODE_NULL)
		return false;
	if (row != NULL)
		return check_value(c, n, row);
	return child->list ? check_maps(c, n, child)
			   : check_map(c, n, opt_id(child));
}

static void not_a_map(struct check *c, const struct node *n,
		      enum opt_section_id section)
{
	const char *keys[KEYS_MAX];
	size_t nkeys = keys_of(section, keys);
	char all[400];

	join(all, sizeof(all), keys, nkeys);
	FAULT(c, n, "%s where a mapping is due; its keys are %s", kind_word(n),
	      all);
}

static bool check_map(struct check *c, struct node *n,
		      enum opt_section_id section)
{
	size_t i = 0;

	if (n->kind != NODE_MAP) {
		not_a_map(c, n, section);
		return false;
	}
	while (i < n->nkids) {
		size_t up = node_down(&c->path, n->kid[i]->key, 0);

		if (check_kid(c, n->kid[i], section))
			i++;
		else
			node_remove(n, i);
		node_up(&c->path, up);
	}
	return true;
}

bool shape_check(struct node *root, struct faults *f)
{
	struct check c = {.f = f};

	/* An empty file says nothing, as an empty mapping does. */
	if (root->kind == NODE_NULL)
		node_clear(root, NODE_MAP);
	return check_map(&c, root, OPT_IN_ROOT);
}
