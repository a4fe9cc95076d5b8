/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_central, barrier_release, barrier_auto: a counter per device that all add to. Who waits looks at the counter
 * itself, or at another word, which the last to come writes; then nobody who waits disturbs those who come. Before it stands
 *   BARRIER_HOW(c, h)   BARRIER_RELEASED or BARRIER_COUNTED
 * Device code. */
#ifndef BARRIER_COUNTER_DEV_H
#define BARRIER_COUNTER_DEV_H

LOOM_FN int barrier_come(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round)
{
	struct barrier_word *arrived = barrier_node(h, slot, 0);
	/* Releases what this worker wrote; the last one acquires it all and passes it on, and who sees the whole sum
	 * acquires it, too. */
	if (loom_fetch_add_acq_rel_dev(&arrived->value, 1u) + 1 != round * c->count)
		return 0;
	if (barrier_is_wide(c, slot) || BARRIER_HOW(c, h) == BARRIER_RELEASED)
		barrier_open(c, h, slot, round);
	else
		barrier_wake(c, h, arrived, 0);
	return !barrier_is_wide(c, slot);
}

LOOM_FN void barrier_begin(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, struct barrier_watch *w)
{
	w->counted = !w->wide && BARRIER_HOW(c, h) == BARRIER_COUNTED;
	if (w->counted)
		w->at = barrier_node(h, slot, 0);
	else
		barrier_watch_open(c, h, slot, w);
}

LOOM_FN int barrier_look(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round,
			 struct barrier_watch *w)
{
	(void)h, (void)slot;
	return w->counted ? barrier_saw(w, w->at, 0, round * c->count) : barrier_is_open(c, w, round);
}

#endif
