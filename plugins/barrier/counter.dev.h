/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_central, barrier_release, barrier_auto: a counter per device, which all workers increment. Waiters poll the
 * counter, or another word that the last arriver writes, so that no poll delays an arrival. The includer defines
 *   BARRIER_HOW(c, h)   BARRIER_RELEASED or BARRIER_COUNTED
 * Device code. */
#ifndef BARRIER_COUNTER_DEV_H
#define BARRIER_COUNTER_DEV_H

#define BARRIER_HAS_GROUPS

LOOM_FN struct barrier_word *barrier_counter(struct loom_ctx *c, struct barrier_state *h, uint32_t slot)
{
	return slot < BARRIER_GROUP ? barrier_node(h, slot, 0)
				    : barrier_group_words(c, h, slot) + barrier_place(c, slot)->first;
}

/* All workers of this device have left. Other devices then do not wait for this one any more. */
LOOM_FN void barrier_close_device(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	for (uint32_t d = 0; d < c->devices; d++) {
		uint32_t first = barrier_first(c, h, slot, d);
		if (first != LOOM_NO_GROUP)
			loom_store_release_sys(&barrier_word_of_device(c, first, slot, c->device)->left_before, 1u);
	}
	barrier_release(c, h, slot, round); /* this changes the word, so a sleep on it ends */
}

/* Returns how many workers have left up to `round`. Only the last arriver of that round calls it. No other worker can
 * be the last arriver of the next round meanwhile: that round needs the caller, or, if the caller has left,
 * barrier_signal() on its behalf. */
LOOM_FN uint32_t barrier_sum_left(struct barrier_word *arrived, uint32_t round)
{
	uint32_t left_before =
	    loom_load_relaxed_dev(&arrived->left_before) + loom_load_relaxed_dev(&arrived->left[round % 2]);
	loom_store_relaxed_dev(&arrived->left[round % 2], 0u);
	loom_store_relaxed_dev(&arrived->left_before, left_before);
	return left_before;
}

LOOM_FN int barrier_signal(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	struct barrier_word *arrived = barrier_counter(c, h, slot);
	uint32_t n = barrier_count(c, slot), wide = barrier_is_wide(c, slot), left_before;
	/* Releases this worker's writes. The last arriver acquires all of them and releases them, and so does a waiter
	 * that polls the counter. */
	if (loom_fetch_add_acq_rel_dev(&arrived->value, 1u) + 1 != round * n)
		return 0;
	for (;;) {
		if (wide || BARRIER_HOW(c, h) == BARRIER_RELEASED)
			barrier_release(c, h, slot, round);
		else
			barrier_notify(c, h, arrived, 0);
		if (!barrier_has_drops(c, h))
			break;
		/* The last arriver arrives at the next round for workers that have left. So it may be the last arriver
		 * of that round, too. */
		left_before = barrier_sum_left(arrived, round++);
		if (left_before == n && wide)
			barrier_close_device(c, h, slot, round);
		if (!left_before || left_before == n ||
		    loom_fetch_add_acq_rel_dev(&arrived->value, left_before) + left_before != round * n)
			break;
	}
	return !wide;
}

/* Arrives for the last time. */
LOOM_FN void barrier_leave(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	loom_fetch_add_relaxed_dev(&barrier_counter(c, h, slot)->left[round % 2], 1u);
	barrier_signal(c, h, slot, round);
}

LOOM_FN void barrier_watch_start(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, struct barrier_watch *w)
{
	w->counted = !w->wide && BARRIER_HOW(c, h) == BARRIER_COUNTED;
	if (w->counted)
		w->at = barrier_counter(c, h, slot);
	else
		barrier_watch_release(c, h, slot, w);
}

LOOM_FN int barrier_poll(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round,
			 struct barrier_watch *w)
{
	return w->counted ? barrier_poll_word(w, w->at, 0, round * barrier_count(c, slot))
			  : barrier_is_released(c, h, slot, w, round);
}

#endif
