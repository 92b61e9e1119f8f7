/* SPDX-License-Identifier: MIT */
#include "workers/ur.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "workers/wrk.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATIENCE_NS (10 * NS_PER_S)

static struct ur *ring;
static int near_fd, far_fd; /* two ends of a connection */

static void open_ring(struct ur_size size)
{
	char err[256] = "";
	int fd[2];

	ck_assert_msg(ur_open(&ring, &size, err, sizeof(err)) == 0, "%s", err);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd),
			 0);
	near_fd = fd[0];
	far_fd = fd[1];
}

static void tear_down(void)
{
	ur_close(&ring);
	ur_close(&ring);
}

/* Waits for one more event, over turns. */
static struct ur_event next(void)
{
	uint64_t until = clk_now() + PATIENCE_NS;
	struct ur_event ev;

	while (!ur_next(ring, &ev)) {
		ck_assert_uint_lt(clk_now(), until);
		ck_assert_int_eq(ur_wait(ring, NS_PER_S), 0);
	}
	return ev;
}

START_TEST(bytes_come_with_a_buffer_and_the_request_goes_on)
{
	struct ur_event ev;

	open_ring(ur_usual);
	ur_recv(ring, near_fd, 77);
	for (int i = 0; i < 1000; i++) {
		ck_assert_int_eq(write(far_fd, &i, sizeof(i)), sizeof(i));
		ev = next();
		ck_assert_uint_eq(ev.data, 77);
		ck_assert_int_eq(ev.res, sizeof(i));
		ck_assert(ev.more);
		ck_assert_int_eq(memcmp(ev.buf, &i, sizeof(i)), 0);
		ur_give(ring, &ev);
	}
	close(far_fd);
	ev = next();
	ck_assert_int_eq(ev.res, 0);
	ck_assert(!ev.more);
}
END_TEST

START_TEST(what_was_queued_before_a_close_still_goes_out)
{
	char text[8] = "";

	open_ring(ur_usual);
	ur_send(ring, near_fd, "before", 6, 1);
	ur_shut(ring, near_fd);
	ck_assert_int_eq(next().res, 6);
	ck_assert_int_eq(read(far_fd, text, sizeof(text)), 6);
	ck_assert_int_eq(read(far_fd, text, sizeof(text)), 0);
	ck_assert_int_eq(fcntl(near_fd, F_GETFD), -1);
}
END_TEST

START_TEST(a_cancelled_receive_ends_and_the_cancel_says_nothing)
{
	struct ur_event ev;

	open_ring(ur_usual);
	ur_recv(ring, near_fd, 5);
	ck_assert_int_eq(ur_wait(ring, 0), 0);
	ur_cancel(ring, 5);
	ur_cancel(ring, 6); /* there is none such */
	ev = next();
	ck_assert_uint_eq(ev.data, 5);
	ck_assert_int_eq(ev.res, -ECANCELED);
	ck_assert(!ev.more);
	ck_assert_int_eq(ur_wait(ring, NS_PER_MS), 0);
	ck_assert(!ur_next(ring, &ev));
}
END_TEST

START_TEST(a_wait_ends_by_itself)
{
	struct ur_event ev;
	uint64_t began;

	open_ring(ur_usual);
	began = clk_now();
	ck_assert_int_eq(ur_wait(ring, 30 * NS_PER_MS), 0);
	ck_assert(!ur_next(ring, &ev));
	ck_assert_uint_ge(clk_now() - began, 30 * NS_PER_MS);
	ck_assert_uint_lt(clk_now() - began, PATIENCE_NS);
}
END_TEST

START_TEST(an_empty_buffer_ring_is_told_and_filled_again)
{
	enum {
		N = 4096
	};
	struct ur_size size = {
		.requests = 8, .events = 32, .buffers = 2, .buf_bytes = 64};
	static char out[N];
	struct ur_event ev;
	int told = 0;
	size_t got = 0;

	open_ring(size);
	for (size_t i = 0; i < N; i++)
		out[i] = (char)(i * 31 + i / 256);
	ck_assert_int_eq(write(far_fd, out, N), N);
	ur_recv(ring, near_fd, 1);
	while (got < N) {
		ev = next();
		told += ev.res == -ENOBUFS;
		ck_assert_msg(ev.res > 0 || ev.res == -ENOBUFS, "%d", ev.res);
		if (ev.res > 0) {
			ck_assert_int_eq(
				memcmp(ev.buf, out + got, (size_t)ev.res), 0);
			got += (size_t)ev.res;
		}
		ur_give(ring, &ev);
		if (!ev.more)
			ur_recv(ring, near_fd, 1);
	}
	ck_assert_int_gt(told, 0);
}
END_TEST

