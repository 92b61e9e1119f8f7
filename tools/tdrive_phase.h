/* SPDX-License-Identifier: MIT */
/* From a scenario's phase to what it wants of one driver. */
#ifndef TOOLS_TDRIVE_PHASE_H
#define TOOLS_TDRIVE_PHASE_H

#include "tools/tdrive_load.h"

/* Connections at a time of all drivers in an open loop, unless the phase says
 * otherwise: what a second of standstill at 10,000/s leaves open. */
#define PHASE_MOST 10000u

/* Texts are borrowed from cfg. */
struct load_phase phase_of(const struct cfg *cfg, const struct cfg_phase *p,
			   uint32_t drivers, uint32_t number);

/* Seats that the phases need at once, and may come to need. */
void phase_seats(const struct cfg *cfg, uint32_t drivers, uint32_t number,
		 uint32_t *seats, uint32_t *most);

#endif
