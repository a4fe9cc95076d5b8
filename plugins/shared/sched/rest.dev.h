/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker without work does between two looks for some: spin, yield, or sleep. Device code.
 *
 * No wake-up is lost. A worker that wants to sleep lists itself in `sleepers`, looks everywhere once
 * more, and sleeps only while `rings` is what it was before it listed itself. Who makes tasks public
 * does so before it looks at `sleepers`, with a full fence on both sides: either it sees the sleeper, or
 * the sleeper sees the tasks.
 *
 * One ring wakes one sleeper. `waking` says that a ring is on its way, so that those who publish often do
 * not call the kernel each time. Whoever enters the list or leaves it clears it before it looks for work, so
 * a publication that was not rung for is seen by that look. Who found work looks once more, at all queues, and
 * rings if there is more: a ring that was saved may have been for another queue than the one it stole from. So
 * one after the other wakes up. Model: tests/models/park.pml. */
#ifndef SCHED_REST_DEV_H
#define SCHED_REST_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "common.dev.h"
#endif

/* A worker's own, while it is out of work. Lane 0's. */
struct sched_rest {
	uint64_t since; /* when it ran out of work, or was last woken */
	uint32_t pauses, listed, rings, pad;
};

/* Bounded exponential back-off: short at first, so that new work is seen at once. */
#define SCHED_PAUSE_MAX 64u
LOOM_FN void sched_pause(struct loom_ctx *c, uint32_t *pauses)
{
#ifdef GPULOOM_DEV_CPU_H
	for (uint32_t i = 0; i < *pauses; i++)
		loom_pause(c);
#else
	(void)c;
	loom_nanosleep(*pauses * LOOM_PAUSE_NS); /* one long pause is what the many are meant to be */
#endif
	if (*pauses < SCHED_PAUSE_MAX)
		*pauses *= 2;
}

#ifdef GPULOOM_DEV_CPU_H
/* A detector that is not LOOM_TERM_MAY_SLEEP wants to be asked: a nap, no sleep; none too often, see loom_nap(). */
#define SCHED_NAP_NS 2000000u
#define SCHED_SLEEP_NS(c, cfg)                                                                     \
	((LOOM_HAS((c)->term, flags) && ((c)->term->flags & LOOM_TERM_MAY_SLEEP)) ||                   \
			 (cfg)->park_ns < SCHED_NAP_NS                                             \
		 ? (cfg)->park_ns                                                                  \
		 : SCHED_NAP_NS)

/* A hint. */
LOOM_FN uint32_t sched_sleepers(const struct sched_bell *bell)
{
	return loom_load_relaxed_sys(&bell->sleepers);
}

/* After tasks were made public: wakes up to `most` sleepers. */
LOOM_FN void sched_wake(struct loom_ctx *c, struct sched_bell *bell, uint32_t most)
{
	/* Between what was published and the look; pairs with the fence in sched_list(). */
	loom_fence_seq_cst_sys();
	if (!loom_load_relaxed_sys(&bell->sleepers))
		return;
	/* Acquire and release: who clears it sees what was published before a ring that was saved. */
	if (most == 1 && loom_exchange_acq_rel_sys(&bell->waking, 1u))
		return;
	loom_fetch_add_acq_rel_sys(&bell->rings, 1u);
	loom_wake(c, &bell->rings, most);
}

LOOM_FN void sched_list(struct sched_rest *r, struct sched_bell *bell)
{
	r->rings = loom_load_acquire_sys(&bell->rings);
	loom_fetch_add_acq_rel_sys(&bell->sleepers, 1u);
	/* A ring that came before `rings` was read wakes nobody any more, and must not save others. One
	 * that comes later changes `rings`. */
	loom_exchange_acq_rel_sys(&bell->waking, 0u);
	loom_fence_seq_cst_sys(); /* before the last look; pairs with sched_wake() */
	r->listed = 1;
}

LOOM_FN void sched_unlist(struct sched_rest *r, struct sched_bell *bell)
{
	if (!r->listed)
		return;
	loom_fetch_add_acq_rel_sys(&bell->sleepers, ~0u);
	loom_exchange_acq_rel_sys(&bell->waking, 0u);
	r->listed = 0;
}

/* Lane 0, between two looks. `idle`: the detector knows that this worker has no work. A worker that is
 * listed has looked everywhere since, and `found` says whether in vain. */
LOOM_FN void sched_rest(struct loom_ctx *c, const struct sched_config *cfg, struct sched_bell *bell,
			struct sched_rest *r, int idle, int found)
{
	if (cfg->wait == SCHED_YIELD) {
		loom_yield(c);
	} else if (cfg->wait == SCHED_SPIN || !idle) {
		sched_pause(c, &r->pauses);
	} else if (!r->listed) {
		if (loom_clock_ns(c) - r->since < cfg->spin)
			sched_pause(c, &r->pauses);
		else
			sched_list(r, bell);
	} else {
		if (found) /* it may still be out of reach: no room for it here */
			loom_pause(c);
		else
			loom_sleep_on(c, &bell->rings, r->rings, SCHED_SLEEP_NS(c, cfg));
		/* Woken, not only tired of sleeping: worth another spin. */
		if (found || loom_load_relaxed_sys(&bell->rings) != r->rings) {
			r->since = loom_clock_ns(c);
			r->pauses = 1;
		}
		sched_unlist(r, bell);
	}
}

#else /* A GPU's workers can neither sleep nor wake anybody: they pause. */

LOOM_FN void sched_wake(struct loom_ctx *c, struct sched_bell *bell, uint32_t most)
{
	(void)c, (void)bell, (void)most;
}

LOOM_FN uint32_t sched_sleepers(const struct sched_bell *bell)
{
	(void)bell;
	return 0;
}

LOOM_FN void sched_unlist(struct sched_rest *r, struct sched_bell *bell)
{
	(void)r, (void)bell;
}

LOOM_FN void sched_rest(struct loom_ctx *c, const struct sched_config *cfg, struct sched_bell *bell,
			struct sched_rest *r, int idle, int found)
{
	(void)cfg, (void)bell, (void)idle, (void)found;
	sched_pause(c, &r->pauses);
}
#endif

#endif
