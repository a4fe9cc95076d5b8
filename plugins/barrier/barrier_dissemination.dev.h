/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_dissemination: in step k a worker notifies the worker 2^k places after it, and waits for the worker 2^k
 * places before it. After log2(n) steps a worker knows that all n workers of its device have arrived. Each word has one
 * writer. If several devices take part, the workers of a device arrive at a counter instead. Device code. */
#ifndef BARRIER_DISSEMINATION_DEV_H
#define BARRIER_DISSEMINATION_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

#define BARRIER_OP(op)      barrier_dissemination_##op
#define BARRIER_LANE0_POLLS /* a single lane polls, because barrier_poll() also writes */

/* Returns the words of step k in a worker's block: BARRIER_SLOTS words for each step, after the words that devices
 * write. */
LOOM_FN struct barrier_word *barrier_step_words(const struct loom_ctx *c, uint32_t worker, uint32_t k)
{
	return barrier_worker_words(c, worker) + (c->devices > 1 ? (BARRIER_SLOTS - 1) * c->devices : 0) +
	       BARRIER_SLOTS * k;
}

LOOM_FN void barrier_signal_step(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round, uint32_t k)
{
	uint32_t to = c->worker - c->first + (1u << k);
	to = to < c->count ? to : to - c->count;
	barrier_store(c, h, barrier_step_words(c, c->first + to, k) + slot, 0, round);
}

LOOM_FN int barrier_signal(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	barrier_local(c)->step[slot] = 0;
	if (barrier_is_wide(c, slot))
		barrier_signal_wide(c, h, slot, round);
	else if (c->count > 1)
		barrier_signal_step(c, h, slot, round, 0);
	return 0;
}

LOOM_FN void barrier_watch_start(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, struct barrier_watch *w)
{
	w->at = (struct barrier_word *)0;
	if (w->wide)
		barrier_watch_release(c, h, slot, w);
}

LOOM_FN int barrier_poll(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round,
			 struct barrier_watch *w)
{
	uint32_t *step = &barrier_local(c)->step[slot];
	if (w->wide)
		return barrier_is_released(c, h, slot, w, round);
	while (1u << *step < c->count) {
		if (!barrier_poll_word(w, barrier_step_words(c, c->worker, *step) + slot, 0, round))
			return 0;
		*step += 1;
		/* The store also releases the writes that this worker has acquired in earlier steps. */
		if (1u << *step < c->count)
			barrier_signal_step(c, h, slot, round, *step);
	}
	return 1;
}

#endif
