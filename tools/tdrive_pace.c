/* SPDX-License-Identifier: MIT */
/*
 * Who begins when. In a closed loop a seat begins anew when its connection is
 * over; in an open loop, a ramp and a burst seats rest until a connection is
 * due; of kind idle they begin a few at a time and stay.
 *
 * Tickets that a phase needs are gathered in a closed loop first, whatever its
 * kind, with no arrivals before they are there.
 */
#include "tools/tdrive_load_int.h"

#include "config/unit.h"
#include "shm/clk.h"
#include "tools/tdrive_tls.h"

/* Kind idle: connections being opened at a time. Far below any listen queue. */
#define OPENING_MAX 64u

/* Of a burst: a SYN that was sent again comes a second late. */
#define SLOW_NS (500 * NS_PER_MS)

static bool may_begin(const struct load *load)
{
	return load->running &&
	       (load->want.limit == 0 ||
		load->started + load->waiting < load->want.limit);
}

/* Does a seat begin anew by itself? */
static bool goes_round(const struct load *load)
{
	return load->priming || load->phase.kind == CFG_KIND_IDLE ||
	       (!load_is_open(load) && load->phase.kind != CFG_KIND_BURST);
}

static void begin_seats(struct load *load, uint32_t n)
{
	struct seat *seat;

	for (; n > 0 && may_begin(load); n--) {
		seat = load_take_seat(load);
		MUST(seat != NULL);
		step_begin(load, seat, 0);
	}
}

void pace_next(struct load *load, struct seat *seat)
{
	if (!may_begin(load) || !goes_round(load)) {
		step_rest(load, seat);
		return;
	}
	if (seat->fails == 0) {
		step_begin(load, seat, 0);
		return;
	}
	seat_set_state(seat, SEAT_PAUSE);
	tmr_set(&load->pauses[seat_pause(seat->fails)], &seat->tmr, clk_now());
}

void pace_again(struct load *load, struct seat *seat)
{
	if (may_begin(load) && goes_round(load))
		step_begin(load, seat, 0);
	else
		step_rest(load, seat);
}

/* ---- open loop ---- */

static void start_plan(struct load *load, uint64_t rate, uint64_t now)
{
	struct plan_want want = {.rate = rate,
				 .poisson = load->phase.arrivals ==
					    CFG_ARRIVALS_POISSON,
				 .drivers = load->want.drivers,
				 .driver = load->want.driver};

	plan_start(&load->due, &want, now);
	load->begin = load->due;
	load->waiting = 0;
}

/* One at rest, or a new one. NULL: there are as many as there may be. */
static struct seat *free_seat(struct load *load)
{
	if (load->top == NULL &&
	    (load->nseats >= load->phase.most || load_add_seat(load) != 0))
		return NULL;
	return load_take_seat(load);
}

static void begin_waiting(struct load *load)
{
	struct seat *seat;

	while (load->waiting > 0 && load->running) {
		seat = free_seat(load);
		if (seat == NULL)
			return;
		load->waiting--;
		step_begin(load, seat, plan_take(&load->begin));
	}
}

/* What is due begins; what finds no seat stays in the schedule. */
static void turn_open(struct load *load, uint64_t now)
{
	uint64_t n = 0;

	while (plan_due(&load->due) <= now && may_begin(load)) {
		plan_take(&load->due);
		load->waiting++;
		n++;
	}
	begin_waiting(load);
	if (n == 0)
		return;
	load->ramp.due += n;
	count_arrivals(load->want.slot, n, base_min(n, load->waiting));
}

/* ---- ramp ---- */

static void start_step(struct load *load, uint64_t rate, uint64_t now)
{
	struct load_ramp *r = &load->ramp;

	/* What a step before could not begin is not carried over. */
	start_plan(load, rate, now);
	r->rate = rate;
	r->due = 0;
	r->end_ns = now + load->phase.step_time_ns;
	hist_copy(&r->before, &load->want.slot->hist.conn_latency);
}

/* "ok", or why the rate was not kept. */
static const char *judge_step(struct load *load, uint64_t *p99)
{
	struct load_ramp *r = &load->ramp;
	static struct hist_view now, took;
	uint64_t done, open;

	hist_copy(&now, &load->want.slot->hist.conn_latency);
	hist_diff(&took, &now, &r->before);
	done = hist_count(&took);
	*p99 = hist_percentile(&took, 99);
	if (load->phase.p99_ns > 0 && *p99 > load->phase.p99_ns)
		return "over";
	/* More than a tenth is not done, beyond the few that are under way. */
	open = r->due > done ? r->due - done : 0;
	if (load->waiting > 0 ||
	    (open * 10 > r->due && open > base_min(10, r->due / 2)))
		return "late";
	return "ok";
}

