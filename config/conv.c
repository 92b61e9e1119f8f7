/* SPDX-License-Identifier: MIT */
#include "config/conv.h"

#include "config/cfg.h"
#include "config/raw.h"
#include "config/unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void conv_fault(const struct conv *c, const char *path, const char *fmt, ...)
{
	const struct node *n = node_nearest(c->root, path);
	char text[700];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fault_add(c->f, n->file, n->line, path, "%s", text);
}

/* One option being taken. */
struct job {
	const struct conv *c;
	const struct opt_row *row;
	const char *path;
	const char *text;
	void *to; /* the member in struct cfg */
};

/* `"text" WHAT; write ALLOWED` */
static void refuse(const struct job *j, const char *what)
{
	char quoted[UNIT_QUOTE_LEN], allowed[OPT_ALLOWED_LEN];

	conv_fault(j->c, j->path, "%s %s; write %s",
		   unit_quote(quoted, j->text), what,
		   opt_allowed(allowed, j->row));
}

static void take_number(const struct job *j, uint64_t n)
{
	if (n < j->row->min || n > j->row->max)
		refuse(j, "is out of range");
	else
		memcpy(j->to, &n, sizeof(n));
}

typedef int unit_fn(const char *text, uint64_t *out, char *err, size_t len);

static void take_unit(const struct job *j, unit_fn *read)
{
	char err[400];
	uint64_t n;

	if (read(j->text, &n, err, sizeof(err)) < 0)
		conv_fault(j->c, j->path, "%s", err);
	else
		take_number(j, n);
}

/* What a word stands for where a number is due; or false. */
static bool number_word(enum opt_type type, const char *text, uint64_t *out)
{
	if (type == OPT_TYPE_REQUESTS) {
		*out = CFG_UNLIMITED;
		return strcmp(text, "unlimited") == 0;
	}
	*out = CFG_AUTO;
	if (strcmp(text, "auto") == 0)
		return true;
	*out = CFG_NO_DRIVERS;
	return type == OPT_TYPE_DRIVERS && strcmp(text, "none") == 0;
}

/* A whole number, or a word that stands for one out of its range. */
static void take_count(const struct job *j)
{
	uint64_t n;

	if (number_word(j->row->type, j->text, &n))
		memcpy(j->to, &n, sizeof(n));
	else if (strspn(j->text, "+-0123456789") == 0)
		refuse(j, "is no number");
	else
		take_unit(j, unit_uint);
}

static void take_bool(const struct job *j)
{
	bool yes = strcmp(j->text, "true") == 0;

	if (!yes && strcmp(j->text, "false") != 0)
		refuse(j, "is no boolean");
	else
		*(bool *)j->to = yes;
}

#define WORDS_MAX 16

static void unknown_word(const struct job *j)
{
	char quoted[UNIT_QUOTE_LEN], allowed[OPT_ALLOWED_LEN];
	const char *words[WORDS_MAX], *near;
	size_t n = 0;

	for (size_t i = 0; i < opt_nwords && n < WORDS_MAX; i++)
		if (opt_words[i].type == j->row->type)
			words[n++] = opt_words[i].word;
	near = opt_nearest(j->text, words, n);
	if (near == NULL)
		refuse(j, "is not known");
	else
		conv_fault(j->c, j->path,
			   "%s is not known; did you mean %s? Write %s",
			   unit_quote(quoted, j->text), near,
			   opt_allowed(allowed, j->row));
}

static void take_word(const struct job *j)
{
	for (size_t i = 0; i < opt_nwords; i++)
		if (opt_words[i].type == j->row->type &&
		    strcmp(opt_words[i].word, j->text) == 0) {
			memcpy(j->to, &opt_words[i].value, sizeof(int));
			return;
		}
	unknown_word(j);
}

/* ---- texts and lists ---- */

/* Would cfg_print() write something else than this text? */
static bool reads_as_none(const struct conv *c, const char *path,
			  const char *text)
{
	char quoted[UNIT_QUOTE_LEN];

	if (text[0] == '\0' || !opt_is_null(text))
		return false;
	conv_fault(c, path,
		   "%s means nothing in YAML; write another text, or ./%s for "
		   "a file of that name",
		   unit_quote(quoted, text), text);
	return true;
}

