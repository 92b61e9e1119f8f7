/* SPDX-License-Identifier: MIT */
#include "shm/base.h"
#include "shm/ctr.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define ROWS (CTR_IDS + HIST_IDS)

/* The index of a counter's row; -1 if there is none. */
static int find(const char *name)
{
	for (int i = 0; i < (int)CTR_IDS; i++)
		if (strcmp(ctr_descs[i].name, name) == 0)
			return i;
	return -1;
}

START_TEST(every_name_is_there_once)
{
	for (size_t i = 0; i < ROWS; i++)
		for (size_t j = i + 1; j < ROWS; j++)
			ck_assert_str_ne(ctr_descs[i].name, ctr_descs[j].name);
}
END_TEST

START_TEST(every_text_ends_within_its_room)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct ctr_desc *d = &ctr_descs[i];

		ck_assert_ptr_nonnull(memchr(d->name, '\0', CTR_NAME_MAX));
		ck_assert_ptr_nonnull(memchr(d->counter, '\0', CTR_NAME_MAX));
		ck_assert_ptr_nonnull(memchr(d->help, '\0', CTR_HELP_MAX));
		ck_assert_uint_gt(strlen(d->name), 0);
		ck_assert_int_eq(d->help[strlen(d->help) - 1], '.');
	}
}
END_TEST

START_TEST(every_row_lies_where_its_member_does)
{
	struct ctr_block b;

	for (size_t i = 0; i < CTR_IDS; i++) {
		ck_assert_uint_eq(ctr_descs[i].offset, i * sizeof(uint64_t));
		ck_assert_uint_eq(ctr_descs[i].size, sizeof(uint64_t));
	}
	for (size_t i = 0; i < HIST_IDS; i++) {
		const struct ctr_desc *d = &ctr_descs[CTR_IDS + i];

		ck_assert_uint_eq(d->kind, CTR_HISTOGRAM);
		ck_assert_uint_eq(d->offset, i * sizeof(struct hist));
		ck_assert_uint_eq(d->size, sizeof(struct hist));
	}
	ck_assert_ptr_eq((char *)&b + ctr_descs[CTR_ID_hs_full].offset,
			 (char *)&b.hs_full);
}
END_TEST

START_TEST(every_histogram_names_a_counter_of_its_role)
{
	for (size_t i = CTR_IDS; i < ROWS; i++) {
		const struct ctr_desc *d = &ctr_descs[i];
		int at = find(d->counter);

		if (strcmp(d->counter, "-") == 0)
			continue;
		ck_assert_msg(at >= 0, "%s: no counter %s", d->name,
			      d->counter);
		ck_assert_uint_eq(ctr_descs[at].kind, CTR_SUM);
		ck_assert_uint_eq(ctr_descs[at].role & d->role, d->role);
	}
}
END_TEST

START_TEST(failures_are_the_rows_named_so)
{
	size_t n = 0;

	for (size_t i = 0; i < ROWS; i++) {
		bool named = strncmp(ctr_descs[i].name, "failed_", 7) == 0;

		ck_assert_int_eq(ctr_is_failure(&ctr_descs[i]), named);
		n += named;
	}
	ck_assert_uint_gt(n, 0);
	ck_assert(!ctr_is_failure(&ctr_descs[CTR_ID_hs_full]));
}
END_TEST

START_TEST(words_of_another_build_are_unknown_not_a_crash)
{
	ck_assert_str_eq(ctr_kind_name(CTR_SUM), "sum");
	ck_assert_str_eq(ctr_kind_name(CTR_HISTOGRAM), "histogram");
	ck_assert_str_eq(ctr_unit_name(CTR_NS), "ns");
	ck_assert_str_eq(ctr_role_name(CTR_BOTH), "both");
	ck_assert_str_eq(ctr_kind_name(4), "unknown");
	ck_assert_str_eq(ctr_unit_name(UINT32_MAX), "unknown");
	ck_assert_str_eq(ctr_role_name(0), "unknown");
}
END_TEST

START_TEST(adding_and_taking_away_meet_at_zero)
{
	_Atomic uint64_t c = 0;

	ctr_add(&c, 3);
	ctr_sub(&c, 2);
	ck_assert_uint_eq(c, 1);
	ctr_raise(&c, 9);
	ctr_raise(&c, 4);
	ck_assert_uint_eq(c, 9);
	ctr_set(&c, 0);
	ck_assert_uint_eq(c, 0);
}
END_TEST

START_TEST(the_page_has_every_row)
{
	char *page = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&page, &len);

	ck_assert_ptr_nonnull(f);
	ctr_describe(f);
	fclose(f);
	for (size_t i = 0; i < ROWS; i++) {
		ck_assert_ptr_nonnull(strstr(page, ctr_descs[i].name));
		ck_assert_ptr_nonnull(strstr(page, ctr_descs[i].help));
	}
	ck_assert_ptr_nonnull(strstr(page, "1/64"));
	free(page);
}
END_TEST

START_TEST(the_hash_is_of_the_rows_and_steady)
{
	ck_assert_uint_eq(ctr_rows_hash(), ctr_rows_hash());
	ck_assert_uint_ne(ctr_rows_hash(), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ctr");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(works, every_row_lies_where_its_member_does);
	tcase_add_test(works, every_histogram_names_a_counter_of_its_role);
	tcase_add_test(works, failures_are_the_rows_named_so);
	tcase_add_test(works, adding_and_taking_away_meet_at_zero);
	tcase_add_test(works, the_page_has_every_row);
	tcase_add_test(works, the_hash_is_of_the_rows_and_steady);
	tcase_add_test(limits, every_name_is_there_once);
	tcase_add_test(limits, every_text_ends_within_its_room);
	tcase_add_test(limits, words_of_another_build_are_unknown_not_a_crash);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
