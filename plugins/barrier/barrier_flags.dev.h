/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_flags: each worker raises a flag of its own, and looks at those of all others, each lane at a part of them: one
 * step, and no word has two writers. Where several devices meet, the first worker of each speaks for it. Device code. */
#ifndef BARRIER_FLAGS_DEV_H
#define BARRIER_FLAGS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "word.dev.h"
#endif

#define BARRIER_OP(op) barrier_flags_##op
#define BARRIER_BY_LANES

/* On a GPU flags are packed, so one access of a wave has many of them; on a CPU each has lines of its own, and
 * sleepers. */
LOOM_FN struct barrier_word *barrier_flag(const struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t i)
{
	char *flags = (char *)barrier_node(h, 0, 0);
	return (struct barrier_word *)(flags + (uint64_t)h->stride * (slot * c->count + i));
}

LOOM_FN int barrier_come(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round)
{
	barrier_self(c)->step[slot] = 0;
	barrier_tell(c, h, barrier_flag(c, h, slot, c->worker - c->first), 0, round);
	return 0;
}

LOOM_FN void barrier_begin(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, struct barrier_watch *w)
{
	w->at = (struct barrier_word *)0;
	if (w->wide)
		barrier_watch_open(c, h, slot, w);
}

/* The flags that are this lane's. */
LOOM_FN int barrier_flags_raised(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round,
				 struct barrier_watch *w)
{
	for (; w->next < c->count; w->next += w->step)
		if (!barrier_saw(w, barrier_flag(c, h, slot, w->next), 0, round))
			return 0;
	return 1;
}

LOOM_FN int barrier_look(struct loom_ctx *c, struct barrier_hall *h, uint32_t slot, uint32_t round,
			 struct barrier_watch *w)
{
	if (!w->wide)
		return barrier_flags_raised(c, h, slot, round, w);
	if (c->lane)
		return 1;
	w->step = 1; /* one lane for all flags: it alone may speak */
	if (c->worker == c->first && !barrier_self(c)->step[slot]) {
		if (!barrier_flags_raised(c, h, slot, round, w))
			return 0;
		barrier_open(c, h, slot, round);
		barrier_self(c)->step[slot] = 1;
	}
	return barrier_is_open(c, h, slot, w, round);
}

#endif
