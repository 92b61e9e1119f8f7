/* SPDX-License-Identifier: MIT */
/*
 * The load: a closed loop of seats on one ring, in one thread. The caller turns
 * it and decides when it starts and stops; what happens is counted in a slot.
 *
 *     load_open, load_watch..., { load_start, load_turn..., load_stop,
 *     load_turn... until load_idle }, load_close
 */
#ifndef TOOLS_TDRIVE_LOAD_H
#define TOOLS_TDRIVE_LOAD_H

#include "config/cfg.h"
#include "shm/seg.h"
#include "tools/tdrive_addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_WATCHES 4u

/* The longest that a turn lasts with nothing to do: the heartbeat. */
#define LOAD_HEARTBEAT_NS (100 * NS_PER_MS)

struct ctls;
struct load;

/* Whether a TLS 1.3 connection waits for its tickets before it closes. */
enum load_tickets {
	LOAD_TICKETS_NONE, /* the server issues none */
	LOAD_TICKETS_WAIT,
	LOAD_TICKETS_LEARN, /* wait, until a first round brought none at all */
};

struct load_want {
	struct addr_target target;
	uint32_t driver; /* number of this driver: its source addresses */
	uint32_t seats;	 /* connections in flight; may be 0 */
	uint64_t limit;	 /* connections to start in all; 0: no limit */
	uint64_t timeout_ns;
	uint64_t ticket_wait_ns;
	enum load_tickets tickets;
	struct ctls *tls;      /* borrowed, outlives the load */
	struct shm_slot *slot; /* borrowed; its only writer is the load */
};

/*
 * Makes the ring and the seats, raises the soft RLIMIT_NOFILE to what they
 * need. 0, and the caller owns *out; or -errno with one sentence in err.
 */
int load_open(struct load **out, const struct load_want *want, char *err,
	      size_t len);
/* Also in the middle of connections, which the kernel then resets. */
void load_close(struct load **load);

/* load_turn() reports when `fd` (borrowed) can be read: bit 0 for the first fd
 * watched, 1 for the second. The caller then reads it to -EAGAIN. */
void load_watch(struct load *load, int fd);

/* Begins a phase: what seats hold is dropped; idle seats connect. */
void load_start(struct load *load, enum cfg_handshake handshake);

/* No new connections; those in flight end, after `timeout_ns` by force. */
void load_stop(struct load *load);

/* Has every seat got a ticket since load_start()? */
bool load_primed(const struct load *load);

/* Is every seat at rest, with nothing lent to the kernel? */
bool load_idle(const struct load *load);

/* What was chosen for the ring: "SINGLE_ISSUER|DEFER_TASKRUN". */
const char *load_ring_mode(const struct load *load);

/*
 * One turn: waits for something to do (until `until_ns` on clk_now()'s scale,
 * and at most a heartbeat), does it. Returns the bits of the watches to be
 * read.
 */
uint32_t load_turn(struct load *load, uint64_t until_ns);

#endif
