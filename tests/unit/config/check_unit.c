/* SPDX-License-Identifier: MIT */
#include "config/unit.h"

#include "shm/base.h"

#include <check.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

typedef int read_fn(const char *, uint64_t *, char *, size_t);

struct good {
	const char *text;
	uint64_t value;
};

static void all_read(read_fn *fn, const struct good *row, size_t n)
{
	char err[256];

	for (size_t i = 0; i < n; i++) {
		uint64_t v = 0;
		int rc = fn(row[i].text, &v, err, sizeof(err));

		ck_assert_msg(rc == 0, "%s: %s", row[i].text, err);
		ck_assert_uint_eq(v, row[i].value);
	}
}

struct bad {
	const char *text, *err;
};

static void all_refused(read_fn *fn, const struct bad *row, size_t n)
{
	char err[256];

	for (size_t i = 0; i < n; i++) {
		uint64_t v = 42;

		err[0] = '\0';
		ck_assert_msg(fn(row[i].text, &v, err, sizeof(err)) == -EINVAL,
			      "%s is read", row[i].text);
		ck_assert_str_eq(err, row[i].err);
		ck_assert_uint_eq(v, 42);
	}
}

static const struct good durations[] = {
	{"0s", 0},
	{"250ns", 250},
	{"250us", 250000},
	{"400ms", 400000000},
	{"5s", 5000000000},
	{"1.5s", 1500000000},
	{"1.500s", 1500000000},
	{"0.000000001s", 1},
	{"2m", 120000000000},
	{"1h", 3600000000000},
	{"0.5h", 1800000000000},
	{"7d", 604800000000000},
	{"18446744073709551615ns", UINT64_MAX},
	{"18446744073.709551615s", UINT64_MAX},
	{"0.0000000000000000000000s", 0},
};

static const struct good sizes[] = {
	{"0B", 0},
	{"512B", 512},
	{"1KiB", 1024},
	{"1.5KiB", 1536},
	{"1kB", 1000},
	{"64MiB", 67108864},
	{"1MB", 1000000},
	{"1GB", 1000000000},
	{"1GiB", 1073741824},
	{"0.0009765625KiB", 1},
};

static const struct good rates[] = {
	{"0/s", 0},
	{"0.001/s", 1},
	{"0.5/s", 500},
	{"2000/s", 2000000},
	{"2000.000/s", 2000000},
	{"120/min", 2000},
	{"1.5/min", 25},
	{"0.06/min", 1},
	{"307445734561825/s", UINT64_C(307445734561825000)},
};

static const struct good percents[] = {
	{"0%", 0},
	{"70%", 70},
	{"50.0%", 50},
	{"101%", 101},
};

START_TEST(rates_are_read_in_thousandths_per_second)
{
	all_read(unit_rate, rates, ARRAY_LEN(rates));
}
END_TEST

START_TEST(percentages_are_read_whole)
{
	all_read(unit_percent, percents, ARRAY_LEN(percents));
}
END_TEST

START_TEST(durations_are_read_in_nanoseconds)
{
	all_read(unit_duration, durations, ARRAY_LEN(durations));
}
END_TEST

START_TEST(sizes_are_read_in_bytes)
{
	all_read(unit_size, sizes, ARRAY_LEN(sizes));
}
END_TEST

START_TEST(whole_numbers_are_digits_alone)
{
	static const struct good row[] = {
		{"0", 0},
		{"7", 7},
		{"65535", 65535},
		{"18446744073709551615", UINT64_MAX},
	};

	all_read(unit_uint, row, ARRAY_LEN(row));
}
END_TEST

START_TEST(cpu_lists_keep_their_order)
{
	static const int expected[] = {8, 0, 1, 2, 3, 65535};
	char err[256];
	int cpus[8];

	ck_assert_int_eq(unit_cpus("8,0-3,65535", cpus, 8, err, sizeof(err)),
			 6);
	ck_assert_mem_eq(cpus, expected, sizeof(expected));
	ck_assert_int_eq(unit_cpus("5-5", cpus, 8, err, sizeof(err)), 1);
	ck_assert_int_eq(cpus[0], 5);
}
END_TEST

