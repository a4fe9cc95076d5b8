/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping on a word of a slot, also across processes. Used for all waits of sync_futex, and for the waits of sync_wic
 * for a free slot. The word is an eventcount (lib/eventcount.h) whose value is a number of rounds. */
#ifndef SYNC_SLEEP_H
#define SYNC_SLEEP_H

#include "gpu_wait.dev.h"
#include "lib/eventcount.h"

/* Waits like sync_await() of channel.dev.h. until_ns is on CLOCK_MONOTONIC; 0: no deadline. */
static inline int sync_sleep_until(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want,
				   uint64_t until_ns)
{
	int rc = 0;
	(void)eventcount_enter(word, sleepers);
	for (;;) {
		LOOM_YIELD();
		/* Acquire: pairs with the release in publish() or in release(). */
		uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		rc = sync_check_wait(c, now, want);
		if (rc <= 0)
			break;
		/* until_ns is an absolute time, so a signal does not prolong the wait. */
		if (loom_futex_sleep(word, now, until_ns, 0)) {
			rc = LOOM_ETIMEDOUT;
			break;
		}
	}
	eventcount_leave(sleepers);
	return rc;
}

/* The sync_wake() that channel.dev.h requires. */
static inline void sync_wake(const struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	if (!sync_listener_wakes(c))
		eventcount_notify(c, word, sleepers);
}

#endif
