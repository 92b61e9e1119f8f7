/* SPDX-License-Identifier: MIT */
#include "shm/base.h"
#include "shm/hist.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES 20000
#define TOP    (UINT64_C(1) << HIST_TOP_BITS)

/* Zeroed, 7 KiB each: too much for the stack of a test to look tidy. */
static struct hist hist, other;
static struct hist_view view, merged, diff;

/* xorshift64*: the same values in every run. */
static uint64_t seed = 88172645463325252u;
static uint64_t rnd(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * UINT64_C(2685821657736338717);
}

static double rnd_unit(void)
{
	return (double)(rnd() >> 11) / 9007199254740992.0;
}

static uint64_t uniform(void)
{
	return NS_PER_US + rnd() % (10 * NS_PER_MS);
}

/* 1 us to 60 s, every decade as likely. */
static uint64_t log_uniform(void)
{
	return (uint64_t)(1e3 * pow(6e7, rnd_unit()));
}

static uint64_t constant(void)
{
	return 712345;
}

static uint64_t bimodal(void)
{
	return (rnd() % 10 < 9 ? 300 * NS_PER_US : 40 * NS_PER_MS) +
	       rnd() % (50 * NS_PER_US);
}

static uint64_t short_ones(void)
{
	return rnd() % 2000;
}

static const struct {
	const char *name;
	uint64_t (*draw)(void);
} shapes[] = {
	{"uniform", uniform},	{"log-uniform", log_uniform},
	{"constant", constant}, {"bimodal", bimodal},
	{"short", short_ones},
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Never more than 1/64, or 8 ns where a bucket is 16 ns wide. */
static bool within_bound(uint64_t got, uint64_t exact)
{
	double off = fabs((double)got - (double)exact);

	return off <= fmax((double)exact / 64, 8);
}

START_TEST(percentiles_are_within_a_64th_of_the_exact_ones)
{
	static const double quantiles[] = {0,  1,  10, 25,   50,    75,
					   90, 95, 99, 99.9, 99.99, 100};
	static uint64_t exact[VALUES];
	double sum = 0;

	for (size_t i = 0; i < VALUES; i++) {
		exact[i] = shapes[_i].draw();
		sum += (double)exact[i];
		hist_record(&hist, exact[i]);
	}
	qsort(exact, VALUES, sizeof(exact[0]), by_value);
	hist_copy(&view, &hist);
	ck_assert_uint_eq(hist_count(&view), VALUES);
	ck_assert_uint_eq(view.max, exact[VALUES - 1]);
	ck_assert_double_eq_tol(hist_mean(&view), sum / VALUES, 1);
	for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
		/* 20000 values: every rank here is a whole number. */
		size_t rank = (size_t)llround(quantiles[i] * VALUES / 100);
		uint64_t want = exact[rank > 0 ? rank - 1 : 0];
		uint64_t got = hist_percentile(&view, quantiles[i]);

		ck_assert_msg(within_bound(got, want),
			      "%s: p%g is %llu and should be %llu",
			      shapes[_i].name, quantiles[i],
			      (unsigned long long)got,
			      (unsigned long long)want);
	}
}
END_TEST

START_TEST(every_bucket_holds_its_edges_and_no_more)
{
	ck_assert_uint_eq(hist_low(0), 0);
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		uint64_t low = hist_low(i), high = hist_high(i);

		ck_assert_uint_lt(low, high);
		ck_assert_uint_eq(hist_index(low), i);
		ck_assert_uint_eq(hist_index(high - 1), i);
		if (i + 1 < HIST_BUCKETS) {
			ck_assert_uint_eq(hist_index(high), i + 1);
			ck_assert_uint_eq(hist_low(i + 1), high);
		}
	}
	ck_assert_uint_eq(hist_high(HIST_BUCKETS - 1), TOP);
}
END_TEST

START_TEST(every_bucket_is_narrow_enough_for_the_bound)
{
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		uint64_t low = hist_low(i), width = hist_high(i) - low;

		ck_assert(width == 16 || width * 32 <= low);
	}
}
END_TEST

START_TEST(what_is_too_large_counts_in_the_last_bucket)
{
	static const uint64_t large[] = {TOP, TOP + 1, UINT64_MAX / 4};

	for (size_t i = 0; i < ARRAY_LEN(large); i++)
		hist_record(&hist, large[i]);
	hist_copy(&view, &hist);
	ck_assert_uint_eq(view.bucket[HIST_BUCKETS - 1], ARRAY_LEN(large));
	ck_assert_uint_eq(view.max, UINT64_MAX / 4);
	ck_assert_uint_eq(hist_index(UINT64_MAX), HIST_BUCKETS - 1);
}
END_TEST

START_TEST(an_empty_one_has_no_figures)
{
	hist_copy(&view, &hist);
	ck_assert_uint_eq(hist_count(&view), 0);
	ck_assert_uint_eq(hist_percentile(&view, 50), 0);
	ck_assert_double_eq(hist_mean(&view), 0);
}
END_TEST

