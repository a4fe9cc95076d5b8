/* SPDX-License-Identifier: Apache-2.0 */
/* workload_knapsack: the best choice of items for a knapsack, by branch and bound. A node has decided on the first items.
 * Near the root its two branches are tasks, of which the one that takes the item has priority; below, a task searches
 * depth-first. What cannot beat the best choice so far is cut off. Device code. */
#ifndef WORKLOAD_KNAPSACK_DEV_H
#define WORKLOAD_KNAPSACK_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "task.dev.h"
#endif

#define KNAPSACK_ITEMS 60

/* The stack's block: constant. Items by value for weight, the best first. */
struct knapsack {
	uint64_t room;
	uint32_t items, split; /* nodes of fewer items than `split` make tasks */
	uint32_t value[KNAPSACK_ITEMS], weight[KNAPSACK_ITEMS];
};

/* The device's block: the best value that its workers have found. Devices do not tell each other. */
struct knapsack_best {
	uint64_t value;
	uint64_t pad[7];
};

/* The worker's. Each choice of items is covered once: by a node that was cut off, that was no choice any more, or that
 * decided on all. */
struct knapsack_count {
	uint64_t nodes, covered;
	uint64_t pad[6];
};

/* A node: the number of items decided on, their value, and the room that is left. */
struct knapsack_node {
	uint64_t items, value, room;
};

/* No choice below the node has a higher value: the last item that does not fit is cut. */
LOOM_FN uint64_t knapsack_bound(const struct knapsack *k, const struct knapsack_node *n)
{
	uint64_t value = n->value, room = n->room;
	uint32_t i = (uint32_t)n->items;
	LOOM_NO_UNROLL
	for (; i < k->items && k->weight[i] <= room; i++) {
		value += k->value[i];
		room -= k->weight[i];
	}
	return i < k->items ? value + k->value[i] * room / k->weight[i] : value;
}

/* Lane 0 raises the best value; what it is now. */
LOOM_FN uint64_t knapsack_raise(uint64_t *best, uint64_t value)
{
	uint64_t seen = loom_load_relaxed_dev(best);
	while (seen < value && !loom_cas_acq_rel_dev(best, &seen, value))
		;
	return seen < value ? value : seen;
}

#define KNAPSACK_LOOK 64u /* nodes between two looks at what others have found */

/* Lane 0: all below the node. */
LOOM_FN void knapsack_search(struct loom_ctx *c, const struct knapsack *k, struct knapsack_node n, struct knapsack_count *found)
{
	uint64_t *best = &((struct knapsack_best *)c->on_device[LOOM_WORKLOAD])->value, taken = 0, top = 0;
	const uint64_t from = n.items;
	for (uint32_t look = 0;; look++) {
		if (look % KNAPSACK_LOOK == 0) {
			if (loom_stopped(c))
				return;
			top = loom_load_relaxed_dev(best);
		}
		found->nodes++;
		if (n.items < k->items && knapsack_bound(k, &n) > top) {
			uint32_t i = (uint32_t)n.items++;
			if (k->weight[i] > n.room) {
				found->covered += 1ull << (k->items - n.items); /* it cannot be taken */
				continue;
			}
			taken |= 1ull << i;
			n.value += k->value[i];
			n.room -= k->weight[i];
			if (n.value > top)
				top = knapsack_raise(best, n.value);
			continue;
		}
		found->covered += 1ull << (k->items - n.items);
		/* Back to the last item that was taken: now without it. */
		while (n.items > from && !(taken >> (n.items - 1) & 1))
			n.items--;
		if (n.items == from)
			return;
		taken &= ~(1ull << (n.items - 1));
		n.value -= k->value[n.items - 1];
		n.room += k->weight[n.items - 1];
	}
}

LOOM_FN int knapsack_spawn(struct loom_ctx *c, const struct knapsack_node *n, uint8_t priority)
{
	struct loom_task task;
	workload_task(&task, 0);
	task.priority = priority;
	task.param[0] = n->items;
	task.param[1] = n->value;
	task.param[2] = n->room;
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
	top = loom_from_lane0(c, top); /* lanes that run a task together go the same way */
	if (n.items >= k->split || n.items == k->items || knapsack_bound(k, &n) <= top) {
		if (c->lane == 0)
			knapsack_search(c, k, n, &found);
	} else {
		uint32_t i = (uint32_t)n.items++;
		found.nodes = 1;
		if (k->weight[i] > n.room) {
			found.covered = 1ull << (k->items - n.items);
		} else {
			with.items++;
			with.value += k->value[i];
			with.room -= k->weight[i];
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
