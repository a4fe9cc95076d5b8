/* SPDX-License-Identifier: Apache-2.0 */
/* sync_backoff: a poll that makes room between looks: by pauses, by giving the core away, or by
 * sleeping. Device code. */
#ifndef SYNC_BACKOFF_DEV_H
#define SYNC_BACKOFF_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "slot.dev.h"
#endif

#define SYNC_OP(op) sync_backoff_##op

enum { SYNC_BACKOFF_HOW = 0, SYNC_BACKOFF_PAUSES, SYNC_BACKOFF_FIRST_NS, SYNC_BACKOFF_LAST_NS };
enum { BACKOFF_PAUSE = 0, BACKOFF_YIELD, BACKOFF_SLEEP };

/* Look number `n` was in vain. The sleep doubles up to its longest. */
LOOM_FN void sync_backoff_rest(const struct loom_ctx *c, const uint32_t *setting, uint64_t n)
{
	uint32_t how = setting[SYNC_BACKOFF_HOW];
	if (how == BACKOFF_PAUSE) {
		for (uint32_t i = 0; i < setting[SYNC_BACKOFF_PAUSES]; i++) {
#ifdef LOOM_DEVICE_COMPILE
			loom_pause(c);
#else
			loom_relax();
#endif
		}
		return;
	}
	(void)c;
	uint64_t ns = (uint64_t)setting[SYNC_BACKOFF_FIRST_NS] << (n < 20 ? n : 20);
	if (ns > setting[SYNC_BACKOFF_LAST_NS])
		ns = setting[SYNC_BACKOFF_LAST_NS];
#ifdef LOOM_DEVICE_COMPILE
	loom_nanosleep((uint32_t)ns); /* a GPU has nobody to yield to but its own scheduler */
#else
	if (how == BACKOFF_YIELD)
		sched_yield();
	else
		nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
#endif
}

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want,
		       uint64_t until_ns)
{
	const uint32_t *setting = sync_head(c)->setting;
	uint64_t polls = 0;
	int rc = 0;
	(void)sleepers;
	for (;;) {
		/* Acquire: pairs with the release of publish, or of the last reader. */
		uint32_t now = loom_load_acquire_sys(word);
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
		if (until_ns && loom_clock_ns(c) >= until_ns) {
			rc = LOOM_ETIMEDOUT;
			break;
		}
		sync_backoff_rest(c, setting, polls++);
	}
	sync_tally(c)->polls += polls;
	return rc;
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers;
}

#endif