START_TEST(a_percentile_is_never_above_the_largest_value)
{
	hist_record(&hist, 1000001);
	hist_copy(&view, &hist);
	ck_assert_uint_le(hist_percentile(&view, 100), 1000001);
	ck_assert_uint_le(hist_percentile(&view, 1000), 1000001);
	ck_assert_uint_gt(hist_percentile(&view, -1), 0);
}
END_TEST

/* `small` short values and one long: is the rank among the short ones? */
START_TEST(a_rank_is_the_nearest_one)
{
	static const struct {
		uint64_t small;
		double q;
		bool is_small;
	} want[] = {
		{999, 0, true},	   {999, 99.9, true},	  {999, 99.91, false},
		{999, 100, false}, {99, 99, true},	  {99, 99.9, false},
		{1, 50, true},	   {1, 50.1, false},	  {0, 0, false},
		{9, 90, true},	   {99999, 99.999, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		memset(&view, 0, sizeof(view));
		view.bucket[hist_index(NS_PER_US)] = want[i].small;
		view.bucket[hist_index(NS_PER_S)] = 1;
		view.max = NS_PER_S;
		ck_assert_int_eq(hist_percentile(&view, want[i].q) < NS_PER_MS,
				 want[i].is_small);
	}
}
END_TEST

START_TEST(merging_keeps_every_count)
{
	static struct hist_view b;
	uint64_t sum;

	for (size_t i = 0; i < VALUES; i++) {
		hist_record(&hist, log_uniform());
		if (i % 3 == 0)
			hist_record(&other, bimodal());
	}
	hist_copy(&view, &hist);
	hist_copy(&b, &other);
	merged = view;
	hist_add(&merged, &b);
	sum = view.sum + b.sum;
	ck_assert_uint_eq(hist_count(&merged),
			  hist_count(&view) + hist_count(&b));
	ck_assert_uint_eq(merged.sum, sum);
	ck_assert_uint_eq(merged.max, base_max(view.max, b.max));
	for (size_t i = 0; i < HIST_BUCKETS; i++)
		ck_assert_uint_eq(merged.bucket[i],
				  view.bucket[i] + b.bucket[i]);
}
END_TEST

START_TEST(a_difference_is_what_came_between)
{
	static struct hist_view earlier;

	hist_record(&hist, 5 * NS_PER_S);
	hist_record(&hist, 40 * NS_PER_US);
	hist_copy(&earlier, &hist);
	hist_record(&hist, 40 * NS_PER_US);
	hist_record(&hist, 700 * NS_PER_US);
	hist_copy(&view, &hist);
	hist_diff(&diff, &view, &earlier);
	ck_assert_uint_eq(hist_count(&diff), 2);
	ck_assert_uint_eq(diff.sum, 740 * NS_PER_US);
	/* The 5 s came before: the largest is known to its bucket. */
	ck_assert_uint_eq(diff.max, hist_high(hist_index(700 * NS_PER_US)));
	hist_diff(&diff, &view, &view);
	ck_assert_uint_eq(hist_count(&diff), 0);
	ck_assert_uint_eq(diff.max, 0);
}
END_TEST

START_TEST(a_difference_keeps_a_maximum_beyond_the_buckets)
{
	static struct hist_view earlier;

	hist_copy(&earlier, &hist);
	hist_record(&hist, 3 * TOP);
	hist_copy(&view, &hist);
	hist_diff(&diff, &view, &earlier);
	ck_assert_uint_eq(diff.max, 3 * TOP);
	/* And never one above what was ever seen. */
	memset(&hist, 0, sizeof(hist));
	hist_record(&hist, 1000001);
	hist_copy(&view, &hist);
	hist_diff(&diff, &view, &earlier);
	ck_assert_uint_eq(diff.max, 1000001);
}
END_TEST

START_TEST(a_difference_of_falling_counts_aborts)
{
	hist_record(&hist, 1000);
	hist_copy(&view, &hist);
	memset(&merged, 0, sizeof(merged));
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
	hist_diff(&diff, &merged, &view);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hist");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(works,
			    percentiles_are_within_a_64th_of_the_exact_ones, 0,
			    (int)ARRAY_LEN(shapes));
	tcase_add_test(works, a_rank_is_the_nearest_one);
	tcase_add_test(works, merging_keeps_every_count);
	tcase_add_test(works, a_difference_is_what_came_between);
	tcase_add_test(limits, every_bucket_holds_its_edges_and_no_more);
	tcase_add_test(limits, every_bucket_is_narrow_enough_for_the_bound);
	tcase_add_test(limits, what_is_too_large_counts_in_the_last_bucket);
	tcase_add_test(limits, an_empty_one_has_no_figures);
	tcase_add_test(limits, a_percentile_is_never_above_the_largest_value);
	tcase_add_test(limits, a_difference_keeps_a_maximum_beyond_the_buckets);
	tcase_add_test_raise_signal(
		refuses, a_difference_of_falling_counts_aborts, SIGABRT);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
