/* SPDX-License-Identifier: MIT */
#include "terminator/tgt_int.h"

#include "shm/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tgt_ids_add(struct tgt_ids *ids, const struct tgt_id *id)
{
	if (ids->n == ids->cap) {
		size_t cap = ids->cap ? 2 * ids->cap : 64;
		void *item = reallocarray(ids->item, cap, sizeof(*ids->item));

		if (item == NULL)
			return -ENOMEM;
		ids->item = item;
		ids->cap = cap;
	}
	ids->item[ids->n++] = *id;
	return 0;
}

void tgt_ids_fini(struct tgt_ids *ids)
{
	free(ids->item);
	memset(ids, 0, sizeof(*ids));
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct tgt_id *)a)->pid;
	pid_t y = ((const struct tgt_id *)b)->pid;

	return (x > y) - (x < y);
}

void tgt_ids_sort(struct tgt_ids *ids)
{
	size_t n = 0;

	if (ids->n == 0)
		return;
	qsort(ids->item, ids->n, sizeof(*ids->item), by_pid);
	for (size_t i = 0; i < ids->n; i++)
		if (n == 0 || ids->item[n - 1].pid != ids->item[i].pid)
			ids->item[n++] = ids->item[i];
	ids->n = n;
}

struct tgt_id *tgt_ids_find(const struct tgt_ids *ids, pid_t pid)
{
	struct tgt_id key = {.pid = pid};

	if (ids->n == 0)
		return NULL;
	return bsearch(&key, ids->item, ids->n, sizeof(key), by_pid);
}

pid_t tgt_pid_parse(const char *text)
{
	unsigned long v;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (*end != '\0' || errno != 0 || v > INT_MAX)
		return 0;
	return (pid_t)v;
}

int tgt_read_file(const char *path, char *buf, size_t len)
{
	size_t used = 0;
	ssize_t n;
	int fd, rc = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + used, len - 1 - used);
		if (n > 0)
			used += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		rc = -errno;
	close(fd);
	buf[used] = '\0';
	return rc;
}

static struct tgt_cpu from_ticks(unsigned long long user,
				 unsigned long long system)
{
	uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	struct tgt_cpu c = {.user_ns = user * tick_ns,
			    .system_ns = system * tick_ns};

	c.total_ns = c.user_ns + c.system_ns;
	return c;
}

/*
 * "PID (NAME) STATE ...", proc(5): 14 to 17 are user and system ticks, its own
 * and those of children waited for; 20 threads; 22 the start. The name may hold
 * spaces and brackets: it ends at the last bracket.
 */
static int parse_stat(char *text, struct tgt_proc *out)
{
	unsigned long long own[2], waited[2], threads, start;
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	struct tgt_proc p = {0};
	int pid, parent;

	if (open == NULL || close == NULL || close < open)
		return -EBADMSG;
	*close = '\0';
	if (sscanf(text, "%d", &pid) != 1 ||
	    sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu "
		   "%llu %*d %*d %llu %*d %llu",
		   &p.state, &parent, &own[0], &own[1], &waited[0], &waited[1],
		   &threads, &start) != 8)
		return -EBADMSG;
	p.pid = (pid_t)pid;
	p.parent = (pid_t)parent;
	p.start_ticks = start;
	p.threads = (uint32_t)threads;
	p.cpu = from_ticks(own[0], own[1]);
	p.waited = from_ticks(waited[0], waited[1]);
	snprintf(p.comm, sizeof(p.comm), "%.15s", open + 1);
	*out = p;
	return 0;
}

int tgt_proc_stat(pid_t pid, struct tgt_proc *out)
{
	char path[32], text[1024];
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	rc = tgt_read_file(path, text, sizeof(text));
	if (rc < 0)
		return rc == -ENOENT ? -ESRCH : rc;
	return parse_stat(text, out);
}

/* The proportional set; 0 where the kernel does not let us read it. */
static uint64_t read_pss(pid_t pid)
{
	char path[40], text[2048];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	if (tgt_read_file(path, text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, "\nPss:");
	return at == NULL ? 0 : strtoull(at + 5, NULL, 10) * 1024;
}

void tgt_proc_memory(struct tgt_proc *p)
{
	char path[32], text[256];
	unsigned long long pages;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)p->pid);
	if (tgt_read_file(path, text, sizeof(text)) == 0 &&
	    sscanf(text, "%*u %llu", &pages) == 1)
		p->resident_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	p->pss_bytes = read_pss(p->pid);
}

/* A process that ends while we look is not there; that is no fault. */
static int add_process(const char *name, struct tgt_ids *out)
{
	pid_t pid = tgt_pid_parse(name);
	struct tgt_proc p;
	struct tgt_id id;

	if (pid == 0 || tgt_proc_stat(pid, &p) < 0)
		return 0;
	id = (struct tgt_id){.pid = pid,
			     .parent = p.parent,
			     .start_ticks = p.start_ticks,
			     .dead = p.state == 'Z' || p.state == 'X'};
	return tgt_ids_add(out, &id);
}

int tgt_proc_all(struct tgt_ids *out)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int rc = 0;

	if (dir == NULL)
		return -errno;
	while (rc == 0 && (e = readdir(dir)) != NULL)
		rc = add_process(e->d_name, out);
	closedir(dir);
	tgt_ids_sort(out);
	return rc;
}
