/* SPDX-License-Identifier: MIT */
/* A driver under the master: it owns a slot of the segment and does as the
 * control channel (shm/ctl.h) says. */
#ifndef TOOLS_TDRIVE_MANAGED_H
#define TOOLS_TDRIVE_MANAGED_H

struct args;

/* Runs until QUIT or the master's end; returns the exit status. */
int managed_run(const struct args *args);

#endif
