/* SPDX-License-Identifier: MIT */
/*
 * Between the loop (tdrive_load.c), who begins when (tdrive_pace.c), a seat's
 * steps (tdrive_step.c) and what it says (tdrive_talk.c); nobody else.
 */
#ifndef TOOLS_TDRIVE_LOAD_INT_H
#define TOOLS_TDRIVE_LOAD_INT_H

#include "tools/tdrive_alive.h"
#include "tools/tdrive_count.h"
#include "tools/tdrive_http.h"
#include "tools/tdrive_load.h"
#include "tools/tdrive_plan.h"
#include "tools/tdrive_ring.h"
#include "tools/tdrive_seat.h"

/* user_data: seat's (or watch's) index, and in the low byte what it was. */
#define LOAD_OP_BITS  8
#define LOAD_OP_WATCH SEAT_OPS

/* Largest piece received at once; a server's first flight is 1 to 5 KiB. */
#define LOAD_IN_SIZE 4096u
/* ... of a bulk transfer: 16 records, and few system calls per GiB. */
#define LOAD_BULK_IN_SIZE 262144u

/* Bytes of one answer that are counted before it is complete, so that a window
 * in the middle of a large body shows what was moved in it. */
#define LOAD_MOVED_SIZE (UINT64_C(1) << 20)

/* Largest plaintext of a record (RFC 8446, 5.1). */
#define LOAD_PLAIN_SIZE 16384u

/* Seats are made in blocks, for timers hold pointers to them. */
#define LOAD_BLOCK 64u

/* Both handshakes of records:, and a turn's bursts and steps. */
#define LOAD_NOTES 64u

struct load_block {
	struct seat seat[LOAD_BLOCK];
	uint8_t *arena; /* owns; in_size for each seat */
};

struct load_burst {
	uint64_t next_ns; /* the instant of the next one */
	uint64_t max_ns;  /* of the one under way, all below too */
	uint32_t begun, done, slow;
};

struct load_ramp {
	uint64_t rate; /* of this step */
	uint64_t good; /* the highest that was kept; 0: none yet */
	uint64_t end_ns;
	uint64_t due; /* arrivals in this step */
	bool risen;   /* it does not rise any more */
	struct hist_view before;
};

struct load {
	struct load_want want;
	struct load_phase phase;
	struct ring ring;
	struct load_block **block; /* owns, and each block */
	uint32_t nblocks;
	uint32_t nseats;       /* made so far */
	uint32_t in_size;      /* of each seat's buffer */
	struct seat *top;      /* borrows; seats in IDLE, a stack */
	struct tmr_list steps; /* connect, handshake, answer: timeout_ns */
	struct tmr_list waits; /* tickets: ticket_wait_ns */
	struct tmr_list thinks;
	struct tmr_list pauses[SEAT_PAUSES];
	struct tmr_list work; /* TLS work to be done, in order; due at once */
	bool running;
	bool priming;	      /* in a closed loop, before arrivals begin */
	bool gathered;	      /* the tickets that the phase needs are there */
	uint64_t ready_by_ns; /* goes on without them then */
	uint64_t stop_by_ns;  /* when what still flies is ended; TMR_NEVER */
	uint32_t resting;     /* seats in IDLE */
	uint32_t holding;     /* seats in HOLD */
	uint32_t primed;      /* seats that have had a ticket in this phase */
	uint32_t pool_goal;   /* tickets to gather */
	uint64_t started;     /* connections, for the limit */
	uint64_t sources;     /* connections, for the source address */
	uint64_t tickets;     /* received since load_open() */
	uint64_t missed;      /* waited for in vain since load_open() */
	struct mix mix;
	struct plan due;   /* open loop: counts what is due */
	struct plan begin; /* ... and this one begins it */
	uint64_t waiting;  /* due and not begun */
	struct load_burst burst;
	struct load_ramp ramp;
	struct ctls_rec *rec;  /* owns; NULL: no records are wanted */
	bool recorded;	       /* all that were wanted are told */
	struct seat *followed; /* borrows; whose connection it follows */
	bool told[2];	       /* full, resumed: is shown already */
	char request[HTTP_TEXT_MAX];
	uint32_t request_len;
	int watch[LOAD_WATCHES]; /* borrows */
	uint32_t nwatches;
	uint32_t unarmed; /* bit per watch whose poll is not in flight */
	struct alive alive;
	char note[LOAD_NOTES][LOAD_NOTE_MAX];
	uint32_t note_first, notes;
	uint8_t plain[LOAD_PLAIN_SIZE];
};