static void turn_ramp(struct load *load, uint64_t now)
{
	struct load_ramp *r = &load->ramp;
	uint64_t rate = r->rate, p99;
	char text[32];
	const char *verdict;

	if (now < r->end_ns)
		return;
	verdict = judge_step(load, &p99);
	unit_print_rate(rate, text, sizeof(text));
	load_tell(load, "ramp %s %llu %s", text, (unsigned long long)p99,
		  verdict);
	if (verdict[0] == 'o' && verdict[1] == 'k')
		r->good = rate;
	else
		r->risen = true;
	if (!r->risen && rate + load->phase.step <= load->phase.to)
		rate += load->phase.step;
	else if (r->good > 0)
		rate = r->good;
	start_step(load, rate, now);
}

/* ---- burst ---- */

/* All drivers count from the same zero, so their bursts fall together. */
static uint64_t next_instant(const struct load *load, uint64_t now)
{
	return (now / load->phase.every_ns + 1) * load->phase.every_ns;
}

static void end_burst(struct load *load, uint64_t now)
{
	struct load_burst *b = &load->burst;

	load_tell(load, "burst %u %llu %u %u", b->begun,
		  (unsigned long long)b->max_ns, b->slow, b->begun - b->done);
	*b = (struct load_burst){.next_ns = next_instant(load, now)};
}

static void turn_burst(struct load *load, uint64_t now)
{
	struct load_burst *b = &load->burst;

	if (b->begun > 0 && load_idle(load))
		end_burst(load, now);
	/* Connections of the priming may be on their way to rest. */
	if (b->begun > 0 || now < b->next_ns || !load_idle(load))
		return;
	while (b->begun < load->phase.seats && may_begin(load)) {
		b->begun++;
		step_begin(load, load_take_seat(load), b->next_ns);
	}
}

void pace_done(struct load *load, uint64_t ns)
{
	struct load_burst *b = &load->burst;

	if (b->begun == 0)
		return;
	b->done++;
	b->max_ns = base_max(b->max_ns, ns);
	b->slow += ns > SLOW_NS;
}

/* ---- idle ---- */

static void turn_idle(struct load *load)
{
	uint32_t busy = load->nseats - load->resting;
	uint32_t opening = busy - load->holding;

	while (busy < load->phase.seats && opening < OPENING_MAX &&
	       may_begin(load)) {
		begin_seats(load, 1);
		busy++;
		opening++;
	}
}

/* ---- all ---- */

static bool enough(const struct load *load)
{
	return load->primed >= load->phase.seats &&
	       ctls_pooled(load->want.tls) >= load->pool_goal;
}

static void go(struct load *load, uint64_t now)
{
	load->priming = false;
	if (load->phase.kind == CFG_KIND_BURST)
		load->burst.next_ns = next_instant(load, now);
	else if (load->phase.kind == CFG_KIND_RAMP)
		start_step(load, load->phase.from, now);
	else if (load_is_open(load))
		start_plan(load, load->phase.rate, now);
}

void pace_start(struct load *load)
{
	bool waits = load_is_open(load) || load->phase.kind == CFG_KIND_BURST;

	mix_start(&load->mix, load->phase.resume);
	load->burst = (struct load_burst){0};
	load->ramp = (struct load_ramp){0};
	load->waiting = 0;
	load->gathered = !load_gathers(&load->phase);
	load->priming = waits && !load->gathered;
	if (load->priming || !waits)
		begin_seats(load, load->phase.kind == CFG_KIND_IDLE
					  ? 0
					  : load->phase.seats);
	else
		go(load, clk_now());
	pace_turn(load, clk_now());
}

static void gather(struct load *load, uint64_t now)
{
	if (load->gathered || !(enough(load) || now >= load->ready_by_ns))
		return;
	load->gathered = true;
	if (load->priming)
		go(load, now);
}

void pace_turn(struct load *load, uint64_t now)
{
	gather(load, now);
	if (load->phase.kind == CFG_KIND_BURST && !load->priming)
		turn_burst(load, now);
	if (!load->running || load->priming)
		return;
	if (load->phase.kind == CFG_KIND_IDLE)
		turn_idle(load);
	if (load_is_open(load))
		turn_open(load, now);
	if (load->phase.kind == CFG_KIND_RAMP)
		turn_ramp(load, now);
}

uint64_t pace_due(const struct load *load)
{
	uint64_t due = TMR_NEVER;

	if (!load->running)
		return due;
	if (!load->gathered)
		due = load->ready_by_ns;
	if (load->priming)
		return due;
	if (load->phase.kind ==
	    CFG_KIND_BURST) /* all may have failed at once */
		return load->burst.begun == 0 ? load->burst.next_ns
		       : load_idle(load)      ? 0
					      : TMR_NEVER;
	if (load_is_open(load) && may_begin(load))
		due = base_min(due, plan_due(&load->due));
	if (load->phase.kind == CFG_KIND_RAMP)
		due = base_min(due, load->ramp.end_ns);
	return due;
}
