/* SPDX-License-Identifier: MIT */
/*
 * The result on disk: DIR/NAME-TIME/ with result.json, the scenario as run and
 * the table. Each file is written beside its place and renamed, so that a
 * reader never sees half of one.
 */
#ifndef TERMINATOR_OUT_H
#define TERMINATOR_OUT_H

#include "terminator/mst.h"

#include <stddef.h>

#define OUT_SCHEMA	   "tterm-result"
#define OUT_SCHEMA_VERSION 1

struct out;

/*
 * Before anything is measured: makes result.dir and the run's folder in it, so
 * that a place that cannot be written is known now. 0, and the caller owns
 * *out; or -errno with a sentence in err that names the folder.
 */
int out_open(struct out **out, const struct cfg *cfg, char *err, size_t len);

/* Borrowed: the run's folder. */
const char *out_dir(const struct out *out);

/* `status`: the exit status to come; `table`: the text shown. 0 or -errno with
 * a sentence in err. */
int out_write(struct out *out, const struct mst *mst, const struct cfg *cfg,
	      const struct mst_report *report, int status, const char *table,
	      char *err, size_t len);

/* Removes the folder if nothing was written to it. */
void out_close(struct out **out);

#endif
