/* SPDX-License-Identifier: MIT */
#include "terminator/tgt.h"

#include "shm/base.h"
#include "shm/clk.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BURN_NS (250 * NS_PER_MS)

/*
 * A server to look at: a process that obeys letters and answers each with the
 * same, once it has done what obey() says.
 */
struct server {
	pid_t pid;
	int fd; /* owns; the control socket */
};

static char dir[64], err[PATH_MAX + 1024];

/* ---- in the server ---- */

static void burn_user(void)
{
	uint64_t end = clk_process_cpu() + BURN_NS;
	volatile unsigned x = 1;

	while (clk_process_cpu() < end)
		for (int i = 0; i < 100000; i++)
			x = x * 1664525u + 1013904223u;
}

/* Touches 1 MiB on the way. */
static void burn_system(void)
{
	static char buf[32][1 << 15];
	uint64_t end = clk_process_cpu() + BURN_NS;
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	for (unsigned i = 0; clk_process_cpu() < end; i++)
		if (read(fd, buf[i % 32], sizeof(buf[0])) < 0)
			_exit(3);
	close(fd);
}

/* A child that burns, says so, and stays. */
static pid_t child_that_burns(void)
{
	int done[2];
	char c;
	pid_t pid;

	if (pipe2(done, O_CLOEXEC) < 0)
		_exit(3);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		burn_user();
		if (write(done[1], "x", 1) != 1)
			_exit(3);
		for (;;)
			pause();
	}
	close(done[1]);
	if (read(done[0], &c, 1) != 1)
		_exit(3);
	close(done[0]);
	return pid;
}

static void many_children(void)
{
	for (int i = 0; i < TGT_MAX; i++) {
		pid_t pid = fork();

		if (pid < 0)
			_exit(3);
		if (pid > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	/* Without the status, or at once, when SIGCHLD is ignored. */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

static void obey(char letter)
{
	static pid_t child;

	switch (letter) {
	case 'u':
		burn_user();
		break;
	case 's':
		burn_system();
		break;
	case 'c': /* a child that burns and stays */
		child = child_that_burns();
		break;
	case 'e': /* it ends */
		end_child(child);
		break;
	case 'b': /* one that burns and ends */
		end_child(child_that_burns());
		break;
	case 'i': /* from now on nobody waits for a child */
		signal(SIGCHLD, SIG_IGN);
		break;
	case 'm':
		many_children();
		break;
	default:
		_exit(letter == 'q' ? 0 : 3);
	}
}

static _Noreturn void serve(int fd)
{
	char letter;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, &letter, 1) == 1) {
		obey(letter);
		if (write(fd, &letter, 1) != 1)
			break;
	}
	_exit(0);
}

/* ---- in the test ---- */

static struct server server_start(void)
{
	struct server s;
	int fd[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd),
			 0);
	s.pid = fork();
	ck_assert_int_ge(s.pid, 0);
	if (s.pid == 0) {
		close(fd[0]);
		serve(fd[1]);
	}
	close(fd[1]);
	s.fd = fd[0];
	return s;
}

static void tell(const struct server *s, char letter)
{
	char answer = 0;

	ck_assert_int_eq(write(s->fd, &letter, 1), 1);
	ck_assert_int_eq(read(s->fd, &answer, 1), 1);
	ck_assert_int_eq(answer, letter);
}

/* Ends it and returns the CPU time that the kernel says it used. */
static uint64_t server_end(struct server *s)
{
	struct rusage u;

	kill(s->pid, SIGKILL);
	ck_assert_int_eq(wait4(s->pid, NULL, 0, &u), s->pid);
	close(s->fd);
	s->pid = 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NS_PER_US;
}

