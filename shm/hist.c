/* SPDX-License-Identifier: MIT */
#include "shm/hist.h"

#include "shm/base.h"

#include <math.h>

uint64_t hist_low(uint32_t index)
{
	const uint32_t linear = 1u << (HIST_SUB_BITS + 1);
	uint32_t shift;
	uint64_t units;

	if (index < linear)
		return (uint64_t)index << HIST_UNIT_SHIFT;
	/* The inverse of hist_index(): index = 32 * shift + 32..63. */
	shift = (index >> HIST_SUB_BITS) - 1;
	units = (uint64_t)(index - (shift << HIST_SUB_BITS)) << shift;
	return units << HIST_UNIT_SHIFT;
}

uint64_t hist_high(uint32_t index)
{
	return hist_low(index + 1);
}

void hist_copy(struct hist_view *to, const struct hist *from)
{
	to->sum = atomic_load_explicit(&from->sum, memory_order_relaxed);
	to->max = atomic_load_explicit(&from->max, memory_order_relaxed);
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		to->bucket[i] = atomic_load_explicit(&from->bucket[i],
						     memory_order_relaxed);
}

uint64_t hist_count(const struct hist_view *v)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		n += v->bucket[i];
	return n;
}

void hist_add(struct hist_view *to, const struct hist_view *from)
{
	to->sum += from->sum;
	to->max = base_max(to->max, from->max);
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

void hist_diff(struct hist_view *out, const struct hist_view *later,
	       const struct hist_view *earlier)
{
	uint64_t later_max = later->max;
	uint64_t top = 0;

	MUST(later->sum >= earlier->sum);
	out->sum = later->sum - earlier->sum;
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		MUST(later->bucket[i] >= earlier->bucket[i]);
		out->bucket[i] = later->bucket[i] - earlier->bucket[i];
		if (out->bucket[i] > 0)
			top = i + 1;
	}
	/* The last bucket has no upper edge: its largest may be any. */
	if (top == HIST_BUCKETS)
		out->max = later_max;
	else
		out->max = base_min(hist_low((uint32_t)top), later_max);
}

/*
 * q/100 * count in floating point may come out a hair above a whole number
 * (99.9 of 1000): it is lowered by less than any real share of a value.
 */
static uint64_t rank_of(double q, uint64_t count)
{
	double exact = fmin(fmax(q, 0), 100) * (double)count / 100;
	uint64_t rank = (uint64_t)ceil(exact * (1 - 1e-12));

	return base_min(base_max(rank, 1), count);
}

uint64_t hist_percentile(const struct hist_view *v, double q)
{
	uint64_t count = hist_count(v), seen = 0, rank;

	if (count == 0)
		return 0;
	rank = rank_of(q, count);
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		uint64_t low = hist_low(i), middle;

		seen += v->bucket[i];
		if (seen < rank)
			continue;
		middle = low + (hist_high(i) - low) / 2;
		return base_min(middle, v->max);
	}
	return v->max;
}

double hist_mean(const struct hist_view *v)
{
	uint64_t count = hist_count(v);

	return count > 0 ? (double)v->sum / (double)count : 0;
}
