/* SPDX-License-Identifier: Apache-2.0 */
/* sync_poll: the paper's baseline (WIC, algorithm 1): lane 0 polls the flag, and the other lanes wait. Device code. */
#ifndef SYNC_POLL_DEV_H
#define SYNC_POLL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sync/slot.dev.h"
#endif

#define SYNC_OP(op) sync_poll_##op

enum { SYNC_POLL_PROBE = 0 }; /* setting: 0: a load; 1: atomicAdd(flag, 0), as in the paper */

#define SYNC_POLL_CLOCK_EVERY 64u /* polls for each read of the clock, which takes longer than a poll */

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	uint32_t rmw = sync_local_head(c)->setting[SYNC_POLL_PROBE];
	uint64_t polls = 0;
	int rc = 0;
	(void)sleepers;
	for (;;) {
		uint32_t now = rmw ? loom_fetch_add_acquire_sys(word, 0u) : sync_poll_word(word);
		rc = sync_check_wait(c, now, want);
		if (rc <= 0)
			break;
		polls++;
		if (until_ns && polls % SYNC_POLL_CLOCK_EVERY == 0 && loom_clock_ns(c) >= until_ns) {
			rc = LOOM_ETIMEDOUT;
			break;
		}
#ifndef LOOM_DEVICE_COMPILE
		loom_relax(); /* not loom_pause(), which may yield, as sync_backoff does */
#endif
	}
	sync_add(c, polls, polls);
	return rc;
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* waiters poll */
}

#endif
