/* SPDX-License-Identifier: Apache-2.0 */
/* workload_uts: counts the nodes of a tree. A task has a node, and spawns tasks for its children. On a CPU it may
 * instead search the subtree until the scheduler requests tasks (uts_lazy.h). Device code. */
#ifndef WORKLOAD_UTS_DEV_H
#define WORKLOAD_UTS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "uts_node.dev.h"

#include "uts_lazy.h"
#endif

/* All lanes compute the same digests, because each lane needs the whole record, and idle lanes would gain nothing. */
LOOM_FN void workload_uts_task(struct loom_ctx *c, const struct loom_task *t)
{
	const struct uts_tree *tree = (const struct uts_tree *)c->global[LOOM_WORKLOAD];
	struct uts_count *count = (struct uts_count *)c->own[LOOM_WORKLOAD];
	struct uts_node n = uts_node(t), child;
	uint32_t children = uts_children(tree, &n);
	struct loom_task task;

#ifdef UTS_LAZY_H
	if (uts_search_lazily(c, tree, t))
		return;
#endif
	if (c->lane == 0) {
		loom_own_add(c, &count->nodes, 1);
		loom_own_add(c, &count->leaves, !children);
		loom_own_max(c, &count->depth, n.depth);
	}
	/* If each lane has a task, the lanes distribute the children of all these tasks. Most nodes have no child,
	 * and some have many. */
	struct loom_distribute d = loom_distribute(c, children);
	int failed = 0;
	if (!loom_distribute_next(&d))
		return;
	workload_task(&task, t->tag);
	LOOM_NO_UNROLL
	do {
		struct uts_node room;
		const struct uts_node *parent = (const struct uts_node *)loom_distribute_words(
		    &d, (const uint32_t *)&n, sizeof(n) / sizeof(uint32_t), (uint32_t *)&room);
		if (!d.mine || failed)
			continue;
		uts_child(&child, parent, d.item);
		uts_pack(&task, &child);
		failed = LOOM_CALL(sched, spawn, c, &task);
	} while (loom_distribute_next(&d));
}

#endif
