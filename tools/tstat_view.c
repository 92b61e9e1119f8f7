/* SPDX-License-Identifier: MIT */
#include "tools/tstat.h"

#include "shm/clk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A slot that was never given to a process is of no interest. */
static bool is_used(const struct shm_snap *s)
{
	return s->role == SHM_WORKER || s->role == SHM_DRIVER;
}

static void add_to_total(struct view *v, const struct shm_snap *s)
{
	bool worker = s->role == SHM_WORKER;
	uint32_t *n = worker ? &v->nworkers : &v->ndrivers;

	shm_snap_fold(v->seg, worker ? &v->workers : &v->drivers, s);
	(*n)++;
}

int view_take(struct view *v, const struct shm_seg *seg)
{
	uint32_t nslots = shm_seg_nslots(seg);

	memset(v, 0, sizeof(*v));
	v->seg = seg;
	v->snap = calloc(nslots, sizeof(*v->snap));
	if (v->snap == NULL || shm_snap_init(&v->workers, seg) < 0 ||
	    shm_snap_init(&v->drivers, seg) < 0)
		goto fail;
	for (uint32_t i = 0; i < nslots; i++) {
		if (shm_snap_init(&v->snap[v->n], seg) < 0)
			goto fail;
		shm_snap(seg, i, &v->snap[v->n]);
		if (is_used(&v->snap[v->n]))
			add_to_total(v, &v->snap[v->n++]);
		else
			shm_snap_fini(&v->snap[v->n]);
	}
	shm_seg_info(seg, &v->info);
	shm_seg_phase(seg, &v->phase);
	v->alive = shm_seg_alive(seg);
	v->now_ns = clk_now();
	return 0;
fail:
	view_fini(v);
	return -ENOMEM;
}

void view_fini(struct view *v)
{
	for (uint32_t i = 0; v->snap != NULL && i < v->n; i++)
		shm_snap_fini(&v->snap[i]);
	free(v->snap);
	shm_snap_fini(&v->workers);
	shm_snap_fini(&v->drivers);
	memset(v, 0, sizeof(*v));
}

struct identity view_identity(const struct view *v, const struct shm_snap *s)
{
	struct identity id = {
		.begun = shm_snap_ctr(v->seg, s, CTR_ID_conn_accepted) +
			 shm_snap_ctr(v->seg, s, CTR_ID_conn_started),
		.full = shm_snap_ctr(v->seg, s, CTR_ID_hs_full),
		.resumed = shm_snap_ctr(v->seg, s, CTR_ID_hs_resumed),
		.failed = shm_snap_failed(v->seg, s),
		.in_progress = shm_snap_ctr(v->seg, s, CTR_ID_hs_in_progress),
	};

	id.holds =
		id.begun == id.full + id.resumed + id.failed + id.in_progress;
	return id;
}

uint64_t view_up_ns(const struct view *v)
{
	uint64_t made = shm_seg_created_ns(v->seg);

	return v->now_ns > made ? v->now_ns - made : 0;
}

uint64_t view_left_ns(const struct view *v)
{
	const struct shm_phase *p = &v->phase;
	uint64_t gone = v->now_ns > p->began_ns ? v->now_ns - p->began_ns : 0;

	return p->duration_ns > gone ? p->duration_ns - gone : 0;
}

/* ---- words; the numbers may be of a damaged segment ---- */

const char *view_role(uint32_t role)
{
	return role == SHM_WORKER ? "worker" : "driver";
}

const char *view_slot_state(uint32_t state)
{
	static const char *const words[] = {
		[SHM_SLOT_EMPTY] = "empty",
		[SHM_SLOT_STARTING] = "starting",
		[SHM_SLOT_RUNNING] = "running",
		[SHM_SLOT_DRAINING] = "draining",
		[SHM_SLOT_ENDED] = "ended",
		[SHM_SLOT_DEAD] = "dead",
	};

	return state < ARRAY_LEN(words) ? words[state] : "unknown";
}

const char *view_phase_state(const struct shm_phase *p)
{
	static const char *const words[] = {
		[SHM_PHASE_NONE] = "starting",
		[SHM_PHASE_PRIME] = "priming",
		[SHM_PHASE_WARMUP] = "warming up",
		[SHM_PHASE_MEASURE] = "measuring",
		[SHM_PHASE_SETTLE] = "settling",
		[SHM_PHASE_DONE] = "done",
	};

	if (p->state == SHM_PHASE_NONE && p->count == 0)
		return "serving";
	return p->state < ARRAY_LEN(words) ? words[p->state] : "unknown";
}
