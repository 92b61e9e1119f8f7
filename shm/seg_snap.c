/* SPDX-License-Identifier: MIT */
/* Snapshots: consistent copies of a slot, and arithmetic by each row's kind. */
#include "shm/seg_int.h"

#include "shm/clk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A writer is inside an event for a microsecond: sleep only if it was stopped.
 */
#define SPINS	   100
#define NAP_NS	   (20 * 1000)
#define GIVE_UP_NS (100 * NS_PER_MS)

int shm_snap_init(struct shm_snap *snap, const struct shm_seg *seg)
{
	uint32_t nctr = shm_seg_nctr(seg), nhist = shm_seg_nhist(seg);
	uint64_t *ctr = calloc(nctr, sizeof(*ctr));
	/* At least one: calloc(0) may answer NULL. */
	struct hist_view *hist = calloc(nhist + 1, sizeof(*hist));

	if (ctr == NULL || hist == NULL) {
		free(ctr);
		free(hist);
		return -ENOMEM;
	}
	*snap = (struct shm_snap){
		.nctr = nctr, .nhist = nhist, .ctr = ctr, .hist = hist};
	return 0;
}

void shm_snap_fini(struct shm_snap *snap)
{
	free(snap->ctr);
	free(snap->hist);
	*snap = (struct shm_snap){0};
}

/* ---- the copy ---- */

static const void *slot_at(const struct shm_seg *seg, uint32_t index)
{
	const struct seg_head *h = &seg->head;

	MUST(index < h->nslots);
	return seg->map + h->slot_offset + (size_t)index * h->slot_size;
}

#define GET(member) atomic_load_explicit(&(member), memory_order_relaxed)

static void copy_head(struct shm_snap *out, const struct shm_slot *slot)
{
	out->role = GET(slot->role);
	out->state = GET(slot->state);
	out->generation = GET(slot->generation);
	out->number = GET(slot->number);
	out->pid = GET(slot->pid);
	out->cpu = GET(slot->cpu);
	out->heartbeat_ns = GET(slot->heartbeat_ns);
	out->started_ns = GET(slot->started_ns);
}

/* By the descriptors: the slot may be laid out by another build. */
static void copy_blocks(struct shm_snap *out, const struct shm_seg *seg,
			const void *slot)
{
	const unsigned char *base = slot;
	const struct ctr_desc *d = seg->desc;

	base += seg->head.ctr_offset;
	for (uint32_t i = 0; i < out->nctr; i++, d++) {
		const void *at = base + d->offset;

		out->ctr[i] = GET(*(const _Atomic uint64_t *)at);
	}
	base = slot;
	base += seg->head.hist_offset;
	for (uint32_t i = 0; i < out->nhist; i++, d++) {
		const void *at = base + d->offset;

		hist_copy(&out->hist[i], at);
	}
}

/* True if no event came between. */
static bool try_copy(struct shm_snap *out, const struct shm_seg *seg,
		     const struct shm_slot *slot)
{
	uint32_t s = atomic_load_explicit(&slot->seq, memory_order_acquire);

	copy_head(out, slot);
	copy_blocks(out, seg, slot);
	atomic_thread_fence(memory_order_acquire);
	return s % 2 == 0 && GET(slot->seq) == s;
}

void shm_snap(const struct shm_seg *seg, uint32_t index, struct shm_snap *out)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	const struct shm_slot *slot = slot_at(seg, index);
	uint64_t began = clk_now();

	MUST(out->nctr == seg->head.nctr && out->nhist == seg->head.nhist);
	out->torn = true;
	for (unsigned i = 0; out->torn && seg_whole(seg); i++) {
		out->torn = !try_copy(out, seg, slot);
		if (out->torn && clk_now() - began > GIVE_UP_NS)
			break;
		if (out->torn && i >= SPINS)
			nanosleep(&nap, NULL);
	}
	out->taken_ns = clk_now();
}

/* ---- arithmetic ---- */

void shm_snap_copy(struct shm_snap *to, const struct shm_snap *from)
{
	uint64_t *ctr = to->ctr;
	struct hist_view *hist = to->hist;

	MUST(to->nctr == from->nctr && to->nhist == from->nhist);
	if (to == from)
		return;
	*to = *from;
	to->ctr = ctr;
	to->hist = hist;
	memcpy(ctr, from->ctr, from->nctr * sizeof(*ctr));
	memcpy(hist, from->hist, from->nhist * sizeof(*hist));
}

void shm_snap_fold(const struct shm_seg *seg, struct shm_snap *to,
		   const struct shm_snap *from)
{
	MUST(to->nctr == from->nctr && to->nhist == from->nhist);
	to->torn = to->torn || from->torn;
	to->taken_ns = base_max(to->taken_ns, from->taken_ns);
	for (uint32_t i = 0; i < to->nctr; i++) {
		if (seg->desc[i].kind == CTR_MAX)
			to->ctr[i] = base_max(to->ctr[i], from->ctr[i]);
		else
			to->ctr[i] += from->ctr[i];
	}
	for (uint32_t i = 0; i < to->nhist; i++)
		hist_add(&to->hist[i], &from->hist[i]);
}

void shm_snap_diff(const struct shm_seg *seg, struct shm_snap *to,
		   const struct shm_snap *later, const struct shm_snap *earlier)
{
	uint64_t *ctr = to->ctr;
	struct hist_view *hist = to->hist;

	MUST(to->nctr == later->nctr && to->nhist == later->nhist);
	MUST(to->nctr == earlier->nctr && to->nhist == earlier->nhist);
	for (uint32_t i = 0; i < to->nctr; i++) {
		uint64_t l = later->ctr[i], e = earlier->ctr[i];

		MUST(seg->desc[i].kind != CTR_SUM || l >= e);
		ctr[i] = seg->desc[i].kind == CTR_SUM ? l - e : l;
	}
	for (uint32_t i = 0; i < to->nhist; i++)
		hist_diff(&hist[i], &later->hist[i], &earlier->hist[i]);
	*to = *later;
	to->torn = later->torn || earlier->torn;
	to->ctr = ctr;
	to->hist = hist;
}

uint64_t shm_snap_ctr(const struct shm_seg *seg, const struct shm_snap *snap,
		      enum ctr_id id)
{
	int32_t at = seg->at[id];

	return at < 0 ? 0 : snap->ctr[at];
}

const struct hist_view *shm_snap_hist(const struct shm_seg *seg,
				      const struct shm_snap *snap,
				      enum hist_id id)
{
	int32_t at = seg->at[CTR_IDS + id];

	return at < 0 ? NULL : &snap->hist[at - (int32_t)snap->nctr];
}

uint64_t shm_snap_failed(const struct shm_seg *seg, const struct shm_snap *snap)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < seg->nfailures; i++)
		n += snap->ctr[seg->failures[i]];
	return n;
}
