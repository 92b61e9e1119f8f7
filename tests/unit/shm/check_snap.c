/* SPDX-License-Identifier: MIT */
#include "tests/unit/shm/seg_fixture.h"

#include "shm/clk.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

static struct shm_seg *seg;
static struct shm_slot *slot;
static struct shm_snap a, b, c;

static void set_up(void)
{
	name_segment();
	seg = create(2);
	slot = shm_seg_slot(seg, 0);
	shm_slot_assign(slot, SHM_WORKER, 0, getpid(), 0);
	ck_assert_int_eq(shm_snap_init(&a, seg), 0);
	ck_assert_int_eq(shm_snap_init(&b, seg), 0);
	ck_assert_int_eq(shm_snap_init(&c, seg), 0);
}

static void tear_down(void)
{
	shm_snap_fini(&a);
	shm_snap_fini(&b);
	shm_snap_fini(&c);
	shm_seg_close(&seg);
	drop_segment();
}

/* ---- arithmetic ---- */

START_TEST(a_total_folds_by_kind)
{
	struct shm_slot *other = shm_seg_slot(seg, 1);

	for (int i = 0; i < 3; i++)
		full_handshake(slot, NS_PER_MS);
	full_handshake(other, 9 * NS_PER_MS);
	ctr_set(&slot->ctr.conn_open, 4);
	ctr_set(&other->ctr.conn_open, 5);
	ctr_set(&slot->ctr.ring_batch_max, 70);
	ctr_set(&other->ctr.ring_batch_max, 60);
	ctr_set(&other->ctr.failed_eof, 2);
	ctr_set(&slot->ctr.failed_reset, 1);
	shm_snap(seg, 0, &a);
	shm_snap(seg, 1, &b);
	shm_snap_fold(seg, &a, &b);
	ck_assert_uint_eq(get(seg, &a, CTR_ID_hs_full), 4);
	ck_assert_uint_eq(get(seg, &a, CTR_ID_conn_open), 9);
	ck_assert_uint_eq(get(seg, &a, CTR_ID_ring_batch_max), 70);
	ck_assert_uint_eq(shm_snap_failed(seg, &a), 3);
	ck_assert_uint_eq(a.role, SHM_WORKER);
	ck_assert_int_eq(a.pid, getpid());
	ck_assert(counts_agree(seg, &a));
	ck_assert_uint_eq(shm_snap_hist(seg, &a, HIST_ID_hs_full_time)->max,
			  9 * NS_PER_MS);
}
END_TEST

START_TEST(a_difference_is_taken_by_kind)
{
	full_handshake(slot, NS_PER_MS);
	ctr_set(&slot->ctr.conn_open, 9);
	ctr_set(&slot->ctr.ring_batch_max, 70);
	shm_snap(seg, 0, &a);
	full_handshake(slot, 2 * NS_PER_MS);
	full_handshake(slot, 2 * NS_PER_MS);
	ctr_set(&slot->ctr.conn_open, 4);
	shm_snap(seg, 0, &b);
	shm_snap_diff(seg, &c, &b, &a);
	ck_assert_uint_eq(get(seg, &c, CTR_ID_hs_full), 2);
	ck_assert_uint_eq(get(seg, &c, CTR_ID_conn_open), 4);
	ck_assert_uint_eq(get(seg, &c, CTR_ID_ring_batch_max), 70);
	ck_assert(counts_agree(seg, &c));
	ck_assert_int_eq(c.pid, getpid());
	/* The operands are whole, and may be the result. */
	ck_assert_uint_eq(get(seg, &b, CTR_ID_hs_full), 3);
	shm_snap_diff(seg, &b, &b, &a);
	ck_assert_uint_eq(get(seg, &b, CTR_ID_hs_full), 2);
	ck_assert(counts_agree(seg, &b));
}
END_TEST

START_TEST(a_copy_is_its_own)
{
	full_handshake(slot, NS_PER_MS);
	shm_snap(seg, 0, &a);
	shm_snap_copy(&b, &a);
	shm_snap_copy(&b, &b);
	shm_snap(seg, 1, &a);
	ck_assert_uint_eq(get(seg, &b, CTR_ID_hs_full), 1);
	ck_assert_uint_eq(get(seg, &a, CTR_ID_hs_full), 0);
	ck_assert(counts_agree(seg, &b));
	ck_assert_uint_eq(b.state, SHM_SLOT_STARTING);
}
END_TEST

