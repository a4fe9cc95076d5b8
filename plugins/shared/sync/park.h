/* SPDX-License-Identifier: Apache-2.0 */
/* Parking on a word of shared memory, also across processes: what sync_futex does for all waits, and
 * sync_wic for producers that wait for a free slot. */
#ifndef SYNC_PARK_H
#define SYNC_PARK_H

#include "slot.dev.h"

#include <limits.h>

static inline void park_wake(uint32_t *word)
{
	loom_futex_wake(word, INT_MAX, 0);
}

/* As sync_await of channel.dev.h. `until_ns` on CLOCK_MONOTONIC. */
static inline int park_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want,
			     uint64_t until_ns)
{
	int rc = 0;
	/* Both sides change `sleepers`: who comes second sees what the first did before. So either the
	 * loop sees the new word, or park_wake_sleepers sees this sleeper. */
	__atomic_fetch_add(sleepers, 1u, __ATOMIC_ACQ_REL);
	for (;;) {
		LOOM_YIELD();
		/* Acquire: pairs with the release of publish, or of the last reader. */
		uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		rc = sync_judge(c, now, want);
		if (rc <= 0)
			break;
		/* Sleeps only while the word is still what was seen: no wake is lost. Absolute time,
		 * so that a signal does not begin the wait anew. */
		if (loom_futex_sleep(word, now, until_ns, 0)) {
			rc = LOOM_ETIMEDOUT;
			break;
		}
	}
	__atomic_fetch_sub(sleepers, 1u, __ATOMIC_RELAXED);
	return rc;
}

/* After the word has been changed. A read that writes: see park_await. */
static inline void park_wake_sleepers(uint32_t *word, uint32_t *sleepers)
{
	if (__atomic_fetch_add(sleepers, 0u, __ATOMIC_ACQ_REL))
		park_wake(word);
}

#endif
