/* SPDX-License-Identifier: MIT */
#include "config/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One hierarchy as this process sees it. */
struct tree {
	int version;
	const char *controller; /* version 1: "cpu"; version 2: "" */
	bool member;		/* the process is in it */
	char mount[PATH_MAX];	/* where it is mounted */
	char top[PATH_MAX];	/* which group that is */
	char path[PATH_MAX];	/* the process's group */
};

enum {
	V2,
	V1_CPU,
	V1_CPUSET,
	TREES
};

/* Is `word` one of the comma-separated words? */
static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = words; p != NULL; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, word, len) == 0 &&
		    (p[len] == ',' || p[len] == '\0'))
			return true;
	}
	return false;
}

typedef void line_fn(struct tree *trees, char *line);

static void each_line(struct tree *trees, const char *root, const char *file,
		      line_fn *fn)
{
	char path[PATH_MAX], *line = NULL;
	size_t cap = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, file);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	while (getline(&line, &cap, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		fn(trees, line);
	}
	free(line);
	fclose(f);
}

/* "4:cpu,cpuacct:/a/b", or "0::/a/b" for version 2. */
static void take_member(struct tree *trees, char *line)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (path == NULL)
		return;
	controllers++;
	*path++ = '\0';
	for (int i = 0; i < TREES; i++) {
		struct tree *t = &trees[i];
		bool ours = t->version == 2
				    ? controllers[0] == '\0'
				    : has_word(controllers, t->controller);

		if (!ours)
			continue;
		t->member = true;
		snprintf(t->path, sizeof(t->path), "%s", path);
	}
}

/*
 * "36 35 0:30 TOP MOUNT options ... - TYPE source OPTIONS". The first one
 * mounted is the usual place.
 */
static void take_mount(struct tree *trees, char *line)
{
	char top[1024], mount[1024], type[32], options[1024] = "";
	const char *tail = strstr(line, " - ");

	if (tail == NULL ||
	    sscanf(line, "%*s %*s %*s %1023s %1023s", top, mount) != 2 ||
	    sscanf(tail, " - %31s %*s %1023s", type, options) < 1)
		return;
	for (int i = 0; i < TREES; i++) {
		struct tree *t = &trees[i];
		bool ours = t->version == 2
				    ? strcmp(type, "cgroup2") == 0
				    : strcmp(type, "cgroup") == 0 &&
					      has_word(options, t->controller);

		if (!ours || t->top[0] != '\0')
			continue;
		strcpy(t->mount, mount);
		strcpy(t->top, top);
	}
}

/* The process's group as a folder below the mount point; "" is the mount point.
 */
static const char *below_mount(const struct tree *t)
{
	size_t len = strlen(t->top);
	const char *path = t->path;

	if (len > 1 && strncmp(path, t->top, len) == 0 &&
	    (path[len] == '/' || path[len] == '\0'))
		path += len;
	/* A group outside of our namespace: what is mounted is all we see. */
	if (strstr(path, "/..") != NULL || strcmp(path, "/") == 0)
		path = "";
	return path;
}

__attribute__((format(printf, 3, 4))) static bool read_text(char *buf,
							    size_t len,
							    const char *fmt,
							    ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *f;
	bool good;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	good = fgets(buf, (int)len, f) != NULL;
	fclose(f);
	if (good)
		buf[strcspn(buf, "\n")] = '\0';
	return good;
}

/* CPUs' worth of quota that one group has, or 0. */
static double quota_of(const struct tree *t, const char *root,
		       const char *group)
{
	char text[128], more[64];
	int64_t quota = -1, period = 0;

	if (t->version == 2) {
		if (!read_text(text, sizeof(text), "%s%s%s/cpu.max", root,
			       t->mount, group))
			return 0;
		/* "max 100000" has no number in front. */
		sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period);
	} else if (read_text(text, sizeof(text), "%s%s%s/cpu.cfs_quota_us",
			     root, t->mount, group) &&
		   read_text(more, sizeof(more), "%s%s%s/cpu.cfs_period_us",
			     root, t->mount, group)) {
		quota = strtoll(text, NULL, 10);
		period = strtoll(more, NULL, 10);
	}
	return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* Every level from the process's own group up to the mount point. */
static void smallest_quota(struct cgroup *out, const struct tree *t,
			   const char *root)
{
	char group[PATH_MAX];
	char *slash;

	snprintf(group, sizeof(group), "%s", below_mount(t));
	for (;;) {
		double quota = quota_of(t, root, group);

		if (quota > 0 && (out->version == 0 || quota < out->quota)) {
			out->quota = quota;
			out->version = t->version;
			snprintf(out->where, sizeof(out->where), "%.63s",
				 group[0] != '\0' ? group : "/");
		}
		slash = strrchr(group, '/');
		if (slash == NULL)
			break;
		*slash = '\0';
	}
}

static void read_cpuset(struct cgroup *out, const struct tree *t,
			const char *root)
{
	static const char *const files[] = {
		"cpuset.cpus.effective",
		"cpuset.effective_cpus",
		"cpuset.cpus",
	};

	for (size_t i = 0; i < 3 && out->cpuset[0] == '\0'; i++)
		if (!read_text(out->cpuset, sizeof(out->cpuset), "%s%s%s/%s",
			       root, t->mount, below_mount(t), files[i]))
			out->cpuset[0] = '\0';
}

int cgroup_read(struct cgroup *out, const char *root)
{
	/* Some pages each: not on the stack. */
	struct tree *trees = calloc(TREES, sizeof(*trees));

	if (trees == NULL)
		return -ENOMEM;
	trees[V2] = (struct tree){2, "", .mount = "/sys/fs/cgroup"};
	trees[V1_CPU] = (struct tree){1, "cpu", .mount = "/sys/fs/cgroup/cpu"};
	trees[V1_CPUSET] =
		(struct tree){1, "cpuset", .mount = "/sys/fs/cgroup/cpuset"};
	each_line(trees, root, "/proc/self/cgroup", take_member);
	each_line(trees, root, "/proc/self/mountinfo", take_mount);
	*out = (struct cgroup){0};
	for (int i = 0; i < TREES; i++) {
		if (!trees[i].member)
			continue;
		if (i != V1_CPUSET)
			smallest_quota(out, &trees[i], root);
		if (i != V1_CPU)
			read_cpuset(out, &trees[i], root);
	}
	free(trees);
	return 0;
}