START_TEST(the_shortest_exact_form_is_printed)
{
	static const struct good times[] = {
		{"0s", 0},
		{"1ns", 1},
		{"1.5us", 1500},
		{"400ms", 400000000},
		{"1.5s", 1500000000},
		{"90s", 90000000000},
		{"1m", 60000000000},
		{"2h", 7200000000000},
		{"36h", 129600000000000},
		{"7d", 604800000000000},
		{"1000000001ns", 1000000001},
	};
	static const struct good bytes[] = {
		{"0B", 0},	 {"1B", 1},	      {"1KiB", 1024},
		{"1kB", 1000},	 {"1536B", 1536},     {"1GiB", 1073741824},
		{"1025B", 1025}, {"1.5MiB", 1572864}, {"1001kB", 1001000},
	};
	static const struct good per_second[] = {
		{"0/s", 0},	     {"0.001/s", 1},	{"0.01/s", 10},
		{"0.5/s", 500},	     {"1/s", 1000},	{"1.023/s", 1023},
		{"2000/s", 2000000}, {"10.1/s", 10100}, {"10/s", 10000},
	};
	char buf[40];

	for (size_t i = 0; i < ARRAY_LEN(per_second); i++) {
		unit_print_rate(per_second[i].value, buf, sizeof(buf));
		ck_assert_str_eq(buf, per_second[i].text);
	}
	unit_print_percent(70, buf, sizeof(buf));
	ck_assert_str_eq(buf, "70%");
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		unit_print_duration(times[i].value, buf, sizeof(buf));
		ck_assert_str_eq(buf, times[i].text);
	}
	for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
		unit_print_size(bytes[i].value, buf, sizeof(buf));
		ck_assert_str_eq(buf, bytes[i].text);
	}
}
END_TEST

/* Every magnitude, round and crooked. */
START_TEST(what_is_printed_reads_back)
{
	uint64_t seed = 1, back;
	char buf[40], err[256];

	for (int i = 0; i < 20000; i++) {
		uint64_t v;

		seed = seed * UINT64_C(6364136223846793005) + 1442695;
		v = seed >> (i % 64);
		if (i % 3 == 0)
			v -= v % 1000000;
		unit_print_duration(v, buf, sizeof(buf));
		ck_assert_int_eq(unit_duration(buf, &back, err, sizeof(err)),
				 0);
		ck_assert_uint_eq(back, v);
		unit_print_size(v, buf, sizeof(buf));
		ck_assert_int_eq(unit_size(buf, &back, err, sizeof(err)), 0);
		ck_assert_uint_eq(back, v);
		unit_print_percent(v, buf, sizeof(buf));
		ck_assert_int_eq(unit_percent(buf, &back, err, sizeof(err)), 0);
		ck_assert_uint_eq(back, v);
		/* Larger ones are no option's. */
		unit_print_rate(v >> 6, buf, sizeof(buf));
		ck_assert_int_eq(unit_rate(buf, &back, err, sizeof(err)), 0);
		ck_assert_uint_eq(back, v >> 6);
	}
}
END_TEST

START_TEST(no_locale_changes_a_number)
{
	static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8",
					      "ar_EG.UTF-8", "C.UTF-8", ""};
	char buf[40];

	for (size_t i = 0; i < ARRAY_LEN(locales); i++) {
		setlocale(LC_ALL, locales[i]);
		all_read(unit_duration, durations, ARRAY_LEN(durations));
		unit_print_duration(1500000000, buf, sizeof(buf));
		ck_assert_str_eq(buf, "1.5s");
	}
}
END_TEST

