/* SPDX-License-Identifier: Apache-2.0 */
/* sync_warp: a GPU's workers are parked in hardware, see wave.dev.h. Device code. */
#ifndef SYNC_WARP_DEV_H
#define SYNC_WARP_DEV_H

#define SYNC_OP(op) sync_warp_##op

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sync/wave.dev.h"

/* A CPU parks nobody in hardware: it looks, and gives way. */
LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	uint64_t polls = 0;
	int result;
	(void)sleepers;
	while (!wave_over(sync_glance(word), loom_stopped(c), want, until_ns, until_ns ? loom_clock_ns(c) : 0, &result)) {
		loom_yield(c);
		polls++;
	}
	sync_tell(c, polls, polls);
	return result;
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* those who wait look by themselves */
}
#endif

#endif
