/* SPDX-License-Identifier: MIT */
#include "shm/clk.h"

#include "shm/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t to_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
}

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;

	MUST(clock_gettime(id, &ts) == 0);
	return to_ns(&ts);
}

uint64_t clk_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clk_thread_cpu(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clk_process_cpu(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clk_realtime(void)
{
	return read_clock(CLOCK_REALTIME);
}

int clk_pid_cpu(pid_t pid, uint64_t *out_ns)
{
	struct timespec ts;
	clockid_t id;

	/* To the kernel, 0 would mean ourselves. */
	if (pid <= 0)
		return -ESRCH;
	if (clock_getcpuclockid(pid, &id) != 0)
		return -ESRCH;
	/* EINVAL: it went between the two calls. */
	if (clock_gettime(id, &ts) < 0)
		return errno == EINVAL ? -ESRCH : -errno;
	*out_ns = to_ns(&ts);
	return 0;
}

/* A small file of /proc, whole; it is NUL-terminated. 0 or -errno. */
static int read_file(const char *path, char *buf, size_t len)
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

/*
 * "PID (NAME) STATE ..." with the start in field 22, proc(5). The name may hold
 * spaces and brackets, so counting begins behind its last bracket.
 */
static int parse_stat(const char *text, uint64_t *out_ticks)
{
	const char *at = strrchr(text, ')');
	char *end;
	uint64_t ticks;

	if (at == NULL || at[1] != ' ')
		return -EBADMSG;
	if (at[2] == 'Z' || at[2] == 'X')
		return -ESRCH;
	for (int field = 2; field < 22; field++) {
		at = strchr(at + 1, ' ');
		if (at == NULL)
			return -EBADMSG;
	}
	ticks = strtoull(at + 1, &end, 10);
	if (end == at + 1 || *end != ' ')
		return -EBADMSG;
	*out_ticks = ticks;
	return 0;
}

int clk_pid_start(pid_t pid, uint64_t *out_ticks)
{
	char path[32], text[1024];
	int rc;

	if (pid <= 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	rc = read_file(path, text, sizeof(text));
	if (rc < 0)
		return rc == -ENOENT ? -ESRCH : rc;
	return parse_stat(text, out_ticks);
}
