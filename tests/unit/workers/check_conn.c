/* SPDX-License-Identifier: MIT */
#include "workers/conn.h"

#include "shm/base.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct ctr_block ctr;
static struct conn_pool pool;

static void set_up(void)
{
	memset(&ctr, 0, sizeof(ctr));
	conn_pool_init(&pool);
}

static uint64_t open_now(void)
{
	return atomic_load(&ctr.conn_open);
}

static uint64_t shaking_now(void)
{
	return atomic_load(&ctr.hs_in_progress);
}

/* Walks a connection along a path of states. */
static void walk(struct conn *c, const enum conn_state *path, size_t n)
{
	for (size_t i = 0; i < n; i++)
		conn_set_state(c, path[i], &ctr);
}

static void end(struct conn *c)
{
	c->fd = -1;
	conn_reap(&pool, &c);
	ck_assert_ptr_null(c);
}

START_TEST(the_gauges_follow_the_state)
{
	static const struct {
		enum conn_state to;
		uint64_t open, shaking;
	} path[] = {
		{CONN_HANDSHAKE, 1, 1}, {CONN_OPEN, 1, 0},
		{CONN_FLUSH, 1, 0},	{CONN_LINGER, 1, 0},
		{CONN_CLOSING, 0, 0},
	};
	struct conn *c = conn_new(&pool, 7);

	for (size_t i = 0; i < ARRAY_LEN(path); i++) {
		conn_set_state(c, path[i].to, &ctr);
		ck_assert_uint_eq(open_now(), path[i].open);
		ck_assert_uint_eq(shaking_now(), path[i].shaking);
	}
	end(c);
	conn_pool_fini(&pool);
}
END_TEST

START_TEST(a_failed_handshake_is_not_open_while_its_alert_is_sent)
{
	struct conn *c = conn_new(&pool, 7);

	conn_set_state(c, CONN_HANDSHAKE, &ctr);
	conn_set_state(c, CONN_ALERT, &ctr);
	ck_assert_uint_eq(open_now(), 0);
	ck_assert_uint_eq(shaking_now(), 0);
	conn_set_state(c, CONN_CLOSING, &ctr);
	end(c);
	conn_pool_fini(&pool);
}
END_TEST

START_TEST(a_place_is_used_again_as_new)
{
	static const enum conn_state path[] = {CONN_HANDSHAKE, CONN_CLOSING};
	struct conn *a = conn_new(&pool, 7), *b;
	uint64_t word = conn_word(a, CONN_OP_RECV);

	a->crypto_ns = 5;
	a->eof = true;
	walk(a, path, 2);
	b = a;
	end(a);
	ck_assert_ptr_eq(conn_new(&pool, 8), b);
	ck_assert_uint_eq(b->crypto_ns, 0);
	ck_assert(!b->eof);
	ck_assert_int_eq(b->fd, 8);
	ck_assert_uint_eq(b->state, CONN_FREE);
	ck_assert_uint_ne(conn_word(b, CONN_OP_RECV), word);
}
END_TEST

START_TEST(a_word_leads_to_its_connection)
{
	enum {
		N = 300
	};
	struct conn *c[N];

	for (int i = 0; i < N; i++) {
		c[i] = conn_new(&pool, i);
		conn_lend(c[i]);
	}
	ck_assert_uint_eq(pool.in_use, N);
	for (int i = 0; i < N; i++) {
		uint64_t w = conn_word(c[i], CONN_OP_SEND);

		ck_assert_ptr_eq(conn_of_word(&pool, w), c[i]);
		ck_assert_int_eq(conn_word_op(w), CONN_OP_SEND);
		ck_assert_ptr_eq(conn_at(&pool, c[i]->index), c[i]);
	}
	ck_assert_ptr_null(conn_at(&pool, 1000));
}
END_TEST

/* Requests of one turn share a mark; when marks run out, the last one grows. */
START_TEST(marks_keep_every_request)
{
	struct conn *c = conn_new(&pool, 7);
	uint32_t requests = 0, refused = 0;

	for (uint64_t i = 0; i < 10; i++) {
		c->out.bytes += 100;
		conn_mark_answer(c, i / 2, i % 3 == 0);
	}
	c->out.bytes = 0;
	ck_assert_uint_eq(c->nmarks, CONN_MARKS);
	ck_assert_uint_eq(c->mark[0].end, 200);
	ck_assert_uint_eq(c->mark[CONN_MARKS - 1].end, 1000);
	for (uint8_t i = 0; i < c->nmarks; i++) {
		requests += c->mark[i].requests;
		refused += c->mark[i].refused;
	}
	ck_assert_uint_eq(requests, 10);
	ck_assert_uint_eq(refused, 4);
}
END_TEST