START_TEST(a_sum_that_fell_aborts)
{
	full_handshake(slot, NS_PER_MS);
	shm_snap(seg, 0, &a);
	ctr_set(&slot->ctr.hs_full, 0);
	shm_snap(seg, 0, &b);
	/* There is no tearing down after this. */
	drop_segment();
	shm_snap_diff(seg, &c, &b, &a);
}
END_TEST

START_TEST(a_writer_stopped_inside_an_event_is_not_waited_for_ever)
{
	uint64_t began = clk_now(), took;

	full_handshake(slot, NS_PER_MS);
	shm_begin(slot);
	shm_snap(seg, 0, &a);
	took = clk_now() - began;
	ck_assert(a.torn);
	ck_assert_uint_eq(get(seg, &a, CTR_ID_hs_full), 1);
	ck_assert_uint_ge(took, 100 * NS_PER_MS);
	ck_assert_uint_lt(took, 5 * NS_PER_S);
	shm_end(slot);
	shm_snap(seg, 0, &a);
	ck_assert(!a.torn);
}
END_TEST

/* ---- a writer and a reader at once ---- */

/*
 * Bursts of events with work between them, as a worker has: one that did
 * nothing but count would leave no time in which a reader could copy.
 */
_Noreturn static void write_for_ever(void)
{
	uint64_t ns = 1;

	for (;;) {
		for (uint64_t i = 0; i < 1 + ns % 16; i++) {
			ns = ns * 6364136223846793005u + 1442695040888963407u;
			full_handshake(slot, ns >> 34);
		}
		for (uint64_t until = clk_now() + 50 * NS_PER_US;
		     clk_now() < until;)
			;
	}
}

static pid_t start_writer(void (*fn)(void))
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		fn();
		_exit(0);
	}
	return pid;
}

