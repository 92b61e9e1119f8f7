/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_ring.h"

#include "shm/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ENTRIES_MIN 64u
#define ENTRIES_MAX 4096u

static const struct {
	const char *name;
	unsigned flags;
} modes[] = {
	{"SINGLE_ISSUER|DEFER_TASKRUN",
	 IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN},
	{"COOP_TASKRUN", IORING_SETUP_COOP_TASKRUN},
};

static const char *reason(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return "refused: see sysctl kernel.io_uring_disabled, or the "
		       "container's seccomp profile";
	case ENOSYS:
		return "not there: the kernel lacks io_uring, or a seccomp "
		       "profile hides it";
	case ENOMEM:
		return "no memory: raise RLIMIT_MEMLOCK (ulimit -l)";
	case EMFILE:
	case ENFILE:
		return "no free file descriptor: raise RLIMIT_NOFILE "
		       "(ulimit -n)";
	case EINVAL:
		return "the kernel is too old: 5.19 or later is needed";
	default:
		return strerror(error);
	}
}

int ring_open(struct ring *ring, uint32_t flying, char *err, size_t len)
{
	uint64_t want = base_max(ENTRIES_MIN, flying);
	unsigned entries = (unsigned)base_min(want, ENTRIES_MAX);
	int rc = -EINVAL;

	for (size_t i = 0; i < ARRAY_LEN(modes) && rc == -EINVAL; i++) {
		struct io_uring_params p = {
			.flags = modes[i].flags | IORING_SETUP_CQSIZE |
				 IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL,
			.cq_entries = (unsigned)base_max(4u * entries, want)};

		rc = io_uring_queue_init_params(entries, &ring->uring, &p);
		ring->mode = modes[i].name;
	}
	if (rc != 0)
		snprintf(err, len, "io_uring: %s", reason(-rc));
	return rc;
}

void ring_close(struct ring *ring)
{
	io_uring_queue_exit(&ring->uring);
}

void ring_submit(struct ring *ring)
{
	int rc = io_uring_submit(&ring->uring);

	/* Full of completions, or short of memory for now: the next turn takes
	 * some out and tries again. */
	MUST(rc >= 0 || rc == -EBUSY || rc == -EAGAIN || rc == -EINTR);
}

struct io_uring_sqe *ring_sqe(struct ring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);

	if (sqe != NULL)
		return sqe;
	ring_submit(ring);
	sqe = io_uring_get_sqe(&ring->uring);
	MUST(sqe != NULL);
	return sqe;
}

void ring_wait(struct ring *ring, uint64_t ns)
{
	struct __kernel_timespec ts = {.tv_sec = (int64_t)(ns / NS_PER_S),
				       .tv_nsec = (int64_t)(ns % NS_PER_S)};
	struct io_uring_cqe *cqe;
	int rc = io_uring_submit_and_wait_timeout(&ring->uring, &cqe, 1, &ts,
						  NULL);

	MUST(rc >= 0 || rc == -ETIME || rc == -EINTR || rc == -EBUSY ||
	     rc == -EAGAIN);
}

bool ring_overflowed(const struct ring *ring)
{
	return (IO_URING_READ_ONCE(*ring->uring.sq.kflags) &
		IORING_SQ_CQ_OVERFLOW) != 0;
}