START_TEST(every_state_can_be_reached_and_left)
{
	for (enum conn_state s = 0; s < CONN_STATES; s++) {
		int in = 0, out = 0;

		for (enum conn_state t = 0; t < CONN_STATES; t++) {
			in += conn_edge(t, s);
			out += conn_edge(s, t);
		}
		ck_assert_msg(in > 0 && out > 0, "%s", conn_state_name(s));
	}
}
END_TEST

START_TEST(the_page_has_every_state_and_edge)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	conn_describe(f);
	fclose(f);
	for (enum conn_state s = 0; s < CONN_STATES; s++) {
		char row[64];

		snprintf(row, sizeof(row), "| %s |", conn_state_name(s));
		ck_assert_msg(strstr(text, row) != NULL, "%s", row);
	}
	ck_assert_ptr_nonnull(strstr(text, "CLOSING --> [*]: "));
	free(text);
}
END_TEST

/* ---- what must abort ---- */

/* The i-th pair of states between which there is no edge; false past the last.
 */
static bool no_edge(int i, enum conn_state *from, enum conn_state *to)
{
	for (int pair = 0; pair < CONN_STATES * CONN_STATES; pair++) {
		*from = (enum conn_state)(pair / CONN_STATES);
		*to = (enum conn_state)(pair % CONN_STATES);
		if (!conn_edge(*from, *to) && i-- == 0)
			return true;
	}
	return false;
}

static int no_edges(void)
{
	enum conn_state from, to;
	int n = 0;

	while (no_edge(n, &from, &to))
		n++;
	return n;
}

START_TEST(a_way_that_is_no_edge_aborts)
{
	struct conn *c = conn_new(&pool, 7);
	enum conn_state from, to;

	ck_assert(no_edge(_i, &from, &to));
	c->state = (uint8_t)from;
	conn_set_state(c, to, &ctr);
}
END_TEST

START_TEST(reaping_what_the_kernel_has_on_loan_aborts)
{
	struct conn *c = conn_new(&pool, 7);

	conn_set_state(c, CONN_HANDSHAKE, &ctr);
	conn_lend(c);
	conn_set_state(c, CONN_CLOSING, &ctr);
	end(c);
}
END_TEST

START_TEST(reaping_an_open_descriptor_aborts)
{
	struct conn *c = conn_new(&pool, 7);

	conn_set_state(c, CONN_HANDSHAKE, &ctr);
	conn_set_state(c, CONN_CLOSING, &ctr);
	conn_reap(&pool, &c);
}
END_TEST

START_TEST(returning_what_was_not_lent_aborts)
{
	conn_return(conn_new(&pool, 7));
}
END_TEST

START_TEST(an_event_of_an_earlier_user_aborts)
{
	static const enum conn_state path[] = {CONN_HANDSHAKE, CONN_CLOSING};
	struct conn *c = conn_new(&pool, 7);
	uint64_t word = conn_word(c, CONN_OP_RECV);

	walk(c, path, 2);
	end(c);
	conn_lend(conn_new(&pool, 8));
	conn_of_word(&pool, word);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conn");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	TCase *cases[] = {works, limits, refuses};
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(works, the_gauges_follow_the_state);
	tcase_add_test(works,
		       a_failed_handshake_is_not_open_while_its_alert_is_sent);
	tcase_add_test(works, a_place_is_used_again_as_new);
	tcase_add_test(works, a_word_leads_to_its_connection);
	tcase_add_test(works, the_page_has_every_state_and_edge);
	tcase_add_test(works, every_state_can_be_reached_and_left);
	tcase_add_test(limits, marks_keep_every_request);
	tcase_add_loop_test_raise_signal(refuses, a_way_that_is_no_edge_aborts,
					 SIGABRT, 0, no_edges());
	tcase_add_test_raise_signal(
		refuses, reaping_what_the_kernel_has_on_loan_aborts, SIGABRT);
	tcase_add_test_raise_signal(refuses, reaping_an_open_descriptor_aborts,
				    SIGABRT);
	tcase_add_test_raise_signal(refuses, returning_what_was_not_lent_aborts,
				    SIGABRT);
	tcase_add_test_raise_signal(refuses, an_event_of_an_earlier_user_aborts,
				    SIGABRT);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		tcase_add_checked_fixture(cases[i], set_up, NULL);
		suite_add_tcase(s, cases[i]);
	}
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
