/* SPDX-License-Identifier: MIT */
/*
 * The listening sockets. The master makes all of them before the first fork and
 * keeps them open, so that a worker that dies loses no queued connection once
 * it is replaced. Workers inherit theirs.
 */
#ifndef TERMINATOR_LST_H
#define TERMINATOR_LST_H

#include "config/cfg.h"

#include <stddef.h>
#include <stdint.h>

struct lst;

/*
 * Binds and listens: one socket per address and worker with accept: reuseport,
 * one per address with accept: shared. Port 0 is chosen once per address.
 *
 * 0, and the caller owns *out (lst_close()); or -errno with one sentence in err
 * that names the address (port in use, no permission, no such address). A limit
 * that the kernel put on the backlog is told in warn ("" if none).
 */
int lst_open(struct lst **out, const struct cfg *cfg, uint32_t nworkers,
	     char *err, size_t err_len, char *warn, size_t warn_len);
void lst_close(struct lst **lst);

/* Sockets of one worker, borrowed; returns how many (one per address). */
size_t lst_fds(const struct lst *lst, uint32_t worker, int *fds, size_t max);

/* Addresses really bound, comma-separated; and the first one alone, in a form
 * one can connect to (127.0.0.1 for 0.0.0.0, [::1] for [::]). Borrowed. */
const char *lst_text(const struct lst *lst);
const char *lst_target(const struct lst *lst);
/* The first plain one, in that form; NULL without any. Borrowed. */
const char *lst_plain(const struct lst *lst);
/* How many of a worker's sockets are plain: the last ones of lst_fds(). */
size_t lst_nplain(const struct lst *lst);

/* Connections that these listeners have dropped so far, above all for a full
 * queue (SO_MEMINFO: sk_drops). Other sockets of the machine are not in it. */
uint64_t lst_drops(const struct lst *lst);

/* The queue length that the kernel allows: min(backlog, somaxconn). */
uint32_t lst_backlog(const struct lst *lst);

#endif
