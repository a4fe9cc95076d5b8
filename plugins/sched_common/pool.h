/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the host halves of schedulers with pool.dev.h. */
#ifndef SCHED_POOL_H
#define SCHED_POOL_H

#include <string.h>

#include "own.h"
#include "pool.dev.h"

/* The option `pool`, whose value is in the field `backlog`. */
#define SCHED_POOL_ROW                                                                                                 \
	SCHED_ROW_AS(backlog, "pool", LOOM_OPT_U32, "65536",                                                           \
		     "Spawned tasks of a sample that any worker may take, at most; the first ones. Further ones stay with the " \
		     "worker that spawned them.",                                                                      \
		     .max = 1 << 26)

/* Return the size of the common part of the block for the stack, or for a device. The scheduler's own part follows
 * it. */
static inline uint64_t sched_pool_global_bytes(const struct sched_config *options, const struct loom_layout *layout)
{
	return sizeof(struct sched_common) + (sched_noncoherent(layout) ? 0 : SCHED_POOL_BYTES(options->backlog));
}

static inline uint64_t sched_pool_device_bytes(const struct sched_config *options, const struct loom_layout *layout)
{
	return sizeof(struct sched_site) + (sched_noncoherent(layout) ? SCHED_POOL_BYTES(options->backlog) : 0);
}

/* Returns the size of what precedes the slots: of the pool in the stack's block, or in the block of each device. */
static inline uint64_t sched_pool_head_bytes(const struct sched_config *options, const struct loom_layout *layout,
					     int of_device)
{
	return of_device == sched_noncoherent(layout) ? sizeof(struct sched_pool) + 4ull * options->backlog : 0;
}

static inline void sched_pool_reset(struct sched_pool *p, uint64_t room, uint64_t gap)
{
	/* Clears the `ready` words of slots that the last sample reserved. No other words can be set. */
	uint64_t used = p->room == room && p->tail < room ? p->tail : room;
	memset(p + 1, 0, used * sizeof(uint32_t));
	*p = (struct sched_pool){.room = room, .slots_at = SCHED_POOL_SLOTS_AT(room) + gap};
}

/* Initialises the pool of the stack, or the pools of non-coherent devices. Called after sched_own_init(). gap: bytes before the
 * slots of each pool that are the scheduler's, a multiple of 64. */
static inline void sched_pool_init(const struct sched_config *options, const struct loom_layout *layout,
				   const struct loom_view *view, uint64_t gap)
{
	if (!sched_noncoherent(layout))
		sched_pool_reset((struct sched_pool *)((struct sched_common *)view->global + 1), options->backlog, gap);
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct sched_site *site = view->device[d];
		site->more_at = sched_pool_device_bytes(options, layout) + (sched_noncoherent(layout) ? gap : 0);
		if (sched_noncoherent(layout))
			sched_pool_reset((struct sched_pool *)(site + 1), options->backlog, gap);
	}
}

static inline int sched_pool_check(const struct sched_own *s, const struct sched_pool *p, struct loom_error *err)
{
	uint64_t tail = p->tail < p->room ? p->tail : p->room;
	if (p->head == tail)
		return 0;
	return LOOM_FAIL(s->host, err, LOOM_EWRONG, "%s: the workers have left, and the pool still has %llu tasks", s->name,
			 (unsigned long long)(tail - p->head));
}

static inline int sched_pool_collect(const struct sched_own *s, const struct loom_layout *layout,
				     const struct loom_view *view, struct loom_error *err)
{
	int rc = sched_own_collect(s, layout, view, err);
	if (!rc && !sched_noncoherent(layout))
		rc = sched_pool_check(s, (const struct sched_pool *)((const struct sched_common *)view->global + 1), err);
	for (uint32_t d = 0; !rc && sched_noncoherent(layout) && d < layout->devices; d++)
		rc = sched_pool_check(s, (const struct sched_pool *)((const struct sched_site *)view->device[d] + 1), err);
	return rc;
}

#endif
