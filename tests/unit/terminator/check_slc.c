/* SPDX-License-Identifier: MIT */
#include "terminator/slc.h"

#include "shm/base.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* n slices of 250 ms: 500 handshakes and 10 speed samples each. */
static void fill(struct slc *s, uint32_t n, const uint64_t *cost_ns,
		 const uint64_t *sample_ns)
{
	struct slc_look l = {.at_ns = NS_PER_S};

	memset(s, 0, sizeof(*s));
	s->look[s->n++] = l;
	for (uint32_t i = 0; i < n; i++) {
		l.at_ns += 250 * NS_PER_MS;
		l.handshakes += 500;
		l.cpu_ns += 500 * cost_ns[i];
		l.speed_samples += 10;
		l.speed_ns += 10 * sample_ns[i];
		s->look[s->n++] = l;
	}
}

START_TEST(a_steady_window_has_no_width)
{
	uint64_t cost[20], sample[20];
	struct slc s;
	struct slc_facts f;

	for (int i = 0; i < 20; i++) {
		cost[i] = 700000;
		sample[i] = 100000;
	}
	fill(&s, 20, cost, sample);
	f = slc_judge(&s);
	ck_assert_uint_eq(f.slices, 20);
	ck_assert_double_eq_tol(f.cost_ns, 700000, 1e-6);
	ck_assert_double_eq_tol(f.half_width, 0, 1e-9);
	ck_assert_double_eq_tol(f.speed_ratio, 1, 1e-9);
	ck_assert_uint_eq(f.silent_ns, 0);
}
END_TEST

/* 600 and 800 in turn: s = 102.6, so 1.96 s / sqrt(20) / 700 = 6.42 %. */
START_TEST(the_interval_is_the_textbooks)
{
	uint64_t cost[20], sample[20];
	struct slc s;

	for (int i = 0; i < 20; i++) {
		cost[i] = i % 2 ? 600000 : 800000;
		sample[i] = 100000;
	}
	fill(&s, 20, cost, sample);
	ck_assert_double_eq_tol(slc_judge(&s).half_width, 0.0642, 0.0001);
}
END_TEST

START_TEST(scaling_takes_the_cores_speed_out)
{
	uint64_t cost[10], sample[10];
	struct slc s;
	struct slc_facts f;

	for (int i = 0; i < 10; i++) {
		cost[i] = i < 5 ? 700000 : 1120000;
		sample[i] = i < 5 ? 100000 : 160000;
	}
	fill(&s, 10, cost, sample);
	f = slc_judge(&s);
	ck_assert_double_eq_tol(f.speed_ratio, 1.6, 1e-9);
	ck_assert_double_gt(f.half_width, 0.10);
	ck_assert_double_eq_tol(f.scaled_half_width, 0, 1e-9);
}
END_TEST

START_TEST(slices_with_few_handshakes_join_the_next)
{
	struct slc s = {0};
	struct slc_look l = {.at_ns = 1};

	s.look[s.n++] = l;
	for (int i = 0; i < 10; i++) {
		l.handshakes += 10;
		l.cpu_ns += 10 * 500000;
		l.speed_samples += 4;
		l.speed_ns += 400000;
		s.look[s.n++] = l;
	}
	ck_assert_uint_eq(slc_judge(&s).slices, 5);
}
END_TEST

START_TEST(nothing_measured_is_no_figure)
{
	struct slc s = {0};
	struct slc_facts f = slc_judge(&s);

	ck_assert_uint_eq(f.slices, 0);
	ck_assert(isnan(f.cost_ns) && isnan(f.half_width));
	ck_assert(isnan(f.speed_ratio));
	s.n = 2; /* two looks and not a handshake */
	f = slc_judge(&s);
	ck_assert(isnan(f.half_width));
}
END_TEST

START_TEST(a_worker_that_died_does_not_wrap_around)
{
	uint64_t cost[3] = {700000, 700000, 700000};
	uint64_t sample[3] = {100000, 100000, 100000};
	struct slc s;

	fill(&s, 3, cost, sample);
	s.look[2].cpu_ns = 1;
	ck_assert_double_lt(slc_judge(&s).cost_ns, 2e6);
}
END_TEST

START_TEST(the_longest_silence_is_found)
{
	struct slc s = {.n = 3};

	s.look[1].silent_ns = 900 * NS_PER_MS;
	s.look[1].silent_worker = 7;
	ck_assert_uint_eq(slc_judge(&s).silent_ns, 900 * NS_PER_MS);
	ck_assert_uint_eq(slc_judge(&s).silent_worker, 7);
}
END_TEST

START_TEST(a_slice_is_a_twentieth_and_not_too_short)
{
	ck_assert_uint_eq(slc_length(5 * NS_PER_S), 250 * NS_PER_MS);
	ck_assert_uint_eq(slc_length(100 * NS_PER_MS), 100 * NS_PER_MS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("slc");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	SRunner *r;
	int failed;

	tcase_add_test(works, a_steady_window_has_no_width);
	tcase_add_test(works, the_interval_is_the_textbooks);
	tcase_add_test(works, scaling_takes_the_cores_speed_out);
	tcase_add_test(works, the_longest_silence_is_found);
	tcase_add_test(works, a_slice_is_a_twentieth_and_not_too_short);
	tcase_add_test(limits, slices_with_few_handshakes_join_the_next);
	tcase_add_test(limits, nothing_measured_is_no_figure);
	tcase_add_test(limits, a_worker_that_died_does_not_wrap_around);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
