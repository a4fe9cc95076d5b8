/* SPDX-License-Identifier: Apache-2.0 */
/* sync_warp: gpu_wait.dev.h parks a GPU's workers in hardware. Device code. */
#ifndef SYNC_WARP_DEV_H
#define SYNC_WARP_DEV_H

#define SYNC_OP(op) sync_warp_##op

#ifndef LOOM_DEVICE_COMPILE
#include "../sync_common/gpu_wait.dev.h"

/* On a CPU a consumer polls, and yields between polls. */
LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	uint64_t polls = 0;
	int result;
	(void)sleepers;
	/* Relaxed: sync_poisoned() has the fence that pairs with the release of `ended` in interrupt(). */
	while (!sync_wait_over(sync_poll_word(word), loom_stopped(c) || loom_load_relaxed_sys(&sync_head(c)->ended),
			       want, until_ns, until_ns ? loom_clock_ns(c) : 0, &result)) {
		loom_yield(c);
		polls++;
	}
	sync_add(c, polls, polls);
	return result;
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* waiters poll */
}
#endif

#endif
