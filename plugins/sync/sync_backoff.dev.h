/* SPDX-License-Identifier: Apache-2.0 */
/* sync_backoff: a consumer polls, and pauses, yields or sleeps between polls. Device code. */
#ifndef SYNC_BACKOFF_DEV_H
#define SYNC_BACKOFF_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../sync_common/slot.dev.h"
#include "lib/wait.h"
#endif

#define SYNC_OP(op) sync_backoff_##op

enum { SYNC_BACKOFF_HOW = 0, SYNC_BACKOFF_PAUSES, SYNC_BACKOFF_FIRST_NS, SYNC_BACKOFF_LAST_NS };
enum { BACKOFF_PAUSE = 0, BACKOFF_YIELD, BACKOFF_SLEEP };

/* Called after poll number `n`, counted from 0. A sleep is twice as long as the previous one, but at most nap_most. On a CPU
 * wait_step() of lib/wait.h may lengthen it in a long wait. */
LOOM_FN void sync_backoff_step(const struct loom_ctx *c, const uint32_t *setting, uint64_t n, uint64_t *since)
{
	if (setting[SYNC_BACKOFF_HOW] == BACKOFF_PAUSE) {
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
	loom_nanosleep((uint32_t)ns); /* also for `yield`: a GPU's hardware schedules warps, so a warp can only sleep */
#else
	struct wait_policy policy = {0, setting[SYNC_BACKOFF_HOW] == BACKOFF_YIELD ? WAIT_YIELD : WAIT_NAP, ns};
	(void)wait_step(c, &policy, 0, since);
#endif
}

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	const uint32_t *setting = sync_local_head(c)->setting;
	uint64_t polls = 0, since = 0;
	int rc = 0;
	(void)sleepers;
	for (;;) {
		rc = sync_check_wait(c, sync_poll_word(word), want);
		if (rc <= 0)
			break;
		if (until_ns && loom_clock_ns(c) >= until_ns) {
			rc = LOOM_ETIMEDOUT;
			break;
		}
		sync_backoff_step(c, setting, polls++, &since);
	}
	sync_add(c, polls, polls);
	return rc;
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers;
}

#endif
