/* SPDX-License-Identifier: MIT */
#include "tools/tstat.h"

#include "shm/clk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_NS (50 * 1000 * 1000)

struct names {
	char (*name)[SHM_NAME_MAX]; /* owned */
	size_t n, room;
	int rc;
};

static void collect(const char *name, void *arg)
{
	struct names *l = arg;

	if (l->n == l->room) {
		size_t room = l->room * 2 + 16;
		void *p = realloc(l->name, room * sizeof(*l->name));

		if (p == NULL) {
			l->rc = -ENOMEM;
			return;
		}
		l->name = p;
		l->room = room;
	}
	snprintf(l->name[l->n++], SHM_NAME_MAX, "%s", name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* 0 or -errno; `l` is to be freed in either case. */
static int all_names(struct names *l)
{
	int rc;

	memset(l, 0, sizeof(*l));
	rc = shm_seg_each(collect, l);
	if (rc == 0)
		rc = l->rc;
	if (rc == 0 && l->n > 0)
		qsort(l->name, l->n, sizeof(*l->name), by_name);
	return rc;
}

/* ---- attaching, with a sentence ---- */

static void explain(char err[static FIND_ERR_MAX], const char *name, int rc,
		    uint32_t version)
{
	const char *why = strerror(-rc);
	char text[256];

	switch (rc) {
	case -ENOENT:
		why = "there is none: is its tterm running, and on this "
		      "machine? tstat --list shows those that are";
		break;
	case -EACCES:
		why = "permission denied: run tstat as the user of that tterm, "
		      "or set segment.mode to 0644 in its scenario";
		break;
	case -EPROTO:
		snprintf(text, sizeof(text),
			 "it has layout version %u and this tstat reads "
			 "version %d: use the tstat of that tterm's build",
			 version, SHM_LAYOUT_VERSION);
		why = text;
		break;
	case -EBADMSG:
		why = "it is not a segment of tterm, or is damaged";
		break;
	case -EAGAIN:
		why = "its tterm is still making it: try again, or use --wait";
		break;
	case -EINVAL:
		why = "a name has letters, digits, dot, dash and underscore, "
		      "63 at most; tstat --list shows those that are there";
		break;
	}
	snprintf(err, FIND_ERR_MAX, "segment %s: %s", name, why);
}

static int attach(struct shm_seg **out, const char *name,
		  char err[static FIND_ERR_MAX])
{
	uint32_t version = 0;
	int rc = shm_seg_attach(out, name, &version);

	if (rc < 0)
		explain(err, name, rc, version);
	return rc;
}

static bool is_running(const char *name)
{
	struct shm_seg *seg;
	bool alive;

	if (shm_seg_attach(&seg, name, NULL) < 0)
		return false;
	alive = shm_seg_alive(seg);
	shm_seg_close(&seg);
	return alive;
}

static void append(char err[static FIND_ERR_MAX], const char *text)
{
	size_t used = strlen(err);

	snprintf(err + used, FIND_ERR_MAX - used, "%s", text);
}

static void explain_choice(char err[static FIND_ERR_MAX],
			   const struct names *running, size_t others)
{
	if (running->n > 0) {
		snprintf(err, FIND_ERR_MAX,
			 "several are running, name one of them:");
		for (size_t i = 0; i < running->n; i++) {
			append(err, " ");
			append(err, running->name[i]);
		}
		return;
	}
	snprintf(err, FIND_ERR_MAX,
		 "no tterm is running here: start one, or use --wait SECONDS");
	if (others > 0)
		append(err, "; tstat --list shows what others left or what "
			    "cannot be read");
}

/* The only running one's name to `name`; -ENOENT, or -ENOTUNIQ. */
static int choose(char name[static SHM_NAME_MAX], char err[static FIND_ERR_MAX])
{
	struct names all, running = {0};
	int rc = all_names(&all);

	for (size_t i = 0; rc == 0 && i < all.n; i++)
		if (is_running(all.name[i]))
			collect(all.name[i], &running);
	if (rc == 0)
		rc = running.rc;
	if (rc < 0) {
		snprintf(err, FIND_ERR_MAX, "/dev/shm: %s", strerror(-rc));
	} else if (running.n == 1) {
		memcpy(name, running.name[0], SHM_NAME_MAX);
	} else {
		rc = running.n == 0 ? -ENOENT : -ENOTUNIQ;
		explain_choice(err, &running, all.n - running.n);
	}
	free(running.name);
	free(all.name);
	return rc;
}

static int try_once(struct shm_seg **out, const char *name, bool want_alive,
		    char err[static FIND_ERR_MAX])
{
	char only[SHM_NAME_MAX];
	int rc;

	if (name == NULL) {
		rc = choose(only, err);
		if (rc < 0)
			return rc;
		name = only;
	}
	rc = attach(out, name, err);
	if (rc == 0 && want_alive && !shm_seg_alive(*out)) {
		shm_seg_close(out);
		snprintf(err, FIND_ERR_MAX,
			 "segment %s: it is stale, its tterm is gone", name);
		return -ENOENT;
	}
	return rc;
}

int find_segment(struct shm_seg **out, const char *name, uint64_t wait_ns,
		 char err[static FIND_ERR_MAX])
{
	const struct timespec nap = {.tv_nsec = POLL_NS};
	uint64_t until = clk_now() + wait_ns;

	for (;;) {
		int rc = try_once(out, name, wait_ns > 0, err);

		/* Only what time may change is waited for. */
		if ((rc != -ENOENT && rc != -EAGAIN) || clk_now() >= until)
			return rc;
		nanosleep(&nap, NULL);
	}
}

/* ---- the list ---- */

static void list_one(FILE *out, const char *name)
{
	char err[FIND_ERR_MAX], age[32];
	struct shm_info info;
	struct shm_seg *seg;
	uint64_t now, made;
	int rc = attach(&seg, name, err);

	if (rc < 0) {
		/* Ended since it was listed: not there any more. */
		if (rc != -ENOENT)
			fprintf(out, "%-20s  unreadable  %s\n", name, err);
		return;
	}
	now = clk_now();
	made = shm_seg_created_ns(seg);
	table_span(age, sizeof(age), now > made ? now - made : 0);
	shm_seg_info(seg, &info);
	fprintf(out, "%-20s  %-10s  %7d  %-14s  ", name,
		shm_seg_alive(seg) ? "alive" : "stale", (int)shm_seg_owner(seg),
		age);
	table_text(out, info.name);
	fputc('\n', out);
	shm_seg_close(&seg);
}

int find_list(FILE *out)
{
	struct names all;
	int rc = all_names(&all);

	if (rc == 0 && all.n > 0)
		fprintf(out, "%-20s  %-10s  %7s  %-14s  %s\n", "segment",
			"state", "master", "age", "scenario");
	for (size_t i = 0; rc == 0 && i < all.n; i++)
		list_one(out, all.name[i]);
	free(all.name);
	return rc;
}
