/* SPDX-License-Identifier: MIT */
/*
 * A scenario from a text, for the tests of config/: the file s.yaml in a folder
 * of its own, made and removed by the fixture; messages say "s.yaml:LINE: ...".
 */
#ifndef TESTS_UNIT_CONFIG_SCENARIO_H
#define TESTS_UNIT_CONFIG_SCENARIO_H

#include "config/cfg.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scenario_dir[64];

static inline void scenario_setup(void)
{
	strcpy(scenario_dir, "/tmp/tterm-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(scenario_dir));
	ck_assert_int_eq(chdir(scenario_dir), 0);
}

static inline void scenario_teardown(void)
{
	unlink("s.yaml");
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(rmdir(scenario_dir), 0);
}

static inline void scenario_write(const char *bytes, size_t len)
{
	FILE *f = fopen("s.yaml", "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
}

/* Loads s.yaml; what is told goes to *errs, which the caller frees. */
static inline int scenario_reload(struct cfg **out, const char *const *sets,
				  size_t nsets, char **errs)
{
	size_t len;
	FILE *f = open_memstream(errs, &len);
	int rc;

	ck_assert_ptr_nonnull(f);
	rc = cfg_load(out, "s.yaml", sets, nsets, f);
	ck_assert_int_eq(fclose(f), 0);
	return rc;
}

static inline int scenario_load(struct cfg **out, const char *yaml,
				const char *const *sets, size_t nsets,
				char **errs)
{
	scenario_write(yaml, strlen(yaml));
	return scenario_reload(out, sets, nsets, errs);
}

/* A good scenario; nothing is told. The caller ends it with cfg_free(). */
static inline struct cfg *scenario_good(const char *yaml,
					const char *const *sets, size_t nsets)
{
	struct cfg *cfg = NULL;
	char *errs;
	int rc = scenario_load(&cfg, yaml, sets, nsets, &errs);

	ck_assert_msg(rc == 0 && errs[0] == '\0', "%s\nis refused:\n%s", yaml,
		      errs);
	free(errs);
	return cfg;
}

/* Everything that is told about a scenario that is refused. */
static inline void scenario_refused(const char *yaml, const char *const *sets,
				    size_t nsets, const char *expected)
{
	struct cfg *cfg = NULL;
	char *errs;
	int rc = scenario_load(&cfg, yaml, sets, nsets, &errs);

	ck_assert_msg(rc == -EINVAL, "%s\nis not refused (%d)", yaml, rc);
	ck_assert_ptr_null(cfg);
	ck_assert_str_eq(errs, expected);
	free(errs);
}

/*
 * cfg_print() as a text that the caller frees. Not inlined: gcc 12 takes what
 * open_memstream() gives for a pointer to `text` itself.
 */
__attribute__((noinline, unused)) static char *scenario_printed(
	const struct cfg *cfg)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(cfg_print(cfg, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

#endif