START_TEST(no_event_is_lost_when_the_queue_is_too_short)
{
	enum {
		N = 500
	};
	struct ur_size size = {
		.requests = 4, .events = 8, .buffers = 2, .buf_bytes = 64};
	bool seen[N] = {false};

	open_ring(size);
	/* Each waits; then one write to the other end ends all of them. */
	for (uint64_t i = 0; i < N; i++)
		ur_readable(ring, near_fd, i + 1);
	ck_assert_int_eq(ur_wait(ring, 0), 0);
	ck_assert_int_eq(write(far_fd, "x", 1), 1);
	for (int i = 0; i < N; i++) {
		struct ur_event ev = next();

		ck_assert(!seen[ev.data - 1]);
		seen[ev.data - 1] = true;
	}
	ck_assert_uint_gt(ur_overflows(ring), 0);
}
END_TEST

START_TEST(a_turn_has_an_end)
{
	struct ur_event ev;
	int n = 0;

	open_ring(ur_usual);
	ck_assert_int_eq(write(far_fd, "x", 1), 1);
	for (uint64_t i = 0; i < 2 * UR_BATCH + 1; i++)
		ur_readable(ring, near_fd, i + 1);
	ck_assert_int_eq(ur_wait(ring, NS_PER_S), 0);
	while (ur_next(ring, &ev))
		n++;
	ck_assert_int_eq(n, UR_BATCH);
	for (; n < 2 * UR_BATCH + 1; n++)
		next();
}
END_TEST

START_TEST(an_accept_on_no_listener_ends_with_an_error)
{
	struct ur_event ev;

	open_ring(ur_usual);
	ur_accept(ring, near_fd, true, 3);
	ev = next(); /* not a listening socket */
	ck_assert_int_lt(ev.res, 0);
	ck_assert(!ev.more);
}
END_TEST

START_TEST(the_probe_says_what_is_there)
{
	char features[128] = "", err[512] = "";

	ck_assert_msg(wrk_probe(features, sizeof(features), err, sizeof(err)) ==
			      0,
		      "%s", err);
	ck_assert_ptr_nonnull(strstr(features, "multishot-accept"));
	ck_assert_ptr_nonnull(strstr(features, "multishot-recv"));
	ck_assert_ptr_nonnull(strstr(features, "buffer-ring"));
}
END_TEST

/* Descriptors are not left open by the probe, wherever it ends. */
START_TEST(the_probe_leaves_nothing_open)
{
	char features[128], err[512];
	int before = dup(0), after;

	close(before);
	for (int i = 0; i < 20; i++)
		wrk_probe(features, sizeof(features), err, sizeof(err));
	after = dup(0);
	ck_assert_int_eq(after, before);
}
END_TEST

/* ---- refusals, as the kernel gives them ---- */

/* As a container's filter does: io_uring_setup fails with `error`. */
static void forbid_io_uring(unsigned error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = ARRAY_LEN(code), .filter = code};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static const struct {
	int error;
	const char *says[2];
} refusals[] = {
	{EPERM, {"seccomp", "io_uring_setup"}},
	{ENOSYS, {"seccomp", "6.1"}},
	{ENOMEM, {"RLIMIT_MEMLOCK is 64 KiB", "ulimit -l"}},
	{EINVAL, {"kernel", "6.1"}},
	{EMFILE, {"Too many open files", "io_uring"}},
};

