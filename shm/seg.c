/* SPDX-License-Identifier: MIT */
/*
 * Attaching: whatever lies in the object is checked before it is used, and the
 * numbers that were checked are copied first. What cannot be helped: a file
 * that its owner cuts short while it is mapped ends in SIGBUS for who reads it
 * in that very moment. Only the owner may write, never does so, and readers
 * look at the size before every copy.
 */
#include "shm/seg_int.h"

#include "shm/clk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool name_ok(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < SHM_NAME_MAX &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "abcdefghijklmnopqrstuvwxyz"
			    "0123456789._-") == len;
}

int seg_path(char path[static SEG_PATH_MAX], const char *name)
{
	if (!name_ok(name))
		return -EINVAL;
	snprintf(path, SEG_PATH_MAX, "%s/%s%s", SEG_DIR, SEG_PREFIX, name);
	return 0;
}

bool seg_owner_alive(const struct seg_owner *o)
{
	uint64_t ticks;
	int rc = clk_pid_start(o->pid, &ticks);

	if (rc == 0)
		return ticks == o->start_ticks;
	return rc != -ESRCH;
}

/* ---- checks ---- */

static bool geometry_ok(const struct seg_head *h, uint64_t file_size)
{
	/* Products of 32-bit numbers: nothing here can overflow 64 bits. */
	uint64_t descs = (uint64_t)h->nctr + h->nhist;
	uint64_t desc_end = h->desc_offset + descs * h->desc_size;
	uint64_t slot_end = h->slot_offset + (uint64_t)h->nslots * h->slot_size;
	uint64_t ctr_end = h->ctr_offset + (uint64_t)h->nctr * sizeof(uint64_t);
	uint64_t hist_end =
		h->hist_offset + (uint64_t)h->nhist * sizeof(struct hist);

	return h->total_size <= file_size && h->head_size == sizeof(*h) &&
	       h->nslots >= 1 && h->nslots <= SHM_SLOTS_MAX && h->nctr >= 1 &&
	       h->nctr <= SEG_CTR_MAX && h->nhist <= SEG_HIST_MAX &&
	       h->desc_size == sizeof(struct ctr_desc) &&
	       h->desc_offset >= h->head_size && h->desc_offset % 8 == 0 &&
	       desc_end <= h->slot_offset && h->slot_offset % CACHELINE == 0 &&
	       h->slot_size % CACHELINE == 0 && slot_end <= h->total_size &&
	       h->ctr_offset >= offsetof(struct shm_slot, ctr) &&
	       h->ctr_offset % 8 == 0 && ctr_end <= h->slot_size &&
	       h->hist_offset >= offsetof(struct shm_slot, ctr) &&
	       h->hist_offset % 8 == 0 && hist_end <= h->slot_size &&
	       h->hist_buckets == HIST_BUCKETS &&
	       h->hist_unit_shift == HIST_UNIT_SHIFT &&
	       h->hist_sub_bits == HIST_SUB_BITS;
}

static int check_head(const struct seg_head *h, uint64_t file_size,
		      uint32_t *version)
{
	if (memcmp(h->owner.magic, SEG_MAGIC, sizeof(h->owner.magic)) != 0)
		return -EBADMSG;
	if (h->owner.layout != SHM_LAYOUT_VERSION) {
		if (version != NULL)
			*version = h->owner.layout;
		return -EPROTO;
	}
	if (atomic_load_explicit(&h->ready, memory_order_relaxed) != 1)
		return -EAGAIN;
	return geometry_ok(h, file_size) ? 0 : -EBADMSG;
}

