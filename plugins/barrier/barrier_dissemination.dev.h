/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_dissemination: in step k a worker notifies the worker 2^k places after it, and waits for the worker 2^k
 * places before it. After log2(n) steps it knows that all have arrived. Each word has one writer. Device code. */
#ifndef BARRIER_DISSEMINATION_DEV_H
#define BARRIER_DISSEMINATION_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

#define BARRIER_OP(op)      barrier_dissemination_##op
#define BARRIER_LANE0_POLLS /* the polling lane also writes */

/* A worker's block has one word per step and slot: those of step 0, then those of step 1, ... */
LOOM_FN void barrier_signal_step(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round, uint32_t k)
{
	uint32_t n = slot ? c->workers : c->count, first = slot ? 0 : c->first;
	uint32_t to = c->worker - first + (1u << k);
	to = to < n ? to : to - n;
	barrier_store(c, h, barrier_worker_words(c, first + to) + BARRIER_SLOTS * k + slot, barrier_is_wide(c, slot),
		      round);
}

LOOM_FN int barrier_signal(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	barrier_local(c)->step[slot] = 0;
	if ((slot ? c->workers : c->count) > 1)
		barrier_signal_step(c, h, slot, round, 0);
	return 0;
}

LOOM_FN void barrier_watch_start(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, struct barrier_watch *w)
{
	w->at = (struct barrier_word *)((struct barrier_arrival *)c->own[LOOM_BARRIER] + 1) + slot;
	(void)h;
}

LOOM_FN int barrier_poll(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round,
			 struct barrier_watch *w)
{
	uint32_t *step = &barrier_local(c)->step[slot], n = slot ? c->workers : c->count;
	while (1u << *step < n) {
		if (!barrier_poll_word(w, w->at + BARRIER_SLOTS * *step, w->wide, round))
			return 0;
		*step += 1;
		/* Releases what this worker has acquired, too. */
		if (1u << *step < n)
			barrier_signal_step(c, h, slot, round, *step);
	}
	return 1;
}

#endif
