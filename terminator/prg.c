/* SPDX-License-Identifier: MIT */
/* The line on the terminal while a run goes on; nothing anywhere else. */
#include "terminator/mst_int.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "shm/fmt.h"

#include <stdio.h>

static const char *state_word(enum mst_state s)
{
	switch (s) {
	case MST_STARTING:
		return "starting";
	case MST_SERVING:
		return "serving";
	case MST_PRIME:
		return "collecting tickets";
	case MST_WARMUP:
		return "warming up";
	case MST_MEASURE:
		return "measuring";
	case MST_SETTLE:
	case MST_REST:
		return "settling";
	case MST_ENDING:
	case MST_OVER:
		break;
	}
	return "ending";
}

void prg_clear(struct mst *m)
{
	if (m->progress_shown)
		fputs("\r\033[K", stderr);
	m->progress_shown = false;
}

void prg_show(struct mst *m)
{
	uint64_t now = clk_now(), n = mst_handshakes(m) - m->hs_at_begin;
	double elapsed = (double)(now - m->state_began_ns) / 1e9;
	char rate[FMT_LEN], left[FMT_LEN] = "";

	if (elapsed > 0.1)
		fmt_rate(rate, (double)n / elapsed, 9);
	else
		snprintf(rate, sizeof(rate), "-");
	fprintf(stderr, "\r\033[K");
	if (m->phase < m->cfg->nphases)
		fprintf(stderr, "phase %u/%zu %s: ", m->phase + 1,
			m->cfg->nphases, m->cfg->phases[m->phase].name);
	fprintf(stderr, "%s", state_word(m->state));
	if ((m->state == MST_WARMUP || m->state == MST_MEASURE) &&
	    m->deadline_ns > now)
		fprintf(stderr, ", %s s left",
			fmt_fixed(left, (double)(m->deadline_ns - now) / 1e9,
				  1));
	fprintf(stderr, ", %s handshakes/s", rate);
	fflush(stderr);
	m->progress_shown = true;
}
