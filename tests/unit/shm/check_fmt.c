/* SPDX-License-Identifier: MIT */
#include "shm/fmt.h"

#include <check.h>
#include <locale.h>
#include <math.h>

START_TEST(counts_have_a_comma_after_every_third_digit)
{
	char b[FMT_LEN];

	ck_assert_str_eq(fmt_count(b, 0), "0");
	ck_assert_str_eq(fmt_count(b, 999), "999");
	ck_assert_str_eq(fmt_count(b, 1000), "1,000");
	ck_assert_str_eq(fmt_count(b, 12345678), "12,345,678");
	ck_assert_str_eq(fmt_count(b, UINT64_MAX),
			 "18,446,744,073,709,551,615");
}
END_TEST

START_TEST(decimals_are_points_in_every_locale)
{
	char b[FMT_LEN];

	/* Where the locale is not installed the assertions hold anyway. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	ck_assert_str_eq(fmt_fixed(b, 1234.5, 2), "1,234.50");
	ck_assert_str_eq(fmt_fixed(b, -0.004, 2), "0.00");
	ck_assert_str_eq(fmt_fixed(b, -3.25, 1), "-3.3");
	ck_assert_str_eq(fmt_fixed(b, 7, 0), "7");
	ck_assert_str_eq(fmt_fixed(b, 0.05, 2), "0.05");
}
END_TEST

START_TEST(rates_fit_their_column)
{
	char b[FMT_LEN];

	ck_assert_str_eq(fmt_rate(b, 1.234, 6), "1.23");
	ck_assert_str_eq(fmt_rate(b, 12.34, 6), "12.3");
	ck_assert_str_eq(fmt_rate(b, 12345, 6), "12,345");
	ck_assert_str_eq(fmt_rate(b, 123456, 6), "123k");
	ck_assert_str_eq(fmt_rate(b, 1234567, 6), "1,235k");
	ck_assert_str_eq(fmt_rate(b, 23456789, 6), "23.5M");
}
END_TEST

START_TEST(what_is_no_figure_says_so)
{
	char b[FMT_LEN];

	ck_assert_str_eq(fmt_fixed(b, NAN, 2), "n/a");
	ck_assert_str_eq(fmt_rate(b, INFINITY, 6), "n/a");
	ck_assert_str_eq(fmt_us(b, NAN), "n/a");
}
END_TEST

START_TEST(times_and_sizes_have_three_digits)
{
	char b[FMT_LEN];

	ck_assert_str_eq(fmt_ms(b, 12345678), "12.3");
	ck_assert_str_eq(fmt_ms(b, 123456), "0.12");
	ck_assert_str_eq(fmt_us(b, 712400), "712");
	ck_assert_str_eq(fmt_bytes(b, 23), "23 B");
	ck_assert_str_eq(fmt_bytes(b, 1433), "1.4 KiB");
	ck_assert_str_eq(fmt_bytes(b, 1073741824), "1.0 GiB");
}
END_TEST

START_TEST(columns_count_characters_not_bytes)
{
	ck_assert_uint_eq(fmt_columns("CPU \xc2\xb5s"), 6);
	ck_assert_uint_eq(fmt_columns(""), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fmt");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	SRunner *r;
	int failed;

	tcase_add_test(works, counts_have_a_comma_after_every_third_digit);
	tcase_add_test(works, decimals_are_points_in_every_locale);
	tcase_add_test(works, rates_fit_their_column);
	tcase_add_test(works, times_and_sizes_have_three_digits);
	tcase_add_test(works, columns_count_characters_not_bytes);
	tcase_add_test(limits, what_is_no_figure_says_so);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
