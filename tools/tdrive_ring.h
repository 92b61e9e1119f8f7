/* SPDX-License-Identifier: MIT */
/*
 * The driver's ring: set-up with the reason where it is refused, an SQE always,
 * and a wait with an end.
 */
#ifndef TOOLS_TDRIVE_RING_H
#define TOOLS_TDRIVE_RING_H

#include <liburing.h>

#include <stddef.h>
#include <stdint.h>

/* Not opaque: the hot path reads completions in place. */
struct ring {
	struct io_uring uring;
	const char *mode; /* "SINGLE_ISSUER|DEFER_TASKRUN" or the fallback */
};

/*
 * For `flying` requests in flight. 0; or -errno with one sentence in err that
 * names what refuses it and what to do.
 */
int ring_open(struct ring *ring, uint32_t flying, char *err, size_t len);
void ring_close(struct ring *ring);

/* Never NULL: submits when the queue is full. */
struct io_uring_sqe *ring_sqe(struct ring *ring);

/* Hands over what is queued; does not wait. */
void ring_submit(struct ring *ring);

/* Hands over what is queued, waits for a completion, at most `ns`. */
void ring_wait(struct ring *ring, uint64_t ns);

/* Did the kernel have to hold completions back since the last turn? */
bool ring_overflowed(const struct ring *ring);

#endif
