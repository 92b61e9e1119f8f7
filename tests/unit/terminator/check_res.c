/* SPDX-License-Identifier: MIT */
#include "terminator/res.h"
#include "terminator/vrd.h"

#include "shm/base.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 2
#define DRIVERS 1
#define SLOTS	(WORKERS + DRIVERS)

static struct shm_seg *seg;
static struct smp at[4]; /* rest, begin, end, rest */

static const struct cfg_phase full_phase = {.name = (char *)"full",
					    .handshake = CFG_HANDSHAKE_FULL};
static const struct cfg_phase resumed_phase = {
	.name = (char *)"resumed", .handshake = CFG_HANDSHAKE_RESUMED};

static void setup(void)
{
	struct shm_info info = {.name = "check"};
	char name[40];

	snprintf(name, sizeof(name), "check-res-%d", (int)getpid());
	ck_assert_int_eq(
		shm_seg_create(&seg, name, 0600, SLOTS, &info, NULL, NULL), 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		shm_slot_assign(shm_seg_slot(seg, i),
				i < WORKERS ? SHM_WORKER : SHM_DRIVER,
				i < WORKERS ? i : i - WORKERS, getpid(), 0);
	for (size_t k = 0; k < ARRAY_LEN(at); k++)
		ck_assert_int_eq(smp_init(&at[k], seg), 0);
}

static void teardown(void)
{
	for (size_t k = 0; k < ARRAY_LEN(at); k++)
		smp_fini(&at[k]);
	shm_seg_close(&seg);
}

/* n handshakes in one slot, each with so much CPU in the TLS library. */
static void work(uint32_t slot, uint64_t n, bool resumed, uint64_t crypto_ns)
{
	struct shm_slot *s = shm_seg_slot(seg, slot);

	for (uint64_t i = 0; i < n; i++) {
		shm_begin(s);
		hist_record(resumed ? &s->hist.hs_resumed_time
				    : &s->hist.hs_full_time,
			    1000 * NS_PER_US);
		hist_record(resumed ? &s->hist.hs_resumed_cpu
				    : &s->hist.hs_full_cpu,
			    crypto_ns);
		ctr_add(slot < WORKERS ? &s->ctr.conn_accepted
				       : &s->ctr.conn_started,
			1);
		ctr_add(resumed ? &s->ctr.hs_resumed : &s->ctr.hs_full, 1);
		ctr_add(resumed ? &s->ctr.crypto_resumed_ns
				: &s->ctr.crypto_full_ns,
			crypto_ns);
		shm_end(s);
	}
}

/* The moments are made by hand: time and CPU are not the test's to spend. */
static void moment(size_t k, uint64_t taken_s, uint64_t cpu_ns)
{
	smp_take(&at[k], seg, NULL, 0);
	at[k].taken_ns = taken_s * NS_PER_S;
	for (uint32_t i = 0; i < SLOTS; i++)
		at[k].cpu_ns[i] = cpu_ns;
}

static struct res_moments moments(void)
{
	return (struct res_moments){.rest_before = &at[0],
				    .begin = &at[1],
				    .end = &at[2],
				    .rest_after = &at[3],
				    .at_rest = true,
				    .nworkers = WORKERS,
				    .ndrivers = DRIVERS};
}

static void run_phase(struct res_phase *p, const struct cfg_phase *phase,
		      uint64_t full, uint64_t resumed)
{
	struct res_moments m = moments();

	moment(0, 10, 0);
	moment(1, 11, 0);
	for (uint32_t w = 0; w < WORKERS; w++) {
		work(w, full, false, 600 * NS_PER_US);
		work(w, resumed, true, 300 * NS_PER_US);
	}
	work(WORKERS, WORKERS * full, false, 700 * NS_PER_US);
	work(WORKERS, WORKERS * resumed, true, 400 * NS_PER_US);
	moment(2, 13, 1000 * NS_PER_MS);
	moment(3, 14, 1000 * NS_PER_MS);
	ck_assert_int_eq(res_phase(p, seg, phase, &m), 0);
	vrd_judge(p, seg, &m);
}

static bool has_doubt(const struct res_phase *p, const char *name)
{
	for (uint32_t i = 0; i < p->doubts.n; i++)
		if (strcmp(p->doubts.item[i].name, name) == 0)
			return true;
	return false;
}

START_TEST(whole_is_cpu_over_handshakes_in_a_phase_of_one_kind)
{
	struct res_phase p;
	struct res_cost c;

	run_phase(&p, &full_phase, 1000, 0);
	c = res_cost(seg, &p.measured.snap[0], p.measured.cpu_ns[0],
		     p.measured.taken_ns, RES_FULL);
	ck_assert_uint_eq(c.n, 1000);
	ck_assert_double_eq_tol(c.whole_ns, 1e6, 1e-3);
	ck_assert_double_eq_tol(c.crypto_ns, 6e5, 1e-3);
	ck_assert_double_eq_tol(c.per_s, 500, 1e-9);
	ck_assert_double_eq_tol(c.core_per_s, 1000, 1e-6);
	ck_assert_double_eq_tol(c.p50_ns, 1e6, 1e6 / 64);
	ck_assert_int_eq(res_worst(&p.doubts), RES_NOTE);
	res_phase_fini(&p);
}
END_TEST

START_TEST(parts_of_a_mixed_phase_add_up_to_the_whole)
{
	struct res_phase p;
	struct res_cost f, r;

	run_phase(&p, &full_phase, 700, 300);
	f = res_cost(seg, &p.workers, p.workers_cpu_ns, p.measured.taken_ns,
		     RES_FULL);
	r = res_cost(seg, &p.workers, p.workers_cpu_ns, p.measured.taken_ns,
		     RES_RESUMED);
	ck_assert_double_eq_tol(f.whole_ns * (double)f.n +
					r.whole_ns * (double)r.n,
				(double)p.workers_cpu_ns, 1);
	ck_assert(has_doubt(&p, "resumed-in-full"));
	res_phase_fini(&p);
}
END_TEST

START_TEST(no_handshake_has_no_figures)
{
	struct res_phase p;
	struct res_cost c;

	run_phase(&p, &full_phase, 0, 0);
	c = res_cost(seg, &p.workers, p.workers_cpu_ns, p.measured.taken_ns,
		     RES_FULL);
	ck_assert_uint_eq(c.n, 0);
	ck_assert(isnan(c.per_s) && isnan(c.whole_ns) && isnan(c.core_per_s));
	ck_assert(has_doubt(&p, "no-handshakes"));
	ck_assert(res_fatal(&p.doubts));
	ck_assert(isnan(p.jain));
	res_phase_fini(&p);
}
END_TEST

START_TEST(a_phase_that_did_not_resume_is_no_result)
{
	struct res_phase p;

	run_phase(&p, &resumed_phase, 750, 250);
	ck_assert(has_doubt(&p, "not-resumed"));
	ck_assert(res_fatal(&p.doubts));
	res_phase_fini(&p);
}
END_TEST

START_TEST(one_missed_ticket_in_a_thousand_is_no_fault)
{
	struct res_phase p;

	run_phase(&p, &resumed_phase, 1, 999);
	ck_assert(!res_fatal(&p.doubts));
	res_phase_fini(&p);
}
END_TEST

START_TEST(ends_that_disagree_are_a_doubt)
{
	struct res_phase p;
	struct res_moments m = moments();

	moment(0, 10, 0);
	moment(1, 11, 0);
	work(0, 500, false, 1000);
	work(1, 500, false, 1000);
	work(WORKERS, 999, false, 1000);
	moment(2, 12, 1);
	moment(3, 13, 1);
	ck_assert_int_eq(res_phase(&p, seg, &full_phase, &m), 0);
	vrd_judge(&p, seg, &m);
	ck_assert(has_doubt(&p, "ends-disagree"));
	ck_assert(!p.agree.ok);
	res_phase_fini(&p);
}
END_TEST

START_TEST(a_broken_identity_is_no_result)
{
	struct res_phase p;
	struct res_moments m = moments();

	moment(0, 10, 0);
	moment(1, 11, 0);
	work(0, 500, false, 1000);
	ctr_add(&shm_seg_slot(seg, 0)->ctr.conn_accepted, 1);
	moment(2, 12, 1);
	moment(3, 13, 1);
	ck_assert_int_eq(res_phase(&p, seg, &full_phase, &m), 0);
	vrd_judge(&p, seg, &m);
	ck_assert(!p.identity);
	ck_assert(has_doubt(&p, "accounting"));
	res_phase_fini(&p);
}
END_TEST

START_TEST(jain_is_one_when_even_and_one_over_n_when_not)
{
	uint64_t even[] = {7, 7, 7, 7}, one[] = {9, 0, 0, 0};

	ck_assert_double_eq_tol(res_jain(even, 4), 1, 1e-12);
	ck_assert_double_eq_tol(res_jain(one, 4), 0.25, 1e-12);
	ck_assert(isnan(res_jain(one + 1, 3)));
}
END_TEST

START_TEST(doubts_beyond_the_room_are_dropped_without_harm)
{
	struct res_doubts d = {0};

	for (int i = 0; i < 100; i++)
		res_doubt(&d, RES_DOUBT, "many", "number %d", i);
	ck_assert_uint_eq(d.n, ARRAY_LEN(d.item));
	ck_assert(!res_fatal(&d));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("res");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits"),
	      *refuses = tcase_create("refuses");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(works, setup, teardown);
	tcase_add_checked_fixture(limits, setup, teardown);
	tcase_add_checked_fixture(refuses, setup, teardown);
	tcase_add_test(works,
		       whole_is_cpu_over_handshakes_in_a_phase_of_one_kind);
	tcase_add_test(works, parts_of_a_mixed_phase_add_up_to_the_whole);
	tcase_add_test(works, jain_is_one_when_even_and_one_over_n_when_not);
	tcase_add_test(limits, no_handshake_has_no_figures);
	tcase_add_test(limits, one_missed_ticket_in_a_thousand_is_no_fault);
	tcase_add_test(limits, doubts_beyond_the_room_are_dropped_without_harm);
	tcase_add_test(refuses, a_phase_that_did_not_resume_is_no_result);
	tcase_add_test(refuses, ends_that_disagree_are_a_doubt);
	tcase_add_test(refuses, a_broken_identity_is_no_result);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