static inline struct seat *load_seat(struct load *load, uint32_t index)
{
	return &load->block[index / LOAD_BLOCK]->seat[index % LOAD_BLOCK];
}

static inline bool load_is_plain(const struct load *load)
{
	return load->phase.transport == CFG_TRANSPORT_TCP;
}

/* Arrivals come by a plan. */
static inline bool load_is_open(const struct load *load)
{
	return load->phase.rate > 0 || load->phase.kind == CFG_KIND_RAMP;
}

/* Does the phase need tickets? */
static inline bool load_gathers(const struct load_phase *phase)
{
	return phase->handshake != CFG_HANDSHAKE_FULL &&
	       phase->transport == CFG_TRANSPORT_TLS;
}

/* ---- tdrive_load.c ---- */

/* A seat from the stack, or NULL. */
struct seat *load_take_seat(struct load *load);
/* One more seat, at rest. 0 or -errno. */
int load_add_seat(struct load *load);
/* Adds a line for load_note(); the oldest goes when there is no room. */
void load_tell(struct load *load, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- tdrive_pace.c ---- */

void pace_start(struct load *load);
/* Begins what is due. */
void pace_turn(struct load *load, uint64_t now);
/* When something is due next. */
uint64_t pace_due(const struct load *load);
/* A seat in CLOSE is done with: what comes next for it. */
void pace_next(struct load *load, struct seat *seat);
/* A seat's pause after failures is over. */
void pace_again(struct load *load, struct seat *seat);
/* A connection's work was done `ns` after it was due. */
void pace_done(struct load *load, uint64_t ns);

/* ---- tdrive_step.c ---- */

/* A seat in IDLE, PAUSE or CLOSE connects, for what was due then; 0: now. */
void step_begin(struct load *load, struct seat *seat, uint64_t due_ns);
/* To IDLE. */
void step_rest(struct load *load, struct seat *seat);
/* Its TLS work's turn has come. */
void step_work(struct load *load, struct seat *seat);
/* Its timer has run out. */
void step_timeout(struct load *load, struct seat *seat);
/* It is to end now, whatever it does. */
void step_abort(struct load *load, struct seat *seat);
/* A request of it came back with `res`. */
void step_complete(struct load *load, struct seat *seat, enum seat_op op,
		   int res, uint32_t flags);
/* The connection is over, its handshake was good. */
void step_end(struct load *load, struct seat *seat, enum count_end how);
/* Sends what there is to send, receives unless it does. */
void step_listen(struct load *load, struct seat *seat);
/* Bytes moved since the last call, to be counted now. */
struct count_bytes step_bytes(struct seat *seat);
/* Counts tickets that came. */
void step_tickets(struct load *load, struct seat *seat);

/* ---- tdrive_record.c ---- */

/* 0 or -ENOMEM. */
int record_start(struct load *load, const struct load_phase *phase);
/* A connection's TLS begins. */
void record_begin(struct load *load, struct seat *seat);
/* It ends; `good`: its handshake was. Before ctls_end(). */
void record_end(struct load *load, struct seat *seat, bool good);

/* ---- tdrive_talk.c ---- */

/* The connection is up: what the phase wants of it begins. May end it. */
void talk_begin(struct load *load, struct seat *seat, uint64_t now);
/* What has arrived by TLS is read. May end it. */
void talk_read(struct load *load, struct seat *seat);
/* What arrived without TLS. May end it. */
void talk_plain(struct load *load, struct seat *seat, size_t n);
/* A request that found no room is written. */
void talk_write(struct load *load, struct seat *seat);
/* The pause before a request is over. */
void talk_ask(struct load *load, struct seat *seat);

#endif
