/* SPDX-License-Identifier: MIT */
/*
 * What a worker's parts share: the ring, the slot, the pools, the timers, and
 * the sums of the turn under way. One per process, made by wrk_main(), handed
 * down by pointer; nothing in it is global.
 */
#ifndef WORKERS_ENV_H
#define WORKERS_ENV_H

#include "config/cfg.h"
#include "shm/seg.h"
#include "workers/buf.h"
#include "workers/conn.h"
#include "workers/tls_conn.h"
#include "workers/tmr.h"
#include "workers/ur.h"

#include <stdbool.h>
#include <stdint.h>

struct tls_srv;

/* Largest plaintext of a TLS record (RFC 8446, 5.1): one read or write. */
#define ENV_SCRATCH 16384

/* Counted during a turn, stored at its end in one event. */
struct env_sums {
	uint64_t events;
	uint64_t bytes_in, bytes_out;
	uint64_t no_buffers;
	uint64_t rearms;
};

struct env {
	const struct cfg *cfg; /* borrows */
	struct tls_srv *tls;   /* borrows */
	struct shm_slot *slot; /* borrows; we are its writer */
	struct ur *ring;       /* owns */
	uint64_t now; /* clk_now() when this turn's events were taken */
	struct conn_pool conns;
	struct buf_pool bufs;
	struct tmr_list handshake; /* HANDSHAKE */
	struct tmr_list idle;	   /* OPEN, FLUSH: moved by every byte */
	struct tmr_list linger;	   /* LINGER, ALERT */
	struct env_sums sums;
	struct tls_out records; /* where a TLS step writes, see io.c */
	bool draining;
	bool fd_freed; /* a descriptor was given back: accepts may go on */
	uint8_t in[ENV_SCRATCH];  /* one record's plaintext, just read */
	uint8_t out[ENV_SCRATCH]; /* ... about to be written */
};

#endif
