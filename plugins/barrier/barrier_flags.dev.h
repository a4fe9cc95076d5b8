/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_flags: each worker raises its flag and polls the flags of all workers. Each lane of the worker polls a part of these
 * flags. No word has two writers. If several devices take part, the workers of a device arrive at a counter instead. Device
 * code. */
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
	char *flags = (char *)barrier_node(h, 0, BARRIER_SPLIT);
	return (struct barrier_word *)(flags + (uint64_t)h->stride * (slot * c->count + i));
}

LOOM_FN int barrier_signal(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	if (barrier_is_wide(c, slot))
		barrier_signal_wide(c, h, slot, round);
	else
		barrier_store(c, h, barrier_flag(c, h, slot, c->worker - c->first), 0, round);
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
	if (w->wide) /* only lane 0 waits */
		return c->lane ? 1 : barrier_is_released(c, h, slot, w, round);
	/* Returns 1 if all flags of this lane's part are raised. */
	for (; w->next < c->count; w->next += w->step)
		if (!barrier_poll_word(w, barrier_flag(c, h, slot, w->next), 0, round))
			return 0;
	return 1;
}

#endif
