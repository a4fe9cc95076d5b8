/* SPDX-License-Identifier: Apache-2.0 */
/* workload_bfs_tasks: breadth-first search, level by level. A task has a part of a level's frontier. If the part is
 * longer than a chunk, the task halves it. A vertex with many arcs has tasks of its own, each with a part of its
 * arcs. The last task of a level spawns the first task of the next level, so no worker waits. Device code. */
#ifndef WORKLOAD_BFS_TASKS_DEV_H
#define WORKLOAD_BFS_TASKS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "task.dev.h"
#endif

/* The stack's block. Arrays are given by their offsets in the block, in bytes. */
struct bfs {
	uint64_t vertices, arcs;
	uint64_t first;	 /* uint64_t[vertices + 1]: where a vertex's arcs start */
	uint64_t arc;	 /* uint32_t[arcs]: the vertex to which each arc leads */
	uint64_t seen;	 /* uint32_t words, one bit per vertex: 1 if it was found */
	uint64_t level;	 /* uint32_t[vertices]: level of each vertex, or BFS_NEVER */
	uint64_t list;	 /* uint32_t[2][vertices]: the frontiers of even and of odd levels */
	uint32_t chunk;	 /* upper limit on the vertices of a task */
	uint32_t heavy;	 /* a vertex with more arcs has tasks of its own, with this many arcs each */
	uint64_t pending; /* number of tasks of the level that have not ended */
	uint64_t pad0[7];
	uint64_t found[2]; /* lengths of the frontiers of even and of odd levels */
	uint64_t pad1[6];
};
#define BFS_NEVER 0xffffffffu
enum { BFS_PART, BFS_HEAVY }; /* tags; param[0]: level; param[1], param[2]: range of its frontier (BFS_PART) or of
			       * arcs */

#define BFS_AT(b, member, type) ((type *)((char *)(b) + (b)->member))
#define BFS_LIST(b, level) (BFS_AT(b, list, uint32_t) + ((level) & 1) * (b)->vertices)

/* Reserves a place in the next frontier. Returns its index. */
LOOM_FN uint64_t bfs_take(struct loom_ctx *c, uint64_t *found)
{
	return c->devices == 1 ? loom_take_ticket_dev(found) : loom_fetch_add_relaxed_sys(found, (uint64_t)1);
}

/* Follows an arc on this lane. Accesses are relaxed, because the end of the level orders them. */
LOOM_FN void bfs_follow(struct loom_ctx *c, struct bfs *b, uint64_t level, uint64_t arc)
{
	uint32_t to = BFS_AT(b, arc, uint32_t)[arc], bit = 1u << (to & 31);
	uint32_t *seen = &BFS_AT(b, seen, uint32_t)[to >> 5];
	if (loom_load_relaxed_sys(seen) & bit || loom_fetch_or_relaxed_sys(seen, bit) & bit)
		return;
	BFS_AT(b, level, uint32_t)[to] = (uint32_t)level + 1;
	BFS_LIST(b, level + 1)[bfs_take(c, &b->found[(level + 1) & 1])] = to;
}

/* Collective. Spawns a task for a range of the frontier or of arcs. Returns 0 or an error. */
LOOM_FN int bfs_spawn(struct loom_ctx *c, struct bfs *b, uint32_t tag, uint64_t level, uint64_t from, uint64_t to)
{
	struct loom_task task;
	workload_task(&task, tag);
	if (tag == BFS_HEAVY)
		task.priority = LOOM_HIGH; /* long tasks start early */
	task.param[0] = level;
	task.param[1] = from;
	task.param[2] = to;
	if (c->lane == 0) /* this task has not ended, so the count cannot be 0 */
		loom_fetch_add_relaxed_sys(&b->pending, (uint64_t)1);
	return LOOM_CALL(sched, spawn, c, &task);
}

/* Called at the end of each task. The last task of a level spawns the first task of the next level. */
LOOM_FN void bfs_end(struct loom_ctx *c, struct bfs *b, uint64_t level)
{
	uint64_t n = 0;
	if (!loom_last(c, &b->pending))
		return;
	if (c->lane == 0) {
		n = loom_load_relaxed_sys(&b->found[(level + 1) & 1]);
		loom_store_relaxed_sys(&b->found[level & 1], (uint64_t)0);
		loom_store_relaxed_sys(&b->pending, (uint64_t)0);
	}
	n = loom_from_lane0(c, n);
	if (n)
		bfs_spawn(c, b, BFS_PART, level + 1, 0, n);
}

LOOM_FN void workload_bfs_tasks_part(struct loom_ctx *c, const struct loom_task *t)
{
	struct bfs *b = (struct bfs *)c->global[LOOM_WORKLOAD];
	const uint64_t *first = BFS_AT(b, first, uint64_t), level = t->param[0], from = t->param[1];
	const uint32_t *list = BFS_LIST(b, level);
	uint64_t to = t->param[2], few = c->lanes == 1 ? b->heavy : c->lanes < b->heavy ? c->lanes : b->heavy;
	LOOM_NO_UNROLL
	while (to - from > b->chunk) {
		uint64_t half = from + (to - from) / 2;
		if (bfs_spawn(c, b, BFS_PART, level, half, to))
			return;
		to = half;
	}
	/* A vertex with few arcs is for one lane, any other vertex for all lanes together. */
	LOOM_NO_UNROLL
	for (uint64_t i = from + c->lane; i < to; i += c->lanes) {
		uint64_t arc = first[list[i]], end = first[list[i] + 1];
		for (end = end - arc <= few ? end : arc; arc < end; arc++)
			bfs_follow(c, b, level, arc);
	}
	LOOM_NO_UNROLL
	for (uint64_t i = from; i < to; i++) {
		uint64_t arc = first[list[i]], end = first[list[i] + 1];
		if (end - arc <= few)
			continue;
		LOOM_NO_UNROLL
		for (; end - arc > b->heavy; arc += b->heavy)
			if (bfs_spawn(c, b, BFS_HEAVY, level, arc, arc + b->heavy))
				return;
		for (arc += c->lane; arc < end; arc += c->lanes)
			bfs_follow(c, b, level, arc);
	}
	bfs_end(c, b, level);
}

LOOM_FN void workload_bfs_tasks_heavy(struct loom_ctx *c, const struct loom_task *t)
{
	struct bfs *b = (struct bfs *)c->global[LOOM_WORKLOAD];
	for (uint64_t arc = t->param[1] + c->lane; arc < t->param[2]; arc += c->lanes)
		bfs_follow(c, b, t->param[0], arc);
	bfs_end(c, b, t->param[0]);
}

#endif