START_TEST(quotes_show_no_control_characters)
{
	char buf[UNIT_QUOTE_LEN], text[200];

	ck_assert_str_eq(unit_quote(buf, "a\"b\\c\x1b[0m\xc2\x9b\xc3\x9b"),
			 "\"a\\\"b\\\\c\\x1b[0m\\xc2\\x9b\xc3\x9b\"");
	ck_assert_str_eq(unit_quote(buf, "\xc3\xa4"), "\"\xc3\xa4\"");
	memset(text, '\x01', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	unit_quote(buf, text);
	ck_assert_uint_lt(strlen(buf), sizeof(buf));
	ck_assert_str_eq(buf + strlen(buf) - 4, "\"...");
	/* Cut behind a character, not in it: 59 letters, then one of two bytes.
	 */
	memset(text, 'x', 59);
	strcpy(text + 59, "\xc3\xa4zz");
	unit_quote(buf, text);
	ck_assert_str_eq(buf + 60, "\xc3\xa4\"...");
}
END_TEST

START_TEST(a_number_that_does_not_fit_is_too_large)
{
	static const struct bad times[] = {
		{"18446744073709551616ns",
		 "\"18446744073709551616ns\" is too large for any option"},
		{"213503982334602d",
		 "\"213503982334602d\" is too large for any option"},
		{"99999999999999999999999999s",
		 "\"99999999999999999999999999s\" is too large for any option"},
	};
	static const struct bad numbers[] = {
		{"18446744073709551616",
		 "\"18446744073709551616\" is too large for any option"},
	};

	all_refused(unit_duration, times, ARRAY_LEN(times));
	all_refused(unit_uint, numbers, ARRAY_LEN(numbers));
}
END_TEST

START_TEST(what_is_no_whole_number_of_nanoseconds_is_refused)
{
	static const struct bad row[] = {
		{"0.5ns", "\"0.5ns\" is no whole number of ns: write fewer "
			  "decimals"},
		{"1.0000000001s", "\"1.0000000001s\" is no whole number of ns: "
				  "write fewer decimals"},
		{"1.1234567890123456789s",
		 "\"1.1234567890123456789s\" has too many decimals"},
	};

	all_refused(unit_duration, row, ARRAY_LEN(row));
}
END_TEST

START_TEST(durations_that_could_be_misread_are_refused)
{
	static const struct bad row[] = {
		{"400", "\"400\" has no unit: write 400ms or 400s"},
		{"0", "\"0\" has no unit: write 0ms or 0s"},
		{"1.5", "\"1.5\" has no unit: write 1.5ms or 1.5s"},
		{"5 s", "\"5 s\" has a space: write 5s"},
		{"5 x", "\"5 x\" has no known unit: units are ns, us, ms, s, "
			"m, h or d"},
		{"5S", "\"5S\" has no known unit: units are ns, us, ms, s, m, "
		       "h or d"},
		{"5ss", "\"5ss\" has no known unit: units are ns, us, ms, s, "
			"m, h or d"},
		{"5s ", "\"5s \" has no known unit: units are ns, us, ms, s, "
			"m, h or d"},
		{"1e3s", "\"1e3s\" has no known unit: units are ns, us, ms, s, "
			 "m, h or d"},
		{"-5s",
		 "\"-5s\" is negative: write a time such as 5s or 400ms"},
		{"+5s", "\"+5s\" has a sign: leave the + out"},
		{"0x10s",
		 "\"0x10s\" is hexadecimal: write it in decimal digits"},
		{"010s", "\"010s\" begins with 0: leave the leading 0 out"},
		{"1_000ms", "\"1_000ms\" has a _: write the digits alone"},
		{"1,5s", "\"1,5s\" has a ,: write the digits alone"},
		{"1.s", "\"1.s\" has no digit after the point: leave it out"},
		{".5s", "\".5s\" begins with a point: write 0 before it"},
		{" 5s", "\" 5s\" is not a number: write a time such as 5s or "
			"400ms"},
		{"s",
		 "\"s\" is not a number: write a time such as 5s or 400ms"},
		{"inf", "\"inf\" is not a number: write a time such as 5s or "
			"400ms"},
		{"", "\"\" is empty: write a time such as 5s or 400ms"},
		{"1.2.3s",
		 "\"1.2.3s\" has no known unit: units are ns, us, ms, "
		 "s, m, h or d"},
	};

	all_refused(unit_duration, row, ARRAY_LEN(row));
}
END_TEST

START_TEST(sizes_that_could_be_misread_are_refused)
{
	static const struct bad row[] = {
		{"1024", "\"1024\" has no unit: write 1024B or 1024KiB"},
		{"1K", "\"1K\" has no known unit: units are B, KiB, MiB, GiB, "
		       "kB, MB or GB"},
		{"1KB",
		 "\"1KB\" has no known unit: units are B, KiB, MiB, GiB, "
		 "kB, MB or GB"},
		{"1 KiB", "\"1 KiB\" has a space: write 1KiB"},
		{"1.5B", "\"1.5B\" is no whole number of B: write fewer "
			 "decimals"},
		{"17179869184GiB",
		 "\"17179869184GiB\" is too large for any option"},
	};

	all_refused(unit_size, row, ARRAY_LEN(row));
}
END_TEST

START_TEST(rates_that_could_be_misread_are_refused)
{
	static const struct bad row[] = {
		{"2000", "\"2000\" has no unit: write 2000/s or 2000/min"},
		{"2000 /s", "\"2000 /s\" has a space: write 2000/s"},
		{"2000/h",
		 "\"2000/h\" has no known unit: units are /s or /min"},
		{"2k/s", "\"2k/s\" has no known unit: units are /s or /min"},
		{"/s", "\"/s\" is not a number: write a rate such as 2000/s or "
		       "120/min"},
		{"none",
		 "\"none\" is not a number: write a rate such as 2000/s or "
		 "120/min"},
		{"-1/s", "\"-1/s\" is negative: write a rate such as 2000/s or "
			 "120/min"},
		{"100/min", "\"100/min\" is no whole number of thousandths "
			    "per second: write 1.667/s"},
		{"0.0005/s", "\"0.0005/s\" is no whole number of thousandths "
			     "per second: write 0.001/s"},
		{"0.0000001/s",
		 "\"0.0000001/s\" is no whole number of thousandths per "
		 "second: write fewer decimals"},
		{"307445734561826/s",
		 "\"307445734561826/s\" is too large for any option"},
	};

	all_refused(unit_rate, row, ARRAY_LEN(row));
}
END_TEST

START_TEST(percentages_that_could_be_misread_are_refused)
{
	static const struct bad row[] = {
		{"70", "\"70\" has no unit: write 70%"},
		{"0.7", "\"0.7\" has no unit: write 0.7%"},
		{"70 %", "\"70 %\" has a space: write 70%"},
		{"70p", "\"70p\" has no known unit: units are %"},
		{"12.5%", "\"12.5%\" is no whole number of percents: write "
			  "fewer decimals"},
		{"%", "\"%\" is not a number: write a percentage such as "
		      "50%"},
	};

	all_refused(unit_percent, row, ARRAY_LEN(row));
}
END_TEST

START_TEST(whole_numbers_that_could_be_misread_are_refused)
{
	static const struct bad row[] = {
		{"010", "\"010\" begins with 0: leave the leading 0 out"},
		{"00", "\"00\" begins with 0: leave the leading 0 out"},
		{"1_000", "\"1_000\" has a _: write the digits alone"},
		{"1,000", "\"1,000\" has a ,: write the digits alone"},
		{"1e3", "\"1e3\" is not a whole number: write digits alone"},
		{"0x10", "\"0x10\" is hexadecimal: write it in decimal digits"},
		{"-1", "\"-1\" is negative: write a whole number such as 4"},
		{"+1", "\"+1\" has a sign: leave the + out"},
		{"1.0", "\"1.0\" is not a whole number: write digits alone"},
		{"4k", "\"4k\" is not a whole number: write digits alone"},
		{"", "\"\" is empty: write a whole number such as 4"},
		{"four", "\"four\" is not a number: write a whole number such "
			 "as 4"},
	};

	all_refused(unit_uint, row, ARRAY_LEN(row));
}
END_TEST

START_TEST(cpu_lists_that_are_none_are_refused)
{
	static const struct bad row[] = {
		{"", "\"\" is not a CPU list: write one such as 0-3,8"},
		{"0,", "\"0,\" is not a CPU list: write one such as 0-3,8"},
		{",0", "\",0\" is not a CPU list: write one such as 0-3,8"},
		{"0-", "\"0-\" is not a CPU list: write one such as 0-3,8"},
		{"-1", "\"-1\" is not a CPU list: write one such as 0-3,8"},
		{"0 1", "\"0 1\" is not a CPU list: write one such as 0-3,8"},
		{"0-3-5",
		 "\"0-3-5\" is not a CPU list: write one such as 0-3,8"},
		{"3-0", "\"3-0\" has a range that falls: write the lower CPU "
			"first"},
		{"0-3,2", "\"0-3,2\" names CPU 2 twice"},
		{"0-4", "\"0-4\" names more than 4 CPUs"},
		{"65536", "\"65536\" names a CPU above 65535"},
		{"0-18446744073709551615",
		 "\"0-18446744073709551615\" names a CPU above 65535"},
		{"99999999999999999999", "\"99999999999999999999\" is not a "
					 "CPU list: write one such as "
					 "0-3,8"},
	};
	char err[256];
	int cpus[4];

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		ck_assert_int_eq(
			unit_cpus(row[i].text, cpus, 4, err, sizeof(err)),
			-EINVAL);
		ck_assert_str_eq(err, row[i].err);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r;
	int failed;

	tcase_add_test(works, durations_are_read_in_nanoseconds);
	tcase_add_test(works, sizes_are_read_in_bytes);
	tcase_add_test(works, rates_are_read_in_thousandths_per_second);
	tcase_add_test(works, percentages_are_read_whole);
	tcase_add_test(works, whole_numbers_are_digits_alone);
	tcase_add_test(works, cpu_lists_keep_their_order);
	tcase_add_test(works, the_shortest_exact_form_is_printed);
	tcase_add_test(works, what_is_printed_reads_back);
	tcase_add_test(works, no_locale_changes_a_number);
	tcase_add_test(works, quotes_show_no_control_characters);
	tcase_add_test(limits, a_number_that_does_not_fit_is_too_large);
	tcase_add_test(limits,
		       what_is_no_whole_number_of_nanoseconds_is_refused);
	tcase_add_test(refuses, durations_that_could_be_misread_are_refused);
	tcase_add_test(refuses, sizes_that_could_be_misread_are_refused);
	tcase_add_test(refuses, rates_that_could_be_misread_are_refused);
	tcase_add_test(refuses, percentages_that_could_be_misread_are_refused);
	tcase_add_test(refuses,
		       whole_numbers_that_could_be_misread_are_refused);
	tcase_add_test(refuses, cpu_lists_that_are_none_are_refused);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