static void end_writer(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

START_TEST(every_snapshot_of_a_busy_slot_is_consistent)
{
	uint64_t until = clk_now() + NS_PER_S, last = 0;
	unsigned good = 0, torn = 0;
	struct shm_seg *reader = NULL;
	pid_t pid = start_writer(write_for_ever);

	ck_assert_int_eq(shm_seg_attach(&reader, seg_name, NULL), 0);
	/* On a busy machine the writer may start late. */
	while (clk_now() < until || last == 0) {
		shm_snap(reader, 0, &a);
		if (a.torn) {
			torn++;
			continue;
		}
		good++;
		ck_assert(counts_agree(reader, &a));
		ck_assert(identity_holds(reader, &a));
		ck_assert(ends_agree(reader, &a));
		ck_assert_uint_ge(get(reader, &a, CTR_ID_hs_full), last);
		last = get(reader, &a, CTR_ID_hs_full);
	}
	end_writer(pid);
	shm_seg_close(&reader);
	ck_assert_uint_gt(last, 100);
	ck_assert_msg(good >= 20 && torn <= good, "%u good, %u torn", good,
		      torn);
}
END_TEST

/* ---- death ---- */

/* Every way that a handshake of a worker ends, in a row; no pause between. */
static void count_for_ever(void)
{
	for (uint64_t n = 0;; n++) {
		shm_begin(slot);
		ctr_add(&slot->ctr.conn_accepted, 1);
		ctr_add(&slot->ctr.conn_open, 1);
		ctr_add(&slot->ctr.hs_in_progress, 1);
		shm_end(slot);
		if (n % 4 == 0) {
			shm_begin(slot);
			ctr_add(&slot->ctr.failed_reset, 1);
			ctr_sub(&slot->ctr.hs_in_progress, 1);
			ctr_sub(&slot->ctr.conn_open, 1);
			shm_end(slot);
			continue;
		}
		shm_begin(slot);
		hist_record(&slot->hist.hs_resumed_time, n);
		hist_record(&slot->hist.hs_resumed_cpu, n);
		ctr_add(&slot->ctr.hs_resumed, 1);
		ctr_add(&slot->ctr.crypto_resumed_ns, n);
		ctr_sub(&slot->ctr.hs_in_progress, 1);
		shm_end(slot);
		shm_begin(slot);
		hist_record(&slot->hist.request_time, n);
		ctr_add(&slot->ctr.requests, 1);
		shm_end(slot);
		shm_begin(slot);
		ctr_add(&slot->ctr.conn_closed_self, 1);
		ctr_sub(&slot->ctr.conn_open, 1);
		shm_end(slot);
	}
}

/* What must hold of a slot whose process is gone. `a` is from before. */
static void check_reaped(void)
{
	shm_slot_reap(slot, SHM_SLOT_DEAD);
	shm_snap(seg, 0, &b);
	ck_assert(!b.torn);
	ck_assert_int_eq(b.pid, 0);
	ck_assert_uint_eq(b.state, SHM_SLOT_DEAD);
	ck_assert(counts_agree(seg, &b));
	ck_assert(identity_holds(seg, &b));
	ck_assert(ends_agree(seg, &b));
	ck_assert_uint_eq(get(seg, &b, CTR_ID_hs_in_progress), 0);
	ck_assert_uint_eq(get(seg, &b, CTR_ID_conn_open), 0);
	/* Aborts if a sum or a bucket fell. */
	shm_snap_diff(seg, &c, &b, &a);
	for (uint32_t i = 0; i < CTR_IDS; i++)
		if (ctr_descs[i].kind == CTR_SUM)
			ck_assert_uint_le(c.ctr[i], 1);
}

static uint64_t seed = 88172645463325252u;
static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

START_TEST(a_writer_killed_at_any_moment_leaves_a_slot_that_adds_up)
{
	unsigned inside = 0;

	for (uint32_t i = 0; i < 200; i++) {
		struct timespec some = {.tv_nsec = (long)(rnd() % 300000)};
		uint32_t before = slot->seq;
		pid_t pid;

		shm_slot_assign(slot, SHM_WORKER, 0, getpid(), 0);
		ck_assert_uint_eq(slot->generation, i + 2);
		pid = start_writer(count_for_ever);
		while (slot->seq - before < 100)
			sched_yield();
		nanosleep(&some, NULL);
		end_writer(pid);
		inside += slot->seq % 2;
		/* As it was left, without the reader's patience. */
		if (slot->seq % 2 != 0) {
			slot->seq++;
			shm_snap(seg, 0, &a);
			slot->seq--;
		} else {
			shm_snap(seg, 0, &a);
		}
		check_reaped();
	}
	ck_assert_uint_gt(inside, 10);
}
END_TEST

/* An event of `steps` stores, of which the first `n` were done. */
static unsigned part_of_event(int event, unsigned n)
{
	unsigned k = 0;

#define STEP(store)            \
	do {                   \
		if (k < n)     \
			store; \
		k++;           \
	} while (0)
	switch (event) {
	case 0:
		STEP(ctr_add(&slot->ctr.conn_accepted, 1));
		STEP(ctr_add(&slot->ctr.conn_open, 1));
		STEP(ctr_add(&slot->ctr.hs_in_progress, 1));
		break;
	case 1:
		STEP(ctr_add(&slot->hist.hs_full_time.bucket[99], 1));
		STEP(ctr_add(&slot->hist.hs_full_time.sum, 3200));
		STEP(hist_record(&slot->hist.hs_full_cpu, 1000));
		STEP(ctr_add(&slot->ctr.hs_full, 1));
		STEP(ctr_add(&slot->ctr.crypto_full_ns, 1000));
		STEP(ctr_sub(&slot->ctr.hs_in_progress, 1));
		break;
	case 2:
		STEP(ctr_add(&slot->ctr.failed_eof, 1));
		STEP(ctr_sub(&slot->ctr.hs_in_progress, 1));
		STEP(ctr_sub(&slot->ctr.conn_open, 1));
		break;
	case 3:
		STEP(ctr_add(&slot->ctr.conn_reset, 1));
		STEP(ctr_sub(&slot->ctr.conn_open, 1));
		break;
	default:
		/* Gauges first: the order of another's hand. */
		STEP(ctr_add(&slot->ctr.hs_in_progress, 1));
		STEP(ctr_add(&slot->ctr.conn_open, 1));
		STEP(ctr_add(&slot->ctr.conn_accepted, 1));
	}
#undef STEP
	return k;
}

#define PARTS 7 /* of the longest event, none and all included */

START_TEST(any_part_of_any_event_is_made_whole)
{
	int event = _i / PARTS;
	unsigned n = (unsigned)_i % PARTS;

	/* Two full ones are done, one is open, two are in their handshake. */
	full_handshake(slot, NS_PER_MS);
	full_handshake(slot, NS_PER_MS);
	for (int i = 0; i < 3; i++)
		part_of_event(0, 3);
	part_of_event(1, 6);
	shm_snap(seg, 0, &a);
	ck_assert(identity_holds(seg, &a) && ends_agree(seg, &a));
	shm_begin(slot);
	if (part_of_event(event, n) < n) {
		shm_end(slot);
		return;
	}
	shm_slot_reap(slot, SHM_SLOT_DEAD);
	shm_snap(seg, 0, &b);
	ck_assert(counts_agree(seg, &b));
	ck_assert(identity_holds(seg, &b));
	ck_assert(ends_agree(seg, &b));
	ck_assert_uint_eq(get(seg, &b, CTR_ID_hs_in_progress), 0);
	ck_assert_uint_eq(get(seg, &b, CTR_ID_conn_open), 0);
	shm_snap_diff(seg, &c, &b, &a);
	/* The event is there whole or not at all: it is one connection. */
	ck_assert_uint_le(get(seg, &c, CTR_ID_conn_accepted), 1);
	ck_assert_uint_le(get(seg, &c, CTR_ID_hs_full), 1);
	ck_assert_uint_ge(get(seg, &c, CTR_ID_failed_died), 1);
	ck_assert_uint_le(get(seg, &c, CTR_ID_failed_died), 3);
}
END_TEST

START_TEST(a_failure_without_its_begin_begins_one)
{
	/* The driver's way to begin is another counter. */
	shm_slot_assign(slot, _i == 0 ? SHM_WORKER : SHM_DRIVER, 0, getpid(),
			0);
	shm_begin(slot);
	ctr_add(&slot->ctr.failed_eof, 1);
	shm_slot_reap(slot, SHM_SLOT_DEAD);
	shm_snap(seg, 0, &a);
	ck_assert(identity_holds(seg, &a));
	ck_assert_uint_eq(
		get(seg, &a,
		    _i == 0 ? CTR_ID_conn_accepted : CTR_ID_conn_started),
		1);
	ck_assert_uint_eq(get(seg, &a, CTR_ID_failed_died), 0);
}
END_TEST

START_TEST(a_slot_that_ended_as_it_should_keeps_its_sums)
{
	full_handshake(slot, NS_PER_MS);
	shm_snap(seg, 0, &a);
	shm_slot_reap(slot, SHM_SLOT_ENDED);
	shm_snap(seg, 0, &b);
	ck_assert_uint_eq(b.state, SHM_SLOT_ENDED);
	ck_assert_mem_eq(a.ctr, b.ctr, CTR_IDS * sizeof(*a.ctr));
	ck_assert_uint_eq(b.role, SHM_WORKER);
}
END_TEST

START_TEST(what_is_wrong_outside_an_event_is_not_painted_over)
{
	/* A histogram short of its counter with no event open is a bug. */
	ctr_add(&slot->ctr.requests, 3);
	shm_slot_reap(slot, SHM_SLOT_ENDED);
	shm_snap(seg, 0, &a);
	ck_assert(!counts_agree(seg, &a));
}
END_TEST

static void quiet(void)
{
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
	set_up();
}

int main(void)
{
	Suite *s = suite_create("snap");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(works, set_up, tear_down);
	tcase_add_checked_fixture(limits, set_up, tear_down);
	tcase_add_checked_fixture(refuses, quiet, tear_down);
	tcase_set_timeout(limits, 60);
	tcase_add_test(works, a_total_folds_by_kind);
	tcase_add_test(works, a_difference_is_taken_by_kind);
	tcase_add_test(works, a_copy_is_its_own);
	tcase_add_test(works, a_slot_that_ended_as_it_should_keeps_its_sums);
	tcase_add_test(works,
		       what_is_wrong_outside_an_event_is_not_painted_over);
	tcase_add_test(limits, every_snapshot_of_a_busy_slot_is_consistent);
	tcase_add_test(limits,
		       a_writer_stopped_inside_an_event_is_not_waited_for_ever);
	tcase_add_test(
		limits,
		a_writer_killed_at_any_moment_leaves_a_slot_that_adds_up);
	tcase_add_loop_test(limits, any_part_of_any_event_is_made_whole, 0,
			    5 * PARTS);
	tcase_add_loop_test(limits, a_failure_without_its_begin_begins_one, 0,
			    2);
	tcase_add_test_raise_signal(refuses, a_sum_that_fell_aborts, SIGABRT);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
