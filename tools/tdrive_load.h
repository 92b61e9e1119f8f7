/* SPDX-License-Identifier: MIT */
/*
 * The load: seats on one ring, in one thread, filled as a phase wants it. The
 * caller turns it and decides when it starts and stops; what happens is counted
 * in a slot.
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

#define LOAD_WATCHES  4u
#define LOAD_NOTE_MAX 128

struct ctls;
struct load;

/* Whether a TLS 1.3 connection waits for its tickets before it closes. */
enum load_tickets {
	LOAD_TICKETS_NONE, /* the server issues none */
	LOAD_TICKETS_WAIT,
	LOAD_TICKETS_LEARN, /* wait, until a first round brought none at all */
};

struct load_want {
	struct addr_target target; /* speaks TLS */
	struct addr_target plain;  /* speaks without; len 0: there is none */
	const char *host;	   /* borrowed; of requests */
	uint32_t driver;	   /* number of this driver */
	uint32_t drivers;	   /* 0: this one alone */
	uint32_t seats;		   /* made at once; may be 0 */
	uint32_t seats_max;	   /* made as phases need them; 0: as seats */
	uint64_t limit; /* connections to start in all; 0: no limit */
	uint64_t timeout_ns;
	uint64_t ticket_wait_ns;
	enum load_tickets tickets;
	const struct addr_target *source; /* borrowed; to connect from */
	uint32_t nsources;		  /* 0: as addr_rotates() has it */
	struct ctls *tls;		  /* borrowed, outlives the load */
	struct shm_slot *slot; /* borrowed; its only writer is the load */
};

/*
 * What a phase wants of this driver. All zero: a closed loop of full handshakes
 * over TLS, on no seat. Rates are over all drivers, in thousandths per second.
 */
struct load_phase {
	enum cfg_kind kind;
	enum cfg_handshake handshake;
	enum cfg_ticket_use ticket_use;
	enum cfg_close close;
	enum cfg_transport transport;
	enum cfg_speaks speaks_first;
	enum cfg_arrivals arrivals;
	uint32_t resume;   /* mix: percent */
	uint32_t seats;	   /* connections in flight */
	uint32_t most;	   /* open loop: seats at most; 0: as seats */
	uint64_t requests; /* per connection, or CFG_UNLIMITED */
	const char *path;  /* borrowed during load_start(); NULL: "/" */
	uint64_t body;	   /* bytes to ask for in place of path */
	uint64_t think_ns;
	uint64_t rate; /* open loop; 0: closed */
	uint64_t every_ns;
	uint64_t from, to, step;
	uint64_t step_time_ns;
	uint64_t p99_ns; /* 0: no bound */
	bool records;
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

/*
 * Begins a phase, while load_idle(): what seats hold is dropped, seats connect.
 * 0; or -errno with one sentence in err, and nothing has begun.
 */
int load_start(struct load *load, const struct load_phase *phase, char *err,
	       size_t len);

/* No new connections; those in flight end, after `timeout_ns` by force. */
void load_stop(struct load *load);

/* Has every seat got a ticket since load_start()? Of kind idle: is every
 * connection open? */
bool load_primed(const struct load *load);

/* Is what the phase needs there, or not to be had in reasonable time? */
bool load_ready(const struct load *load);

/* When load_ready() will be true at the latest. */
uint64_t load_ready_by(const struct load *load);

/* Is every seat at rest, with nothing lent to the kernel? */
bool load_idle(const struct load *load);

/*
 * What the phase has to tell beside its counters, one line at a time, oldest
 * first: texts of CTL_NOTE, and behind the word "record" of CTL_RECORD
 * (shm/ctl.h). False: nothing more.
 */
bool load_note(struct load *load, char to[static LOAD_NOTE_MAX]);

/* What was chosen for the ring: "SINGLE_ISSUER|DEFER_TASKRUN". */
const char *load_ring_mode(const struct load *load);

/*
 * One turn: waits for something to do (until `until_ns` on clk_now()'s scale,
 * and at most a heartbeat), does it. Returns the bits of the watches to be
 * read.
 */
uint32_t load_turn(struct load *load, uint64_t until_ns);

#endif