START_TEST(a_refusal_is_explained)
{
	struct rlimit lim = {64 << 10, 64 << 10};
	char features[128] = "", err[512] = "";

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &lim), 0);
	forbid_io_uring((unsigned)refusals[_i].error);
	ck_assert_int_eq(
		wrk_probe(features, sizeof(features), err, sizeof(err)),
		-refusals[_i].error);
	for (size_t i = 0; i < ARRAY_LEN(refusals[_i].says); i++)
		ck_assert_msg(strstr(err, refusals[_i].says[i]) != NULL, "%s",
			      err);
	ck_assert_str_eq(features, "");
}
END_TEST

/* ---- refusals by sysctl, as a made-up /proc says ---- */

static void put(const char *root, const char *path, const char *text)
{
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static const struct {
	const char *disabled, *group, *status;
	const char *says, *hides;
} trees[] = {
	{"2\n", "-1\n", "CapEff:\t000001ffffffffff\n", "io_uring_disabled=2",
	 "seccomp"},
	{"1\n", "54321\n", "CapEff:\t0000000000000000\n", "group 54321",
	 "seccomp"},
	/* who may use it all the same is refused by something else */
	{"1\n", "54321\n", "CapEff:\t000001ffffffffff\n", "seccomp", "sysctl"},
	{"0\n", "-1\n", "CapEff:\t0000000000000000\n", "seccomp", "sysctl"},
};

START_TEST(a_sysctl_that_forbids_is_named)
{
	static const char *const dirs[] = {"", "/proc", "/proc/sys",
					   "/proc/sys/kernel", "/proc/self"};
	char root[] = "/tmp/unit-ur-XXXXXX", name[256], err[512];

	ck_assert_ptr_nonnull(mkdtemp(root));
	for (size_t i = 1; i < ARRAY_LEN(dirs); i++) {
		snprintf(name, sizeof(name), "%s%s", root, dirs[i]);
		ck_assert_int_eq(mkdir(name, 0700), 0);
	}
	put(root, "proc/sys/kernel/io_uring_disabled", trees[_i].disabled);
	put(root, "proc/sys/kernel/io_uring_group", trees[_i].group);
	put(root, "proc/self/status", trees[_i].status);
	ur_explain(EPERM, root, err, sizeof(err));
	snprintf(name, sizeof(name), "rm -r %s", root);
	ck_assert_int_eq(system(name), 0);
	ck_assert_msg(strstr(err, trees[_i].says) != NULL, "%s", err);
	ck_assert_msg(strstr(err, trees[_i].hides) == NULL, "%s", err);
}
END_TEST

/* Without any of these files nothing but a filter is left. */
START_TEST(an_empty_proc_leaves_the_filter)
{
	char err[512];

	ur_explain(EPERM, "/nowhere", err, sizeof(err));
	ck_assert_ptr_nonnull(strstr(err, "seccomp"));
	ur_explain(ENOSYS, "/nowhere", err, sizeof(err));
	ck_assert_ptr_null(strstr(err, "seccomp"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ur");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	TCase *cases[] = {works, limits, refuses};
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(works, bytes_come_with_a_buffer_and_the_request_goes_on);
	tcase_add_test(works, what_was_queued_before_a_close_still_goes_out);
	tcase_add_test(works,
		       a_cancelled_receive_ends_and_the_cancel_says_nothing);
	tcase_add_test(works, a_wait_ends_by_itself);
	tcase_add_test(works, the_probe_says_what_is_there);
	tcase_add_test(works, the_probe_leaves_nothing_open);
	tcase_add_test(limits, an_empty_buffer_ring_is_told_and_filled_again);
	tcase_add_test(limits, no_event_is_lost_when_the_queue_is_too_short);
	tcase_add_test(limits, a_turn_has_an_end);
	tcase_add_test(refuses, an_accept_on_no_listener_ends_with_an_error);
	tcase_add_loop_test(refuses, a_refusal_is_explained, 0,
			    (int)ARRAY_LEN(refusals));
	tcase_add_loop_test(refuses, a_sysctl_that_forbids_is_named, 0,
			    (int)ARRAY_LEN(trees));
	tcase_add_test(refuses, an_empty_proc_leaves_the_filter);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		tcase_add_checked_fixture(cases[i], NULL, tear_down);
		tcase_set_timeout(cases[i], 30);
		suite_add_tcase(s, cases[i]);
	}
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
