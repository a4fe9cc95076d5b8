/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that all workers share: bounded stacks behind a lock. They are not meant to be fast, only to keep
 * a run alive. Device code; collective.
 *
 *   spill     tasks whose spawner found both of its queues full and is nested too deep to run them
 *   cpu, gpu  tasks whose affinity forbids them to the worker that came by them
 *
 * Termination stays right. Only a worker that runs a task puts one on a list. It takes back from `spill`
 * before it reports idle; and nobody reports idle while a list that he may not take from holds tasks. An
 * idle worker that takes tasks calls busy() before it lowers `count`. So when a worker finds the lists
 * empty and reports idle, whoever emptied them was counted as busy already. */
#ifndef SCHED_MGWS_LISTS_DEV_H
#define SCHED_MGWS_LISTS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "queue.dev.h"
#endif

struct sched_mgws_list {
	uint32_t lock;
	uint32_t pad0[15];
	uint64_t count; /* written under the lock, looked at without */
	uint64_t taken; /* tasks ever taken: raises everybody's `robbed` */
	uint64_t pad1[6];
};

/* By LOOM_ON_*: the spill list is for any. */
#define MGWS_LISTS 3u

/* What workers share. The slots follow, cfg.spill a list; those of the last two only in a stack with several
 * kinds of device. It is the scheduler's global block; where devices are apart each has one in its own block,
 * and of the global one only the options are used, and the mail behind it. */
struct sched_mgws_global {
	struct sched_common common;
	uint64_t next;  /* of the initial set */
	uint64_t range;  /* apart: the device's part of it: see mail.dev.h */
	uint64_t ranges; /* how many have come by mail */
	uint64_t pad[5];
	struct sched_mgws_list list[MGWS_LISTS];
};

/* Begins the device's block: constant. */
struct sched_mgws_site {
	uint32_t kind;  /* LOOM_ON_CPU or LOOM_ON_GPU */
	uint32_t other; /* an affinity that excludes this device */
	uint32_t pad[14];
};

LOOM_FN const struct sched_mgws_site *sched_mgws_site(const struct loom_ctx *c)
{
	return (const struct sched_mgws_site *)c->on_device[LOOM_SCHED];
}

/* LOOM_ON_*: this device's kind, and an affinity that excludes it. */
LOOM_FN uint32_t sched_mgws_own_kind(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)c;
	return LOOM_ON_GPU;
#else
	return sched_mgws_site(c)->kind;
#endif
}

LOOM_FN uint32_t sched_mgws_other(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)c;
	return LOOM_ON_CPU;
#else
	return sched_mgws_site(c)->other;
#endif
}

LOOM_FN struct sched_mgws_global *sched_mgws_find_global(const struct loom_ctx *c)
{
	return SCHED_CFG(c, apart) ? (struct sched_mgws_global *)((char *)c->on_device[LOOM_SCHED] +
								   sizeof(struct sched_mgws_site)) :
				     (struct sched_mgws_global *)c->global[LOOM_SCHED];
}

#ifdef SCHED_CONSTANTS
#define sched_mgws_global(c) sched_mgws_find_global(c)
#else
LOOM_FN struct sched_mgws_global *sched_mgws_global(const struct loom_ctx *c)
{
	return (struct sched_mgws_global *)sched_local(c)->shared;
}
#endif

LOOM_FN struct loom_task *sched_mgws_slots(const struct loom_ctx *c, uint32_t which)
{
	return (struct loom_task *)(sched_mgws_global(c) + 1) + which * SCHED_CFG(c, spill);
}

/* Lane 0. 0 when the run was stopped instead. */
LOOM_FN int sched_mgws_lock(struct loom_ctx *c, struct sched_mgws_list *s)
{
	uint32_t pauses = 1, open = 0;
	/* Acquire: pairs with the release in unlock. */
	while (!loom_cas_acq_rel_sys(&s->lock, &open, 1u)) {
		if (loom_stopped(c))
			return 0;
		sched_pause(c, &pauses);
		open = 0;
	}
	return 1;
}

LOOM_FN void sched_mgws_unlock(struct sched_mgws_list *s)
{
	loom_store_release_sys(&s->lock, 0u);
}

