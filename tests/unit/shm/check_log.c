/* SPDX-License-Identifier: MIT */
#include "shm/base.h"
#include "shm/log.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A pipe in stderr's place. Each test is a process of its own. */
static int out;
static char got[64 * 1024];

static void catch_stderr(void)
{
	int fd[2];

	ck_assert_int_eq(pipe2(fd, O_NONBLOCK), 0);
	ck_assert_int_eq(dup2(fd[1], STDERR_FILENO), STDERR_FILENO);
	close(fd[1]);
	out = fd[0];
	log_init("tester", LOG_INFO);
}

/* What was written, and behind the fourth word: the fields. */
static const char *fields(void)
{
	ssize_t n = read(out, got, sizeof(got) - 1);
	char *at = got;

	ck_assert_int_gt(n, 0);
	got[n] = '\0';
	ck_assert_int_eq(got[n - 1], '\n');
	got[n - 1] = '\0';
	for (int i = 0; i < 4 && at != NULL; i++)
		at = strchr(at + 1, ' ');
	return at == NULL ? "" : at + 1;
}

START_TEST(a_line_has_time_pid_role_event_and_fields)
{
	unsigned seconds, ms;
	char role[32], event[32], rest[64];
	int pid;

	log_info("worker_exit", "slot=%u status=%d", 3u, 1);
	fields();
	ck_assert_int_eq(sscanf(got, "%u.%3u %d %31s %31s %63[^\n]", &seconds,
				&ms, &pid, role, event, rest),
			 6);
	ck_assert_uint_lt(seconds, 60);
	ck_assert_int_eq(pid, getpid());
	ck_assert_str_eq(role, "tester");
	ck_assert_str_eq(event, "worker_exit");
	ck_assert_str_eq(rest, "slot=3 status=1");
}
END_TEST

START_TEST(a_role_can_change_after_a_fork)
{
	char role[] = "worker/3";

	log_set_role(role);
	role[0] = 'X';
	log_info("ev", "a=%d", 1);
	fields();
	ck_assert_ptr_nonnull(strstr(got, " worker/3 ev a=1"));
}
END_TEST

START_TEST(a_level_lets_through_what_is_as_grave)
{
	char byte;

	ck_assert_int_eq(log_level(), LOG_INFO);
	log_debug("quiet", "a=%d", 1);
	ck_assert_int_eq(read(out, &byte, 1), -1);
	ck_assert_int_eq(errno, EAGAIN);
	log_error("loud", "a=%d", 1);
	ck_assert_str_eq(fields(), "a=1");
	log_init("tester", LOG_DEBUG);
	log_debug("heard", "a=%d", 2);
	ck_assert_str_eq(fields(), "a=2");
}
END_TEST

static const struct {
	const char *value, *want;
} values[] = {
	{"plain", "v=plain"},
	{"a/b:c-d=e", "v=a/b:c-d=e"},
	{"", "v=\"\""},
	{"two words", "v=\"two words\""},
	{"say \"so\"", "v=\"say \\\"so\\\"\""},
	{"back\\slash", "v=\"back\\\\slash\""},
	{"line\nbreak\ttab\r", "v=\"line\\nbreak\\ttab\\r\""},
	{"bell\a esc\033[31m", "v=\"bell\\x07 esc\\x1b[31m\""},
	{"del\x7f", "v=\"del\\x7f\""},
	{"x=1 y=2", "v=\"x=1 y=2\""},
	{"gr\xc3\xbc\xc3\x9f", "v=gr\xc3\xbc\xc3\x9f"},
	{"%s %n", "v=\"%s %n\""},
};

START_TEST(a_value_is_escaped_whether_the_format_has_quotes_or_not)
{
	char want[128];

	log_info("ev", "v=%s", values[_i].value);
	ck_assert_str_eq(fields(), values[_i].want);
	log_info("ev", "a=1 v=\"%s\" b=%d", values[_i].value, 2);
	snprintf(want, sizeof(want), "a=1 %s b=2", values[_i].want);
	ck_assert_str_eq(fields(), want);
}
END_TEST

START_TEST(a_quoted_format_is_one_value)
{
	log_info("ev", "why=\"pid %d of %s\" n=%5.2f%% z=%-3dx", 4, "a b", 1.5,
		 7);
	ck_assert_str_eq(fields(),
			 "why=\"pid 4 of a b\" n=\" 1.50%\" z=\"7  x\"");
}
END_TEST

START_TEST(no_value_can_pose_as_a_field_or_a_line)
{
	log_info("ev", "v=%s w=%d", "1\x1froot=yes", 5);
	ck_assert_ptr_null(strstr(fields(), " root=yes"));
	log_info("ev", "v=%s", "1\n0.000 1 master ready a=1");
	fields();
	ck_assert_ptr_null(strchr(got, '\n'));
}
END_TEST

START_TEST(a_long_line_is_cut_and_still_one)
{
	char *text = malloc(20000);

	ck_assert_ptr_nonnull(text);
	memset(text, '\n', 19999);
	text[19999] = '\0';
	log_info("ev", "v=%s", text);
	fields();
	ck_assert_uint_lt(strlen(got), PIPE_BUF);
	ck_assert_ptr_null(strchr(got, '\n'));
	free(text);
}
END_TEST

START_TEST(levels_have_names)
{
	enum log_level level = LOG_WARN;

	ck_assert_int_eq(log_parse_level("error", &level), 0);
	ck_assert_int_eq(level, LOG_ERROR);
	ck_assert_int_eq(log_parse_level("debug", &level), 0);
	ck_assert_int_eq(level, LOG_DEBUG);
	ck_assert_int_eq(log_parse_level("DEBUG", &level), -EINVAL);
	ck_assert_int_eq(log_parse_level("", &level), -EINVAL);
	ck_assert_int_eq(level, LOG_DEBUG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(works, catch_stderr, NULL);
	tcase_add_checked_fixture(limits, catch_stderr, NULL);
	tcase_add_checked_fixture(refuses, catch_stderr, NULL);
	tcase_add_test(works, a_line_has_time_pid_role_event_and_fields);
	tcase_add_test(works, a_role_can_change_after_a_fork);
	tcase_add_test(works, a_level_lets_through_what_is_as_grave);
	tcase_add_test(works, levels_have_names);
	tcase_add_loop_test(
		works, a_value_is_escaped_whether_the_format_has_quotes_or_not,
		0, (int)ARRAY_LEN(values));
	tcase_add_test(works, a_quoted_format_is_one_value);
	tcase_add_test(limits, a_long_line_is_cut_and_still_one);
	tcase_add_test(refuses, no_value_can_pose_as_a_field_or_a_line);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
