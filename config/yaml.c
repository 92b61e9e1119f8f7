/* SPDX-License-Identifier: MIT */
#include "config/yaml.h"

#include "config/opt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

/* A key, a start and an end for each node, and those of stream and document. */
#define EVENTS_MAX (3 * YAML_NODES_MAX + 4)

/* One document on its way to nodes. */
struct parse {
	yaml_document_t *doc;
	const char *text; /* all of it, for messages about a line */
	size_t len;
	const char *file;
	unsigned line; /* 0: as libyaml counts */
	unsigned nodes;
	struct node_path path;
	struct faults *f;
};

static unsigned line_of(const struct parse *p, yaml_mark_t mark)
{
	return p->line != 0 ? p->line : (unsigned)mark.line + 1;
}

#define FAULT(p, mark, ...)                                            \
	fault_add((p)->f, (p)->file, line_of(p, mark), (p)->path.text, \
		  __VA_ARGS__)

static int too_deep(struct parse *p, yaml_mark_t mark)
{
	return FAULT(p, mark, "more than %d levels deep; no scenario is",
		     YAML_DEPTH_MAX);
}

static int too_many(struct parse *p, yaml_mark_t mark)
{
	return FAULT(p, mark, "more than %d values, aliases counted each time",
		     YAML_NODES_MAX);
}

/* ---- document to nodes ---- */

static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c == 0x7f)
			return true;
		/* C1: U+0080 to U+009F */
		if (c == 0xc2 && i + 1 < len &&
		    (unsigned char)text[i + 1] < 0xa0)
			return true;
	}
	return false;
}

static int check_text(struct parse *p, const yaml_node_t *y)
{
	const char *text = (const char *)y->data.scalar.value;
	size_t len = y->data.scalar.length;

	if (strcmp((const char *)y->tag, YAML_DEFAULT_SCALAR_TAG) != 0)
		return FAULT(p, y->start_mark,
			     "a tag has no meaning here; leave it out");
	if (len > YAML_TEXT_MAX)
		return FAULT(p, y->start_mark,
			     "a text of %zu bytes; at most %d are read", len,
			     YAML_TEXT_MAX);
	if (memchr(text, '\n', len) != NULL)
		return FAULT(p, y->start_mark,
			     "more than one line; write it in one");
	if (has_control(text, len))
		return FAULT(p, y->start_mark,
			     "a control character in the text; leave it out");
	return 0;
}

static int take_text(struct parse *p, const yaml_node_t *y, struct node **out)
{
	bool plain = y->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	const char *text = (const char *)y->data.scalar.value;
	int rc = check_text(p, y);

	if (rc < 0)
		return rc;
	if (plain && opt_is_null(text))
		*out = node_new(NODE_NULL, p->file, line_of(p, y->start_mark),
				NULL, 0);
	else
		*out = node_new(NODE_TEXT, p->file, line_of(p, y->start_mark),
				text, y->data.scalar.length);
	if (*out == NULL)
		return -ENOMEM;
	(*out)->quoted = !plain;
	return 0;
}

static int take(struct parse *p, int id, unsigned depth, struct node **out);

/* Adds what stands at `id` to the list or map; frees it where that fails. */
static int take_kid(struct parse *p, struct node *to, int id, const char *key,
		    unsigned depth)
{
	size_t up = node_down(&p->path, key, to->nkids);
	struct node *kid = NULL;
	int rc = take(p, id, depth + 1, &kid);

	if (rc == 0)
		rc = node_add(to, &kid, key);
	node_free(&kid);
	node_up(&p->path, up);
	return rc;
}

static int take_list(struct parse *p, const yaml_node_t *y, unsigned depth,
		     struct node *to)
{
	const yaml_node_item_t *i = y->data.sequence.items.start;

