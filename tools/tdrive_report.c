/* SPDX-License-Identifier: MIT */
/* Figures and their verdict; tdrive_report_out.c prints them. */
#include "tools/tdrive_report.h"

#include "config/unit.h"
#include "shm/clk.h"

#include <string.h>

/* More than this of one CPU, and the driver itself sets the pace. */
#define BUSY_SHARE 0.95

/* Less than this of what was due is done: the rate was not kept. */
#define KEPT_SHARE 0.9

void report_take(struct report_take *out, const struct shm_slot *slot)
{
	const _Atomic uint64_t *ctr = (const _Atomic uint64_t *)&slot->ctr;
	const struct hist *hist = (const struct hist *)&slot->hist;

	out->ns = clk_now();
	out->cpu_ns = clk_process_cpu();
	for (uint32_t i = 0; i < CTR_IDS; i++)
		out->ctr[i] =
			atomic_load_explicit(&ctr[i], memory_order_relaxed);
	for (uint32_t i = 0; i < HIST_IDS; i++)
		hist_copy(&out->hist[i], &hist[i]);
}

void report_diff(struct report_take *to, const struct report_take *later,
		 const struct report_take *earlier)
{
	to->ns = later->ns - earlier->ns;
	to->cpu_ns = later->cpu_ns - earlier->cpu_ns;
	for (uint32_t i = 0; i < CTR_IDS; i++)
		to->ctr[i] = ctr_descs[i].kind == CTR_SUM
				     ? later->ctr[i] - earlier->ctr[i]
				     : later->ctr[i];
	for (uint32_t i = 0; i < HIST_IDS; i++)
		hist_diff(&to->hist[i], &later->hist[i], &earlier->hist[i]);
}

uint64_t report_handshakes(const struct report_take *took)
{
	return took->ctr[CTR_ID_hs_full] + took->ctr[CTR_ID_hs_resumed];
}

uint64_t report_failed(const struct report_take *took)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < CTR_IDS; i++)
		if (ctr_is_failure(&ctr_descs[i]))
			sum += took->ctr[i];
	return sum;
}

/* ---- what was asked for ---- */

static bool is_plain(const struct report *r)
{
	return r->phase->transport == CFG_TRANSPORT_TCP;
}

static bool is_open(const struct report *r)
{
	return r->phase->rate > 0 || r->phase->kind == CFG_KIND_RAMP;
}

static bool resumes(const struct report *r)
{
	const struct load_phase *p = r->phase;

	return !is_plain(r) &&
	       (p->handshake == CFG_HANDSHAKE_RESUMED ||
		(p->handshake == CFG_HANDSHAKE_MIX && p->resume > 0));
}

/* Kept connections shake hands before the window: the whole run counts. */
bool report_none_resumed(const struct report *r)
{
	return resumes(r) && r->took.ctr[CTR_ID_hs_resumed] == 0 &&
	       r->whole.ctr[CTR_ID_hs_resumed] == 0;
}

bool report_busy(const struct report *r)
{
	return (double)r->took.cpu_ns > BUSY_SHARE * (double)r->took.ns;
}

void report_loop(const struct report *r, char to[static REPORT_LOOP_LEN])
{
	const struct load_phase *p = r->phase;
	char rate[32], last[32];

	unit_print_rate(p->rate > 0 ? p->rate : p->from, rate, sizeof(rate));
	unit_print_rate(p->to, last, sizeof(last));
	if (p->kind == CFG_KIND_RAMP)
		snprintf(to, REPORT_LOOP_LEN, "open loop, %s to %s %s", rate,
			 last, cfg_word("ARRIVALS", (int)p->arrivals));
	else if (p->rate > 0)
		snprintf(to, REPORT_LOOP_LEN, "open loop, %s %s", rate,
			 cfg_word("ARRIVALS", (int)p->arrivals));
	else if (p->kind == CFG_KIND_BURST || p->kind == CFG_KIND_IDLE)
		snprintf(to, REPORT_LOOP_LEN, "%s, %u connections",
			 cfg_word("KIND", (int)p->kind), p->seats);
	else
		snprintf(to, REPORT_LOOP_LEN, "closed loop, %u connections",
			 p->seats);
}

/* ---- verdict ---- */

/* The cause that failed most. */
static const char *worst(const struct report_take *took)
{
	const char *name = "";
	uint64_t most = 0;

	for (uint32_t i = 0; i < CTR_IDS; i++) {
		if (!ctr_is_failure(&ctr_descs[i]) || took->ctr[i] <= most)
			continue;
		most = took->ctr[i];
		name = ctr_descs[i].name;
	}
	return name;
}

