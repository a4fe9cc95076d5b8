/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_tree: a combining tree of counters per device. The last arriver at a counter continues at the parent of this
 * counter. The last arriver at the root writes the release word, which all workers poll. Device code. */
#ifndef BARRIER_TREE_DEV_H
#define BARRIER_TREE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

#define BARRIER_OP(op) barrier_tree_##op

/* Returns the number of counters of a tree over n workers. shift: log2 of the arity. */
LOOM_FN uint32_t barrier_tree_nodes(uint32_t n, uint32_t shift)
{
	uint32_t nodes = 0;
	do {
		n = (n + (1u << shift) - 1) >> shift;
		nodes += n;
	} while (n > 1);
	return nodes;
}

LOOM_FN int barrier_signal(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round)
{
	uint32_t shift = barrier_how(c, h), arity = 1u << shift;
	uint32_t i = c->worker - c->first, n = c->count, level = 0;
	for (;;) {
		uint32_t groups = (n + arity - 1) >> shift, g = i >> shift;
		uint32_t size = n - g * arity < arity ? n - g * arity : arity;
		/* Acquire and release among the workers of this node, for the reason that barrier_signal() gives (counter.dev.h). */
		if (loom_fetch_add_acq_rel_dev(&barrier_node(h, slot, level + g)->value, 1u) + 1 != round * size)
			return 0;
		if (groups == 1)
			break;
		level += groups;
		i = g;
		n = groups;
	}
	barrier_release(c, h, slot, round);
	return !barrier_is_wide(c, slot);
}

LOOM_FN void barrier_watch_start(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, struct barrier_watch *w)
{
	barrier_watch_release(c, h, slot, w);
}

LOOM_FN int barrier_poll(struct loom_ctx *c, struct barrier_state *h, uint32_t slot, uint32_t round,
			 struct barrier_watch *w)
{
	return barrier_is_released(c, h, slot, w, round);
}

#endif