static uint64_t tick_ns(void)
{
	return NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* 2 %, and what cannot be known better than to a tick. */
static void is_near(uint64_t got, uint64_t want, uint64_t ticks)
{
	uint64_t room = want / 50 + ticks * tick_ns();

	ck_assert_msg(got + room >= want && got <= want + room,
		      "%llu ns, not %llu", (unsigned long long)got,
		      (unsigned long long)want);
}

static const char *text_of(pid_t pid)
{
	static char text[8][16];
	static unsigned next;
	char *t = text[next++ % 8];

	snprintf(t, sizeof(text[0]), "%d", (int)pid);
	return t;
}

static struct tgt *open_want(const struct tgt_want *want)
{
	struct tgt *t = NULL;
	int rc = tgt_open(&t, want, err, sizeof(err));

	ck_assert_msg(rc == 0, "%d: %s", rc, err);
	return t;
}

static struct tgt *open_pid(pid_t pid)
{
	char *pids[] = {(char *)text_of(pid)};
	struct tgt_want want = {.pids = pids, .npids = 1};

	return open_want(&want);
}

static void sample(struct tgt *t, struct tgt_sample *out)
{
	int rc = tgt_sample(t, out);

	ck_assert_msg(rc == 0, "%d: %s", rc, tgt_why(t));
}

static void refused(const struct tgt_want *want, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void refused(const struct tgt_want *want, int rc, const char *fmt, ...)
{
	char expected[sizeof(err)];
	struct tgt *t = NULL;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(expected, sizeof(expected), fmt, ap);
	va_end(ap);
	ck_assert_int_eq(tgt_open(&t, want, err, sizeof(err)), rc);
	ck_assert_ptr_null(t);
	ck_assert_str_eq(err, expected);
}

static void path_in(char *out, const char *name)
{
	snprintf(out, PATH_MAX, "%s/%s", dir, name);
}

/* A path in the test's folder; good until the fourth call from here. */
static const char *in_dir(const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned next;
	char *p = path[next++ % 4];

	path_in(p, name);
	return p;
}

static void put(const char *name, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(const char *name, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	FILE *f;

	path_in(path, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	ck_assert_int_eq(fclose(f), 0);
}

static void make_dir(const char *name)
{
	char path[PATH_MAX];

	path_in(path, name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/tterm-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void)
{
	ck_assert_int_eq(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- works ---- */

START_TEST(a_busy_process_costs_what_the_kernel_says)
{
	struct server s = server_start();
	struct tgt *t = open_pid(s.pid);
	struct tgt_sample a = {0}, b = {0}, d = {0};

	sample(t, &a);
	tell(&s, "us"[_i]);
	sample(t, &b);
	ck_assert_int_eq(tgt_diff(&d, &b, &a), 0);
	ck_assert_uint_eq(d.n, 1);
	ck_assert_int_eq(d.proc[0].pid, s.pid);
	ck_assert_int_eq(d.proc[0].parent, getpid());
	ck_assert_uint_eq(d.proc[0].threads, 1);
	ck_assert_uint_eq(d.cpu.total_ns, d.proc[0].cpu.total_ns);
	ck_assert_uint_ge(d.taken_ns, d.cpu.total_ns);
	ck_assert(!d.changed && d.came == 0 && d.went == 0);
	is_near(d.cpu.user_ns + d.cpu.system_ns, d.cpu.total_ns, 2);
	ck_assert((d.cpu.user_ns > d.cpu.system_ns) == (_i == 0));
	is_near(b.cpu.total_ns, server_end(&s), 0);
	is_near(d.cpu.total_ns, BURN_NS, 1);
	tgt_fini(&a);
	tgt_fini(&b);
	tgt_fini(&d);
	tgt_close(&t);
}
END_TEST

START_TEST(memory_is_what_the_process_touches)
{
	struct server s = server_start();
	struct tgt *t = open_pid(s.pid);
	struct tgt_sample a = {0}, b = {0};

	sample(t, &a);
	tell(&s, 's'); /* touches a buffer of 1 MiB */
	sample(t, &b);
	ck_assert_uint_gt(a.resident_bytes, 0);
	ck_assert_uint_ge(b.resident_bytes,
			  a.resident_bytes + (1 << 20) * 9 / 10);
	ck_assert_uint_le(b.pss_bytes, b.resident_bytes);
	ck_assert_uint_gt(b.pss_bytes, 1 << 20);
	ck_assert_uint_eq(b.memory_bytes, b.pss_bytes);
	ck_assert_uint_eq(b.cgroup_bytes, 0);
	server_end(&s);
	tgt_fini(&a);
	tgt_fini(&b);
	tgt_close(&t);
}
END_TEST

START_TEST(a_pid_file_means_the_children_too)
{
	struct server s = server_start();
	const char *file = in_dir("pid");
	struct tgt_want want = {.pid_file = file};
	struct tgt_sample a = {0}, b = {0}, d = {0};
	struct tgt *t;

	put("pid", "%d\n", (int)s.pid);
	t = open_want(&want);
	ck_assert_str_eq(tgt_source(t) + strlen("target.pid_file: "), file);
	sample(t, &a);
	ck_assert_uint_eq(a.n, 1);
	tell(&s, 'c');
	sample(t, &b);
	ck_assert_uint_eq(b.n, 2);
	ck_assert_uint_eq(b.threads, 2);
	ck_assert_uint_eq(b.came, 1);
	ck_assert_int_eq(tgt_diff(&d, &b, &a), 0);
	ck_assert(d.changed);
	is_near(d.cpu.total_ns, BURN_NS, 2);
	server_end(&s);
	tgt_fini(&a);
	tgt_fini(&b);
	tgt_fini(&d);
	tgt_close(&t);
}
END_TEST

START_TEST(a_child_that_ends_takes_nothing_along)
{
	struct server s = server_start();
	struct tgt *t = open_pid(s.pid);
	struct tgt_sample a = {0}, b = {0}, c = {0}, d = {0};

	if (_i == 1) /* nobody waits for it */
		tell(&s, 'i');
	sample(t, &a);
	tell(&s, 'c');
	sample(t, &b);
	tell(&s, 'e');
	sample(t, &c);
	ck_assert_uint_eq(c.n, 1);
	ck_assert_int_eq(tgt_diff(&d, &c, &a), 0);
	ck_assert(d.changed);
	is_near(d.cpu.total_ns, BURN_NS, 2);
	is_near(d.ended.total_ns, BURN_NS, 2);
	ck_assert_uint_lt(d.proc[0].cpu.total_ns, BURN_NS / 2);
	/* It did nothing more after the sample in the middle. */
	ck_assert_int_eq(tgt_diff(&d, &c, &b), 0);
	ck_assert_uint_eq(d.went, 1);
	ck_assert_uint_le(d.ended.total_ns, 2 * tick_ns());
	ck_assert_uint_lt(d.cpu.total_ns, BURN_NS / 10);
	ck_assert_uint_ge(c.cpu.total_ns, b.cpu.total_ns);
	server_end(&s);
	tgt_fini(&a);
	tgt_fini(&b);
	tgt_fini(&c);
	tgt_fini(&d);
	tgt_close(&t);
}
END_TEST

START_TEST(a_child_that_came_and_went_unseen_is_counted)
{
	struct server s = server_start();
	struct tgt *t = open_pid(s.pid);
	struct tgt_sample a = {0}, b = {0}, d = {0};

	tell(&s, 'b'); /* before the first sample: no part of the difference */
	sample(t, &a);
	tell(&s, 'b');
	sample(t, &b);
	ck_assert_int_eq(tgt_diff(&d, &b, &a), 0);
	ck_assert(d.changed);
	ck_assert_uint_eq(d.n, 1);
	is_near(d.ended.total_ns, BURN_NS, 2);
	is_near(d.cpu.total_ns, BURN_NS, 2);
	server_end(&s);
	tgt_fini(&a);
	tgt_fini(&b);
	tgt_fini(&d);
	tgt_close(&t);
}
END_TEST

START_TEST(several_processes_are_one_target)
{
	struct server s[3] = {server_start(), server_start(), server_start()};
	char *pids[] = {(char *)text_of(s[2].pid), (char *)text_of(s[0].pid),
			(char *)text_of(s[1].pid), (char *)text_of(s[0].pid)};
	struct tgt_want want = {.pids = pids, .npids = 4, .name = "three"};
	struct tgt *t = open_want(&want);
	struct tgt_sample a = {0};
	uint64_t sum = 0;

	for (int i = 0; i < 3; i++)
		tell(&s[i], 'u');
	sample(t, &a);
	ck_assert_str_eq(tgt_name(t), "three");
	ck_assert_uint_eq(a.n, 3);
	ck_assert_int_lt(a.proc[0].pid, a.proc[1].pid);
	ck_assert_int_lt(a.proc[1].pid, a.proc[2].pid);
	for (int i = 0; i < 3; i++)
		sum += server_end(&s[i]);
	is_near(a.cpu.total_ns, sum, 0);
	tgt_fini(&a);
	tgt_close(&t);
}
END_TEST

/* ---- a listening socket leads to its process ---- */

struct listen_row {
	const char *bind_to, *asked;
	int family;
	bool v6only;
};

static const struct listen_row listen_rows[] = {
	{"127.0.0.1", "127.0.0.1", AF_INET, false},
	{"127.0.0.2", "127.0.0.2", AF_INET, false},
	{"0.0.0.0", "127.0.0.1", AF_INET, false},
	{"::1", "[::1]", AF_INET6, true},
	{"::", "[::1]", AF_INET6, true},
	{"::", "127.0.0.1", AF_INET6, false},
};

static int listen_on(const struct listen_row *row, uint16_t *port)
{
	int fd = socket(row->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int v6only = row->v6only, on = 1;
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6};
	struct sockaddr_in a4 = {.sin_family = AF_INET};
	bool v4 = row->family == AF_INET;
	struct sockaddr *sa = v4 ? (void *)&a4 : (void *)&a6;
	socklen_t len = v4 ? sizeof(a4) : sizeof(a6);

	if (fd < 0)
		return -1;
	a4.sin_port = a6.sin6_port = htons(*port);
	inet_pton(row->family, row->bind_to,
		  v4 ? (void *)&a4.sin_addr : (void *)&a6.sin6_addr);
	if (!v4)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only,
			   sizeof(v6only));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (bind(fd, sa, len) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, sa, &len) < 0) {
		close(fd);
		return -1;
	}
	*port = ntohs(v4 ? a4.sin_port : a6.sin6_port);
	return fd;
}

/* The child inherits the socket; the test itself then has none. */
static struct server server_on(const struct listen_row *row, uint16_t *port)
{
	int fd = listen_on(row, port);
	struct server s = {.pid = 0};

	if (fd < 0)
		return s;
	s = server_start();
	close(fd);
	return s;
}

START_TEST(the_process_that_listens_is_found)
{
	const struct listen_row *row = &listen_rows[_i];
	uint16_t port = 0;
	struct server s = server_on(row, &port);
	char address[64];
	struct tgt_want want = {.address = address};
	struct tgt_sample a = {0};
	struct tgt *t;

	if (s.pid == 0 && row->family == AF_INET6)
		return; /* no IPv6 here */
	ck_assert_int_gt(s.pid, 0);
	snprintf(address, sizeof(address), "%s:%u", row->asked, port);
	t = open_want(&want);
	sample(t, &a);
	ck_assert_uint_eq(a.n, 1);
	ck_assert_int_eq(a.proc[0].pid, s.pid);
	ck_assert_str_eq(tgt_name(t), a.proc[0].comm);
	server_end(&s);
	tgt_fini(&a);
	tgt_close(&t);
}
END_TEST

START_TEST(the_listener_that_fits_best_is_meant)
{
	uint16_t port = 0;
	struct server exact = server_on(&listen_rows[1], &port);
	struct server any = server_on(&listen_rows[2], &port);
	char address[64];
	struct tgt_want want = {.address = address};
	struct tgt_sample a = {0};
	struct tgt *t;

	ck_assert_int_gt(exact.pid, 0);
	ck_assert_int_gt(any.pid, 0);
	snprintf(address, sizeof(address), "127.0.0.2:%u", port);
	t = open_want(&want);
	sample(t, &a);
	ck_assert_uint_eq(a.n, 1);
	ck_assert_int_eq(a.proc[0].pid, exact.pid);
	server_end(&exact);
	server_end(&any);
	tgt_fini(&a);
	tgt_close(&t);
}
END_TEST

/* ---- cgroups ---- */

/* A folder that looks like a group of version 2 and has these processes. */
static void make_v2(uint64_t usage_usec, pid_t first, pid_t second)
{
	make_dir("g");
	make_dir("g/below");
	put("g/cgroup.procs", "%d\n", (int)first);
	put("g/below/cgroup.procs", "%d\n0\n", (int)second);
	put("g/cpu.stat",
	    "usage_usec %llu\nuser_usec 700000\nsystem_usec 300000\n"
	    "nr_periods 0\n",
	    (unsigned long long)usage_usec);
}

START_TEST(a_group_of_version_2_has_a_total_of_its_own)
{
	struct server s[2] = {server_start(), server_start()};
	struct tgt_want want = {.cgroup = in_dir("g")};
	struct tgt_sample a = {0}, b = {0}, d = {0};
	struct tgt *t;

	make_v2(1000000, s[0].pid, s[1].pid);
	put("g/memory.current", "123456789\n");
	t = open_want(&want);
	sample(t, &a);
	ck_assert(a.by_cgroup);
	ck_assert_uint_eq(a.n, 2);
	ck_assert_uint_eq(a.cpu.total_ns, NS_PER_S);
	ck_assert_uint_eq(a.cpu.user_ns, 700 * NS_PER_MS);
	ck_assert_uint_eq(a.cpu.system_ns, 300 * NS_PER_MS);
	ck_assert_uint_eq(a.memory_bytes, 123456789);
	put("g/cpu.stat", "usage_usec 1250000\nuser_usec 900000\n"
			  "system_usec 350000\n");
	sample(t, &b);
	ck_assert_int_eq(tgt_diff(&d, &b, &a), 0);
	ck_assert_uint_eq(d.cpu.total_ns, 250 * NS_PER_MS);
	ck_assert_uint_eq(d.cpu.user_ns, 200 * NS_PER_MS);
	ck_assert_uint_eq(d.cgroup.total_ns, 250 * NS_PER_MS);
	server_end(&s[0]);
	server_end(&s[1]);
	tgt_fini(&a);
	tgt_fini(&b);
	tgt_fini(&d);
	tgt_close(&t);
}
END_TEST

START_TEST(a_process_that_joins_brings_no_old_costs)
{
	struct server s[2] = {server_start(), server_start()};
	struct tgt_want want = {.cgroup = in_dir("g")};
	struct tgt_sample a = {0}, b = {0}, d = {0};
	struct tgt *t;

	make_v2(1, s[0].pid, 0);
	tell(&s[1], 'u');
	t = open_want(&want);
	sample(t, &a);
	ck_assert_uint_eq(a.n, 1);
	ck_assert_uint_eq(a.cgroup_bytes, 0);
	ck_assert_uint_gt(a.memory_bytes, 0);
	put("g/below/cgroup.procs", "%d\n", (int)s[1].pid);
	sample(t, &b);
	ck_assert_int_eq(tgt_diff(&d, &b, &a), 0);
	ck_assert_uint_eq(d.n, 2);
	ck_assert_uint_eq(d.came, 1);
	ck_assert(d.changed);
	for (uint32_t i = 0; i < d.n; i++)
		ck_assert_uint_lt(d.proc[i].cpu.total_ns, BURN_NS / 10);
	server_end(&s[0]);
	server_end(&s[1]);
	tgt_fini(&a);
	tgt_fini(&b);
	tgt_fini(&d);
	tgt_close(&t);
}
END_TEST

START_TEST(a_group_of_version_1_has_its_memory_in_another_tree)
{
	struct server s = server_start();
	struct tgt_want want = {.cgroup = in_dir("cpuacct/web")};
	struct tgt_sample a = {0};
	struct tgt *t;

	make_dir("cpuacct");
	make_dir("cpuacct/web");
	make_dir("memory");
	make_dir("memory/web");
	put("cpuacct/web/cgroup.procs", "%d\n", (int)s.pid);
	put("cpuacct/web/cpuacct.usage", "1234567890\n");
	put("cpuacct/web/cpuacct.stat", "user 100\nsystem 23\n");
	put("memory/web/memory.usage_in_bytes", "4096000\n");
	t = open_want(&want);
	sample(t, &a);
	ck_assert_uint_eq(a.cpu.total_ns, 1234567890);
	ck_assert_uint_eq(a.cpu.user_ns, 100 * tick_ns());
	ck_assert_uint_eq(a.cpu.system_ns, 23 * tick_ns());
	ck_assert_uint_eq(a.memory_bytes, 4096000);
	server_end(&s);
	tgt_fini(&a);
	tgt_close(&t);
}
END_TEST

/* The name of a group that we made for one process; "" where that is not ours
 * to do. */
static void make_real_group(char *folder, size_t len, char *below,
			    size_t below_len, pid_t pid)
{
	static const char *const mount[] = {"/sys/fs/cgroup/cpuacct",
					    "/sys/fs/cgroup/cpu,cpuacct",
					    "/sys/fs/cgroup"};
	char procs[128];

	snprintf(below, below_len, "tterm-unit-%d", (int)getpid());
	for (size_t i = 0; i < ARRAY_LEN(mount); i++) {
		FILE *f;
		bool ok;

		snprintf(folder, len, "%s/%s", mount[i], below);
		if (mkdir(folder, 0700) < 0)
			continue;
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", folder);
		f = fopen(procs, "w");
		ok = f != NULL && fprintf(f, "%d\n", (int)pid) > 0;
		if (f != NULL)
			ok = fclose(f) == 0 && ok;
		if (ok)
			return;
		rmdir(folder);
	}
	folder[0] = '\0';
}

START_TEST(a_real_group_costs_what_its_process_does)
{
	struct server s = server_start();
	char folder[96], below[48];
	struct tgt_want want = {.cgroup = below};
	struct tgt_sample a = {0}, b = {0}, d = {0};
	struct tgt *t;

	make_real_group(folder, sizeof(folder), below, sizeof(below), s.pid);
	if (folder[0] == '\0') {
		server_end(&s);
		return; /* groups may not be made here */
	}
	t = open_want(&want);
	sample(t, &a);
	tell(&s, 'u');
	tell(&s, 'b');
	sample(t, &b);
	ck_assert_int_eq(tgt_diff(&d, &b, &a), 0);
	ck_assert(d.by_cgroup);
	ck_assert_uint_eq(d.n, 1);
	is_near(d.cpu.total_ns, 2 * BURN_NS, 2);
	is_near(d.cpu.total_ns, d.proc[0].cpu.total_ns + d.ended.total_ns, 2);
	server_end(&s);
	ck_assert_int_eq(tgt_sample(t, &b), -ESRCH);
	ck_assert_ptr_nonnull(strstr(tgt_why(t), "no process is left"));
	tgt_fini(&a);
	tgt_fini(&b);
	tgt_fini(&d);
	tgt_close(&t);
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* ---- limits ---- */

START_TEST(a_process_that_ends_is_told_and_the_sample_stays)
{
	struct server s = server_start();
	struct tgt *t = open_pid(s.pid);
	struct tgt_sample a = {0};
	pid_t pid = s.pid;
	char expected[80];

	sample(t, &a);
	if (_i == 1) { /* nobody has waited for it: a zombie is gone too */
		siginfo_t info;

		kill(pid, SIGKILL);
		ck_assert_int_eq(
			waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	} else {
		server_end(&s);
	}
	ck_assert_int_eq(tgt_sample(t, &a), -ESRCH);
	snprintf(expected, sizeof(expected),
		 "target.pids: process %d has ended", (int)pid);
	ck_assert_str_eq(tgt_why(t), expected);
	ck_assert_uint_eq(a.n, 1);
	ck_assert_int_eq(a.proc[0].pid, pid);
	if (_i == 1)
		server_end(&s);
	tgt_fini(&a);
	tgt_close(&t);
}
END_TEST

START_TEST(a_pid_file_is_read_again_after_a_restart)
{
	struct server s = server_start(), again;
	struct tgt_want want = {.pid_file = in_dir("pid")};
	struct tgt_sample a = {0}, b = {0}, d = {0};
	struct tgt *t;

	put("pid", "%d\n", (int)s.pid);
	t = open_want(&want);
	tell(&s, 'u');
	sample(t, &a);
	server_end(&s);
	ck_assert_int_eq(tgt_sample(t, &b), -ESRCH);
	ck_assert_ptr_nonnull(strstr(tgt_why(t), "is the file older than"));
	again = server_start();
	put("pid", "%d\n", (int)again.pid);
	tell(&again, 'u');
	sample(t, &b);
	ck_assert_int_eq(tgt_diff(&d, &b, &a), 0);
	ck_assert_int_eq(d.proc[0].pid, again.pid);
	ck_assert(d.came == 1 && d.went == 1 && d.changed);
	is_near(d.cpu.total_ns, BURN_NS, 2);
	server_end(&again);
	tgt_fini(&a);
	tgt_fini(&b);
	tgt_fini(&d);
	tgt_close(&t);
}
END_TEST

START_TEST(a_pid_file_may_name_several)
{
	struct server s[2] = {server_start(), server_start()};
	struct tgt_want want = {.pid_file = in_dir("pid")};
	struct tgt_sample a = {0};
	struct tgt *t;

	put("pid", " %d\r\n%d\n/var/lib/it\n1\n", (int)s[0].pid, (int)s[1].pid);
	t = open_want(&want);
	sample(t, &a);
	ck_assert_uint_eq(a.n, 2);
	server_end(&s[0]);
	server_end(&s[1]);
	tgt_fini(&a);
	tgt_close(&t);
}
END_TEST

START_TEST(a_name_may_look_like_the_rest_of_the_line)
{
	struct server s;
	struct tgt *t;
	struct tgt_sample a = {0};

	prctl(PR_SET_NAME, "a) R 1 (b 7");
	s = server_start();
	t = open_pid(s.pid);
	sample(t, &a);
	ck_assert_str_eq(a.proc[0].comm, "a) R 1 (b 7");
	ck_assert_int_eq(a.proc[0].parent, getpid());
	ck_assert_str_eq(tgt_name(t), "a) R 1 (b 7");
	server_end(&s);
	tgt_fini(&a);
	tgt_close(&t);
}
END_TEST

START_TEST(nothing_may_be_ended_twice)
{
	struct tgt_sample a = {0};
	struct tgt *t = NULL;

	tgt_close(&t);
	tgt_fini(&a);
	tgt_fini(&a);
}
END_TEST

/* ---- refuses ---- */

START_TEST(what_is_no_process_id_is_refused)
{
	static const char *const bad[] = {
		"",	"0",   "-1",	"12x",	      " 7",
		"0x10", "1e3", "nginx", "2147483648", "99999999999999999999"};
	char *pids[] = {(char *)bad[_i]};
	struct tgt_want want = {.pids = pids, .npids = 1};

	refused(&want, -EINVAL,
		"target.pids: \"%s\" is not a process id; write numbers such "
		"as [4711, 4712]",
		bad[_i]);
}
END_TEST

START_TEST(a_process_that_does_not_run_is_refused)
{
	struct server s = server_start();
	char *pids[] = {(char *)text_of(s.pid)};
	struct tgt_want want = {.pids = pids, .npids = 1};
	const char *hidden = geteuid() == 0 ? "" : ", or is hidden from us";

	server_end(&s);
	refused(&want, -ESRCH,
		"target.pids: %s: process %s does not run%s; write what `pgrep "
		"-d, NAME` prints, or target.pid_file",
		pids[0], pids[0], hidden);
	put("pid", "%s\n", pids[0]);
	want = (struct tgt_want){.pid_file = in_dir("pid")};
	refused(&want, -ESRCH,
		"target.pid_file: %s: process %s does not run%s; is the file "
		"older than the server's last start?",
		in_dir("pid"), pids[0], hidden);
}
END_TEST

START_TEST(the_measuring_process_is_no_target)
{
	char *pids[] = {(char *)text_of(getpid())};
	struct tgt_want want = {.pids = pids, .npids = 1};

	refused(&want, -EINVAL,
		"target.pids: %s: process %s is tterm itself, not a server",
		pids[0], pids[0]);
	make_v2(1, getpid(), 0);
	want = (struct tgt_want){.cgroup = in_dir("g")};
	refused(&want, -EINVAL,
		"target.cgroup: %s: tterm itself runs in this group, so its "
		"own "
		"CPU time would be counted; give the server a group of its "
		"own, "
		"or write target.pids or target.pid_file",
		in_dir("g"));
}
END_TEST

START_TEST(a_bad_pid_file_is_refused)
{
	struct tgt_want want = {.pid_file = in_dir("none")};

	refused(&want, -ENOENT,
		"target.pid_file: %s: No such file or directory; is the server "
		"running, and does its configuration write its process id "
		"there?",
		want.pid_file);
	put("empty", " ");
	put("words", "nginx 4711\n");
	want.pid_file = in_dir("empty");
	refused(&want, -EINVAL,
		"target.pid_file: %s: holds no process id; its first line must "
		"be a number, as a server's pid file has it",
		want.pid_file);
	want.pid_file = in_dir("words");
	ck_assert_int_eq(
		tgt_open(&(struct tgt *){NULL}, &want, err, sizeof(err)),
		-EINVAL);
	want.pid_file = dir;
	ck_assert_int_eq(
		tgt_open(&(struct tgt *){NULL}, &want, err, sizeof(err)),
		-EISDIR);
	want.pid_file = "";
	refused(&want, -EINVAL, "target.pid_file: is empty");
}
END_TEST

START_TEST(a_bad_group_is_refused)
{
	struct tgt_want want = {.cgroup = "no/such.group"};

	refused(&want, -ENOENT,
		"target.cgroup: no/such.group: there is no such group; write "
		"its folder, or its path below /sys/fs/cgroup, such as "
		"system.slice/nginx.service");
	make_dir("blkio");
	put("blkio/cgroup.procs", "1\n");
	want.cgroup = in_dir("blkio");
	refused(&want, -ENODATA,
		"target.cgroup: %s: this group counts no CPU time (neither "
		"usage_usec in cpu.stat nor cpuacct.usage); write the group of "
		"the cpuacct controller",
		want.cgroup);
	make_v2(1, 0, 0);
	want.cgroup = in_dir("g");
	refused(&want, -ESRCH, "target.cgroup: %s: no process is left",
		want.cgroup);
}
END_TEST

START_TEST(what_is_no_address_is_refused)
{
	static const char *const bad[] = {
		"127.0.0.1", "127.0.0.1:",	"localhost:1",
		":8443",     "::1:443",		"[::1]",
		"[::1]:0",   "127.0.0.1:65536", "[127.0.0.1]:1"};
	struct tgt_want want = {.address = bad[_i]};

	refused(&want, -EINVAL,
		"target.address: \"%s\" is not an address; write it as "
		"127.0.0.1:8443 or [::1]:443",
		bad[_i]);
}
END_TEST

START_TEST(an_address_that_nobody_listens_on_is_refused)
{
	uint16_t port = 0;
	int fd = listen_on(&listen_rows[0], &port);
	char address[32];
	struct tgt_want want = {.address = address};

	ck_assert_int_ge(fd, 0);
	/* Only the test itself does, and that cannot be the server. */
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	refused(&want, -EACCES,
		"target.address: %s: who listens there cannot be seen (only "
		"root sees into processes of other users); run tterm as root, "
		"or write target.pids, target.pid_file or target.cgroup",
		address);
	close(fd);
	refused(&want, -ENXIO,
		"target.address: %s: nothing listens there on this machine; "
		"start the server first, or, if it listens in another network "
		"namespace, write target.pids, target.pid_file or "
		"target.cgroup",
		address);
}
END_TEST

START_TEST(only_one_source_may_be_given)
{
	char *pids[] = {(char *)"1"};
	struct tgt_want want = {.pids = pids, .npids = 1, .pid_file = "x"};

	refused(&want, -EINVAL,
		"target.pid_file: only one of target.pids, target.pid_file and "
		"target.cgroup may say what the server is");
	want = (struct tgt_want){.address = NULL};
	refused(&want, -EINVAL, "target.address: is empty");
}
END_TEST

START_TEST(too_many_processes_are_refused)
{
	struct server s = server_start();
	char *pids[] = {(char *)text_of(s.pid)};
	struct tgt_want want = {.pids = pids, .npids = 1};

	tell(&s, 'm');
	refused(&want, -E2BIG,
		"target.pids: %s: these are %d processes, and at most %d can "
		"be "
		"a target; name the server's own",
		pids[0], TGT_MAX + 1, TGT_MAX);
	server_end(&s);
}
END_TEST

static TCase *with_folder(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return t;
}

static void add_works(TCase *t)
{
	tcase_add_loop_test(t, a_busy_process_costs_what_the_kernel_says, 0, 2);
	tcase_add_test(t, memory_is_what_the_process_touches);
	tcase_add_test(t, a_pid_file_means_the_children_too);
	tcase_add_loop_test(t, a_child_that_ends_takes_nothing_along, 0, 2);
	tcase_add_test(t, a_child_that_came_and_went_unseen_is_counted);
	tcase_add_test(t, several_processes_are_one_target);
	tcase_add_loop_test(t, the_process_that_listens_is_found, 0,
			    ARRAY_LEN(listen_rows));
	tcase_add_test(t, the_listener_that_fits_best_is_meant);
	tcase_add_test(t, a_group_of_version_2_has_a_total_of_its_own);
	tcase_add_test(t, a_process_that_joins_brings_no_old_costs);
	tcase_add_test(t, a_group_of_version_1_has_its_memory_in_another_tree);
	tcase_add_test(t, a_real_group_costs_what_its_process_does);
}

static void add_limits(TCase *t)
{
	tcase_add_loop_test(t, a_process_that_ends_is_told_and_the_sample_stays,
			    0, 2);
	tcase_add_test(t, a_pid_file_is_read_again_after_a_restart);
	tcase_add_test(t, a_pid_file_may_name_several);
	tcase_add_test(t, a_name_may_look_like_the_rest_of_the_line);
	tcase_add_test(t, nothing_may_be_ended_twice);
}

static void add_refuses(TCase *t)
{
	tcase_add_loop_test(t, what_is_no_process_id_is_refused, 0, 10);
	tcase_add_test(t, a_process_that_does_not_run_is_refused);
	tcase_add_test(t, the_measuring_process_is_no_target);
	tcase_add_test(t, a_bad_pid_file_is_refused);
	tcase_add_test(t, a_bad_group_is_refused);
	tcase_add_loop_test(t, what_is_no_address_is_refused, 0, 9);
	tcase_add_test(t, an_address_that_nobody_listens_on_is_refused);
	tcase_add_test(t, only_one_source_may_be_given);
	tcase_add_test(t, too_many_processes_are_refused);
}

int main(void)
{
	Suite *s = suite_create("tgt");
	SRunner *r;
	int failed;

	add_works(with_folder(s, "works"));
	add_limits(with_folder(s, "limits"));
	add_refuses(with_folder(s, "refuses"));
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
