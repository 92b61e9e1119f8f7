/* SPDX-License-Identifier: MIT */
/*
 * The control channel: a SOCK_SEQPACKET socketpair between the master and each
 * child, one fixed-size message per packet. The child's end of file means that
 * the master is gone: the child ends at once.
 *
 *   worker   master -> DRAIN, QUIT                     worker -> READY, FAIL
 *   driver   master -> START(phase), STOP, QUIT        driver -> READY(phase),
 *                                                      NOTE, RECORD, IDLE, FAIL
 *
 * A driver answers START with READY once the load runs and the phase's needs
 * (tickets) are met, and STOP with IDLE once its last connection is closed.
 * FAIL carries a sentence for the user; the sender then exits. What a phase has
 * to tell beside its counters comes before its IDLE, one line each: NOTE is of
 * a ramp's step ("ramp 2000/s P99_NS ok|over|late") or of a burst ("burst BEGUN
 * MAX_NS OVER_500MS FAILED"); RECORD is a TLS record ("full|resumed in|out TYPE
 * MESSAGE LENGTH"). They are left out when the master does not read.
 */
#ifndef SHM_CTL_H
#define SHM_CTL_H

#include <stdint.h>

enum ctl_kind {
	CTL_READY = 1,
	CTL_IDLE,
	CTL_FAIL,
	CTL_START,
	CTL_STOP,
	CTL_DRAIN,
	CTL_QUIT,
	CTL_NOTE,
	CTL_RECORD,
};

#define CTL_TEXT_MAX 480

struct ctl_msg {
	uint32_t kind;	/* enum ctl_kind */
	uint32_t phase; /* index of the phase: START, READY */
	uint64_t value; /* unused, 0 */
	char text[CTL_TEXT_MAX];
};

/* Both ends CLOEXEC and non-blocking. 0 or -errno. */
int ctl_pair(int *master_fd, int *child_fd);

/*
 * Never blocks. 0; -EAGAIN if the peer does not read; -EPIPE if it is gone; or
 * another -errno. `text` may be NULL.
 */
int ctl_send(int fd, enum ctl_kind kind, uint32_t phase, const char *text);

/* 1 with a message; 0 at end of file; -EAGAIN when there is none; or -errno. */
int ctl_recv(int fd, struct ctl_msg *out);

#endif