static int take_str(const struct job *j)
{
	size_t len = strlen(j->text);
	char *copy;

	if (reads_as_none(j->c, j->path, j->text))
		return 0;
	if (len < j->row->min || len > j->row->max) {
		refuse(j, len < j->row->min ? "is too short" : "is too long");
		return 0;
	}
	copy = strdup(j->text);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(j->to, &copy, sizeof(copy));
	return 0;
}

static void free_list(struct cfg_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->item[i]);
	free(list->item);
	*list = (struct cfg_list){0};
}

/* The comma-separated items of a default. */
static int split(struct raw_list *to, const char *text)
{
	to->item = calloc(strlen(text) + 1, sizeof(*to->item));
	if (to->item == NULL)
		return -ENOMEM;
	while (text != NULL) {
		size_t len;
		const char *item = opt_item(&text, &len);

		to->item[to->n] = strndup(item, len);
		if (to->item[to->n++] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void free_raw_list(struct raw_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		free(list->item[i]);
	free(list->item);
}

static bool check_item(const struct job *j, const struct raw_list *list,
		       uint32_t index)
{
	const char *text = list->item[index];
	char path[OPT_PATH_LEN + 16], quoted[UNIT_QUOTE_LEN];

	snprintf(path, sizeof(path), "%s.%u", j->path, index);
	unit_quote(quoted, text);
	if (reads_as_none(j->c, path, text))
		return false;
	if (text[0] == '\0' || strchr(text, ',') != NULL) {
		conv_fault(j->c, path,
			   "%s is not one entry; write [one, another]", quoted);
		return false;
	}
	for (uint32_t i = 0; i < index; i++)
		if (strcasecmp(text, list->item[i]) == 0) {
			conv_fault(j->c, path,
				   "%s is there twice; take one of them out",
				   quoted);
			return false;
		}
	return true;
}

static bool check_items(const struct job *j, const struct raw_list *list)
{
	char allowed[OPT_ALLOWED_LEN];
	bool good = true;

	if (list->n < j->row->min || list->n > j->row->max) {
		conv_fault(j->c, j->path, "a list of %u; write %s", list->n,
			   opt_allowed(allowed, j->row));
		return false;
	}
	for (uint32_t i = 0; i < list->n; i++)
		good = check_item(j, list, i) && good;
	return good;
}

static int copy_list(struct cfg_list *to, const struct raw_list *from)
{
	struct cfg_list list = {0};

	list.item = calloc(from->n, sizeof(*list.item));
	if (list.item == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n; i++) {
		list.item[i] = strdup(from->item[i]);
		if (list.item[i] == NULL) {
			free_list(&list);
			return -ENOMEM;
		}
		list.n++;
	}
	*to = list;
	return 0;
}

static int take_list(const struct job *j, const struct raw_list *raw)
{
	struct raw_list deflt = {0};
	int rc = 0;

	if (node_find(j->c->root, j->path) == NULL) {
		if (j->row->deflt == NULL)
			return 0;
		rc = split(&deflt, j->row->deflt);
		raw = &deflt;
	}
	if (rc == 0 && check_items(j, raw))
		rc = copy_list(j->to, raw);
	free_raw_list(&deflt);
	return rc;
}

int conv_take(const struct conv *c, const struct opt_row *row, const char *path,
	      const void *raw, void *cfg)
{
	static const struct raw_list nothing;
	const char *from = raw;
	struct job j = {c, row, path, NULL, (char *)cfg + row->cfg_offset};

	if (from != NULL)
		from += row->raw_offset;
	if (row->type == OPT_TYPE_LIST)
		return take_list(&j,
				 from != NULL ? (const void *)from : &nothing);
	if (from != NULL)
		memcpy(&j.text, from, sizeof(j.text));
	if (j.text == NULL)
		j.text = row->deflt;
	if (j.text == NULL)
		return 0;
	switch (row->type) {
	case OPT_TYPE_STR:
		return take_str(&j);
	case OPT_TYPE_UINT:
		take_unit(&j, unit_uint);
		break;
	case OPT_TYPE_COUNT:
	case OPT_TYPE_DRIVERS:
	case OPT_TYPE_REQUESTS:
		take_count(&j);
		break;
	case OPT_TYPE_BOOL:
		take_bool(&j);
		break;
	case OPT_TYPE_DURATION:
		take_unit(&j, unit_duration);
		break;
	case OPT_TYPE_SIZE:
		take_unit(&j, unit_size);
		break;
	case OPT_TYPE_PERCENT:
		take_unit(&j, unit_percent);
		break;
	case OPT_TYPE_RATE:
		take_unit(&j, unit_rate);
		break;
	default:
		take_word(&j);
	}
	return 0;
}

/* ---- value to text ---- */

/* The word that stands for the number, or NULL. */
static const char *word_of_number(enum opt_type type, uint64_t n)
{
	if (type == OPT_TYPE_REQUESTS)
		return n == CFG_UNLIMITED ? "unlimited" : NULL;
	if (type == OPT_TYPE_DRIVERS && n == CFG_NO_DRIVERS)
		return "none";
	if (type == OPT_TYPE_COUNT || type == OPT_TYPE_DRIVERS)
		return n == CFG_AUTO ? "auto" : NULL;
	return NULL;
}

/* NULL where the option is absent; or buf, or a constant. */
static const char *number_text(const struct opt_row *row, const void *from,
			       char *buf, size_t len)
{
	const char *word;
	uint64_t n;

	memcpy(&n, from, sizeof(n));
	word = word_of_number(row->type, n);
	if (word != NULL || (n == 0 && row->deflt == NULL))
		return word;
	if (row->type == OPT_TYPE_DURATION)
		unit_print_duration(n, buf, len);
	else if (row->type == OPT_TYPE_SIZE)
		unit_print_size(n, buf, len);
	else if (row->type == OPT_TYPE_PERCENT)
		unit_print_percent(n, buf, len);
	else if (row->type == OPT_TYPE_RATE)
		unit_print_rate(n, buf, len);
	else
		snprintf(buf, len, "%" PRIu64, n);
	return buf;
}

static const char *word_text(enum opt_type type, const void *from)
{
	int value;

	memcpy(&value, from, sizeof(value));
	return cfg_word(opt_type_name(type), value);
}

static int give_list(struct raw_list *to, const struct cfg_list *from)
{
	if (from->n == 0)
		return 0;
	to->item = calloc(from->n, sizeof(*to->item));
	if (to->item == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < from->n; i++) {
		to->item[i] = strdup(from->item[i]);
		if (to->item[i] == NULL)
			return -ENOMEM;
		to->n++;
	}
	return 0;
}

int conv_give(const struct opt_row *row, const void *cfg, void *raw)
{
	const void *from = (const char *)cfg + row->cfg_offset;
	void *to = (char *)raw + row->raw_offset;
	char buf[64], *copy;
	const char *text;

	if (row->type == OPT_TYPE_LIST)
		return give_list(to, from);
	if (row->type == OPT_TYPE_STR)
		memcpy(&text, from, sizeof(text));
	else if (row->type == OPT_TYPE_BOOL)
		text = *(const bool *)from ? "true" : "false";
	else if (opt_is_enum(row->type))
		text = word_text(row->type, from);
	else
		text = number_text(row, from, buf, sizeof(buf));
	if (text == NULL)
		return 0;
	copy = strdup(text);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(to, &copy, sizeof(copy));
	return 0;
}

void conv_free(const struct opt_row *row, void *cfg)
{
	void *member = (char *)cfg + row->cfg_offset;
	char *text;

	if (row->type == OPT_TYPE_LIST)
		free_list(member);
	if (row->type != OPT_TYPE_STR)
		return;
	memcpy(&text, member, sizeof(text));
	free(text);
}