/* What the phase is for, done in the window. */
static uint64_t work_done(const struct report *r, const char **what)
{
	const uint64_t *ctr = r->took.ctr;

	*what = "handshake";
	if (r->phase->requests > 0) {
		*what = "request";
		return ctr[CTR_ID_requests];
	}
	if (r->phase->kind == CFG_KIND_IDLE) {
		*what = "connection";
		return ctr[CTR_ID_conn_open] - ctr[CTR_ID_hs_in_progress];
	}
	if (!is_plain(r))
		return report_handshakes(&r->took);
	*what = "connection";
	return ctr[CTR_ID_conn_connected];
}

/* Nothing to rely on: false if there is something. */
static bool is_void(const struct report *r, char *why, size_t len)
{
	uint64_t failed = report_failed(&r->took);
	const char *what;

	if (work_done(r, &what) == 0) {
		if (failed > 0)
			snprintf(why, len, "no %s succeeded, most failed by %s",
				 what, worst(&r->took));
		else
			snprintf(why, len, "no %s ended in that time", what);
		return true;
	}
	if (report_none_resumed(r)) {
		snprintf(why, len,
			 "resumed handshakes were asked for and none was "
			 "resumed: %s",
			 r->whole.ctr[CTR_ID_tickets_received] == 0
				 ? "the server sent no ticket"
				 : "the server accepted no ticket");
		return true;
	}
	if (r->phase->handshake == CFG_HANDSHAKE_REFUSED && !is_plain(r) &&
	    r->whole.ctr[CTR_ID_hs_refused] == 0) {
		snprintf(why, len,
			 "refused tickets were asked for and none was offered: "
			 "the server sent no ticket");
		return true;
	}
	return false;
}

/* Is the mix other than asked for, by more than was under way? */
static bool is_off_mix(const struct report *r)
{
	const struct load_phase *p = r->phase;
	uint64_t n = report_handshakes(&r->took);
	uint64_t want = n * p->resume / 100;
	uint64_t got = r->took.ctr[CTR_ID_hs_resumed];
	uint64_t slack = 1 + base_max(p->seats, is_open(r) ? p->most : 0);

	return p->handshake == CFG_HANDSHAKE_MIX && !is_plain(r) &&
	       (got > want ? got - want : want - got) > slack;
}

static void doubt_handshakes(const struct report *r, char *why, size_t len)
{
	const uint64_t *ctr = r->took.ctr;
	unsigned long long n = report_handshakes(&r->took);

	if (r->phase->handshake == CFG_HANDSHAKE_RESUMED &&
	    ctr[CTR_ID_hs_full] > 0)
		snprintf(why, len, "%llu of %llu handshakes were not resumed",
			 (unsigned long long)ctr[CTR_ID_hs_full], n);
	else if (r->phase->handshake == CFG_HANDSHAKE_REFUSED &&
		 ctr[CTR_ID_hs_refused] < n)
		snprintf(why, len,
			 "%llu of %llu handshakes were without a refused "
			 "ticket",
			 n - (unsigned long long)ctr[CTR_ID_hs_refused], n);
	else if (is_off_mix(r))
		snprintf(why, len,
			 "%llu of %llu handshakes were resumed, not "
			 "%u %%",
			 (unsigned long long)ctr[CTR_ID_hs_resumed], n,
			 r->phase->resume);
}

static void doubt_schedule(const struct report *r, char *why, size_t len)
{
	const uint64_t *ctr = r->took.ctr;
	uint64_t done = hist_count(&r->took.hist[HIST_ID_conn_latency]);
	uint64_t due = ctr[CTR_ID_arrivals];

	if (ctr[CTR_ID_arrivals_late] > 0)
		snprintf(why, len,
			 "%llu of %llu connections had to wait for one of the "
			 "%u places",
			 (unsigned long long)ctr[CTR_ID_arrivals_late],
			 (unsigned long long)due, r->phase->most);
	else if (r->phase->rate > 0 && (double)done < KEPT_SHARE * (double)due)
		snprintf(why, len,
			 "%llu of %llu connections that were due "
			 "were done: the rate was not kept",
			 (unsigned long long)done, (unsigned long long)due);
}

int report_verdict(const struct report *r, char *why, size_t len)
{
	uint64_t failed = report_failed(&r->took);
	uint64_t bad = r->took.ctr[CTR_ID_requests_bad];

	why[0] = '\0';
	if (is_void(r, why, len))
		return EXIT_RUN;
	if (failed > 0)
		snprintf(why, len, "%llu connections failed, most by %s",
			 (unsigned long long)failed, worst(&r->took));
	else if (bad > 0)
		snprintf(why, len, "%llu answers were bad or did not come",
			 (unsigned long long)bad);
	else
		doubt_handshakes(r, why, len);
	if (why[0] == '\0' && r->phase->kind != CFG_KIND_RAMP)
		doubt_schedule(r, why, len);
	if (why[0] == '\0' && r->interrupted)
		snprintf(why, len, "interrupted after %.1f of %.1f s",
			 (double)r->took.ns / (double)NS_PER_S,
			 (double)r->asked_ns / (double)NS_PER_S);
	return why[0] != '\0' ? EXIT_DOUBTFUL : EXIT_GOOD;
}
