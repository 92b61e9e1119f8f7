/* SPDX-License-Identifier: MIT */
/*
 * How fast this core is right now, by a fixed piece of the library's own
 * arithmetic: two X25519 key agreements, about 100 us. A core's speed is no
 * constant (frequency, a neighbour on the same physical core), and no counter
 * of the kernel shows it in a virtual machine; the CPU time of the same work
 * does.
 *
 * One per worker, made after the fork, used by the worker's thread alone.
 */
#ifndef WORKERS_TLS_SPEED_H
#define WORKERS_TLS_SPEED_H

#include <stdint.h>

struct tls_speed;

/* 0, and the caller owns *out; or -EIO or -ENOMEM. */
int tls_speed_open(struct tls_speed **out);
void tls_speed_close(struct tls_speed **speed);

/* Does the work once. Returns the CPU time it took, ns; 0 if it failed. */
uint64_t tls_speed_sample(struct tls_speed *speed);

#endif