	if (strcmp((const char *)y->tag, YAML_DEFAULT_SEQUENCE_TAG) != 0)
		return FAULT(p, y->start_mark,
			     "a tag has no meaning here; leave it out");
	for (; i < y->data.sequence.items.top; i++) {
		int rc = take_kid(p, to, *i, NULL, depth);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The text of a key, or NULL with a fault. Borrowed from the document. */
static const char *key_of(struct parse *p, int id)
{
	const yaml_node_t *y = yaml_document_get_node(p->doc, id);
	const char *text = (const char *)y->data.scalar.value;

	if (y->type != YAML_SCALAR_NODE) {
		FAULT(p, y->start_mark, "a key must be a word");
		return NULL;
	}
	if (check_text(p, y) < 0)
		return NULL;
	if (text[0] == '\0' || y->data.scalar.length > 255) {
		FAULT(p, y->start_mark, "a key of %zu letters",
		      y->data.scalar.length);
		return NULL;
	}
	return text;
}

static void doubled(struct parse *p, const char *key, int id,
		    const struct node *first)
{
	const yaml_node_t *y = yaml_document_get_node(p->doc, id);
	size_t up = node_down(&p->path, key, 0);

	FAULT(p, y->start_mark,
	      "given twice, first in line %u; take one of them out",
	      first->line);
	node_up(&p->path, up);
}

static int take_map(struct parse *p, const yaml_node_t *y, unsigned depth,
		    struct node *to)
{
	const yaml_node_pair_t *i = y->data.mapping.pairs.start;

	if (strcmp((const char *)y->tag, YAML_DEFAULT_MAPPING_TAG) != 0)
		return FAULT(p, y->start_mark,
			     "a tag has no meaning here; leave it out");
	for (; i < y->data.mapping.pairs.top; i++) {
		const char *key = key_of(p, i->key);
		const struct node *first =
			key == NULL ? NULL : node_get(to, key);
		int rc = key == NULL ? -EINVAL : 0;

		if (first != NULL)
			doubled(p, key, i->key, first);
		else if (key != NULL)
			rc = take_kid(p, to, i->value, key, depth);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Aliases are copied: depth and number bound what a few bytes can grow to. */
static int take(struct parse *p, int id, unsigned depth, struct node **out)
{
	const yaml_node_t *y = yaml_document_get_node(p->doc, id);
	bool map = y->type == YAML_MAPPING_NODE;
	int rc;

	if (depth > YAML_DEPTH_MAX)
		return too_deep(p, y->start_mark);
	if (++p->nodes > YAML_NODES_MAX)
		return too_many(p, y->start_mark);
	if (y->type == YAML_SCALAR_NODE)
		return take_text(p, y, out);
	*out = node_new(map ? NODE_MAP : NODE_LIST, p->file,
			line_of(p, y->start_mark), NULL, 0);
	if (*out == NULL)
		return -ENOMEM;
	rc = map ? take_map(p, y, depth, *out) : take_list(p, y, depth, *out);
	if (rc < 0)
		node_free(out);
	return rc;
}

/* ---- syntax errors ---- */

/* The line with that number, from 0. */
static const char *find_line(const struct parse *p, size_t number, size_t *len)
{
	const char *line = p->text, *end = p->text + p->len, *next;

	for (; number > 0; number--) {
		next = memchr(line, '\n', (size_t)(end - line));
		if (next == NULL)
			break;
		line = next + 1;
	}
	next = memchr(line, '\n', (size_t)(end - line));
	*len = (size_t)((next == NULL ? end : next) - line);
	return line;
}

static bool tab_indents(const struct parse *p, size_t number)
{
	size_t len;
	const char *line = find_line(p, number, &len);

	for (size_t i = 0; i < len && (line[i] == ' ' || line[i] == '\t'); i++)
		if (line[i] == '\t')
			return true;
	return false;
}

/* listen: [::1]:8443 without quotes is the beginning of a list to YAML. */
static bool bare_ipv6(const struct parse *p, size_t number)
{
	size_t len;
	const char *line = find_line(p, number, &len);
	const char *open = memchr(line, '[', len);
	size_t n = 0, left;

	if (open == NULL)
		return false;
	left = len - (size_t)(open - line) - 1;
	while (n < left && (open[1 + n] == ':' || open[1 + n] == '.' ||
			    strchr("0123456789abcdefABCDEF", open[1 + n])))
		n++;
	return n >= 2 && n + 1 < left && open[1 + n] == ']' &&
	       open[2 + n] == ':';
}

static size_t count_lines(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static int not_yaml(struct parse *p, const yaml_parser_t *parser)
{
	yaml_mark_t mark = parser->problem_mark;
	const char *problem = parser->problem;
	char where[48] = "";

	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (parser->error == YAML_READER_ERROR) {
		size_t at = parser->problem_offset;

		mark.line = count_lines(p->text, at < p->len ? at : p->len);
		return FAULT(p, mark, "not text in UTF-8: %s", problem);
	}
	if (tab_indents(p, mark.line))
		return FAULT(p, mark,
			     "indented with a tab; YAML indents with spaces");
	if (bare_ipv6(p, mark.line))
		return FAULT(p, mark,
			     "not YAML; write an IPv6 address in quotes, such "
			     "as \"[::1]:8443\"");
	if (parser->context != NULL && p->line == 0 &&
	    parser->context_mark.line != mark.line)
		snprintf(where, sizeof(where), " that begins in line %zu",
			 parser->context_mark.line + 1);
	return FAULT(p, mark, "not YAML: %s%s%s%s",
		     problem != NULL ? problem : "cannot be read",
		     parser->context != NULL ? " " : "",
		     parser->context != NULL ? parser->context : "", where);
}

static int second_document(struct parse *p, yaml_parser_t *parser)
{
	const yaml_node_t *root;
	yaml_document_t doc;
	int rc = 0;

	if (!yaml_parser_load(parser, &doc))
		return not_yaml(p, parser);
	root = yaml_document_get_root_node(&doc);
	if (root != NULL)
		rc = FAULT(p, root->start_mark,
			   "a second document; a scenario is one, so put it in "
			   "a file of its own");
	yaml_document_delete(&doc);
	return rc;
}

static int parse_document(struct parse *p, yaml_parser_t *parser,
			  struct node **out)
{
	yaml_document_t doc;
	struct node *root = NULL;
	int rc;

	if (!yaml_parser_load(parser, &doc))
		return not_yaml(p, parser);
	p->doc = &doc;
	if (yaml_document_get_root_node(&doc) != NULL) {
		rc = take(p, 1, 0, &root); /* libyaml's numbers begin at 1 */
	} else {
		root = node_new(NODE_NULL, p->file, p->line ? p->line : 1, NULL,
				0);
		rc = root != NULL ? 0 : -ENOMEM;
	}
	yaml_document_delete(&doc);
	if (rc == 0)
		rc = second_document(p, parser);
	if (rc == 0)
		*out = root;
	else
		node_free(&root);
	return rc;
}

/* ---- a first look ---- */

/* 1 to go on, 0 at the end or where it is no YAML, -EINVAL with a fault. */
static int look_at(struct parse *p, const yaml_event_t *e, int *open)
{
	switch (e->type) {
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		if (++*open > YAML_DEPTH_MAX)
			return too_deep(p, e->start_mark);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		--*open;
		break;
	case YAML_NO_EVENT:
	case YAML_STREAM_END_EVENT:
		return 0;
	default:
		break;
	}
	if (++p->nodes > EVENTS_MAX)
		return too_many(p, e->start_mark);
	return 1;
}

/*
 * libyaml's time grows with the square of the depth, and its memory with the
 * number of nodes: so both are bounded before it is asked for a document. Other
 * faults are left to that.
 */
static int look(struct parse *p)
{
	yaml_parser_t parser;
	yaml_event_t event;
	int open = 0, rc = 1;

	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)p->text,
				     p->len);
	while (rc > 0 && yaml_parser_parse(&parser, &event)) {
		rc = look_at(p, &event, &open);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	p->nodes = 0;
	return rc < 0 ? rc : 0;
}

static int load(struct parse *p, struct node **out)
{
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)p->text,
				     p->len);
	rc = parse_document(p, &parser, out);
	yaml_parser_delete(&parser);
	return rc;
}

int yaml_parse(struct node **out, const char *text, size_t len,
	       const char *file, unsigned line, const struct node_path *at,
	       struct faults *f)
{
	struct parse p = {
		.text = text, .len = len, .file = file, .line = line, .f = f};
	int rc;

	if (at != NULL)
		p.path = *at;
	if (len > YAML_BYTES_MAX)
		return fault_add(f, file, line, p.path.text,
				 "larger than %u bytes; no scenario is",
				 YAML_BYTES_MAX);
	rc = look(&p);
	return rc < 0 ? rc : load(&p, out);
}

/* ---- files ---- */

/* Reads to the end, or one byte more than is allowed. A count or -errno. */
static ssize_t read_all(int fd, char *buf, size_t max)
{
	size_t n = 0;

	while (n < max) {
		ssize_t got = read(fd, buf + n, max - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static ssize_t read_file(const char *path, char *buf, size_t max)
{
	bool own = strcmp(path, "-") != 0;
	int fd = own ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read_all(fd, buf, max);
	if (own)
		close(fd);
	return n;
}

int yaml_read(struct node **out, const char *path, struct faults *f)
{
	const char *file = strcmp(path, "-") == 0 ? "<stdin>" : path;
	char *buf = malloc(YAML_BYTES_MAX + 1);
	ssize_t n;
	int rc;

	if (buf == NULL)
		return -ENOMEM;
	n = read_file(path, buf, YAML_BYTES_MAX + 1);
	if (n < 0)
		fault_add(f, file, 0, "", "cannot be read: %s",
			  strerror((int)-n));
	rc = n < 0 ? (int)n : yaml_parse(out, buf, (size_t)n, file, 0, NULL, f);
	free(buf);
	return rc;
}

/* ---- nodes to text ---- */

static bool emit(yaml_emitter_t *to, yaml_event_t *event, int made)
{
	/* The emitter frees the event, whatever comes of it. */
	return made && yaml_emitter_emit(to, event);
}

static bool emit_text(yaml_emitter_t *to, const char *text)
{
	yaml_event_t e;

	return emit(to, &e,
		    yaml_scalar_event_initialize(
			    &e, NULL, NULL, (const yaml_char_t *)text,
			    (int)strlen(text), 1, 1,
			    YAML_DOUBLE_QUOTED_SCALAR_STYLE));
}

static bool emit_node(yaml_emitter_t *to, const struct node *n)
{
	bool map = n->kind == NODE_MAP;
	yaml_event_t e;
	bool good;

	if (n->kind == NODE_TEXT || n->kind == NODE_NULL)
		return emit_text(to, n->text != NULL ? n->text : "");
	good = emit(to, &e,
		    map ? yaml_mapping_start_event_initialize(
				  &e, NULL, NULL, 1, YAML_FLOW_MAPPING_STYLE)
			: yaml_sequence_start_event_initialize(
				  &e, NULL, NULL, 1, YAML_FLOW_SEQUENCE_STYLE));
	for (size_t i = 0; good && i < n->nkids; i++) {
		if (map)
			good = emit_text(to, n->kid[i]->key);
		good = good && emit_node(to, n->kid[i]);
	}
	return good && emit(to, &e,
			    map ? yaml_mapping_end_event_initialize(&e)
				: yaml_sequence_end_event_initialize(&e));
}

static bool emit_all(yaml_emitter_t *to, const struct node *root)
{
	yaml_event_t e;

	return emit(to, &e,
		    yaml_stream_start_event_initialize(&e,
						       YAML_UTF8_ENCODING)) &&
	       emit(to, &e,
		    yaml_document_start_event_initialize(&e, NULL, NULL, NULL,
							 1)) &&
	       emit_node(to, root) &&
	       emit(to, &e, yaml_document_end_event_initialize(&e, 1)) &&
	       emit(to, &e, yaml_stream_end_event_initialize(&e)) &&
	       yaml_emitter_flush(to);
}

int yaml_emit(char **out, size_t *len, const struct node *root)
{
	yaml_emitter_t emitter;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	bool good;

	if (f == NULL)
		return -ENOMEM;
	good = yaml_emitter_initialize(&emitter);
	if (good) {
		yaml_emitter_set_output_file(&emitter, f);
		yaml_emitter_set_width(&emitter, -1);
		good = emit_all(&emitter, root);
		yaml_emitter_delete(&emitter);
	}
	if (fclose(f) != 0)
		good = false;
	if (!good) {
		free(text);
		return -ENOMEM;
	}
	*out = text;
	*len = n;
	return 0;
}
