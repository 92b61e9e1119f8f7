/* SPDX-License-Identifier: MIT */
/*
 * A flat log-linear histogram that can lie in shared memory.
 *
 * Values are nanoseconds. They are counted in units of 16 ns. Below 64 units
 * (1,024 ns) every unit has a bucket of its own; above, each power of two is
 * cut into 32 equal buckets. HDR terms: lowest discernible value 16 ns, highest
 * trackable value 2^36 ns (68.7 s, "60 s" rounded up to a power of two).
 *
 * Error. A bucket of the octave [2^k, 2^(k+1)) is 2^k/32 wide and reported by
 * its middle, so a value v >= 2^k in it is off by at most 2^k/64 <= v/64, which
 * is 1.6 %. In the linear part a bucket is 16 ns wide and off by at most 8 ns,
 * which is v/64 from 512 ns on; so the bound of 1/64 holds from 1 us (and
 * below) to 68 s. Larger values land in the last bucket and are seen in `max`.
 *
 * Writers    one process per histogram, inside shm_begin()/shm_end().
 * Readers    copy to a struct hist_view within a consistent snapshot.
 * The number of values is the sum of the buckets: there is no second figure
 * that could disagree.
 */
#ifndef SHM_HIST_H
#define SHM_HIST_H

#include <stdatomic.h>
#include <stdint.h>

#define HIST_UNIT_SHIFT 4 /* 16 ns */
#define HIST_SUB_BITS	5 /* 32 buckets per octave */
#define HIST_TOP_BITS	36
#define HIST_BUCKETS \
	((HIST_TOP_BITS - HIST_UNIT_SHIFT - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

/* Not opaque: it lies in the segment and the hot path writes it inline. */
struct hist {
	_Atomic uint64_t sum; /* of all values, ns */
	_Atomic uint64_t max; /* largest value ever, ns */
	_Atomic uint64_t bucket[HIST_BUCKETS];
};

/* A private copy: plain memory, caller's storage. */
struct hist_view {
	uint64_t sum;
	uint64_t max;
	uint64_t bucket[HIST_BUCKETS];
};

/* Bucket of a value; the last one for anything too large. */
static inline uint32_t hist_index(uint64_t ns)
{
	uint64_t u = ns >> HIST_UNIT_SHIFT;

	if (u < (1u << (HIST_SUB_BITS + 1)))
		return (uint32_t)u;
	if (ns >= (UINT64_C(1) << HIST_TOP_BITS))
		return HIST_BUCKETS - 1;
	uint32_t shift = 63u - (uint32_t)__builtin_clzll(u) - HIST_SUB_BITS;

	return (shift << HIST_SUB_BITS) + (uint32_t)(u >> shift);
}

/* Smallest value of a bucket, and the smallest of the next one, in ns. */
uint64_t hist_low(uint32_t index);
uint64_t hist_high(uint32_t index);

/* Hot path: three relaxed loads and stores, no locked instruction. */
static inline void hist_record(struct hist *h, uint64_t ns)
{
	_Atomic uint64_t *b = &h->bucket[hist_index(ns)];

	atomic_store_explicit(b,
			      atomic_load_explicit(b, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_store_explicit(
		&h->sum,
		atomic_load_explicit(&h->sum, memory_order_relaxed) + ns,
		memory_order_relaxed);
	if (ns > atomic_load_explicit(&h->max, memory_order_relaxed))
		atomic_store_explicit(&h->max, ns, memory_order_relaxed);
}

/* Copies with relaxed loads; consistent only inside a snapshot. */
void hist_copy(struct hist_view *to, const struct hist *from);

/* Number of values. */
uint64_t hist_count(const struct hist_view *v);

/* to += from; max is the larger one. */
void hist_add(struct hist_view *to, const struct hist_view *from);

/*
 * What was recorded between two snapshots of one histogram: later - earlier.
 * Its max is the upper edge of its highest filled bucket, never above
 * later->max. Aborts if a bucket fell: that would be a bug.
 */
void hist_diff(struct hist_view *out, const struct hist_view *later,
	       const struct hist_view *earlier);

/*
 * Nearest-rank percentile, q in 0..100: the middle of the bucket that holds the
 * ceil(q/100 * count)-th value, never above max. 0 for an empty histogram: ask
 * hist_count() first and print "n/a".
 */
uint64_t hist_percentile(const struct hist_view *v, double q);

/* Exact mean (sum / count) in ns; 0 for an empty one. */
double hist_mean(const struct hist_view *v);

#endif
