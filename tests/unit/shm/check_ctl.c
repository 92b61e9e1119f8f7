/* SPDX-License-Identifier: MIT */
#include "shm/base.h"
#include "shm/ctl.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int master, child;

static void open_pair(void)
{
	ck_assert_int_eq(ctl_pair(&master, &child), 0);
}

START_TEST(messages_arrive_one_by_one_in_order)
{
	struct ctl_msg msg;

	ck_assert_int_eq(ctl_send(master, CTL_START, 2, NULL), 0);
	ck_assert_int_eq(ctl_send(master, CTL_STOP, 0, NULL), 0);
	ck_assert_int_eq(ctl_recv(child, &msg), 1);
	ck_assert_uint_eq(msg.kind, CTL_START);
	ck_assert_uint_eq(msg.phase, 2);
	ck_assert_str_eq(msg.text, "");
	ck_assert_int_eq(ctl_recv(child, &msg), 1);
	ck_assert_uint_eq(msg.kind, CTL_STOP);
	ck_assert_int_eq(ctl_recv(child, &msg), -EAGAIN);
}
END_TEST

START_TEST(both_ends_are_closed_on_exec_and_never_block)
{
	ck_assert_int_ne(fcntl(master, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_ne(fcntl(child, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_ne(fcntl(master, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_ne(fcntl(child, F_GETFL) & O_NONBLOCK, 0);
}
END_TEST

START_TEST(the_last_words_come_before_the_end)
{
	struct ctl_msg msg;

	ck_assert_int_eq(ctl_send(child, CTL_FAIL, 0, "no ring"), 0);
	close(child);
	ck_assert_int_eq(ctl_recv(master, &msg), 1);
	ck_assert_uint_eq(msg.kind, CTL_FAIL);
	ck_assert_str_eq(msg.text, "no ring");
	ck_assert_int_eq(ctl_recv(master, &msg), 0);
	ck_assert_int_eq(ctl_recv(master, &msg), 0);
}
END_TEST

/* The kernel reports a reset then, ahead of what is queued. */
START_TEST(the_last_words_come_though_ours_were_not_read)
{
	struct ctl_msg msg;

	ck_assert_int_eq(ctl_send(master, CTL_START, 0, NULL), 0);
	ck_assert_int_eq(ctl_send(child, CTL_FAIL, 0, "no ring"), 0);
	close(child);
	ck_assert_int_eq(ctl_recv(master, &msg), 1);
	ck_assert_str_eq(msg.text, "no ring");
	ck_assert_int_eq(ctl_recv(master, &msg), 0);
}
END_TEST

START_TEST(a_text_too_long_is_cut)
{
	char text[2 * CTL_TEXT_MAX];
	struct ctl_msg msg;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(ctl_send(child, CTL_FAIL, 0, text), 0);
	ck_assert_int_eq(ctl_recv(master, &msg), 1);
	ck_assert_uint_eq(strlen(msg.text), CTL_TEXT_MAX - 1);
}
END_TEST

START_TEST(a_text_without_end_is_ended)
{
	struct ctl_msg msg, bad = {.kind = CTL_FAIL};

	memset(bad.text, 'x', sizeof(bad.text));
	ck_assert_int_eq(send(child, &bad, sizeof(bad), 0), sizeof(bad));
	ck_assert_int_eq(ctl_recv(master, &msg), 1);
	ck_assert_uint_eq(strlen(msg.text), CTL_TEXT_MAX - 1);
}
END_TEST

START_TEST(a_deaf_peer_is_told_apart)
{
	int rc = 0;

	for (int i = 0; i < 100000 && rc == 0; i++)
		rc = ctl_send(master, CTL_START, 0, NULL);
	ck_assert_int_eq(rc, -EAGAIN);
}
END_TEST

START_TEST(a_peer_that_is_gone_is_a_broken_pipe_and_no_signal)
{
	/* The second time too: the first may clear what the socket recalls. */
	ck_assert_int_eq(ctl_send(master, CTL_START, 0, NULL), 0);
	close(child);
	ck_assert_int_eq(ctl_send(master, CTL_STOP, 0, NULL), -EPIPE);
	ck_assert_int_eq(ctl_send(master, CTL_STOP, 0, NULL), -EPIPE);
}
END_TEST

START_TEST(a_message_of_another_size_is_refused)
{
	struct ctl_msg msg = {.kind = 77};
	char small[3] = "ab";

	ck_assert_int_eq(send(child, small, sizeof(small), 0), sizeof(small));
	ck_assert_int_eq(ctl_recv(master, &msg), -EBADMSG);
	ck_assert_uint_eq(msg.kind, 77);
	ck_assert_int_eq(ctl_recv(master, &msg), -EAGAIN);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ctl");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(works, open_pair, NULL);
	tcase_add_checked_fixture(limits, open_pair, NULL);
	tcase_add_checked_fixture(refuses, open_pair, NULL);
	tcase_add_test(works, messages_arrive_one_by_one_in_order);
	tcase_add_test(works, both_ends_are_closed_on_exec_and_never_block);
	tcase_add_test(works, the_last_words_come_before_the_end);
	tcase_add_test(works, the_last_words_come_though_ours_were_not_read);
	tcase_add_test(limits, a_text_too_long_is_cut);
	tcase_add_test(limits, a_text_without_end_is_ended);
	tcase_add_test(limits, a_deaf_peer_is_told_apart);
	tcase_add_test(refuses,
		       a_peer_that_is_gone_is_a_broken_pipe_and_no_signal);
	tcase_add_test(refuses, a_message_of_another_size_is_refused);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
