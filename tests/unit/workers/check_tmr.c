/* SPDX-License-Identifier: MIT */
#include "workers/tmr.h"

#include <check.h>
#include <stdlib.h>

START_TEST(the_oldest_timer_comes_first_and_only_when_due)
{
	struct tmr_list list;
	struct tmr t[3] = {0};

	tmr_init(&list, 100);
	for (uint64_t i = 0; i < 3; i++)
		tmr_arm(&list, &t[i], 10 * i);
	ck_assert_uint_eq(tmr_next(&list), 100);
	ck_assert_ptr_null(tmr_pop(&list, 99));
	ck_assert_ptr_eq(tmr_pop(&list, 100), &t[0]);
	ck_assert_ptr_null(tmr_pop(&list, 109));
	ck_assert_ptr_eq(tmr_pop(&list, 1000), &t[1]);
	ck_assert_ptr_eq(tmr_pop(&list, 1000), &t[2]);
	ck_assert_ptr_null(tmr_pop(&list, UINT64_MAX));
}
END_TEST

START_TEST(arming_again_moves_a_timer_to_the_end)
{
	struct tmr_list list;
	struct tmr a = {0}, b = {0};

	tmr_init(&list, 100);
	tmr_arm(&list, &a, 0);
	tmr_arm(&list, &b, 1);
	tmr_arm(&list, &a, 2);
	ck_assert_uint_eq(tmr_next(&list), 101);
	ck_assert_ptr_eq(tmr_pop(&list, 200), &b);
	ck_assert_ptr_eq(tmr_pop(&list, 200), &a);
}
END_TEST

START_TEST(a_timer_moves_between_lists)
{
	struct tmr_list from, to;
	struct tmr t = {0};

	tmr_init(&from, 10);
	tmr_init(&to, 50);
	tmr_arm(&from, &t, 0);
	tmr_arm(&to, &t, 5);
	ck_assert_uint_eq(tmr_next(&from), TMR_NEVER);
	ck_assert_uint_eq(tmr_next(&to), 55);
	ck_assert(tmr_armed(&t));
}
END_TEST

START_TEST(cancelling_is_safe_at_any_time)
{
	struct tmr_list list;
	struct tmr t[3] = {0};

	tmr_init(&list, 1);
	tmr_cancel(&t[0]);
	for (int i = 0; i < 3; i++)
		tmr_arm(&list, &t[i], 0);
	tmr_cancel(&t[1]);
	tmr_cancel(&t[1]);
	ck_assert(!tmr_armed(&t[1]));
	ck_assert_ptr_eq(tmr_pop(&list, 1), &t[0]);
	ck_assert_ptr_eq(tmr_pop(&list, 1), &t[2]);
	ck_assert_uint_eq(tmr_next(&list), TMR_NEVER);
}
END_TEST

START_TEST(a_clock_that_goes_back_aborts)
{
	struct tmr_list list;
	struct tmr a = {0}, b = {0};

	tmr_init(&list, 10);
	tmr_arm(&list, &a, 100);
	tmr_arm(&list, &b, 99);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tmr");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(works, the_oldest_timer_comes_first_and_only_when_due);
	tcase_add_test(works, arming_again_moves_a_timer_to_the_end);
	tcase_add_test(works, a_timer_moves_between_lists);
	tcase_add_test(limits, cancelling_is_safe_at_any_time);
	tcase_add_test_raise_signal(refuses, a_clock_that_goes_back_aborts, 6);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
