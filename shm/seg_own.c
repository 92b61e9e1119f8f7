/* SPDX-License-Identifier: MIT */
/*
 * Creating. The object is made without a name, filled, and then linked to its
 * name in one step: no one ever sees a half-made segment, none is left over
 * when its maker is killed, and of two masters that start at once one gets the
 * name.
 *
 * A stale object is unlinked under its own flock, after a look whether it still
 * has the name. So of two masters that find it, the second sees that it has
 * lost the name and looks at what the first has put there: a living owner.
 */
#include "shm/seg_int.h"

#include "shm/clk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROUND_UP(n, to) (((n) + (to)-1) / (to) * (to))

/* Slots begin on a page of their own: header reads do not share lines. */
#define SLOT_ALIGN 4096

static int fill_head(struct seg_head *h, uint32_t nslots)
{
	int rc;

	memset(h, 0, sizeof(*h));
	memcpy(h->owner.magic, SEG_MAGIC, sizeof(h->owner.magic));
	h->owner.layout = SHM_LAYOUT_VERSION;
	h->owner.pid = getpid();
	rc = clk_pid_start(getpid(), &h->owner.start_ticks);
	if (rc < 0)
		return rc;
	h->head_size = sizeof(*h);
	h->rows_hash = ctr_rows_hash();
	h->generation = clk_realtime();
	h->created_ns = clk_now();
	h->nslots = nslots;
	h->nctr = CTR_IDS;
	h->nhist = HIST_IDS;
	h->desc_size = sizeof(struct ctr_desc);
	h->desc_offset = ROUND_UP(sizeof(*h), CACHELINE);
	h->slot_size = sizeof(struct shm_slot);
	h->slot_offset = (uint32_t)ROUND_UP(h->desc_offset + sizeof(ctr_descs),
					    SLOT_ALIGN);
	h->ctr_offset = offsetof(struct shm_slot, ctr);
	h->hist_offset = offsetof(struct shm_slot, hist);
	h->hist_buckets = HIST_BUCKETS;
	h->hist_unit_shift = HIST_UNIT_SHIFT;
	h->hist_sub_bits = HIST_SUB_BITS;
	h->total_size = h->slot_offset + (uint64_t)nslots * h->slot_size;
	return 0;
}

static int write_at(int fd, const void *buf, size_t len, off_t offset)
{
	ssize_t n;

	do
		n = pwrite(fd, buf, len, offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

/* With all its memory: later there may be none, and that would be SIGBUS. */
static int reserve(int fd, uint64_t size)
{
	int rc;

	do
		rc = posix_fallocate(fd, 0, (off_t)size);
	while (rc == EINTR);
	return -rc;
}

static int fill_object(int fd, mode_t mode, uint32_t nslots)
{
	struct seg_head head;
	int rc;

	rc = fill_head(&head, nslots);
	if (rc == 0)
		rc = reserve(fd, head.total_size);
	if (rc == 0)
		rc = write_at(fd, ctr_descs, sizeof(ctr_descs),
			      head.desc_offset);
	atomic_store_explicit(&head.ready, 1, memory_order_release);
	if (rc == 0)
		rc = write_at(fd, &head, sizeof(head), 0);
	/* After open(): the umask has no say. */
	if (rc == 0 && fchmod(fd, mode & 0777) < 0)
		rc = -errno;
	return rc;
}

/* A master of the same name decides within microseconds; others may be rude. */
static int lock(int fd)
{
	const struct timespec nap = {.tv_nsec = 10 * 1000 * 1000};

	for (int i = 0; i < 100; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		nanosleep(&nap, NULL);
	}
	return -EBUSY;
}

static bool has_name(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && lstat(path, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Locked: unlinks `path` unless its owner lives. */
static int unlink_stale(int fd, const char *path, pid_t *owner)
{
	struct seg_owner o;
	ssize_t n = pread(fd, &o, sizeof(o), 0);

	/* What names no owner has none. */
	if (n == sizeof(o) &&
	    memcmp(o.magic, SEG_MAGIC, sizeof(o.magic)) == 0 &&
	    seg_owner_alive(&o)) {
		if (owner != NULL)
			*owner = o.pid;
		return -EEXIST;
	}
	if (n < 0)
		return -errno;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 1;
}

/*
 * 1 if a stale object was unlinked, 0 if the name is free or has another object
 * by now (look again), -EEXIST while its owner lives, or -errno.
 */
static int clear_name(const char *path, pid_t *owner)
{
	struct stat st;
	int fd, rc;

	/* Before open(), which may be refused for what is not ours. */
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	rc = lock(fd);
	if (rc == 0 && has_name(fd, path))
		rc = unlink_stale(fd, path, owner);
	close(fd);
	return rc;
}

static int link_object(int fd, const char *path, bool *took_over, pid_t *owner)
{
	char self[32];
	int rc;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	/* Only others' starts and ends make us look again: they are few. */
	for (int i = 0; i < 100; i++) {
		if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ==
		    0)
			return 0;
		if (errno != EEXIST)
			return -errno;
		rc = clear_name(path, owner);
		if (rc < 0)
			return rc;
		if (rc == 1 && took_over != NULL)
			*took_over = true;
	}
	return -EBUSY;
}

int shm_seg_create(struct shm_seg **out, const char *name, mode_t mode,
		   uint32_t nslots, const struct shm_info *info,
		   bool *took_over, pid_t *owner)
{
	char path[SEG_PATH_MAX];
	struct shm_seg *seg = NULL;
	bool stale = false;
	int fd, rc;

	rc = seg_path(path, name);
	if (rc < 0)
		return rc;
	if (nslots < 1 || nslots > SHM_SLOTS_MAX)
		return -EINVAL;
	fd = open(SEG_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = fill_object(fd, mode, nslots);
	if (rc == 0)
		rc = seg_map(&seg, fd, path + strlen(SEG_DIR), true, NULL);
	if (rc == 0) {
		shm_seg_set_info(seg, info);
		rc = link_object(fd, path, &stale, owner);
	}
	close(fd);
	if (rc < 0) {
		shm_seg_close(&seg);
		return rc;
	}
	seg->creator = getpid();
	if (took_over != NULL)
		*took_over = stale;
	*out = seg;
	return 0;
}