/* Ends in `max`, and has the letters of a row's name. */
static bool word_ok(const char *word, size_t max)
{
	size_t len = strnlen(word, max);

	return len > 0 && len < max &&
	       strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

static bool help_ok(const char *help)
{
	size_t len = strnlen(help, CTR_HELP_MAX);

	for (size_t i = 0; i < len; i++)
		if (help[i] < ' ' || help[i] > '~')
			return false;
	return len < CTR_HELP_MAX;
}

static bool desc_ok(const struct seg_head *h, const struct ctr_desc *d,
		    bool is_hist)
{
	uint32_t block = is_hist ? h->hist_offset : h->ctr_offset;
	uint32_t size = is_hist ? sizeof(struct hist) : sizeof(uint64_t);
	bool kind =
		is_hist ? d->kind == CTR_HISTOGRAM : d->kind < CTR_HISTOGRAM;

	return kind && word_ok(d->name, sizeof(d->name)) &&
	       word_ok(d->counter, sizeof(d->counter)) && help_ok(d->help) &&
	       d->size == size && d->offset % 8 == 0 &&
	       (uint64_t)d->offset + size <= h->slot_size - block;
}

/* ---- mapping ---- */

/* 0, -EBADMSG when the file ends before, or -errno. */
static int read_at(int fd, void *buf, size_t len, uint64_t offset)
{
	unsigned char *to = buf;
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, to + done, len - done,
				  (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		done += (size_t)n;
	}
	return 0;
}

static int read_descs(struct shm_seg *seg, int fd)
{
	const struct seg_head *h = &seg->head;
	uint32_t n = h->nctr + h->nhist;
	int rc;

	seg->desc = calloc(n, sizeof(*seg->desc));
	if (seg->desc == NULL)
		return -ENOMEM;
	rc = read_at(fd, seg->desc, n * sizeof(*seg->desc), h->desc_offset);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < n; i++)
		if (!desc_ok(h, &seg->desc[i], i >= h->nctr))
			return -EBADMSG;
	return 0;
}

/* Where this build's rows are in the segment, by name. */
static void find_rows(struct shm_seg *seg)
{
	const struct seg_head *h = &seg->head;

	for (uint32_t id = 0; id < CTR_IDS + HIST_IDS; id++) {
		uint32_t i = id < CTR_IDS ? 0 : h->nctr;
		uint32_t end = id < CTR_IDS ? h->nctr : h->nctr + h->nhist;

		while (i < end &&
		       strcmp(seg->desc[i].name, ctr_descs[id].name) != 0)
			i++;
		seg->at[id] = i < end ? (int32_t)i : -1;
	}
	for (uint32_t i = 0; i < h->nctr; i++)
		if (ctr_is_failure(&seg->desc[i]))
			seg->failures[seg->nfailures++] = i;
}

