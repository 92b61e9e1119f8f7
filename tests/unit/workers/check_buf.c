/* SPDX-License-Identifier: MIT */
#include "workers/buf.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

/* Takes everything out in steps of `step`, compares, returns how much it was.
 */
static size_t drain(struct buf_pool *pool, struct buf_chain *chain, size_t step)
{
	size_t total = 0;
	const uint8_t *at;
	size_t n;

	while ((n = buf_front(chain, &at)) > 0) {
		n = n < step ? n : step;
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_eq(at[i], byte_at(total + i));
		buf_consume(pool, chain, n);
		total += n;
	}
	return total;
}

START_TEST(bytes_come_out_as_they_went_in)
{
	static const size_t steps[] = {1, 100, 4096, BUF_CAP, 3 * BUF_CAP};
	size_t n = 3 * BUF_CAP + 17;
	uint8_t *p = malloc(n);
	struct buf_chain chain = {0};
	struct buf_pool pool;

	for (size_t i = 0; i < n; i++)
		p[i] = byte_at(i);
	buf_pool_init(&pool, 8);
	ck_assert_int_eq(buf_append(&pool, &chain, p, 5), 0);
	ck_assert_int_eq(buf_append(&pool, &chain, p + 5, n - 5), 0);
	ck_assert_uint_eq(chain.bytes, n);
	ck_assert_uint_eq(pool.in_use, 4);
	ck_assert_uint_eq(drain(&pool, &chain, steps[_i]), n);
	ck_assert_uint_eq(pool.in_use, 0);
	ck_assert_ptr_null(chain.head);
	buf_pool_fini(&pool);
	free(p);
}
END_TEST

START_TEST(a_drained_buffer_is_the_next_one_taken)
{
	struct buf_pool pool;
	struct buf *a, *b, *again;

	buf_pool_init(&pool, 200);
	a = buf_get(&pool);
	b = buf_get(&pool);
	ck_assert_ptr_ne(a, b);
	again = a;
	buf_put(&pool, &a);
	ck_assert_ptr_null(a);
	a = buf_get(&pool);
	ck_assert_ptr_eq(a, again);
	buf_put(&pool, &a);
	buf_put(&pool, &b);
	buf_put(&pool, &b);
	ck_assert_uint_eq(pool.in_use, 0);
	buf_pool_fini(&pool);
}
END_TEST

START_TEST(room_without_bytes_is_given_back)
{
	struct buf_chain chain = {0};
	struct buf_pool pool;
	const uint8_t *front;
	uint8_t *at;
	size_t len;

	buf_pool_init(&pool, 1);
	ck_assert_int_eq(buf_room(&pool, &chain, &at, &len), 0);
	ck_assert_uint_eq(len, BUF_CAP);
	ck_assert_uint_eq(buf_front(&chain, &front), 0);
	buf_clear(&pool, &chain);
	ck_assert_uint_eq(pool.in_use, 0);
	buf_pool_fini(&pool);
}
END_TEST

START_TEST(the_limit_refuses_and_copies_nothing)
{
	static const uint8_t zeros[2 * BUF_CAP + 1];
	struct buf_chain chain = {0};
	struct buf_pool pool;

	buf_pool_init(&pool, 2);
	ck_assert_int_eq(buf_append(&pool, &chain, zeros, 1), 0);
	ck_assert_int_eq(buf_append(&pool, &chain, zeros, sizeof(zeros)),
			 -ENOMEM);
	ck_assert_uint_eq(chain.bytes, 1);
	ck_assert_int_eq(buf_append(&pool, &chain, zeros, 2 * BUF_CAP - 1), 0);
	ck_assert_int_eq(buf_append(&pool, &chain, zeros, 1), -ENOMEM);
	ck_assert_ptr_null(buf_get(&pool));
	buf_clear(&pool, &chain);
	buf_pool_fini(&pool);
}
END_TEST

START_TEST(a_pool_of_many_blocks_gives_distinct_buffers)
{
	enum {
		N = 200
	};
	struct buf *b[N];
	struct buf_pool pool;

	buf_pool_init(&pool, N);
	for (int i = 0; i < N; i++) {
		b[i] = buf_get(&pool);
		ck_assert_ptr_nonnull(b[i]);
		memset(b[i]->data, i, BUF_CAP);
	}
	ck_assert_ptr_null(buf_get(&pool));
	for (int i = 0; i < N; i++) {
		ck_assert_uint_eq(b[i]->data[0], (uint8_t)i);
		ck_assert_uint_eq(b[i]->data[BUF_CAP - 1], (uint8_t)i);
		buf_put(&pool, &b[i]);
	}
	buf_pool_fini(&pool);
}
END_TEST

START_TEST(a_buffer_that_is_out_keeps_the_pool)
{
	struct buf_pool pool;

	buf_pool_init(&pool, 1);
	ck_assert_ptr_nonnull(buf_get(&pool));
	buf_pool_fini(&pool);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("buf");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(works, bytes_come_out_as_they_went_in, 0, 5);
	tcase_add_test(works, a_drained_buffer_is_the_next_one_taken);
	tcase_add_test(works, room_without_bytes_is_given_back);
	tcase_add_test(limits, the_limit_refuses_and_copies_nothing);
	tcase_add_test(limits, a_pool_of_many_blocks_gives_distinct_buffers);
	tcase_add_test_raise_signal(refuses,
				    a_buffer_that_is_out_keeps_the_pool, 6);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
