/* SPDX-License-Identifier: MIT */
/*
 * What a connection answers after its handshake (terminator.respond): plaintext
 * in, plaintext out. It writes by io_write() while there is room, and takes no
 * input while an answer is under way.
 */
#ifndef WORKERS_RSP_H
#define WORKERS_RSP_H

#include "workers/env.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The handshake is done. */
void rsp_start(struct env *env, struct conn *c);

/* Writes on while there is room. True when nothing is left to write, so that
 * input can be taken, or the connection ended if c->last_answer. */
bool rsp_fill(struct env *env, struct conn *c);

/* Takes input and says how much of it; the rest comes again later. */
size_t rsp_input(struct env *env, struct conn *c, const uint8_t *p, size_t n);

/* Is it between two requests, so that a drain may end it? */
bool rsp_quiet(const struct env *env, const struct conn *c);

#endif