static int map_object(struct shm_seg *seg, int fd)
{
	int prot = PROT_READ | (seg->writable ? PROT_WRITE : 0);
	void *map;

	map = mmap(NULL, (size_t)seg->head.total_size, prot, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	seg->map = map;
	seg->shared = map;
	return 0;
}

static void free_seg(struct shm_seg *seg)
{
	if (seg->map != NULL)
		munmap(seg->map, (size_t)seg->head.total_size);
	if (seg->fd >= 0)
		close(seg->fd);
	free(seg->desc);
	free(seg->name);
	free(seg);
}

int seg_map(struct shm_seg **out, int fd, const char *name, bool writable,
	    uint32_t *version)
{
	struct shm_seg *seg;
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	seg = calloc(1, sizeof(*seg));
	if (seg == NULL)
		return -ENOMEM;
	seg->fd = -1;
	seg->writable = writable;
	seg->dev = st.st_dev;
	seg->ino = st.st_ino;
	seg->name = strdup(name);
	rc = seg->name == NULL ? -ENOMEM
			       : read_at(fd, &seg->head, sizeof(seg->head), 0);
	if (rc == 0)
		rc = check_head(&seg->head, (uint64_t)st.st_size, version);
	if (rc == 0)
		rc = read_descs(seg, fd);
	if (rc == 0)
		rc = map_object(seg, fd);
	if (rc < 0) {
		free_seg(seg);
		return rc;
	}
	find_rows(seg);
	*out = seg;
	return 0;
}

bool seg_whole(const struct shm_seg *seg)
{
	struct stat st;

	if (seg->fd < 0)
		return true;
	return fstat(seg->fd, &st) == 0 && st.st_size >= 0 &&
	       (uint64_t)st.st_size >= seg->head.total_size;
}

/* ---- attach, join, close ---- */

/* NAME or "/tterm.NAME" to its file; anything else with a slash is a path. */
static int open_object(const char *name, int flags, char **full_name)
{
	static const char lead[] = "/" SEG_PREFIX;
	char path[SEG_PATH_MAX];
	int fd, rc;

	flags |= O_CLOEXEC | O_NONBLOCK;
	if (strncmp(name, lead, strlen(lead)) == 0 &&
	    strchr(name + 1, '/') == NULL)
		name += strlen(lead);
	if (strchr(name, '/') != NULL) {
		fd = open(name, flags);
		if (fd < 0)
			return -errno;
		*full_name = strdup(name);
	} else {
		rc = seg_path(path, name);
		if (rc < 0)
			return rc;
		fd = open(path, flags | O_NOFOLLOW);
		if (fd < 0)
			return -errno;
		*full_name = strdup(path + strlen(SEG_DIR));
	}
	if (*full_name != NULL)
		return fd;
	close(fd);
	return -ENOMEM;
}

int shm_seg_attach(struct shm_seg **out, const char *name, uint32_t *version)
{
	struct shm_seg *seg = NULL;
	char *full_name = NULL;
	int fd, rc;

	fd = open_object(name, O_RDONLY, &full_name);
	if (fd < 0)
		return fd;
	rc = seg_map(&seg, fd, full_name, false, version);
	free(full_name);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	seg->fd = fd;
	*out = seg;
	return 0;
}

/* Is every row and block where this build's structs have it? */
static bool same_build(const struct shm_seg *seg)
{
	const struct seg_head *h = &seg->head;

	return h->rows_hash == ctr_rows_hash() && h->nctr == CTR_IDS &&
	       h->nhist == HIST_IDS &&
	       h->slot_size == sizeof(struct shm_slot) &&
	       h->ctr_offset == offsetof(struct shm_slot, ctr) &&
	       h->hist_offset == offsetof(struct shm_slot, hist) &&
	       memcmp(seg->desc, ctr_descs, sizeof(ctr_descs)) == 0;
}

int shm_seg_join(struct shm_seg **out, const char *name)
{
	struct shm_seg *seg = NULL;
	char *full_name = NULL;
	int fd, rc;

	fd = open_object(name, O_RDWR, &full_name);
	if (fd < 0)
		return fd;
	rc = seg_map(&seg, fd, full_name, true, NULL);
	free(full_name);
	close(fd);
	if (rc < 0)
		return rc;
	if (!same_build(seg)) {
		free_seg(seg);
		return -EPROTO;
	}
	*out = seg;
	return 0;
}

/* Only our own object: the name may have been given to another meanwhile. */
static void unlink_own(const struct shm_seg *seg)
{
	char path[SEG_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", SEG_DIR, seg->name);
	if (lstat(path, &st) == 0 && st.st_dev == seg->dev &&
	    st.st_ino == seg->ino)
		unlink(path);
}

void shm_seg_close(struct shm_seg **seg)
{
	struct shm_seg *s = *seg;

	if (s == NULL)
		return;
	*seg = NULL;
	if (s->creator != 0 && s->creator == getpid())
		unlink_own(s);
	free_seg(s);
}

/* ---- header ---- */

static void put_words(_Atomic uint32_t *seq, _Atomic uint64_t *to,
		      const void *from, size_t n)
{
	uint32_t s = atomic_load_explicit(seq, memory_order_relaxed);
	const char *at = from;

	atomic_store_explicit(seq, s + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (size_t i = 0; i < n; i++) {
		uint64_t word;

		memcpy(&word, at + i * sizeof(word), sizeof(word));
		atomic_store_explicit(&to[i], word, memory_order_relaxed);
	}
	atomic_store_explicit(seq, s + 2, memory_order_release);
}

/* True if no write came between. */
static bool try_words(const _Atomic uint32_t *seq, void *to,
		      const _Atomic uint64_t *from, size_t n)
{
	uint32_t s = atomic_load_explicit(seq, memory_order_acquire);
	char *at = to;

	for (size_t i = 0; i < n; i++) {
		uint64_t word =
			atomic_load_explicit(&from[i], memory_order_relaxed);

		memcpy(at + i * sizeof(word), &word, sizeof(word));
	}
	atomic_thread_fence(memory_order_acquire);
	return s % 2 == 0 &&
	       atomic_load_explicit(seq, memory_order_relaxed) == s;
}

/* A master killed while it wrote leaves half: that is then taken. */
static void get_words(const _Atomic uint32_t *seq, void *to,
		      const _Atomic uint64_t *from, size_t n)
{
	const struct timespec nap = {.tv_nsec = 50 * 1000};

	for (int i = 0; i < 1000; i++) {
		if (try_words(seq, to, from, n))
			return;
		if (i >= 100)
			nanosleep(&nap, NULL);
	}
}

uint32_t shm_seg_nslots(const struct shm_seg *seg)
{
	return seg->head.nslots;
}

const char *shm_seg_name(const struct shm_seg *seg)
{
	return seg->name;
}

#define END(text) ((text)[sizeof(text) - 1] = '\0')

void shm_seg_info(const struct shm_seg *seg, struct shm_info *out)
{
	memset(out, 0, sizeof(*out));
	if (seg_whole(seg))
		get_words(&seg->shared->info_seq, out, seg->shared->info,
			  ARRAY_LEN(seg->shared->info));
	END(out->name);
	END(out->version);
	END(out->library);
	END(out->library_built);
	END(out->certificate);
	END(out->groups);
	END(out->versions);
	END(out->ciphers);
	END(out->listen);
	END(out->accept);
}

void shm_seg_set_info(struct shm_seg *seg, const struct shm_info *info)
{
	MUST(seg->writable);
	put_words(&seg->shared->info_seq, seg->shared->info, info,
		  ARRAY_LEN(seg->shared->info));
}

void shm_seg_phase(const struct shm_seg *seg, struct shm_phase *out)
{
	memset(out, 0, sizeof(*out));
	if (seg_whole(seg))
		get_words(&seg->shared->phase_seq, out, seg->shared->phase,
			  ARRAY_LEN(seg->shared->phase));
	END(out->name);
}

void shm_seg_set_phase(struct shm_seg *seg, const struct shm_phase *phase)
{
	MUST(seg->writable);
	put_words(&seg->shared->phase_seq, seg->shared->phase, phase,
		  ARRAY_LEN(seg->shared->phase));
}

pid_t shm_seg_owner(const struct shm_seg *seg)
{
	return seg->head.owner.pid;
}

uint64_t shm_seg_created_ns(const struct shm_seg *seg)
{
	return seg->head.created_ns;
}

uint64_t shm_seg_generation(const struct shm_seg *seg)
{
	return seg->head.generation;
}

bool shm_seg_alive(const struct shm_seg *seg)
{
	return seg_owner_alive(&seg->head.owner);
}

uint32_t shm_seg_nctr(const struct shm_seg *seg)
{
	return seg->head.nctr;
}

uint32_t shm_seg_nhist(const struct shm_seg *seg)
{
	return seg->head.nhist;
}

const struct ctr_desc *shm_seg_desc(const struct shm_seg *seg, uint32_t index)
{
	MUST(index < seg->head.nctr + seg->head.nhist);
	return &seg->desc[index];
}

int shm_seg_each(void (*fn)(const char *name, void *arg), void *arg)
{
	struct dirent *e;
	DIR *dir;
	int rc;

	dir = opendir(SEG_DIR);
	if (dir == NULL)
		return -errno;
	while (errno = 0, (e = readdir(dir)) != NULL) {
		const char *name = e->d_name + strlen(SEG_PREFIX);

		if (strncmp(e->d_name, SEG_PREFIX, strlen(SEG_PREFIX)) == 0 &&
		    (e->d_type == DT_REG || e->d_type == DT_UNKNOWN) &&
		    name_ok(name))
			fn(name, arg);
	}
	rc = -errno;
	closedir(dir);
	return rc;
}
