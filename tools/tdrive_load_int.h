/* SPDX-License-Identifier: MIT */
/* Between tdrive_load.c (loop) and tdrive_step.c (seats); nobody else. */
#ifndef TOOLS_TDRIVE_LOAD_INT_H
#define TOOLS_TDRIVE_LOAD_INT_H

#include "tools/tdrive_load.h"
#include "tools/tdrive_ring.h"
#include "tools/tdrive_seat.h"

/* user_data: seat's (or watch's) index, and in the low byte what it was. */
#define LOAD_OP_BITS  8
#define LOAD_OP_WATCH SEAT_OPS

/* Largest piece received at once; a server's first flight is 1 to 5 KiB. */
#define LOAD_IN_SIZE 4096u

struct load {
	struct load_want want;
	struct ring ring;
	struct seat *seats;    /* owns */
	uint8_t *arena;	       /* owns; LOAD_IN_SIZE for each seat */
	struct tmr_list steps; /* connect and handshake: timeout_ns */
	struct tmr_list waits; /* tickets: ticket_wait_ns */
	struct tmr_list pauses[SEAT_PAUSES];
	struct tmr_list work; /* TLS work to be done, in order; due at once */
	enum cfg_handshake handshake;
	bool running;
	uint64_t stop_by_ns; /* when what still flies is ended; TMR_NEVER */
	uint32_t resting;    /* seats in IDLE */
	uint32_t primed;     /* seats that have had a ticket in this phase */
	uint64_t started;    /* connections, for the limit */
	uint64_t sources;    /* connections, for the source address */
	uint64_t tickets;    /* received since load_open() */
	uint64_t missed;     /* waited for in vain since load_open() */
	int watch[LOAD_WATCHES]; /* borrows */
	uint32_t nwatches;
	uint32_t unarmed;	/* bit per watch whose poll is not in flight */
	uint64_t cpu_before_ns; /* of the slot's earlier processes */
	uint64_t alive_ns;	/* cpu_ns and heartbeat were published */
};

/* An idle or paused seat connects, if the load runs and its limit allows. */
void step_begin(struct load *load, struct seat *seat);
/* Its TLS work's turn has come. */
void step_work(struct load *load, struct seat *seat);
/* Its timer has run out. */
void step_timeout(struct load *load, struct seat *seat);
/* It is to end now, whatever it does. */
void step_abort(struct load *load, struct seat *seat);
/* A request of it came back with `res`. */
void step_complete(struct load *load, struct seat *seat, enum seat_op op,
		   int res, uint32_t flags);

#endif
