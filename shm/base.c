/* SPDX-License-Identifier: MIT */
#include "shm/base.h"

#include <stdio.h>
#include <stdlib.h>

void base_must_failed(const char *expr, const char *file, int line)
{
	fprintf(stderr, "tterm: bug: %s:%d: MUST(%s) does not hold\n", file,
		line, expr);
	abort();
}

/* The Makefile sets it, for this file alone. */
#ifndef TTERM_COMMIT
#define TTERM_COMMIT "unknown"
#endif

const char *base_commit(void)
{
	return TTERM_COMMIT;
}
