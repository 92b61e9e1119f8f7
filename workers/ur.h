/* SPDX-License-Identifier: MIT */
/*
 * The ring: everything the worker asks of the kernel goes through here, and
 * this is the only file of the worker that names liburing.
 *
 * Made after the fork, by the one thread that uses it. Requests are queued by
 * the ur_*() calls below and handed over by the next ur_wait(), one system call
 * for a turn of the loop; a queue that is full is handed over at once. Queuing
 * cannot fail for the caller: should the kernel refuse a hand-over for good,
 * the ring is broken, and ur_wait() says so.
 *
 * Every request carries a 64-bit word that comes back with its events. Whatever
 * a request points at is lent to the kernel until its last event: the one
 * without `more`.
 */
#ifndef WORKERS_UR_H
#define WORKERS_UR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ur;

struct ur_size {
	uint32_t requests;  /* of the submission queue */
	uint32_t events;    /* of the completion queue */
	uint32_t buffers;   /* receive buffers, a power of two */
	uint32_t buf_bytes; /* of each */
};

/*
 * 1,024 requests are four for each event of a full turn. Four times as many
 * events ride out a burst without the kernel having to hold any back. Receive
 * buffers are used round robin, so few of them stay in the cache: 1 MiB.
 */
extern const struct ur_size ur_usual;

/* Most events of one turn, so that timers and the control channel get theirs.
 */
#define UR_BATCH 256

struct ur_event {
	uint64_t data;	    /* the request's word */
	int32_t res;	    /* as the system call's, or -errno */
	bool more;	    /* the request goes on */
	const uint8_t *buf; /* lent until ur_give(); NULL if none was used */
	uint16_t buf_id;
};

/*
 * The caller owns *out. 0, or -errno with one line in `err` that says which
 * refusal it is and what to do.
 */
int ur_open(struct ur **out, const struct ur_size *size, char *err,
	    size_t err_len);
void ur_close(struct ur **ring);

/* "SINGLE_ISSUER DEFER_TASKRUN multishot-accept ...". Borrowed. */
const char *ur_features(const struct ur *ring);

/*
 * Opens a ring, tries a multishot accept and a multishot receive into the
 * buffer ring on a socket of its own, and closes it. As ur_open() otherwise.
 */
int ur_probe(char *features, size_t features_len, char *err, size_t err_len);

/*
 * Says in one line why io_uring_setup() gave `error`, by the files below `root`
 * ("" in production, a made-up tree in tests).
 */
void ur_explain(int error, const char *root, char *to, size_t len);

/* Hands over what is queued, and waits for an event, at most so long. 0; -errno
 * when the ring is broken. */
int ur_wait(struct ur *ring, uint64_t timeout_ns);

/* The next event of this turn; false after the last, or after UR_BATCH. */
bool ur_next(struct ur *ring, struct ur_event *out);

/* Gives a receive buffer back to the kernel. */
void ur_give(struct ur *ring, const struct ur_event *ev);

/* Turns so far in which the kernel had to hold events back. */
uint64_t ur_overflows(const struct ur *ring);

/* An event for each connection, `res` its descriptor: until it ends, or one. */
void ur_accept(struct ur *ring, int fd, bool multishot, uint64_t data);

/* An event with a buffer for each piece that comes, until it ends. */
void ur_recv(struct ur *ring, int fd, uint64_t data);

/* One event: how many bytes went out, which can be fewer. */
void ur_send(struct ur *ring, int fd, const void *p, size_t n, uint64_t data);

/* One event when fd becomes readable or its peer goes. */
void ur_readable(struct ur *ring, int fd, uint64_t data);

/* The request with this word gets its last event soon; none of our own. */
void ur_cancel(struct ur *ring, uint64_t data);

/* Closes fd after everything queued before; no event. No request may hold it.
 */
void ur_shut(struct ur *ring, int fd);

#endif
