/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of term_tree: votes travel up a tree of workers per device, a tree of devices, and a tree of ranks. */
#include <string.h>

#include "term_tree.dev.h"
#include "detector.h"

static int term_tree_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	uint32_t most = 0;
	(void)self, (void)err;
	for (uint32_t d = 0; d < layout->devices; d++)
		most = layout->device[d].workers > most ? layout->device[d].workers : most;
	need->global = layout->devices * sizeof(struct term_tree_node) + sizeof(struct term_tree_ranks);
	need->device = most * sizeof(struct term_tree_node);
	need->local = sizeof(struct term_tree_mine);
	need->flags |= LOOM_NEED_RESET; /* ranks that share tasks are never reset by devices */
	need->reset_global.head = need->global;
	need->reset_device.head = need->device;
	return 0;
}

static int term_tree_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  struct loom_error *err)
{
	const struct term_ranks *t = self;
	struct term_tree_ranks *own =
	    (struct term_tree_ranks *)((struct term_tree_node *)view->global + layout->devices);
	(void)err;
	memset(view->global, 0, layout->devices * sizeof(struct term_tree_node));
	*own = (struct term_tree_ranks){0};
	for (uint32_t i = 0; i < TERM_TREE_NEIGHBOURS && t->remote; i++) {
		uint32_t rank = i == TERM_TREE_UP ? (t->rank - 1) / 2 : 2 * t->rank + i;
		if (i == TERM_TREE_UP ? t->rank == 0 : rank >= t->ranks)
			continue;
		own->neighbour[i].at =
		    (uintptr_t)t->remote[rank].global + t->remote[rank].devices * sizeof(struct term_tree_node);
		own->neighbour[i].rank = rank;
		own->neighbour[i].rma = layout->rma;
	}
	for (uint32_t d = 0; d < layout->devices; d++)
		memset(view->device[d], 0, layout->device[d].workers * sizeof(struct term_tree_node));
	return 0;
}

/* Checks that all workers left because the root had found that no task is left. */
static int term_tree_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
			     struct loom_report *report, struct loom_error *err)
{
	const struct loom_host *host = ((const struct term_ranks *)self)->host;
	(void)report;
	for (uint32_t d = 0; d < layout->devices; d++)
		for (uint32_t w = 0; w < layout->device[d].workers; w++)
			if (((const struct term_tree_node *)view->device[d])[w].open != TERM_TREE_DONE)
				return LOOM_FAIL(host, err, LOOM_EWRONG,
						 "term_tree: worker %u of %s left without a verdict", w,
						 layout->device[d].name);
	return 0;
}

TERM_PLUGIN_WITH(term_tree, 0, "Termination by votes up a tree of workers per device, of devices, and of ranks",
		 .create = term_ranks_create, .destroy = term_ranks_destroy, .connect = term_ranks_connect)
