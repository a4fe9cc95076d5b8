/* SPDX-License-Identifier: Apache-2.0 */
/* What the lanes of a worker keep between tasks, and where. Device code. */
#ifndef SCHED_MGWS_KEEP_DEV_H
#define SCHED_MGWS_KEEP_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "owner.dev.h"
#endif

/* The claimed block; each lane keeps the bounds. One lane runs its tasks from where they lie; several
 * copy some at a time into the local queue together, which waits once for all of them. */
struct sched_mgws_block {
	uint64_t next, end;
	/* Lane 0, as of its last look: the public queue's word (GPUs), and up to where the set is claimed. While
	 * initial tasks are unclaimed nobody lacks work, and nothing is made public. MGWS_ALL: nothing is left. */
	uint64_t word, claimed;
};
#define MGWS_ALL (~0ull)

/* Tasks of high and of low priority, a ring of each; every lane keeps indices of its own. */
enum { MGWS_HIGH, MGWS_LOW, MGWS_LEVELS };
struct sched_mgws_level {
	uint32_t head, count;
};
struct sched_mgws_levels {
	struct sched_mgws_level level[MGWS_LEVELS];
};
/* All that a lane keeps. */
struct sched_mgws_keep {
	struct sched_mgws_block block;
	struct sched_mgws_level backlog;
	struct sched_mgws_levels levels;
};

#define MGWS_KEEP_WORDS(priorities) ((priorities) ? 9 : 7) /* of loom_ctx.keep; the levels come last */

/* Behind the view: what lanes keep, the rings (if priorities are heeded), and a bit per worker. */
#define MGWS_KEEP_BYTES(lanes) SCHED_PER_LANE(lanes, sizeof(struct sched_mgws_keep))
#define MGWS_RINGS_BYTES(priorities, local_queue)                                                  \
	((priorities) ? (uint64_t)MGWS_LEVELS * (local_queue) * sizeof(struct loom_task) : 0)
#define MGWS_BITS_BYTES(workers) (((uint64_t)(workers) + 63u) / 64u * 8u)
#define MGWS_MINE_BYTES(lanes, priorities, local_queue, workers)                                   \
	(sizeof(struct sched_mgws_mine) + MGWS_KEEP_BYTES(lanes) +                               \
	 MGWS_RINGS_BYTES(priorities, local_queue) + MGWS_BITS_BYTES(workers))

LOOM_FN struct sched_mgws_keep *sched_mgws_keep(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	return (struct sched_mgws_keep *)&c->keep[SCHED_KEEP_REST];
#else
	return (struct sched_mgws_keep *)(sched_mgws_mine(c) + 1) + c->lane;
#endif
}

LOOM_FN struct sched_mgws_levels *sched_mgws_levels(const struct loom_ctx *c)
{
	return &sched_mgws_keep(c)->levels;
}

/* Tasks held of a level: a program without priorities neither looks nor has a place for them. */
#ifdef SCHED_CONSTANTS
#define MGWS_LEVELLED(c) SCHED_CFG(c, priorities)
#else
#define MGWS_LEVELLED(c) 1
#endif
#define MGWS_HELD(c, l) (MGWS_LEVELLED(c) ? (l)->count : 0u)

LOOM_FN struct loom_task *sched_mgws_level_ring(const struct loom_ctx *c, uint32_t which)
{
	char *rings = (char *)(sched_mgws_mine(c) + 1) + MGWS_KEEP_BYTES(c->lanes);
	return (struct loom_task *)rings + which * ((uint64_t)sched_mask(c) + 1);
}

LOOM_FN uint64_t *sched_mgws_bits(const struct loom_ctx *c)
{
	char *rings = (char *)(sched_mgws_mine(c) + 1) + MGWS_KEEP_BYTES(c->lanes);
	return (uint64_t *)(rings + MGWS_RINGS_BYTES(SCHED_CFG(c, priorities), SCHED_CFG(c, local_queue)));
}

#endif