/* 1, or 0 when the list is full or the run was stopped. */
LOOM_FN int sched_mgws_put(struct loom_ctx *c, uint32_t which, const struct loom_task *task)
{
	struct sched_mgws_global *g = sched_mgws_global(c);
	struct sched_mgws_list *s = &g->list[which];
	uint64_t at = ~0ull;
	if (c->lane == 0 && sched_mgws_lock(c, s)) {
		at = loom_load_relaxed_sys(&s->count);
		if (at == SCHED_CFG(c, spill)) {
			sched_mgws_unlock(s);
			at = ~0ull;
		}
	}
	at = loom_from_lane0(c, at);
	if (at == ~0ull)
		return 0;
	sched_copy(c, &sched_mgws_slots(c, which)[at], task);
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		/* Release: pairs with the acquire of who looks before reporting idle. */
		loom_store_release_sys(&s->count, at + 1);
		sched_mgws_unlock(s);
		sched_wake(c, &g->common.bell, which == LOOM_ON_ANY ? 1u : ~0u);
		sched_local(c)->tally.spilled++;
	}
	return 1;
}

/* Lane 0: the list holds tasks. Acquire: an empty list says that its last taker is counted as busy; pairs with the
 * release of the lowered count below. */
LOOM_FN int sched_mgws_filled(const struct sched_mgws_list *s)
{
	return loom_load_acquire_sys(&s->count) != 0;
}

/* Collective: locks the list if it holds tasks; how many. 0: it is not locked. */
LOOM_FN uint64_t sched_mgws_open_list(struct loom_ctx *c, struct sched_mgws_list *s)
{
	uint64_t count = 0;
	if (c->lane == 0 && sched_mgws_filled(s) && sched_mgws_lock(c, s)) {
		count = loom_load_relaxed_sys(&s->count);
		if (!count)
			sched_mgws_unlock(s);
	}
	return loom_from_lane0(c, count);
}

/* `n` of the open list's tasks have been moved, and a barrier has been passed since. */
LOOM_FN void sched_mgws_close_list(struct loom_ctx *c, struct sched_mgws_list *s, uint64_t count, uint64_t n)
{
	if (c->lane == 0) {
		loom_fetch_add_relaxed_sys(&s->taken, n);
		loom_store_release_sys(&s->count, count - n);
		sched_mgws_unlock(s);
		sched_local(c)->tally.unspilled += n;
	}
}

/* Moves up to half a local queue of the list's tasks into the empty local queue; how many. */
LOOM_FN uint32_t sched_mgws_take(struct loom_ctx *c, uint32_t which, int idle)
{
	struct sched_mgws_list *s = &sched_mgws_global(c)->list[which];
	struct sched_lane *mine = sched_lane(c);
	uint32_t mask = sched_mask(c);
	uint64_t count = sched_mgws_open_list(c, s), n;
	if (!count)
		return 0;
	n = (mask + 1) / 2 < count ? (mask + 1) / 2 : count;
	sched_move(c, sched_ring(c), mine->head, mask, sched_mgws_slots(c, which), count - n, ~0ull,
		   (uint32_t)n);
	mine->count = (uint32_t)n;
	loom_barrier_lanes(c);
	if (idle)
		LOOM_CALL(term, busy, c);
	sched_mgws_close_list(c, s, count, n);
	return (uint32_t)n;
}

/* Lane 0: the lists that this worker may take from hold something. */
LOOM_FN int sched_mgws_listed(const struct loom_ctx *c)
{
	struct sched_mgws_global *g = sched_mgws_global(c);
	return loom_load_acquire_sys(&g->list[LOOM_ON_ANY].count) != 0 ||
	       (SCHED_CFG(c, mixed) && !SCHED_CFG(c, apart) &&
		loom_load_acquire_sys(&g->list[sched_mgws_own_kind(c)].count) != 0);
}

/* Lane 0: a list that this worker may not take from holds something: it must not report idle. */
LOOM_FN int sched_mgws_withheld(const struct loom_ctx *c)
{
	struct sched_mgws_global *g = sched_mgws_global(c);
	return SCHED_CFG(c, mixed) &&
	       loom_load_acquire_sys(&g->list[sched_mgws_other(c)].count) != 0;
}

/* Collective: what others left for anybody, or for this kind of device. */
LOOM_FN uint32_t sched_mgws_adopt(struct loom_ctx *c, int idle)
{
	const struct sched_mgws_list *list = sched_mgws_global(c)->list;
	uint32_t which = MGWS_LISTS, kind = sched_mgws_own_kind(c);
	if (c->lane == 0 && sched_mgws_filled(&list[LOOM_ON_ANY]))
		which = LOOM_ON_ANY;
	else if (c->lane == 0 && SCHED_CFG(c, mixed) && !SCHED_CFG(c, apart) && /* apart, they come by mail */
		 sched_mgws_filled(&list[kind]))
		which = kind;
	which = loom_word_from_lane0(c, which);
	return which == MGWS_LISTS ? 0 : sched_mgws_take(c, which, idle);
}

#endif
