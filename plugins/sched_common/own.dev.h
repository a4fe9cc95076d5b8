/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks that a worker keeps for itself: its local queue, and an overflow list for tasks that do not fit into the
 * queue. The list is a stack that no other worker accesses. Used by schedulers whose spawned tasks do not move to other
 * workers. Device code; all lanes call the functions together. */
#ifndef SCHED_OWN_DEV_H
#define SCHED_OWN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "queue.dev.h"
#endif

/* The head of a worker's overflow list, at the start of the worker's block. */
struct sched_own_list {
	uint64_t slots; /* largest number of tasks in the list */
	uint64_t count; /* number of tasks left in the list at the end, for collect() */
	uint64_t at;	/* bytes from this struct to the slots */
	uint64_t pad[5];
};

/* The start of the device's block. Constant while workers run. */
struct sched_site {
	uint32_t other; /* affinity of tasks that this device may not run */
	uint32_t pad;
	uint64_t more_at; /* bytes from this struct to the scheduler's own part of the block */
	uint64_t pad2[6];
};

/* Is behind the ring in the private block, once for each lane. All lanes have the same value, as in struct
 * sched_lane. */
struct sched_own_lane {
	uint64_t listed; /* number of tasks in the worker's overflow list */
};
#define SCHED_OWN_REGISTER_WORDS 3 /* number of words of loom_ctx.regs in use */
#define SCHED_OWN_EXTRA(lanes)   ((uint64_t)(lanes) * sizeof(struct sched_own_lane))

LOOM_FN struct sched_own_lane *sched_own_lane(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	return (struct sched_own_lane *)&c->regs[SCHED_REGS_OWN];
#else
	return (struct sched_own_lane *)sched_private(c) + c->lane;
#endif
}

LOOM_FN struct sched_own_list *sched_own_list(const struct loom_ctx *c)
{
	return (struct sched_own_list *)c->own[LOOM_SCHED];
}

LOOM_FN struct loom_task *sched_own_slots(struct sched_own_list *s)
{
	return (struct loom_task *)((char *)s + s->at);
}

LOOM_FN int sched_own_push(struct loom_ctx *c, const struct loom_task *task)
{
	return !sched_push(c, task);
}

LOOM_FN int sched_own_overflow(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_own_list *s = sched_own_list(c);
	struct sched_own_lane *mine = sched_own_lane(c);
	if (mine->listed == s->slots) {
		if (c->lane == 0)
			loom_worker_fail(c, LOOM_EFULL, s->slots);
		return LOOM_EFULL;
	}
	sched_copy_one(c, &sched_own_slots(s)[mine->listed], task);
	mine->listed++;
	if (c->lane == 0)
		sched_local(c)->counters.overflowed++;
	return 0;
}

SCHED_SLOW int sched_own_push_to_full_queue(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_place_task(c, task, sched_own_push, sched_own_overflow);
}

/* Returns 1 if this device may run the task. If it may not, ends the run with an error, because tasks do not move to
 * another kind of device. */
LOOM_FN int sched_own_allows(struct loom_ctx *c, const struct loom_task *task)
{
	const struct sched_site *site = (const struct sched_site *)c->on_device[LOOM_SCHED];
	if (task->affinity != site->other)
		return 1;
	if (c->lane == 0)
		loom_worker_fail(c, LOOM_ENOTSUP, task->affinity);
	return 0;
}

/* Keeps a spawned task at this worker. Returns 0 or an error. */
LOOM_FN int sched_own_keep(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_push(c, task) ? 0 : LOOM_OUTLINED(sched_own_push_to_full_queue, c, task);
}

/* The op wanted() of a scheduler whose spawned tasks do not move, so that other workers get no work from them. */
LOOM_FN int sched_own_wanted(struct loom_ctx *c)
{
	uint64_t stopped = c->lane == 0 ? (uint64_t)loom_stopped(c) : 0;
	return loom_from_lane0(c, stopped) ? LOOM_EINTR : 0;
}

/* Moves tasks of the list into the empty queue. The tasks fill at most half of the queue, because they may spawn.
 * Returns the number of moved tasks. */
LOOM_FN uint32_t sched_own_refill(struct loom_ctx *c)
{
	struct sched_lane *q = sched_lane(c);
	struct sched_own_lane *mine = sched_own_lane(c);
	uint32_t mask = sched_mask(c), n = (mask + 1) / 2;
	if (n > mine->listed)
		n = (uint32_t)mine->listed;
	if (!n)
		return 0;
	loom_barrier_lanes(c); /* so that this lane sees what other lanes copied to the list */
	mine->listed -= n;
	sched_copy_ring(c, sched_ring(c), q->head, mask, sched_own_slots(sched_own_list(c)), mine->listed, ~0ull, n);
	q->count = n;
	if (c->lane == 0)
		sched_local(c)->counters.refilled += n;
	return n;
}

/* Called at the start and at the end of a sample. The end stores how many tasks are left in the list, for collect(). */
LOOM_FN void sched_own_start(struct loom_ctx *c)
{
	sched_start(c);
	sched_own_lane(c)->listed = 0;
}

LOOM_FN void sched_own_end(struct loom_ctx *c)
{
	if (c->lane == 0)
		sched_own_list(c)->count = sched_own_lane(c)->listed;
}

#endif
