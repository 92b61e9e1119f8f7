/* SPDX-License-Identifier: MIT */
#include "config/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Enough for anyone to begin with. */
#define SHOWN_MAX 50

static struct fault *room(struct faults *f)
{
	struct fault *item;
	size_t cap = f->cap == 0 ? 16 : 2 * f->cap;

	if (f->n < f->cap)
		return &f->item[f->n];
	item = reallocarray(f->item, cap, sizeof(*item));
	if (item == NULL)
		return NULL;
	f->item = item;
	f->cap = cap;
	return &f->item[f->n];
}

/* Takes over what `new` owns, or frees it. */
static void keep(struct faults *f, struct fault *new)
{
	struct fault *to = room(f);

	if (to == NULL || new->path == NULL || new->text == NULL) {
		f->no_memory = true;
		free(new->path);
		free(new->text);
		return;
	}
	*to = *new;
	f->n++;
}

int fault_add(struct faults *f, const char *file, unsigned line,
	      const char *path, const char *fmt, ...)
{
	struct fault new = {
		.file = file,
		.line = line,
		.order = f->n,
		.path = strdup(path),
	};
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&new.text, fmt, args) < 0)
		new.text = NULL;
	va_end(args);
	keep(f, &new);
	return -EINVAL;
}

bool fault_under(const struct faults *f, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < f->n; i++) {
		const char *p = f->item[i].path;

		if (len == 0 || (strncmp(p, path, len) == 0 &&
				 (p[len] == '\0' || p[len] == '.')))
			return true;
	}
	return false;
}

/* By file in the order in which files came up, then line, then finding. */
static int compare(const void *a, const void *b)
{
	const struct fault *x = a, *y = b;
	bool set_x = strcmp(x->file, "--set") == 0;
	bool set_y = strcmp(y->file, "--set") == 0;

	if (set_x != set_y)
		return set_x ? 1 : -1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

void fault_print(struct faults *f, FILE *out)
{
	if (f->n > 1)
		qsort(f->item, f->n, sizeof(*f->item), compare);
	for (size_t i = 0; i < f->n && i < SHOWN_MAX; i++) {
		const struct fault *x = &f->item[i];

		if (x->line > 0)
			fprintf(out, "%s:%u: ", x->file, x->line);
		else
			fprintf(out, "%s: ", x->file);
		fprintf(out, "%s%s%s\n", x->path, x->path[0] ? ": " : "",
			x->text);
	}
	if (f->n > SHOWN_MAX)
		fprintf(out, "%s: and %zu more faults\n", f->item[0].file,
			f->n - SHOWN_MAX);
	if (f->no_memory)
		fputs("out of memory\n", out);
}

void fault_fini(struct faults *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->item[i].path);
		free(f->item[i].text);
	}
	free(f->item);
	*f = (struct faults){0};
}
