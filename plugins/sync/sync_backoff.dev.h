/* SPDX-License-Identifier: Apache-2.0 */
/* sync_backoff: a poll that makes room between looks: by pauses, by giving the core away, or by
 * sleeping. Device code. */
#ifndef SYNC_BACKOFF_DEV_H
#define SYNC_BACKOFF_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sync/slot.dev.h"
#endif

#define SYNC_OP(op) sync_backoff_##op

enum { SYNC_BACKOFF_HOW = 0, SYNC_BACKOFF_PAUSES, SYNC_BACKOFF_FIRST_NS, SYNC_BACKOFF_LAST_NS };
enum { BACKOFF_PAUSE = 0, BACKOFF_YIELD, BACKOFF_SLEEP };

/* Look number `n` was in vain. The sleep doubles up to its longest; a CPU's grows on with the wait, whose begin is kept in
 * *since. */
LOOM_FN void sync_backoff_rest(const struct loom_ctx *c, const uint32_t *setting, uint64_t n,
			       uint64_t *since)
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
	uint64_t ns = (uint64_t)setting[SYNC_BACKOFF_FIRST_NS] << (n < 20 ? n : 20);
	if (ns > setting[SYNC_BACKOFF_LAST_NS])
		ns = setting[SYNC_BACKOFF_LAST_NS];
#ifdef LOOM_DEVICE_COMPILE
	(void)c, (void)since;
	loom_nanosleep((uint32_t)ns); /* a GPU has nobody to yield to but its own scheduler */
#else
	if (how == BACKOFF_YIELD) {
		loom_yield(c);
	} else {
		uint64_t now = loom_clock_ns(c);
		*since = *since ? *since : now;
		loom_nap(now - *since, ns);
	}
#endif
}

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want,
		       uint64_t until_ns)
{
	const uint32_t *setting = sync_known(c)->setting;
	uint64_t polls = 0, since = 0;
	int rc = 0;
	(void)sleepers;
	for (;;) {
		rc = sync_judge(c, sync_glance(word), want);
		if (rc <= 0)
			break;
		if (until_ns && loom_clock_ns(c) >= until_ns) {
			rc = LOOM_ETIMEDOUT;
			break;
		}
		sync_backoff_rest(c, setting, polls++, &since);
	}
	sync_tell(c, polls, polls);
	return rc;
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers;
}

#endif
