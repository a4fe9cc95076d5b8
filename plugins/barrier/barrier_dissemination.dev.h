/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_dissemination: in step k a worker tells the one that is 2^k places further, and waits to be told by the one that
 * is 2^k places behind. After log2(n) steps it has heard of all. Each word has one writer. Device code. */
#ifndef BARRIER_DISSEMINATION_DEV_H
#define BARRIER_DISSEMINATION_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "word.dev.h"
#endif

#define BARRIER_OP(op) barrier_dissemination_##op
#define BARRIER_ALONE /* who looks also tells */

/* A worker's block has one word per step and slot: those of step 0, then those of step 1, ... */
LOOM_FN void barrier_tell_step(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round, uint32_t k)
{
	uint32_t n = slot ? c->workers : c->count, first = slot ? 0 : c->first;
	uint32_t to = c->worker - first + (1u << k);
	to = to < n ? to : to - n;
	barrier_tell(c, h, barrier_seat_words(c, first + to) + BARRIER_SLOTS * k + slot, barrier_is_wide(c, slot), round);
}

LOOM_FN int barrier_come(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round)
{
	barrier_self(c)->step[slot] = 0;
	if ((slot ? c->workers : c->count) > 1)
		barrier_tell_step(c, h, slot, round, 0);
	return 0;
}

LOOM_FN void barrier_begin(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, struct barrier_watch *w)
{
	w->at = (struct barrier_word *)((struct barrier_seat *)c->own[LOOM_BARRIER] + 1) + slot;
	(void)h;
}

LOOM_FN int barrier_look(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round,
			 struct barrier_watch *w)
{
	uint32_t *step = &barrier_self(c)->step[slot], n = slot ? c->workers : c->count;
	while (1u << *step < n) {
		if (!barrier_saw(w, w->at + BARRIER_SLOTS * *step, w->wide, round))
			return 0;
		*step += 1;
		/* What was acquired of the one behind is passed on. */
		if (1u << *step < n)
			barrier_tell_step(c, h, slot, round, *step);
	}
	return 1;
}

#endif
