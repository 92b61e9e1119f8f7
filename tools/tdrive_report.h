/* SPDX-License-Identifier: MIT */
/* What a run by hand measured, as a table and as JSON. */
#ifndef TOOLS_TDRIVE_REPORT_H
#define TOOLS_TDRIVE_REPORT_H

#include "config/cfg.h"
#include "shm/seg.h"
#include "tools/tdrive_load.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_NOTES 256u

/* A copy of the slot's figures at one moment, or a difference of two. */
struct report_take {
	uint64_t ns; /* clk_now(), or between the two */
	uint64_t cpu_ns;
	uint64_t ctr[CTR_IDS];
	struct hist_view hist[HIST_IDS];
};

struct report {
	const char *url;     /* borrowed, as are all texts */
	const char *library; /* "OpenSSL 3.0.22" */
	const char *ring;
	const struct load_phase *phase;	   /* borrowed */
	const char (*note)[LOAD_NOTE_MAX]; /* borrowed; of load_note() */
	uint32_t notes;
	uint64_t asked_ns;	  /* length that was asked for */
	bool interrupted;	  /* before that was over */
	struct report_take took;  /* the measured window */
	struct report_take whole; /* from the start to the last close */
};

/* By the slot's writer itself, between two turns. */
void report_take(struct report_take *out, const struct shm_slot *slot);
/* to = later - earlier for sums and histograms; gauges are `later`'s. */
void report_diff(struct report_take *to, const struct report_take *later,
		 const struct report_take *earlier);

uint64_t report_handshakes(const struct report_take *took);
uint64_t report_failed(const struct report_take *took);

/* Were tickets to be accepted, and in the whole run none was? */
bool report_none_resumed(const struct report *r);

/* Has the driver itself set the pace? */
bool report_busy(const struct report *r);

/*
 * The exit status (shm/base.h); for all but EXIT_GOOD one sentence in `why`.
 */
int report_verdict(const struct report *r, char *why, size_t len);

/* "open loop, 500/s constant" or "closed loop, 32 connections". */
#define REPORT_LOOP_LEN 96
void report_loop(const struct report *r, char to[static REPORT_LOOP_LEN]);

void report_table(const struct report *r, FILE *out);
/* 0 or -ENOMEM or -EIO. */
int report_json(const struct report *r, FILE *out);

#endif
