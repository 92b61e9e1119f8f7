/* SPDX-License-Identifier: MIT */
/*
 * A connection's life on the ring: received bytes to TLS, records to the
 * socket, deadlines, and its end.
 *
 * Received bytes are decrypted straight out of the ring's buffer. Only while
 * the responder cannot take more (its output is full) are they saved, and the
 * receive is then cancelled, so that a client that sends without reading holds
 * no more than what was under way. Output is one chain per connection with one
 * send in flight; a turn's records leave together: the last handshake flight,
 * tickets and an answer are one send.
 */
#ifndef WORKERS_IO_H
#define WORKERS_IO_H

#include "workers/env.h"

#include <stdbool.h>
#include <stdint.h>

/* More is not written to a connection that has so many bytes to send. */
#define IO_OUT_MAX (64 * 1024)

/* How long the end of the client is waited for after a refusal or an alert. */
#define IO_LINGER_NS (2 * NS_PER_S)

/* Takes over a descriptor that was accepted; `bare`: by a plain listener. */
void io_accepted(struct env *env, int fd, bool bare);

/* An event whose word is conn_word()'s. */
void io_event(struct env *env, const struct ur_event *ev);

/* Once a turn: ends connections whose deadline is over. */
void io_expire(struct env *env);
/* When the next deadline is; TMR_NEVER. */
uint64_t io_next(const struct env *env);

/* Drain begins: connections without a request under way end. */
void io_drain(struct env *env);

/* At the worker's end: counts what is still open, so that nothing is lost. */
void io_abandon(struct env *env);

/* ---- for the responder, in state OPEN ---- */

/* Room for one more record? */
bool io_room(const struct conn *c);
/* Encrypts at most ENV_SCRATCH bytes. On failure the connection is ending. */
void io_write(struct env *env, struct conn *c, const void *p, size_t n);

#endif
