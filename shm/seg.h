/* SPDX-License-Identifier: MIT */
/*
 * The segment: one POSIX shared-memory object mapped by the master, every
 * worker and driver, and any reader.
 *
 * Layout     header | descriptors | slot 0 | slot 1 | ...
 * Writers    the master writes the header. A slot has one writer: the process
 *            that holds it, or the master while none does (it then clears the
 *            gauges, repairs what a kill -9 left half done, keeps the sums).
 * Readers    map read-only and never lock. shm_snap() takes a consistent copy
 *            of one slot: a histogram's count equals its counter in it.
 * Lifetime   the master creates and unlinks. A segment whose owner (pid and
 *            start time) is gone is stale: the next master of that name takes
 *            the name over, readers mark it.
 *
 * Nothing in it is a pointer, and no key or certificate is ever in it.
 */
#ifndef SHM_SEG_H
#define SHM_SEG_H

#include "shm/base.h"
#include "shm/ctr.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SHM_LAYOUT_VERSION 1
#define SHM_NAME_MAX	   64 /* of a scenario or segment, with the NUL */
#define SHM_SLOTS_MAX	   768

enum shm_role {
	SHM_UNUSED,
	SHM_WORKER,
	SHM_DRIVER
};

enum shm_slot_state {
	SHM_SLOT_EMPTY,	   /* never used */
	SHM_SLOT_STARTING, /* forked, not yet ready */
	SHM_SLOT_RUNNING,
	SHM_SLOT_DRAINING,
	SHM_SLOT_ENDED, /* ended as it should */
	SHM_SLOT_DEAD,	/* died; being replaced, or given up */
};

enum shm_phase_state {
	SHM_PHASE_NONE,	   /* starting, or serving without a load */
	SHM_PHASE_PRIME,   /* drivers collect what the phase needs */
	SHM_PHASE_WARMUP,  /* load runs, nothing counts yet */
	SHM_PHASE_MEASURE, /* what counts */
	SHM_PHASE_SETTLE,  /* load ends, last connections close */
	SHM_PHASE_DONE,	   /* all phases are over */
};

/* One slot as it lies in the segment. Not opaque: the hot path writes it. */
struct shm_slot {
	_Atomic uint32_t seq; /* odd while an event's stores are under way */
	_Atomic uint32_t role;
	_Atomic uint32_t state;
	_Atomic uint32_t generation; /* 1 for the first process, +1 for each */
	_Atomic int32_t pid;	     /* 0: no live process */
	_Atomic int32_t cpu;	     /* pinned to; -1: not pinned */
	_Atomic uint32_t number;     /* worker 0.. or driver 0.. */
	_Atomic uint32_t reserved;
	_Atomic uint64_t heartbeat_ns; /* clk_now() of the last sign of life */
	_Atomic uint64_t started_ns;   /* clk_now() when forked */
	_Alignas(CACHELINE) struct ctr_block ctr;
	_Alignas(CACHELINE) struct hist_block hist;
};

/* What the master says about the run; strings are NUL-terminated. */
struct shm_info {
	char name[SHM_NAME_MAX]; /* scenario */
	char version[32];	 /* tterm's version and commit */
	char library[64];	 /* "OpenSSL 3.0.22" as loaded */
	char library_built[64];	 /* the headers it was built with */
	char certificate[64];	 /* "ECDSA P-256" */
	char groups[128];	 /* as configured, colon-separated */
	char versions[64];
	char ciphers[256];
	char listen[256]; /* addresses really bound, comma-separated */
	char accept[16];  /* reuseport | shared */
};

/* The running phase, as the master last published it. */
struct shm_phase {
	char name[SHM_NAME_MAX];
	uint32_t state; /* enum shm_phase_state */
	uint32_t index; /* 0.. */
	uint32_t count; /* phases in the run; 0: serving only */
	uint32_t repetition;
	uint64_t began_ns;    /* clk_now() when this state began */
	uint64_t duration_ns; /* how long this state lasts; 0: until done */
};

struct shm_seg; /* a mapping, private to this process */

/*
 * Master, before the first fork. `name` is a file name without a slash; the
 * object is /tterm.NAME. The caller owns *out and ends it with shm_seg_close(),
 * which unlinks the object as well.
 *
 * 0; -EEXIST while a live master holds the name (its pid in *owner if that is
 * not NULL); -EPERM if another user's object has the name; -ENOTSUP if what has
 * it is no file; -EBUSY if someone holds a lock on it for a second; -EINVAL for
 * a name that is empty, too long or has a character that is none of A-Z a-z 0-9
 * . _ -; -ENOSPC if /dev/shm has no room (checked now, not by SIGBUS later); or
 * another -errno. *took_over, if not NULL, says whether a stale object was
 * replaced.
 */
int shm_seg_create(struct shm_seg **out, const char *name, mode_t mode,
		   uint32_t nslots, const struct shm_info *info,
		   bool *took_over, pid_t *owner);

/*
 * Reader: read-only. `name` may be a name, "/tterm.NAME", or a path to a file.
 * 0; -ENOENT; -EACCES; -EPROTO if it is of another layout version (found in
 * *version if that is not NULL); -EBADMSG if it is no segment, truncated or
 * damaged; -EAGAIN if its master has not finished it; or another -errno.
 */
int shm_seg_attach(struct shm_seg **out, const char *name, uint32_t *version);

