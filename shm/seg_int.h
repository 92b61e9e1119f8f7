/* SPDX-License-Identifier: MIT */
/*
 * How the segment lies in its object, and what a mapping of it is: for
 * shm/seg_*.c alone.
 */
#ifndef SHM_SEG_INT_H
#define SHM_SEG_INT_H

#include "shm/seg.h"

#define SEG_DIR	     "/dev/shm"
#define SEG_PREFIX   "tterm."
#define SEG_MAGIC    "TTERMSHM"
#define SEG_PATH_MAX (sizeof(SEG_DIR "/" SEG_PREFIX) + SHM_NAME_MAX)

/* What a damaged object may claim at most. */
#define SEG_CTR_MAX  4096
#define SEG_HIST_MAX 256

/*
 * The first bytes of every layout version: a master must see who owns a segment
 * even where it can read nothing else of it.
 */
struct seg_owner {
	char magic[8];
	uint32_t layout; /* SHM_LAYOUT_VERSION */
	int32_t pid;
	uint64_t start_ticks; /* clk_pid_start() */
};

/*
 * Everything a reader needs to find its way is a number in here. To change this
 * struct, struct shm_slot up to its blocks, struct ctr_desc, struct shm_info,
 * struct shm_phase or the buckets of a histogram is a new layout version.
 */
struct seg_head {
	struct seg_owner owner;
	_Atomic uint32_t ready; /* 1, stored last */
	uint32_t head_size;
	uint64_t total_size;
	uint64_t rows_hash;
	uint64_t generation;
	uint64_t created_ns;
	uint32_t nslots, nctr, nhist;
	uint32_t desc_size, desc_offset;
	uint32_t slot_size, slot_offset;
	uint32_t ctr_offset, hist_offset; /* in a slot */
	uint32_t hist_buckets, hist_unit_shift, hist_sub_bits;
	_Atomic uint32_t info_seq, phase_seq; /* odd while being written */
	_Atomic uint64_t info[sizeof(struct shm_info) / 8];
	_Atomic uint64_t phase[sizeof(struct shm_phase) / 8];
};

_Static_assert(sizeof(struct seg_owner) == 24, "the same in every layout");
_Static_assert(sizeof(struct shm_info) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct shm_phase) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct shm_slot) % CACHELINE == 0, "slots in a row");
_Static_assert(sizeof(struct ctr_desc) % 8 == 0, "descriptors in a row");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared without a lock");

/*
 * A mapping. `head` holds a private, checked copy of the object's head and
 * `desc` of the descriptors: offsets are never read from shared memory again,
 * whatever becomes of it.
 */
struct shm_seg {
	char *name;		 /* owned */
	unsigned char *map;	 /* owned */
	struct seg_head *shared; /* head in the map */
	struct seg_head head;
	struct ctr_desc *desc; /* owned */
	int fd;		       /* readers: owned, to see it shrink; else -1 */
	bool writable;
	pid_t creator; /* who unlinks; 0 for all others */
	uint64_t dev, ino;
	uint32_t failures[SEG_CTR_MAX]; /* indices of the failed_* rows */
	uint32_t nfailures;
	int32_t at[CTR_IDS + HIST_IDS]; /* this build's row: its index; or -1 */
};

/* The file of NAME. 0, or -EINVAL for a name that cannot be. */
int seg_path(char path[static SEG_PATH_MAX], const char *name);

/* Is the process that `o` names there? Unsure counts as yes. */
bool seg_owner_alive(const struct seg_owner *o);

/*
 * A mapping of the open object, whose head and descriptors are checked. The
 * caller keeps `fd`.
 */
int seg_map(struct shm_seg **out, int fd, const char *name, bool writable,
	    uint32_t *version);

/* False if the object is now shorter than what we map: to touch it is SIGBUS.
 */
bool seg_whole(const struct shm_seg *seg);

#endif
