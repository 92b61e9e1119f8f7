/* SPDX-License-Identifier: MIT */
/* A run as a person reads it: at most 100 columns, units in the heads. */
#ifndef TERMINATOR_TBL_H
#define TERMINATOR_TBL_H

#include "terminator/mst.h"

#include <stdio.h>

struct tbl_style {
	bool utf8;   /* may draw signs that are not ASCII */
	bool colour; /* may use ANSI colours */
};

/*
 * The head, a table of the phases that are a result, checks, limits and doubts.
 * A phase of full and one of resumed handshakes stand side by side; any other
 * set of phases follows one after the other.
 */
void tbl_print(FILE *out, const struct mst *mst, const struct cfg *cfg,
	       const struct mst_report *report, struct tbl_style style);

#endif