/*
 * A driver's mapping, read and write, of the very rows of this build: -EPROTO
 * also when the hash of the rows differs.
 */
int shm_seg_join(struct shm_seg **out, const char *name);

/* Unmaps and sets NULL; the creator also unlinks. In a forked child: unmaps. */
void shm_seg_close(struct shm_seg **seg);

/* ---- header ---- */
uint32_t shm_seg_nslots(const struct shm_seg *seg);
const char *shm_seg_name(const struct shm_seg *seg); /* "/tterm.NAME" */
void shm_seg_info(const struct shm_seg *seg, struct shm_info *out);
/* Master: replace the info (after the ports are known, say). */
void shm_seg_set_info(struct shm_seg *seg, const struct shm_info *info);
pid_t shm_seg_owner(const struct shm_seg *seg);
uint64_t shm_seg_created_ns(const struct shm_seg *seg); /* clk_now() */
uint64_t shm_seg_generation(const struct shm_seg *seg); /* unique per start */
/* Is the owner (pid and start time) still that process? */
bool shm_seg_alive(const struct shm_seg *seg);
void shm_seg_set_phase(struct shm_seg *seg, const struct shm_phase *phase);
void shm_seg_phase(const struct shm_seg *seg, struct shm_phase *out);

/* ---- slots ---- */
/* Writers of this build only (create or join). Borrowed until close. */
struct shm_slot *shm_seg_slot(struct shm_seg *seg, uint32_t index);

/* Master: a slot gets a process (state STARTING, generation + 1). */
void shm_slot_assign(struct shm_slot *slot, enum shm_role role, uint32_t number,
		     pid_t pid, int cpu);

/*
 * Master, after it has reaped the slot's process. If it died inside an event,
 * that is made whole: counters and histograms that belong together are raised
 * to the largest of their counts (a value that is not known is taken to be the
 * mean). Moves what was in progress to failed_died and what was open to
 * died_open, clears the gauges. After it
 * accepted + started = full + resumed + failed holds with nothing in progress.
 */
void shm_slot_reap(struct shm_slot *slot, enum shm_slot_state state);

/* Brackets one event's stores. Not nested. */
static inline void shm_begin(struct shm_slot *slot)
{
	uint32_t s = atomic_load_explicit(&slot->seq, memory_order_relaxed);

	atomic_store_explicit(&slot->seq, s + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static inline void shm_end(struct shm_slot *slot)
{
	uint32_t s = atomic_load_explicit(&slot->seq, memory_order_relaxed);

	atomic_store_explicit(&slot->seq, s + 1, memory_order_release);
}

/* ---- snapshots ---- */
struct shm_snap {
	uint32_t role, state, generation, number;
	int32_t pid, cpu;
	uint64_t heartbeat_ns, started_ns;
	uint64_t taken_ns; /* clk_now() */
	bool torn;	   /* the writer died or stopped inside an event */
	uint32_t nctr, nhist;
	uint64_t *ctr;		/* owned; in the segment's order */
	struct hist_view *hist; /* owned; in the segment's order */
};

/* 0 or -ENOMEM; sized for `seg`; ends with shm_snap_fini(). */
int shm_snap_init(struct shm_snap *snap, const struct shm_seg *seg);
void shm_snap_fini(struct shm_snap *snap);

/*
 * A consistent copy of one slot. Retries while the writer is inside an event,
 * for at most 100 ms (a stopped or dead writer); then takes what is there and
 * sets `torn`. A reader sets it too when the object has become shorter.
 */
void shm_snap(const struct shm_seg *seg, uint32_t index, struct shm_snap *out);

/* Copies; both of the same segment. */
void shm_snap_copy(struct shm_snap *to, const struct shm_snap *from);

/*
 * to += from by each row's kind: a total over slots. Roles and pids of `to`
 * stay.
 */
void shm_snap_fold(const struct shm_seg *seg, struct shm_snap *to,
		   const struct shm_snap *from);

/*
 * to = later - earlier: SUMs and histograms subtract, GAUGE and MAX are taken
 * from `later`. Aborts if a SUM fell.
 */
void shm_snap_diff(const struct shm_seg *seg, struct shm_snap *to,
		   const struct shm_snap *later,
		   const struct shm_snap *earlier);

/*
 * By this build's identity, found in the segment by name: works with a segment
 * of another build. 0 / NULL if that build had no such row.
 */
uint64_t shm_snap_ctr(const struct shm_seg *seg, const struct shm_snap *snap,
		      enum ctr_id id);
const struct hist_view *shm_snap_hist(const struct shm_seg *seg,
				      const struct shm_snap *snap,
				      enum hist_id id);
/* Sum of all failed_* rows. */
uint64_t shm_snap_failed(const struct shm_seg *seg,
			 const struct shm_snap *snap);

/* The segment's own descriptors: counters first, then histograms. */
uint32_t shm_seg_nctr(const struct shm_seg *seg);
uint32_t shm_seg_nhist(const struct shm_seg *seg);
const struct ctr_desc *shm_seg_desc(const struct shm_seg *seg, uint32_t index);

/*
 * Names of the segments in /dev/shm that could be ours, calls `fn` for each
 * (the NAME, without "/tterm."). 0 or -errno.
 */
int shm_seg_each(void (*fn)(const char *name, void *arg), void *arg);

#endif
