/* SPDX-License-Identifier: Apache-2.0 */
/* workload_knapsack: the best choice of items for a knapsack, by branch and bound. A node of the search tree has
 * decided on the first items. Near the root, the two branches of a node are tasks, and the branch with the next item
 * has priority. Below, a task searches depth-first. A branch that cannot exceed the best value so far is pruned.
 * Device code. */
#ifndef WORKLOAD_KNAPSACK_DEV_H
#define WORKLOAD_KNAPSACK_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "task.dev.h"
#endif

#define KNAPSACK_ITEMS 60

/* The stack's block. Constant. Items are sorted by descending value per weight. */
struct knapsack {
	uint64_t capacity;
	uint32_t items, split; /* nodes that have decided on fewer items than `split` spawn tasks */
	uint32_t value[KNAPSACK_ITEMS], weight[KNAPSACK_ITEMS];
};

/* The device's block: the best value that its workers have found. Devices do not share it. */
struct knapsack_best {
	uint64_t value;
	uint64_t pad[7];
};

/* The worker's block. Each choice of items is covered once: by a node that is pruned, invalid, or completely
 * decided. */
struct knapsack_count {
	uint64_t nodes, covered;
	uint64_t pad[6];
};

/* A node: the number of items on which it has decided, their value, and the remaining capacity. */
struct knapsack_node {
	uint64_t items, value, capacity;
};

/* Returns an upper bound on the values below the node. The first item that does not fit is counted in part. */
LOOM_FN uint64_t knapsack_bound(const struct knapsack *k, const struct knapsack_node *n)
{
	uint64_t value = n->value, capacity = n->capacity;
	uint32_t i = (uint32_t)n->items;
	LOOM_NO_UNROLL
	for (; i < k->items && k->weight[i] <= capacity; i++) {
		value += k->value[i];
		capacity -= k->weight[i];
	}
	return i < k->items ? value + k->value[i] * capacity / k->weight[i] : value;
}

/* Called by lane 0. If *best is below `value`, raises it to `value`. Returns the best value. */
LOOM_FN uint64_t knapsack_raise(uint64_t *best, uint64_t value)
{
	uint64_t seen = loom_load_relaxed_dev(best);
	while (seen < value && !loom_cas_acq_rel_dev(best, &seen, value))
		;
	return seen < value ? value : seen;
}

#define KNAPSACK_LOAD_EVERY 64u /* nodes between two loads of the best value */

/* Called by lane 0. Searches the subtree of node n. */
LOOM_FN void knapsack_search(struct loom_ctx *c, const struct knapsack *k, struct knapsack_node n,
			     struct knapsack_count *found)
{
	uint64_t *best = &((struct knapsack_best *)c->on_device[LOOM_WORKLOAD])->value, taken = 0, top = 0;
	const uint64_t from = n.items;
	for (uint32_t visited = 0;; visited++) {
		if (visited % KNAPSACK_LOAD_EVERY == 0) {
			if (loom_stopped(c))
				return;
			top = loom_load_relaxed_dev(best);
		}
		found->nodes++;
		if (n.items < k->items && knapsack_bound(k, &n) > top) {
			uint32_t i = (uint32_t)n.items++;
			if (k->weight[i] > n.capacity) {
				found->covered += 1ull << (k->items - n.items); /* the item does not fit */
				continue;
			}
			taken |= 1ull << i;
			n.value += k->value[i];
			n.capacity -= k->weight[i];
			if (n.value > top)
				top = knapsack_raise(best, n.value);
			continue;
		}
		found->covered += 1ull << (k->items - n.items);
		/* Backtrack to the last item that was taken, and continue without this item. */
		while (n.items > from && !(taken >> (n.items - 1) & 1))
			n.items--;
		if (n.items == from)
			return;
		taken &= ~(1ull << (n.items - 1));
		n.value -= k->value[n.items - 1];
		n.capacity += k->weight[n.items - 1];
	}
}

LOOM_FN int knapsack_spawn(struct loom_ctx *c, const struct knapsack_node *n, uint8_t priority)
{
	struct loom_task task;
	workload_task(&task, 0);
	task.priority = priority;
	task.param[0] = n->items;
	task.param[1] = n->value;
	task.param[2] = n->capacity;
	return LOOM_CALL(sched, spawn, c, &task);
}

LOOM_FN void workload_knapsack_task(struct loom_ctx *c, const struct loom_task *t)
{
	const struct knapsack *k = (const struct knapsack *)c->global[LOOM_WORKLOAD];
	uint64_t *best = &((struct knapsack_best *)c->on_device[LOOM_WORKLOAD])->value, top = 0;
	struct knapsack_count *count = (struct knapsack_count *)c->own[LOOM_WORKLOAD];
	struct knapsack_count found = {0, 0, {0}};
	struct knapsack_node n = {t->param[0], t->param[1], t->param[2]}, with = n;
	if (c->lane == 0)
		top = loom_load_relaxed_dev(best);
	top = loom_from_lane0(c, top); /* lanes that run a task together take the same branch */
	if (n.items >= k->split || n.items == k->items || knapsack_bound(k, &n) <= top) {
		if (c->lane == 0)
			knapsack_search(c, k, n, &found);
	} else {
		uint32_t i = (uint32_t)n.items++;
		found.nodes = 1;
		if (k->weight[i] > n.capacity) {
			found.covered = 1ull << (k->items - n.items);
		} else {
			with.items++;
			with.value += k->value[i];
			with.capacity -= k->weight[i];
			if (c->lane == 0)
				knapsack_raise(best, with.value);
		}
		if (knapsack_spawn(c, &n, LOOM_LOW) || (with.items == n.items && knapsack_spawn(c, &with, LOOM_HIGH)))
			return;
	}
	if (c->lane == 0) {
		loom_own_add(c, &count->nodes, found.nodes);
		loom_own_add(c, &count->covered, found.covered);
	}
}

#endif
