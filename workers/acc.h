/* SPDX-License-Identifier: MIT */
/*
 * Accepting: the worker's listening sockets.
 *
 * A listener of our own (accept: reuseport) has one multishot accept. One that
 * is shared has single-shot accepts, one at a time: a multishot accept would
 * take every connection that comes while other workers get none.
 *
 * Without a free descriptor an accept fails at once and again and again, so it
 * is armed again only when a connection has closed or a while has passed. So is
 * one that fails for a reason that lasts, and after some tries no more.
 */
#ifndef WORKERS_ACC_H
#define WORKERS_ACC_H

#include "workers/env.h"
#include "workers/wrk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACC_BACKOFF_NS (100 * NS_PER_MS)
#define ACC_TRIES_MAX  5 /* lasting errors in a row */

/* Word of an accept: the op of conn.h's words, and the listener's index. */
#define ACC_OP 3

enum acc_state {
	ACC_OFF,
	ACC_ARMED,
	ACC_WAITING,
	ACC_GIVEN_UP
};

struct acc_listener {
	struct tmr retry; /* first: while WAITING */
	int fd;		  /* borrows */
	uint8_t state;	  /* enum acc_state */
	bool for_fd;	  /* WAITING for a free descriptor */
	bool bare;	  /* its connections have no TLS */
	uint32_t tries;	  /* lasting errors in a row */
	int error;	  /* the last lasting one, 0 or -errno */
};

struct acc {
	struct acc_listener listener[WRK_LISTEN_MAX];
	size_t n;
	bool multishot;
	struct tmr_list retries;
};

void acc_init(struct acc *acc, const struct wrk_args *args);

/* Arms all. */
void acc_start(struct acc *acc, struct env *env);

/* Cancels all, for good. What was accepted before still comes as events. */
void acc_stop(struct acc *acc, struct env *env);

/* An event whose word has ACC_OP. */
void acc_event(struct acc *acc, struct env *env, const struct ur_event *ev);

/* Once a turn: arms what waited long enough, or for a descriptor. */
void acc_tick(struct acc *acc, struct env *env);

/* When acc_tick() has something to do; TMR_NEVER. */
uint64_t acc_next(const struct acc *acc);

/* 0; or the error of a listener that was given up, when none is left. */
int acc_dead(const struct acc *acc);

#endif
