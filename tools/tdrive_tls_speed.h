/* SPDX-License-Identifier: MIT */
/*
 * The speed of the driver's core: how much CPU time a fixed piece of the
 * library's arithmetic takes just now, two key agreements by X25519 with fixed
 * keys, about 100 us. The same work as the workers', so that the two ends'
 * figures can be compared; and code of our own, as all of the driver.
 */
#ifndef TOOLS_TDRIVE_TLS_SPEED_H
#define TOOLS_TDRIVE_TLS_SPEED_H

#include <stdint.h>

struct ctls_speed;

/* 0, and the caller owns *out; or -ENOMEM, or -EIO where the library cannot. */
int ctls_speed_open(struct ctls_speed **out);
void ctls_speed_close(struct ctls_speed **speed);

/* CPU time of one piece, ns; 0: it failed. */
uint64_t ctls_speed_sample(struct ctls_speed *speed);

#endif
