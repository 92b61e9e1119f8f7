/* SPDX-License-Identifier: MIT */
/* The open loop's schedule and the mix. */
#include "tools/tdrive_plan.h"

#include "shm/base.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static struct plan plan_of(uint64_t rate, bool poisson, uint32_t drivers,
			   uint32_t driver, uint64_t start)
{
	struct plan_want want = {.rate = rate,
				 .poisson = poisson,
				 .drivers = drivers,
				 .driver = driver};
	struct plan plan;

	plan_start(&plan, &want, start);
	return plan;
}

/* How many are due in [start, start + ns). */
static uint64_t due_within(struct plan *plan, uint64_t ns)
{
	uint64_t n = 0;

	while (plan_due(plan) < plan->start_ns + ns) {
		plan_take(plan);
		n++;
	}
	return n;
}

START_TEST(constant_arrivals_are_evenly_spaced)
{
	struct plan plan = plan_of(500000, false, 1, 0, 1000);

	for (uint64_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(plan_take(&plan), 1000 + i * 2 * NS_PER_MS);
}
END_TEST

START_TEST(drivers_interleave_and_add_up_to_the_rate)
{
	static const uint64_t rates[] = {1, 999, 1000, 7777, 500000, 123456789};

	for (size_t r = 0; r < ARRAY_LEN(rates); r++) {
		for (uint32_t drivers = 1; drivers <= 5; drivers++) {
			uint64_t sum = 0, least = UINT64_MAX, most = 0;

			for (uint32_t i = 0; i < drivers; i++) {
				struct plan plan = plan_of(rates[r], false,
							   drivers, i, 77);
				uint64_t n = due_within(&plan, 2 * NS_PER_S);

				sum += n;
				least = base_min(least, n);
				most = base_max(most, n);
			}
			/* k with k T / R < 2 s: as many as 2 R / 1000, up */
			ck_assert_uint_eq(sum, (2 * rates[r] + 999) / 1000);
			ck_assert_uint_le(most - least, 1);
		}
	}
}
END_TEST

START_TEST(no_rounding_adds_up_over_a_day)
{
	struct plan plan = plan_of(3000, false, 1, 0, 0);

	plan.n = UINT64_C(3) * 86400 - 1;
	plan_take(&plan);
	ck_assert_uint_eq(plan_due(&plan), 86400 * NS_PER_S);
}
END_TEST

START_TEST(a_copy_is_a_second_cursor)
{
	struct plan a = plan_of(90000, true, 3, 2, 5), b = a;

	for (int i = 0; i < 1000; i++)
		ck_assert_uint_eq(plan_take(&a), plan_take(&b));
}
END_TEST

/* The mean of n exponential gaps has a deviation of 1 / sqrt(n) of itself. */
START_TEST(poisson_arrivals_have_the_rate_and_the_spread)
{
	enum {
		N = 200000
	};
	struct plan plan = plan_of(1000000, true, 2, 1, 0);
	double mean = 2e6, sum = 0, squares = 0;
	uint64_t last = 0;

	for (int i = 0; i < N; i++) {
		uint64_t due = plan_take(&plan);
		double gap = (double)(due - last);

		sum += gap;
		squares += gap * gap;
		last = due;
	}
	ck_assert_double_lt(fabs(sum / N / mean - 1), 5 / sqrt(N));
	/* exponential: the deviation is the mean */
	ck_assert_double_lt(
		fabs(sqrt(squares / N - sum / N * sum / N) / mean - 1),
		10 / sqrt(N));
}
END_TEST

START_TEST(poisson_drivers_differ_and_repeat)
{
	struct plan a = plan_of(1000000, true, 2, 0, 0);
	struct plan b = plan_of(1000000, true, 2, 1, 0);
	struct plan again = plan_of(1000000, true, 2, 0, 0);
	int same = 0;

	for (int i = 0; i < 100; i++) {
		uint64_t due = plan_take(&a);

		same += due == plan_take(&b);
		ck_assert_uint_eq(due, plan_take(&again));
	}
	ck_assert_int_lt(same, 2);
}
END_TEST

START_TEST(mix_is_exact_to_one_for_any_number_and_percent)
{
	for (uint32_t percent = 0; percent <= 100; percent++) {
		struct mix mix;
		uint64_t resumed = 0;

		mix_start(&mix, percent);
		for (uint64_t n = 1; n <= 1000; n++) {
			resumed += mix_next(&mix, true);
			ck_assert_uint_eq(resumed, n * percent / 100);
		}
	}
}
END_TEST

START_TEST(mix_makes_up_for_what_could_not_resume)
{
	struct mix mix;
	uint64_t resumed = 0;

	mix_start(&mix, 50);
	for (int n = 0; n < 20; n++)
		ck_assert(!mix_next(&mix, false));
	for (int n = 0; n < 20; n++)
		resumed += mix_next(&mix, true);
	ck_assert_uint_eq(resumed, 20);
	ck_assert(!mix_next(&mix, true));
	ck_assert(mix_next(&mix, true));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tdrive_plan");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(works, constant_arrivals_are_evenly_spaced);
	tcase_add_test(works, a_copy_is_a_second_cursor);
	tcase_add_test(works, poisson_arrivals_have_the_rate_and_the_spread);
	tcase_add_test(works, poisson_drivers_differ_and_repeat);
	tcase_add_test(limits, drivers_interleave_and_add_up_to_the_rate);
	tcase_add_test(limits, no_rounding_adds_up_over_a_day);
	tcase_add_test(limits, mix_is_exact_to_one_for_any_number_and_percent);
	tcase_add_test(limits, mix_makes_up_for_what_could_not_resume);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
