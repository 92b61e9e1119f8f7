/* SPDX-License-Identifier: MIT */
/*
 * What a run measured, as figures: pure arithmetic on samples, no I/O.
 *
 * CPU of a handshake (design: "Accounting"):
 *   crypto   CPU time in the TLS library until the handshakes of a kind ended,
 *            divided by their number
 *   whole    crypto + rest, where rest = (CPU of the worker - all crypto - its
 *            samples of the core's speed) / (full + resumed + failed): kernel,
 *            ring and everything else, shared out per connection. In a phase of
 * one kind this is the worker's user + system CPU divided by its handshakes.
 *   core/s   1 s / whole: what one core could carry if it did nothing else
 */
#ifndef TERMINATOR_RES_H
#define TERMINATOR_RES_H

#include "config/cfg.h"
#include "terminator/slc.h"
#include "terminator/smp.h"

#include <stdbool.h>
#include <stdint.h>

/* One kind of handshake in one row. Without a handshake: n 0 and NaN. */
struct res_cost {
	uint64_t n;
	double per_s;	       /* handshakes per second */
	double whole_ns;       /* CPU per handshake */
	double crypto_ns;      /* CPU in the TLS library per handshake */
	double p50_ns, p99_ns; /* wall time of the handshake at this end */
	double core_per_s;
	double sample_ns; /* mean sample of the core's speed; NaN: too few */
};

enum res_kind {
	RES_FULL,
	RES_RESUMED
};

/* `snap` is a difference over `window_ns`, `cpu_ns` its process's CPU. */
struct res_cost res_cost(const struct shm_seg *seg, const struct shm_snap *snap,
			 uint64_t cpu_ns, uint64_t window_ns,
			 enum res_kind kind);

/*
 * Share of the CPU of a full handshake that a resumed one saves, 0..1. Both are
 * first scaled to the same core speed, where both have samples of it. NaN
 * without one of them.
 */
double res_saved(const struct res_cost *full, const struct res_cost *resumed);

/* Does a phase measure handshakes? Otherwise it measures requests on kept
 * connections, or connections and requests without TLS. */
bool res_of_handshakes(const struct cfg_phase *phase);

struct res_phase;

/* What a phase of the other sort counts in `snap`: requests, or connections if
 * it makes none; and the CPU time of one, ns (NaN without any). */
uint64_t res_work(const struct shm_seg *seg, const struct res_phase *phase,
		  const struct shm_snap *snap);
double res_work_ns(const struct shm_seg *seg, const struct res_phase *phase,
		   const struct shm_snap *snap, uint64_t cpu_ns);

/* Jain's fairness index, (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n
 * when one has all (Jain, Chiu, Hawe 1984). NaN when all are 0. */
double res_jain(const uint64_t *x, uint32_t n);

/*
 * A named reason to distrust, with what to do. A note is worth knowing and
 * leaves the headline figure right; with a doubt it is not to be trusted (exit
 * status 3); a fatal one means that there is no result at all (exit status 1).
 */
enum res_level {
	RES_NOTE,
	RES_DOUBT,
	RES_FATAL
};

struct res_doubt {
	char name[32];
	char text[256];
	enum res_level level;
	bool accepted; /* accept_doubt names it */
};

struct res_doubts {
	struct res_doubt item[32];
	uint32_t n;
};

void res_doubt(struct res_doubts *d, enum res_level level, const char *name,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
bool res_fatal(const struct res_doubts *d);
/* The highest level among those that are not accepted; RES_NOTE for none. */
enum res_level res_worst(const struct res_doubts *d);

/* Both ends' own counts of the whole phase, from quiet to quiet. */
struct res_agree {
	uint64_t server_full, server_resumed, server_failed, server_accepted;
	uint64_t driver_full, driver_resumed, driver_failed, driver_started;
	bool done; /* the phase came to rest, so the counts can be compared */
	bool ok;   /* full and resumed are equal on both ends */
};

struct res_phase {
	const struct cfg_phase *cfg; /* NULL: serving without a load */
	struct smp measured;	     /* owns; differences over the window */
	struct shm_snap workers;     /* owns; total of the window */
	struct shm_snap drivers;     /* owns; total of the window */
	uint64_t workers_cpu_ns, drivers_cpu_ns;
	uint64_t unattributed_ns; /* machine busy, by none of us */
	uint32_t ncpu;		  /* online CPUs: scale of the above */
	struct res_agree agree;
	bool identity; /* accepted = full + resumed + failed + in progress */
	bool interrupted;
	double jain;
	uint64_t min_hs, max_hs;	  /* of one worker */
	double busy_max, driver_busy_max; /* share of a CPU, 0..1 */
	double machine_busy;		  /* share of all CPUs, 0..1 */
	double speed_ns; /* mean sample of the core's speed; NaN without */
	struct slc_facts facts;
	struct slc slices;
	const char *limit; /* one word: server, driver, ports, ... */
	char limited_by[200];
	struct res_doubts doubts;
};

/* The four moments of a phase: at rest, window begins, window ends, at rest. */
struct res_moments {
	const struct smp *rest_before, *begin, *end, *rest_after;
	bool at_rest; /* rest_after really is at rest */
	bool interrupted;
	bool sharing; /* workers and drivers share CPUs */
	uint32_t nworkers, ndrivers;
	const struct slc *slices; /* NULL: none were taken */
};

/* 0, and the caller owns what is in *out (res_phase_fini()); or -ENOMEM. What
 * it all means is vrd.h's to say. */
int res_phase(struct res_phase *out, const struct shm_seg *seg,
	      const struct cfg_phase *phase, const struct res_moments *m);
/*
 * The speed of a core as an index: mean CPU time of the reference work over the
 * whole run, divided by the mean in `snap`. Above 1 the core was faster than on
 * the run's average; CPU times multiplied by it are scaled to that average. NaN
 * without samples.
 */
double res_reference_ns(const struct shm_seg *seg,
			const struct res_phase *phase, uint32_t n);
double res_speed(const struct shm_seg *seg, const struct shm_snap *snap,
		 double reference_ns);

void res_phase_fini(struct res_phase *phase);

#endif
