/* SPDX-License-Identifier: MIT */
/* What every file may use: the version, MUST() and small arithmetic. */
#ifndef SHM_BASE_H
#define SHM_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTERM_VERSION "0.1.0"

#define CACHELINE    64
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* Exit statuses of every program (design: "Trust"). */
enum {
	EXIT_GOOD = 0,	   /* finished, and the figures stand */
	EXIT_RUN = 1,	   /* the run failed */
	EXIT_USAGE = 2,	   /* wrong arguments or scenario */
	EXIT_DOUBTFUL = 3, /* finished, but not to be trusted */
};

/* Our own mistakes: always compiled in, aborts with place and expression. */
#define MUST(expr) \
	((expr) ? (void)0 : base_must_failed(#expr, __FILE__, __LINE__))

_Noreturn void base_must_failed(const char *expr, const char *file, int line);

/*
 * The commit this was built from ("8859ef0-dirty"), or "unknown". A function,
 * so that a new commit compiles one file again and not all.
 */
const char *base_commit(void);

static inline uint64_t base_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t base_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
