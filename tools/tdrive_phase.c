/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_phase.h"

#include "shm/base.h"

/* Seats that gather tickets before an open loop begins: as many handshakes at a
 * time as keep a few workers busy. */
#define GATHERING_MAX 64u

static bool is_open(const struct cfg_phase *p)
{
	return p->rate > 0 || p->kind == CFG_KIND_RAMP;
}

static void set_seats(struct load_phase *out, const struct cfg *cfg,
		      const struct cfg_phase *p, uint32_t drivers,
		      uint32_t number)
{
	bool chosen = p->connections != CFG_AUTO;
	uint64_t all = chosen ? p->connections : cfg->load.connections;

	out->seats = addr_share(all, drivers, number);
	if (!is_open(p))
		return;
	if (!chosen)
		all = base_max(all, PHASE_MOST);
	/* Arrivals come to every driver, so each has a seat. */
	out->most = (uint32_t)base_max(addr_share(all, drivers, number), 1);
	out->seats = (uint32_t)base_min(base_max(out->seats, 1), GATHERING_MAX);
}

struct load_phase phase_of(const struct cfg *cfg, const struct cfg_phase *p,
			   uint32_t drivers, uint32_t number)
{
	struct load_phase out = {.kind = p->kind,
				 .handshake = p->handshake,
				 .ticket_use = p->ticket_use,
				 .close = p->close,
				 .transport = p->transport,
				 .speaks_first = p->speaks_first,
				 .arrivals = p->arrivals,
				 .resume = (uint32_t)p->resume,
				 .requests = p->requests,
				 .path = p->path,
				 .body = p->body,
				 .think_ns = p->think,
				 .rate = p->rate,
				 .every_ns = p->every,
				 .from = p->from,
				 .to = p->to,
				 .step = p->step,
				 .step_time_ns = p->step_time,
				 .p99_ns = p->p99,
				 .records = p->records && number == 0};

	/* "As many as fit." */
	if (p->kind == CFG_KIND_BULK && p->requests == 0)
		out.requests = CFG_UNLIMITED;
	set_seats(&out, cfg, p, drivers, number);
	return out;
}

void phase_seats(const struct cfg *cfg, uint32_t drivers, uint32_t number,
		 uint32_t *seats, uint32_t *most)
{
	*seats = 0;
	*most = 0;
	for (size_t i = 0; i < cfg->nphases; i++) {
		struct load_phase p =
			phase_of(cfg, &cfg->phases[i], drivers, number);

		*seats = (uint32_t)base_max(*seats, p.seats);
		*most = (uint32_t)base_max(*most, base_max(p.seats, p.most));
	}
}
