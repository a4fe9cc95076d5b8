/* SPDX-License-Identifier: Apache-2.0 */
/* overflow = damping (MGWS thesis, 5.1): a thief remembers, in a bit per victim, whose queue it found empty, and looks at
 * those before it tries again. Without it (two_atomics) a thief looks before each attempt. Device code; lane 0 only. */
#ifndef SCHED_MGWS_DAMPING_DEV_H
#define SCHED_MGWS_DAMPING_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "keep.dev.h"
#endif

LOOM_FN uint64_t *mgws_bits(const struct loom_ctx *c)
{
	return (uint64_t *)(mgws_behind_keep(c) +
			    MGWS_RINGS_BYTES(SCHED_CFG(c, priorities), SCHED_CFG(c, local_queue)));
}

#if SCHED_MAY(SCHED_IS_overflow == 1)

LOOM_FN int mgws_looks_first(const struct loom_ctx *c, uint32_t victim)
{
	return SCHED_CFG(c, overflow) != MGWS_DAMPING || mgws_bits(c)[victim / 64] >> victim % 64 & 1;
}

LOOM_FN void mgws_note_empty(const struct loom_ctx *c, uint32_t victim, int empty)
{
	uint64_t bit = 1ull << victim % 64, *bits = &mgws_bits(c)[victim / 64];
	if (SCHED_CFG(c, overflow) == MGWS_DAMPING)
		*bits = empty ? *bits | bit : *bits & ~bit;
}

#else

#define mgws_looks_first(c, victim) 1
#define mgws_note_empty(c, victim, empty) ((void)0)

#endif
#endif
