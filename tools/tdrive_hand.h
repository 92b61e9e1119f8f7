/* SPDX-License-Identifier: MIT */
/* A driver run by hand: in this process, a slot of its own, no segment. */
#ifndef TOOLS_TDRIVE_HAND_H
#define TOOLS_TDRIVE_HAND_H

struct args;

/* Measures and prints; returns the exit status. */
int hand_run(const struct args *args);

#endif
