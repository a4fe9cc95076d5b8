/* SPDX-License-Identifier: Apache-2.0 */
/* What the lanes of a worker keep between tasks, and where. Device code. */
#ifndef SCHED_MGWS_KEEP_DEV_H
#define SCHED_MGWS_KEEP_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "share.dev.h"
#endif

/* The claimed block; each lane keeps the bounds. One lane runs its tasks from where they lie; several
 * copy some at a time into the local queue together, which waits once for all of them. */
struct mgws_block {
	uint64_t next, end;
	/* Lane 0, as of its last look: the public queue's word (GPUs), and up to where the set is claimed. While
	 * initial tasks are unclaimed everybody has work, and nothing is shared. MGWS_ALL: nothing is left. */
	uint64_t word, claimed;
};
#define MGWS_ALL (~0ull)

/* Of a ring of this worker's: the backlog, or tasks of high or of low priority. */
enum { MGWS_HIGH, MGWS_LOW, MGWS_LEVELS };
struct mgws_level {
	uint32_t head, count;
};
/* All that a lane keeps. */
struct mgws_keep {
	struct mgws_block block;
	struct mgws_level backlog;
	struct mgws_level level[MGWS_LEVELS];
};
#define MGWS_REGISTER_WORDS(priorities) ((priorities) ? 9 : 7) /* of loom_ctx.regs; the levels come last */

/* Behind the view: what lanes keep, the rings of priorities.dev.h, and the bits of damping.dev.h. */
#define MGWS_KEEP_BYTES(lanes) SCHED_PER_LANE(lanes, sizeof(struct mgws_keep))
#define MGWS_RINGS_BYTES(priorities, local_queue)                                                  \
	((priorities) ? (uint64_t)MGWS_LEVELS * (local_queue) * sizeof(struct loom_task) : 0)
#define MGWS_BITS_BYTES(workers) (((uint64_t)(workers) + 63u) / 64u * 8u)
#define MGWS_MINE_BYTES(lanes, priorities, local_queue, victims)                                   \
	(sizeof(struct mgws_mine) + MGWS_KEEP_BYTES(lanes) +                                       \
	 MGWS_RINGS_BYTES(priorities, local_queue) + MGWS_BITS_BYTES(victims))

LOOM_FN struct mgws_keep *mgws_keep(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	return (struct mgws_keep *)&c->regs[SCHED_KEEP_REST];
#else
	return (struct mgws_keep *)(mgws_mine(c) + 1) + c->lane;
#endif
}

LOOM_FN char *mgws_behind_keep(const struct loom_ctx *c)
{
	return (char *)(mgws_mine(c) + 1) + MGWS_KEEP_BYTES(c->lanes);
}

#endif
