/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_flags: each worker raises its flag and polls the flags of all workers. Each lane of the worker polls a part of these
 * flags. No word has two writers. If several devices take part, only the first worker of each device polls flags; it then
 * notifies the other devices. Device code. */
#ifndef BARRIER_FLAGS_DEV_H
#define BARRIER_FLAGS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

#define BARRIER_OP(op) barrier_flags_##op
#define BARRIER_ALL_LANES_POLL

/* Returns the flag of worker i of the device. A flag has 4 bytes on a GPU, so that one load of a wave reads many flags.
 * On a CPU each flag is a struct barrier_word. */
LOOM_FN struct barrier_word *barrier_flag(const struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t i)
{
	char *flags = (char *)barrier_node(h, 0, 0);
	return (struct barrier_word *)(flags + (uint64_t)h->stride * (slot * c->count + i));
}

LOOM_FN int barrier_signal(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	struct barrier_local *self = barrier_local(c);
	self->step[slot] = 0;
	self->parts[slot] = 0;
	for (uint32_t i = 0; i < (c->lanes + 31) / 32; i++)
		self->lane_done[slot][i] = 0;
	barrier_store(c, h, barrier_flag(c, h, slot, c->worker - c->first), 0, round);
	return 0;
}

LOOM_FN void barrier_watch_start(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, struct barrier_watch *w)
{
	w->at = (struct barrier_word *)0;
	if (w->wide)
		barrier_watch_release(c, h, slot, w);
}

/* Returns 1 if all flags of this lane's part are raised. */
LOOM_FN int barrier_flags_raised(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round,
				 struct barrier_watch *w)
{
	for (; w->next < c->count; w->next += w->step)
		if (!barrier_poll_word(w, barrier_flag(c, h, slot, w->next), 0, round))
			return 0;
	return 1;
}

/* Records that this lane has seen all flags of its part raised; a second call has no effect. Returns 1 if this lane is
 * the last lane of the worker that records this. */
LOOM_FN int barrier_flags_are_done(struct loom_ctx *c, uint32_t slot, const struct barrier_watch *w)
{
	struct barrier_local *self = barrier_local(c);
	if (w->step == 1) /* this lane polls all flags */
		return 1;
	uint32_t i = c->lane / 32, lanes = c->lanes - 32 * i < 32 ? c->lanes - 32 * i : 32;
	uint32_t all = lanes == 32 ? ~0u : (1u << lanes) - 1, bit = 1u << c->lane % 32;
	/* Release and acquire: pairs with the same operation of the other lanes. So the last lane acquires what all lanes have
	 * acquired with the flags. */
	uint32_t before = loom_fetch_or_acq_rel_dev(&self->lane_done[slot][i], bit);
	if (before & bit || (before | bit) != all)
		return 0;
	return loom_fetch_add_acq_rel_dev(&self->parts[slot], 1u) + 1 == (c->lanes + 31) / 32;
}

LOOM_FN int barrier_poll(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round,
			 struct barrier_watch *w)
{
	if (!w->wide)
		return barrier_flags_raised(c, h, slot, round, w);
	/* Each lane of the first worker polls a part of the flags. The last lane to finish notifies the other devices. */
	if (c->worker == c->first && !loom_load_acquire_dev(&barrier_local(c)->step[slot])) {
		if (!barrier_flags_raised(c, h, slot, round, w))
			return 0;
		if (!barrier_flags_are_done(c, slot, w)) {
			if (c->lane)
				return 1; /* only lane 0 continues to wait */
			w->word = (struct barrier_word *)0; /* lane 0 waits for other lanes, so it has no word to sleep on */
			return 0;
		}
		barrier_release(c, h, slot, round);
		loom_store_release_dev(&barrier_local(c)->step[slot], 1u); /* pairs with the acquire load of step[] above */
	}
	if (c->lane)
		return 1;
	return barrier_is_released(c, h, slot, w, round);
}

#endif
