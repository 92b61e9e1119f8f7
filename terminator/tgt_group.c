/* SPDX-License-Identifier: MIT */
/* A cgroup, version 2 or 1, and what it counts. */
#include "terminator/tgt_int.h"

#include "shm/base.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Groups below groups; deeper ones than this no system makes. */
#define DEPTH 16

/* False when the path does not fit. */
static bool join(char *out, const char *a, const char *b)
{
	const char *slash = b[0] == '/' || b[0] == '\0' ? "" : "/";
	int n = snprintf(out, PATH_MAX, "%s%s%s", a, slash, b);

	return n > 0 && n < PATH_MAX;
}

static bool has_file(const char *folder, const char *file)
{
	char path[PATH_MAX];

	return join(path, folder, file) && access(path, R_OK) == 0;
}

/* The number behind `word` at the start of a line. 0 or -ENODATA. */
static int word_in(const char *text, const char *word, uint64_t *out)
{
	size_t len = strlen(word);

	for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, word, len) != 0)
			continue;
		*out = strtoull(at + len, NULL, 10);
		return 0;
	}
	return -ENODATA;
}

static int read_in(const char *folder, const char *file, char *text, size_t len)
{
	char path[PATH_MAX];

	if (!join(path, folder, file))
		return -ENAMETOOLONG;
	return tgt_read_file(path, text, len);
}

/* Version 2 has the times of every group, with or without its controller. */
static int read_v2(const char *folder, struct tgt_cpu *cpu)
{
	uint64_t total, user, system;
	char text[4096];
	int rc = read_in(folder, "cpu.stat", text, sizeof(text));

	if (rc == 0)
		rc = word_in(text, "usage_usec ", &total);
	if (rc == 0)
		rc = word_in(text, "user_usec ", &user);
	if (rc == 0)
		rc = word_in(text, "system_usec ", &system);
	if (rc == 0)
		*cpu = (struct tgt_cpu){.total_ns = total * NS_PER_US,
					.user_ns = user * NS_PER_US,
					.system_ns = system * NS_PER_US};
	return rc;
}

static int read_v1(const char *folder, struct tgt_cpu *cpu)
{
	uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	char usage[64], text[512];
	uint64_t total, user, system;
	int rc = read_in(folder, "cpuacct.usage", usage, sizeof(usage));

	if (rc == 0)
		rc = word_in(usage, "", &total);
	if (rc == 0)
		rc = read_in(folder, "cpuacct.stat", text, sizeof(text));
	if (rc == 0)
		rc = word_in(text, "user ", &user);
	if (rc == 0)
		rc = word_in(text, "system ", &system);
	if (rc == 0)
		*cpu = (struct tgt_cpu){.total_ns = total,
					.user_ns = user * tick_ns,
					.system_ns = system * tick_ns};
	return rc;
}

/*
 * In version 1 each controller has a tree of its own: the same group's memory
 * is counted where "memory" stands for the name of the CPU's controller.
 */
static void find_memory_v1(struct tgt_group *g)
{
	static const char *const tree[] = {"/cpu,cpuacct/", "/cpuacct,cpu/",
					   "/cpuacct/"};
	char folder[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(tree); i++) {
		const char *at = strstr(g->path, tree[i]);
		int n;

		if (at == NULL)
			continue;
		n = snprintf(folder, sizeof(folder), "%.*s/memory/%s",
			     (int)(at - g->path), g->path,
			     at + strlen(tree[i]));
		if (n > 0 && n < PATH_MAX &&
		    has_file(folder, "memory.usage_in_bytes") &&
		    join(g->memory, folder, "memory.usage_in_bytes"))
			return;
		g->memory[0] = '\0';
	}
}

/* Is this folder a group that counts CPU time? */
static int look_at(struct tgt_group *out, const char *folder)
{
	struct tgt_group g = {0};
	struct tgt_cpu cpu;

	if (!has_file(folder, "cgroup.procs") || !join(g.path, folder, ""))
		return -ENOENT;
	if (read_v2(folder, &cpu) == 0) {
		g.version = 2;
		if (!has_file(folder, "memory.current") ||
		    !join(g.memory, folder, "memory.current"))
			g.memory[0] = '\0';
	} else if (read_v1(folder, &cpu) == 0) {
		g.version = 1;
		find_memory_v1(&g);
	} else {
		return -ENODATA;
	}
	*out = g;
	return 0;
}

int tgt_group_find(struct tgt_group *out, const char *value)
{
	static const char *const mount[] = {
		"", "/sys/fs/cgroup", "/sys/fs/cgroup/unified",
		"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct"};
	char folder[PATH_MAX];
	int rc, worst = -ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(mount); i++) {
		if (i == 0 ? snprintf(folder, PATH_MAX, "%s", value) >= PATH_MAX
			   : !join(folder, mount[i], value))
			continue;
		rc = look_at(out, folder);
		if (rc == 0)
			return 0;
		if (rc == -ENODATA)
			worst = rc;
	}
	return worst;
}

/* One line is one pid; 0 stands for a process outside our pid namespace. */
static int add_pids(const char *folder, struct tgt_ids *out)
{
	char path[PATH_MAX];
	int pid, rc = 0;
	FILE *f;

	if (!join(path, folder, "cgroup.procs"))
		return -ENAMETOOLONG;
	f = fopen(path, "re");
	if (f == NULL)
		return -errno;
	/* A group of threads has no such list: its processes are listed
	 * above. */
	while (rc == 0 && fscanf(f, "%d", &pid) == 1) {
		struct tgt_id id = {.pid = (pid_t)pid};

		if (pid > 0)
			rc = tgt_ids_add(out, &id);
	}
	fclose(f);
	return rc;
}

static int walk(const char *folder, struct tgt_ids *out, int depth)
{
	char below[PATH_MAX];
	struct dirent *e;
	int rc = add_pids(folder, out);
	DIR *dir;

	if (rc < 0 || depth == DEPTH)
		return rc;
	dir = opendir(folder);
	if (dir == NULL)
		return -errno;
	while (rc == 0 && (e = readdir(dir)) != NULL) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.' ||
		    !join(below, folder, e->d_name))
			continue;
		rc = walk(below, out, depth + 1);
		/* A group below may go while we look. */
		if (rc == -ENOENT)
			rc = 0;
	}
	closedir(dir);
	return rc;
}

int tgt_group_pids(const struct tgt_group *g, struct tgt_ids *out)
{
	int rc = walk(g->path, out, 0);

	tgt_ids_sort(out);
	return rc;
}

int tgt_group_read(const struct tgt_group *g, struct tgt_cpu *cpu,
		   uint64_t *memory_bytes)
{
	char text[64];
	int rc =
		g->version == 2 ? read_v2(g->path, cpu) : read_v1(g->path, cpu);

	if (rc < 0)
		return rc;
	*memory_bytes = 0;
	if (g->memory[0] != '\0' &&
	    tgt_read_file(g->memory, text, sizeof(text)) == 0)
		*memory_bytes = strtoull(text, NULL, 10);
	return 0;
}
