/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_central, barrier_release, barrier_auto: a counter per device that all add to. Who waits looks at the counter
 * itself, or at another word, which the last to come writes; then nobody who waits disturbs those who come. Before it stands
 *   BARRIER_HOW(c, h)   BARRIER_RELEASED or BARRIER_COUNTED
 * Device code. */
#ifndef BARRIER_COUNTER_DEV_H
#define BARRIER_COUNTER_DEV_H

#define BARRIER_HAS_GROUPS

LOOM_FN struct barrier_word *barrier_counter(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot)
{
	return slot < BARRIER_GROUP ? barrier_node(h, slot, 0) : barrier_group_words(c, h, slot) + barrier_place(c, slot)->first;
}

/* All workers of this device have left; the others need not wait for it any more. */
LOOM_FN void barrier_shut(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round)
{
	for (uint32_t d = 0; d < c->devices; d++) {
		uint32_t first = barrier_first(c, h, slot, d);
		if (first != LOOM_NO_GROUP)
			loom_store_release_sys(&(barrier_seat_words(c, first) + (slot - 1) * c->devices + c->device)->gone, 1u);
	}
	barrier_open(c, h, slot, round); /* who was about to sleep sees another value */
}

/* How many have left up to `round`, by the last to come to it. Nobody else has come to the next round as the last one: that
 * waits for the caller, or, where it has left itself, for barrier_come() to come in its place. */
LOOM_FN uint32_t barrier_gone(struct barrier_word *arrived, uint32_t round)
{
	uint32_t gone = loom_load_relaxed_dev(&arrived->gone) + loom_load_relaxed_dev(&arrived->left[round % 2]);
	loom_store_relaxed_dev(&arrived->left[round % 2], 0u);
	loom_store_relaxed_dev(&arrived->gone, gone);
	return gone;
}

LOOM_FN int barrier_come(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round)
{
	struct barrier_word *arrived = barrier_counter(c, h, slot);
	uint32_t n = barrier_count(c, slot), wide = barrier_is_wide(c, slot), gone;
	/* Releases what this worker wrote; the last one acquires it all and passes it on, and who sees the whole sum
	 * acquires it, too. */
	if (loom_fetch_add_acq_rel_dev(&arrived->value, 1u) + 1 != round * n)
		return 0;
	for (;;) {
		if (wide || BARRIER_HOW(c, h) == BARRIER_RELEASED)
			barrier_open(c, h, slot, round);
		else
			barrier_wake(c, h, arrived, 0);
		if (!barrier_drops(c, h))
			break;
		/* The last one comes to the next round for those who have left. So it may be that round's last one, too. */
		gone = barrier_gone(arrived, round++);
		if (gone == n && wide)
			barrier_shut(c, h, slot, round);
		if (!gone || gone == n || loom_fetch_add_acq_rel_dev(&arrived->value, gone) + gone != round * n)
			break;
	}
	return !wide;
}

/* Comes for the last time. */
LOOM_FN void barrier_leave(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round)
{
	loom_fetch_add_relaxed_dev(&barrier_counter(c, h, slot)->left[round % 2], 1u);
	barrier_come(c, h, slot, round);
}

LOOM_FN void barrier_begin(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, struct barrier_watch *w)
{
	w->counted = !w->wide && BARRIER_HOW(c, h) == BARRIER_COUNTED;
	if (w->counted)
		w->at = barrier_counter(c, h, slot);
	else
		barrier_watch_open(c, h, slot, w);
}

LOOM_FN int barrier_look(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round,
			 struct barrier_watch *w)
{
	return w->counted ? barrier_saw(w, w->at, 0, round * barrier_count(c, slot)) : barrier_is_open(c, h, slot, w, round);
}

#endif
