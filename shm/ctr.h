/* SPDX-License-Identifier: MIT */
/*
 * Counters and histograms of one slot, and their descriptions.
 *
 * The rows of counters.def and histograms.def make everything here: the block
 * in the segment, the enumerations, the descriptors, the reference page.
 *
 * Writers    one process per slot; between shm_begin() and shm_end() (seg.h).
 * Readers    by snapshot (seg.h), never directly.
 */
#ifndef SHM_CTR_H
#define SHM_CTR_H

#include "shm/hist.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum ctr_kind {
	CTR_SUM,
	CTR_GAUGE,
	CTR_MAX,
	CTR_HISTOGRAM
};
enum ctr_unit {
	CTR_COUNT,
	CTR_NS,
	CTR_BYTES
};
enum ctr_level {
	CTR_INFO,
	CTR_DEBUG
};
enum ctr_role {
	CTR_WORKER = 1,
	CTR_DRIVER = 2,
	CTR_BOTH = 3
};

enum ctr_id {
#define COUNTER(name, ...) CTR_ID_##name,
#include "shm/counters.def"
	CTR_IDS
};

enum hist_id {
#define HISTOGRAM(name, ...) HIST_ID_##name,
#include "shm/histograms.def"
	HIST_IDS
};

/* Not opaque: the hot path adds to members by name. */
struct ctr_block {
#define COUNTER(name, ...) _Atomic uint64_t name;
#include "shm/counters.def"
};

struct hist_block {
#define HISTOGRAM(name, ...) struct hist name;
#include "shm/histograms.def"
};

_Static_assert(sizeof(struct ctr_block) == CTR_IDS * sizeof(uint64_t),
	       "one 64-bit word per row");
_Static_assert(sizeof(struct hist_block) == HIST_IDS * sizeof(struct hist),
	       "one histogram per row");

/* One row as a reader sees it; also what lies in the segment, byte for byte. */
#define CTR_NAME_MAX 32
#define CTR_HELP_MAX 120

struct ctr_desc {
	char name[CTR_NAME_MAX];
	char counter[CTR_NAME_MAX]; /* histograms: counter of equal count */
	char help[CTR_HELP_MAX];
	uint32_t kind; /* enum ctr_kind */
	uint32_t unit;
	uint32_t level;
	uint32_t role;
	uint32_t offset; /* in the slot's block of its kind, bytes */
	uint32_t size;	 /* bytes */
};

/* Rows of this build: CTR_IDS counters, then HIST_IDS histograms. */
extern const struct ctr_desc ctr_descs[CTR_IDS + HIST_IDS];

/* Hash of the rows (FNV-1a over name, kind, unit, role). */
uint64_t ctr_rows_hash(void);

const char *ctr_kind_name(uint32_t kind);
const char *ctr_unit_name(uint32_t unit);
const char *ctr_role_name(uint32_t role);

/* Counters that count a failed handshake: every row named failed_*. */
bool ctr_is_failure(const struct ctr_desc *d);

/* The reference page shm/COUNTERS.md, as Markdown. */
void ctr_describe(FILE *out);

/* Hot path, the slot's own writer only: relaxed load, add, relaxed store. */
static inline void ctr_add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c,
			      atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void ctr_sub(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c,
			      atomic_load_explicit(c, memory_order_relaxed) - n,
			      memory_order_relaxed);
}

static inline void ctr_set(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, n, memory_order_relaxed);
}

static inline void ctr_raise(_Atomic uint64_t *c, uint64_t n)
{
	if (n > atomic_load_explicit(c, memory_order_relaxed))
		atomic_store_explicit(c, n, memory_order_relaxed);
}

#endif
