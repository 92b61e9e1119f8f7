/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_seat.h"

#define PAUSE_MAX_NS (100 * NS_PER_MS)

static const char *const names[SEAT_STATES] = {
#define STATE(name, ...) [SEAT_##name] = #name,
#include "tools/tdrive_states.def"
};

static const bool allowed[SEAT_STATES][SEAT_STATES] = {
#define EDGE(from, to, ...) [SEAT_##from][SEAT_##to] = true,
#include "tools/tdrive_states.def"
};

const char *seat_state_name(enum seat_state state)
{
	return names[state];
}

bool seat_may(enum seat_state from, enum seat_state to)
{
	return allowed[from][to];
}

void seat_set_state(struct seat *seat, enum seat_state state)
{
	MUST(allowed[seat->state][state]);
	seat->state = state;
}

uint32_t seat_pause(uint32_t fails)
{
	MUST(fails > 0);
	return (uint32_t)base_min(fails - 1, SEAT_PAUSES - 1);
}

uint64_t seat_pause_ns(uint32_t pause)
{
	return base_min(NS_PER_MS << pause, PAUSE_MAX_NS);
}
