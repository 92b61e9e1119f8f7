/* SPDX-License-Identifier: MIT */
/* What the tests of the segment share: a name of their own, files, events. */
#ifndef TESTS_UNIT_SHM_SEG_FIXTURE_H
#define TESTS_UNIT_SHM_SEG_FIXTURE_H

#include "shm/seg_int.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char seg_name[SHM_NAME_MAX], seg_file[SEG_PATH_MAX];

/* By the pid of the program: tests in parallel do not meet. */
static inline void name_segment(void)
{
	snprintf(seg_name, sizeof(seg_name), "unit-%d", (int)getpid());
	ck_assert_int_eq(seg_path(seg_file, seg_name), 0);
}

static inline void drop_segment(void)
{
	unlink(seg_file);
}

static inline struct shm_seg *create(uint32_t nslots)
{
	struct shm_info info = {.name = "scenario", .library = "Library 1"};
	struct shm_seg *seg = NULL;

	ck_assert_int_eq(
		shm_seg_create(&seg, seg_name, 0600, nslots, &info, NULL, NULL),
		0);
	return seg;
}

/* One handshake that ends full, in three events as a worker has them. */
static inline void full_handshake(struct shm_slot *s, uint64_t ns)
{
	shm_begin(s);
	ctr_add(&s->ctr.conn_accepted, 1);
	ctr_add(&s->ctr.conn_open, 1);
	ctr_add(&s->ctr.hs_in_progress, 1);
	shm_end(s);
	shm_begin(s);
	hist_record(&s->hist.hs_full_time, ns);
	hist_record(&s->hist.hs_full_cpu, ns / 2);
	ctr_add(&s->ctr.hs_full, 1);
	ctr_add(&s->ctr.crypto_full_ns, ns / 2);
	ctr_sub(&s->ctr.hs_in_progress, 1);
	shm_end(s);
	shm_begin(s);
	ctr_add(&s->ctr.conn_closed_peer, 1);
	ctr_sub(&s->ctr.conn_open, 1);
	shm_end(s);
}

static inline uint64_t get(const struct shm_seg *seg,
			   const struct shm_snap *snap, enum ctr_id id)
{
	return shm_snap_ctr(seg, snap, id);
}

/* Every histogram holds as many values as the counter it is tied to. */
static inline bool counts_agree(const struct shm_seg *seg,
				const struct shm_snap *snap)
{
	for (uint32_t i = 0; i < HIST_IDS; i++) {
		const char *name = ctr_descs[CTR_IDS + i].counter;

		for (uint32_t c = 0; c < CTR_IDS; c++)
			if (strcmp(ctr_descs[c].name, name) == 0 &&
			    hist_count(shm_snap_hist(seg, snap,
						     (enum hist_id)i)) !=
				    get(seg, snap, (enum ctr_id)c))
				return false;
	}
	return true;
}

static inline bool identity_holds(const struct shm_seg *seg,
				  const struct shm_snap *snap)
{
	return get(seg, snap, CTR_ID_conn_accepted) +
		       get(seg, snap, CTR_ID_conn_started) ==
	       get(seg, snap, CTR_ID_hs_full) +
		       get(seg, snap, CTR_ID_hs_resumed) +
		       shm_snap_failed(seg, snap) +
		       get(seg, snap, CTR_ID_hs_in_progress);
}

/* Every connection past its handshake is open or has ended in one way. */
static inline bool ends_agree(const struct shm_seg *seg,
			      const struct shm_snap *snap)
{
	return get(seg, snap, CTR_ID_hs_full) +
		       get(seg, snap, CTR_ID_hs_resumed) ==
	       get(seg, snap, CTR_ID_conn_closed_peer) +
		       get(seg, snap, CTR_ID_conn_closed_self) +
		       get(seg, snap, CTR_ID_conn_reset) +
		       get(seg, snap, CTR_ID_conn_idle_timeout) +
		       get(seg, snap, CTR_ID_conn_tls_error) +
		       get(seg, snap, CTR_ID_died_open) +
		       get(seg, snap, CTR_ID_conn_open) -
		       get(seg, snap, CTR_ID_hs_in_progress);
}

/* The whole object, in memory of the caller's. */
static inline unsigned char *load_object(size_t *len)
{
	int fd = open(seg_file, O_RDONLY | O_CLOEXEC);
	unsigned char *data;
	struct stat st;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	*len = (size_t)st.st_size;
	data = malloc(*len);
	ck_assert_ptr_nonnull(data);
	ck_assert_int_eq(read(fd, data, *len), (ssize_t)*len);
	close(fd);
	return data;
}

/* A temporary file with this content; `path` is its name. */
static inline int store_copy(char path[static 64], const void *data, size_t len)
{
	int fd;

	snprintf(path, 64, "/tmp/tterm-unit-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
	return fd;
}

/*
 * An empty /dev/shm for this process alone, with `options` of tmpfs; false
 * where the system does not let us, which is said on stderr. In a changed root
 * "/" is no mount of its own, but /dev/shm is: either is to be private first,
 * or the mount would be seen outside.
 */
static inline bool own_shm(const char *options)
{
	if (unshare(CLONE_NEWNS) == 0 &&
	    (mount("", "/", "", MS_REC | MS_PRIVATE, NULL) == 0 ||
	     mount("", SEG_DIR, "", MS_PRIVATE, NULL) == 0) &&
	    mount("none", SEG_DIR, "tmpfs", 0, options) == 0)
		return true;
	perror("not tested: cannot mount a /dev/shm of our own");
	return false;
}

#endif
