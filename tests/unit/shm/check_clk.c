/* SPDX-License-Identifier: MIT */
#include "shm/base.h"
#include "shm/clk.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Uses CPU until this thread's clock has gone on by `ns`. */
static void burn(uint64_t ns)
{
	uint64_t until = clk_thread_cpu() + ns;

	while (clk_thread_cpu() < until)
		;
}

START_TEST(time_never_goes_back)
{
	uint64_t last = clk_now();

	for (int i = 0; i < 10000; i++) {
		uint64_t now = clk_now();

		ck_assert_uint_ge(now, last);
		last = now;
	}
}
END_TEST

START_TEST(cpu_time_counts_work_and_not_waiting)
{
	uint64_t thread = clk_thread_cpu(), process = clk_process_cpu();
	struct timespec nap = {.tv_nsec = 50 * 1000 * 1000};
	uint64_t wall, slept;

	burn(5 * NS_PER_MS);
	ck_assert_uint_ge(clk_thread_cpu() - thread, 5 * NS_PER_MS);
	ck_assert_uint_ge(clk_process_cpu() - process, 5 * NS_PER_MS);
	thread = clk_thread_cpu();
	wall = clk_now();
	nanosleep(&nap, NULL);
	slept = clk_now() - wall;
	ck_assert_uint_ge(slept, 50 * NS_PER_MS);
	ck_assert_uint_lt(clk_thread_cpu() - thread, slept / 2);
}
END_TEST

START_TEST(another_process_has_its_own_cpu_time)
{
	uint64_t before, after;
	int go[2], done[2];
	char byte = 0;
	pid_t pid;

	ck_assert_int_eq(pipe(go) | pipe(done), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		burn(5 * NS_PER_MS);
		if (write(done[1], &byte, 1) != 1)
			_exit(1);
		pause();
	}
	ck_assert_int_eq(clk_pid_cpu(pid, &before), 0);
	ck_assert_int_eq(write(go[1], &byte, 1), 1);
	ck_assert_int_eq(read(done[0], &byte, 1), 1);
	ck_assert_int_eq(clk_pid_cpu(pid, &after), 0);
	ck_assert_uint_ge(after - before, 5 * NS_PER_MS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(clk_pid_cpu(pid, &after), -ESRCH);
}
END_TEST

START_TEST(a_start_names_one_process)
{
	uint64_t mine, again, of_one = 0;

	ck_assert_int_eq(clk_pid_start(getpid(), &mine), 0);
	ck_assert_int_eq(clk_pid_start(getpid(), &again), 0);
	ck_assert_uint_eq(mine, again);
	ck_assert_int_eq(clk_pid_start(getppid(), &of_one), 0);
	ck_assert_uint_le(of_one, mine);
}
END_TEST

START_TEST(a_name_with_brackets_and_spaces_does_not_confuse)
{
	uint64_t before, after;

	ck_assert_int_eq(clk_pid_start(getpid(), &before), 0);
	ck_assert_int_eq(prctl(PR_SET_NAME, ") R 1 (x 2) 3"), 0);
	ck_assert_int_eq(clk_pid_start(getpid(), &after), 0);
	ck_assert_uint_eq(before, after);
}
END_TEST

START_TEST(a_zombie_counts_as_gone)
{
	uint64_t ticks = 7;
	siginfo_t si;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(clk_pid_start(pid, &ticks), -ESRCH);
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(clk_pid_start(pid, &ticks), -ESRCH);
	ck_assert_uint_eq(ticks, 7);
}
END_TEST

START_TEST(no_process_has_pid_zero_or_less)
{
	static const pid_t none[] = {0, -1, -4711};
	uint64_t out = 7;

	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		ck_assert_int_eq(clk_pid_cpu(none[i], &out), -ESRCH);
		ck_assert_int_eq(clk_pid_start(none[i], &out), -ESRCH);
	}
	ck_assert_uint_eq(out, 7);
}
END_TEST

START_TEST(the_wall_clock_is_of_this_century)
{
	ck_assert_uint_gt(clk_realtime(), UINT64_C(1500000000) * NS_PER_S);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("clk");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(works, time_never_goes_back);
	tcase_add_test(works, cpu_time_counts_work_and_not_waiting);
	tcase_add_test(works, another_process_has_its_own_cpu_time);
	tcase_add_test(works, a_start_names_one_process);
	tcase_add_test(works, the_wall_clock_is_of_this_century);
	tcase_add_test(limits,
		       a_name_with_brackets_and_spaces_does_not_confuse);
	tcase_add_test(limits, a_zombie_counts_as_gone);
	tcase_add_test(refuses, no_process_has_pid_zero_or_less);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
