/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_central, barrier_release, barrier_auto: a counter per device, which all workers increment. With BARRIER_COUNTED
 * waiting workers poll the counter. With BARRIER_RELEASED they poll the release word, which the last arriver writes, so
 * that no poll delays an arrival. The including file defines
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

/* Called when all workers of this device have left the scope. Records this in the words that this device writes, so
 * that the other devices stop waiting for this device. */
LOOM_FN void barrier_close_device(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	for (uint32_t d = 0; d < c->devices; d++) {
		uint32_t first = barrier_first(c, h, slot, d);
		if (first != LOOM_NO_GROUP)
			loom_store_release_sys(&barrier_word_of_device(c, first, slot, c->device)->left_before, 1u);
	}
	barrier_release(c, h, slot, round); /* changes the value of these words, which ends a sleep on them */
}

/* Returns how many workers have left up to `round`. Only the last arriver of that round makes this call. During the
 * call no worker can be the last arriver of the next round, because the next round still lacks the arrival of the
 * caller. If the caller has left, it still arrives in barrier_signal(), on behalf of all workers that have left. */
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
	if (wide && slot < BARRIER_GROUP && !barrier_has_drops(c, h)) {
		barrier_signal_wide(c, h, slot, round);
		return 0;
	}
	if (barrier_add(&arrived->value, wide) + 1 != round * n)
		return 0;
	for (;;) {
		if (wide || BARRIER_HOW(c, h) == BARRIER_RELEASED)
			barrier_release(c, h, slot, round);
		else
			barrier_notify(c, h, arrived, 0);
		if (!barrier_has_drops(c, h))
			break;
		/* The last arriver arrives at the next round on behalf of the workers that have left. So it may also be the
		 * last arriver of the next round. */
		left_before = barrier_sum_left(arrived, round++);
		if (left_before == n && wide)
			barrier_close_device(c, h, slot, round);
		if (!left_before || left_before == n ||
		    loom_fetch_add_acq_rel_dev(&arrived->value, left_before) + left_before != round * n)
			break;
	}
	return !wide;
}

/* Arrives at `round` for the last time. */
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
