/* SPDX-License-Identifier: MIT */
/*
 * The driver's accounting: one function per event, one bracket (shm_begin to
 * shm_end) per function, histograms before counters. So in any snapshot
 *
 *     conn_started = hs_full + hs_resumed + failed_* + hs_in_progress
 *     hs_full + hs_resumed = conn_closed_* + conn_reset + conn_tls_error
 *                            + (conn_open - hs_in_progress)
 *
 * and each histogram holds as many values as its counter says. conn_open counts
 * from the start of the connect, as hs_in_progress does.
 *
 * Connections without TLS are conn_plain and no part of the first identity; in
 * the second they stand beside hs_full. One whose connect fails is counted as
 * started and failed as well, so that every failure shows by its cause and the
 * first identity holds.
 */
#ifndef TOOLS_TDRIVE_COUNT_H
#define TOOLS_TDRIVE_COUNT_H

#include "shm/seg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a connection failed before its handshake was over. */
enum count_fail {
	COUNT_CONNECT,
	COUNT_NO_PORT,
	COUNT_NO_FD,
	COUNT_EOF,
	COUNT_RESET,
	COUNT_TIMEOUT,
	COUNT_PROTOCOL,
	COUNT_NO_SHARED,
	COUNT_VERIFY,
	COUNT_ALERT,
	COUNT_DRAIN,
	COUNT_INTERNAL,
	COUNT_FAILS
};

/* How a connection ended after its handshake. */
enum count_end {
	COUNT_CLOSED_SELF,
	COUNT_CLOSED_PEER,
	COUNT_END_RESET,
	COUNT_TLS_ERROR,
	COUNT_ENDS
};

struct count_hs {
	bool resumed;
	bool tls13;
	bool refused;	   /* full, though a ticket was offered */
	bool signed_by_us; /* we sent a CertificateVerify */
	/* Rows of struct ctr_block, by offset; 0: none. */
	size_t group, suite, signature;
	uint64_t bytes_in, bytes_out; /* until the handshake ended */
	uint64_t time_ns;	      /* connect's end to handshake's end */
	uint64_t cpu_ns;	      /* in the TLS library */
};

/* Bytes moved since the last event, in all functions that take them. */
struct count_bytes {
	uint64_t in, out;
};

void count_started(struct shm_slot *slot);
/* ... without TLS. */
void count_plain(struct shm_slot *slot);
void count_connected(struct shm_slot *slot, uint64_t connect_ns);
/* The handshake begins with a ticket. */
void count_offered(struct shm_slot *slot);
void count_done(struct shm_slot *slot, const struct count_hs *hs,
		struct count_bytes bytes);
void count_failed(struct shm_slot *slot, enum count_fail why, uint64_t cpu_ns,
		  struct count_bytes bytes);
/* A connect without TLS. */
void count_plain_failed(struct shm_slot *slot, enum count_fail why);
/* A signature of a handshake that failed. */
void count_signed(struct shm_slot *slot);
/* The first byte of data, so long after the handshake or the connect. */
void count_first_byte(struct shm_slot *slot, uint64_t ns);
/* A connection's work is done, so long after it was due. */
void count_latency(struct shm_slot *slot, uint64_t ns);
/* An answer is complete. `bad`: it was none of 2xx. */
void count_request(struct shm_slot *slot, uint64_t ns, bool bad,
		   struct count_bytes bytes);
/* `n` answers will never be complete. */
void count_bad(struct shm_slot *slot, uint64_t n);
/* Open loop: so many were due, and `late` of them could not begin. */
void count_arrivals(struct shm_slot *slot, uint64_t n, uint64_t late);
void count_tickets(struct shm_slot *slot, uint64_t tickets);
/* `missed`: a ticket was waited for and none came. */
void count_ended(struct shm_slot *slot, enum count_end how, bool missed,
		 struct count_bytes bytes);
/* What is sent after the end was counted: an alert, the last flight. */
void count_moved(struct shm_slot *slot, struct count_bytes bytes);
void count_turn(struct shm_slot *slot, uint64_t events, bool overflow);
void count_speed(struct shm_slot *slot, uint64_t took_ns);
/* `delay_ns`: in the run queue since the last call. */
void count_alive(struct shm_slot *slot, uint64_t now, uint64_t cpu_ns,
		 uint64_t delay_ns);

/* Name of the counter of a failure: "failed_connect". */
const char *count_fail_name(enum count_fail why);

#endif
