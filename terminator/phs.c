/* SPDX-License-Identifier: MIT */
/*
 * The phases of a run. A phase goes
 *
 *     rest | PRIME, WARMUP | MEASURE | SETTLE, REST | rest
 *          ^ rest_before   ^ begin   ^ end          ^ rest_after
 *
 * Costs and rates come from begin to end. Both ends' counts are compared from
 * rest to rest, where no handshake is under way at either end, so that they
 * must be equal to the last one.
 */
#include "terminator/mst_int.h"
#include "terminator/vrd.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "shm/ctl.h"
#include "shm/log.h"

#include <errno.h>
#include <string.h>

#define REST_NS (3 * NS_PER_S) /* for the workers to see the last ones go */

static void take(struct mst *m, struct smp *s)
{
	smp_take(s, m->seg, m->kids, m->nkids);
	s->net.own_drops = lst_drops(m->lst);
}

static bool drivers_all(const struct mst *m, bool ready)
{
	for (uint32_t i = m->plan.nworkers; i < m->nkids; i++) {
		const struct kid *k = &m->kids[i];

		if (k->pid != 0 && !(ready ? k->ready : k->idle))
			return false;
	}
	return true;
}

static void tell_drivers(struct mst *m, enum ctl_kind kind)
{
	for (uint32_t i = m->plan.nworkers; i < m->nkids; i++) {
		struct kid *k = &m->kids[i];

		if (k->pid == 0)
			continue;
		if (kind == CTL_START) {
			k->ready = false;
			k->idle = false;
		}
		if (ctl_send(k->ctl_fd, kind, m->phase, NULL) < 0)
			log_warn("driver_deaf", "driver=%u", k->number);
	}
}

static void begin_phase(struct mst *m)
{
	take(m, &m->rest_before);
	m->pending.n = 0;
	m->cut = false;
	tell_drivers(m, CTL_START);
	/* A driver gives up collecting tickets after 3 timeouts by itself. */
	mst_enter(m, MST_PRIME, 4 * m->cfg->load.timeout + 10 * NS_PER_S);
}

void phs_slice(struct mst *m)
{
	slc_take(&m->slices, m->seg, m->kids, m->plan.nworkers);
	m->slice_due_ns =
		clk_now() + slc_length(m->cfg->phases[m->phase].duration);
}

static void measure(struct mst *m)
{
	m->slices.n = 0;
	phs_slice(m);
	take(m, &m->begin);
	mst_enter(m, MST_MEASURE, m->cfg->phases[m->phase].duration);
}

static void warm_up(struct mst *m)
{
	uint64_t warmup = m->cfg->phases[m->phase].warmup;

	if (warmup == 0)
		measure(m);
	else
		mst_enter(m, MST_WARMUP, warmup);
}

static void settle(struct mst *m)
{
	tell_drivers(m, CTL_STOP);
	mst_enter(m, MST_SETTLE, 2 * m->cfg->load.timeout + 5 * NS_PER_S);
	phs_driver_said(m);
}

static void end_window(struct mst *m, bool cut)
{
	take(m, &m->end);
	phs_slice(m);
	m->cut = cut;
	settle(m);
}

/* One more result; the doubts gathered on the way come first. */
static void conclude(struct mst *m, const struct cfg_phase *phase, bool at_rest)
{
	struct mst_report *r = m->report;
	struct res_phase *p = &r->phase[r->nphase];
	struct res_moments mo = {.rest_before = &m->rest_before,
				 .begin = &m->begin,
				 .end = &m->end,
				 .rest_after = &m->rest_after,
				 .at_rest = at_rest,
				 .interrupted = m->cut,
				 .sharing = m->plan.sharing,
				 .nworkers = m->plan.nworkers,
				 .ndrivers = m->plan.ndrivers,
				 .slices = &m->slices};

	if (res_phase(p, m->seg, phase, &mo) < 0) {
		mst_fail(m, "out of memory");
		return;
	}
	vrd_judge(p, m->seg, &mo);
	for (uint32_t i = 0; i < m->pending.n; i++)
		res_doubt(&p->doubts, m->pending.item[i].level,
			  m->pending.item[i].name, "%s",
			  m->pending.item[i].text);
	vrd_accept(&p->doubts, m->cfg);
	r->nphase++;
}

static void phase_over(struct mst *m, bool at_rest)
{
	take(m, &m->rest_after);
	if (m->end.taken_ns > m->begin.taken_ns &&
	    m->begin.taken_ns > m->rest_before.taken_ns)
		conclude(m, &m->cfg->phases[m->phase], at_rest);
	if (!m->stopping && m->phase + 1 < m->cfg->nphases) {
		m->phase++;
		begin_phase(m);
		return;
	}
	m->stopping = true;
	mst_end_children(m);
}

void phs_workers_ready(struct mst *m)
{
	if (m->stopping)
		return;
	if (m->plan.ndrivers > 0 && m->cfg->nphases > 0) {
		begin_phase(m);
		return;
	}
	take(m, &m->rest_before);
	take(m, &m->begin);
	m->report->served = true;
	mst_enter(m, MST_SERVING, 0);
	log_info("serving", "name=%s listen=\"%s\" workers=%u",
		 cfg_segment_name(m->cfg), m->info.listen, m->plan.nworkers);
}

void phs_driver_said(struct mst *m)
{
	if (m->state == MST_PRIME && drivers_all(m, true))
		warm_up(m);
	else if (m->state == MST_SETTLE && drivers_all(m, false))
		mst_enter(m, MST_REST, REST_NS);
}

void phs_poll_rest(struct mst *m)
{
	for (uint32_t i = 0; i < m->plan.nworkers; i++) {
		const struct ctr_block *c = &shm_seg_slot(m->seg, i)->ctr;

		if (atomic_load_explicit(&c->conn_open, memory_order_relaxed))
			return;
	}
	phase_over(m, true);
}

void phs_deadline(struct mst *m)
{
	switch (m->state) {
	case MST_PRIME:
		mst_fail(m,
			 "phase %s: the drivers did not get ready within "
			 "%llu s",
			 m->cfg->phases[m->phase].name,
			 (unsigned long long)((4 * m->cfg->load.timeout) /
						      NS_PER_S +
					      10));
		break;
	case MST_WARMUP:
		measure(m);
		break;
	case MST_MEASURE:
		end_window(m, false);
		break;
	case MST_SETTLE:
	case MST_REST:
		phase_over(m, false);
		break;
	default:
		break;
	}
}

void phs_stop(struct mst *m)
{
	m->stopping = true;
	switch (m->state) {
	case MST_MEASURE:
		end_window(m, true);
		break;
	case MST_PRIME:
	case MST_WARMUP:
		m->begin.taken_ns = 0; /* nothing was measured */
		settle(m);
		break;
	case MST_STARTING:
	case MST_SERVING:
		mst_end_children(m);
		break;
	case MST_SETTLE:
	case MST_REST:
	case MST_ENDING:
	case MST_OVER:
		break;
	}
}

void phs_ended(struct mst *m)
{
	if (m->report->served) {
		m->pending.n = 0;
		take(m, &m->end);
		take(m, &m->rest_after);
		conclude(m, NULL, true);
	}
	mst_enter(m, MST_OVER, 0);
}
