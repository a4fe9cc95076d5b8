/* SPDX-License-Identifier: Apache-2.0 */
/* Parking on a word of shared memory, also across processes: what sync_futex does for all waits, and
 * sync_wic for producers that wait for a free slot. */
#ifndef SYNC_PARK_H
#define SYNC_PARK_H

#include "slot.dev.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

static inline void park_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* As sync_await of channel.dev.h. `until_ns` on CLOCK_MONOTONIC. */
static inline int park_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want,
			     uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
				 .tv_nsec = (long)(until_ns % 1000000000u)};
	int rc = 0;
	/* Both sides change `sleepers`: who comes second sees what the first did before. So either the
	 * loop sees the new word, or park_wake_sleepers sees this sleeper. */
	__atomic_fetch_add(sleepers, 1u, __ATOMIC_ACQ_REL);
	for (;;) {
		LOOM_YIELD();
		/* Acquire: pairs with the release of publish, or of the last reader. */
		uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if (now & SYNC_POISON) {
			rc = LOOM_EDIED;
			break;
		}
		if (sync_reached(now, want))
			break;
		if (loom_stopped(c)) {
			rc = LOOM_EINTR;
			break;
		}
		/* Sleeps only while the word is still what was seen: no wake is lost. Absolute time,
		 * so that a signal does not begin the wait anew. */
		if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET, now, until_ns ? &until : NULL, NULL,
			    FUTEX_BITSET_MATCH_ANY) != 0 &&
		    errno == ETIMEDOUT) {
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
