/* SPDX-License-Identifier: MIT */
/*
 * The verdict on a phase: what limited its rate, and every reason to distrust
 * its figures, by name, with what to do.
 */
#ifndef TERMINATOR_VRD_H
#define TERMINATOR_VRD_H

#include "terminator/res.h"

/* Adds to phase->doubts and fills in limit and limited_by. */
void vrd_judge(struct res_phase *phase, const struct shm_seg *seg,
	       const struct res_moments *m);

/* Marks the doubts that the scenario accepts (accept_doubt). */
void vrd_accept(struct res_doubts *doubts, const struct cfg *cfg);

#endif
