/* SPDX-License-Identifier: Apache-2.0 */
/* Work stealing after the MGWS thesis (4.2, 5.1): the worker's loop. Device code, collective.
 *
 * A worker runs, in this order: tasks of high priority, its local queue, the block it claimed of the
 * initial set, its public queue, what others set aside, a new block of the initial set, tasks of low
 * priority, and what it steals. Whenever its public queue is empty and it holds two tasks or more, it
 * makes half of them public. */
#ifndef SCHED_MGWS_DEV_H
#define SCHED_MGWS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "lanes.dev.h"
#include "mail.dev.h"
#endif

/* The claimed block; each lane keeps the bounds. One lane runs its tasks from where they lie; several
 * copy some at a time into the local queue together, which waits once for all of them. */
struct sched_mgws_block {
	uint64_t next, end;
	uint64_t word; /* GPU: of the public queue */
	/* Lane 0: up to where the set is claimed, as of its last look. While initial tasks are unclaimed nobody
	 * lacks work, and nothing is made public. MGWS_ALL: nothing is left. */
	uint64_t claimed;
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

/* Lane 0: initial tasks that nobody has claimed. */
LOOM_FN int sched_mgws_initial_left(const struct loom_ctx *c)
{
	const struct sched_mgws_global *g = sched_mgws_global(c);
	return SCHED_CFG(c, apart) ? sched_mgws_undrawn(loom_load_relaxed_dev(&g->range)) != 0 :
				     loom_load_relaxed_sys(&g->next) < c->ctl->initial_tasks;
}

/* ---- spawn ------------------------------------------------------------------------------ */

LOOM_FN uint32_t sched_mgws_release(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	uint32_t n = sched_mgws_give(c, sched_ring(c), mine->head, sched_mask(c),
				     mine->count / 2);
	mine->head += n; /* the oldest: most work below them */
	mine->count -= n;
	return n;
}

/* Both queues are full: the older half of the local one goes to the worker's own backlog, where it is newer
 * than all that lies there. 1 when that made room. */
SCHED_APART int sched_mgws_set_aside(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	struct sched_mgws_level *b = &sched_mgws_keep(c)->backlog;
	uint32_t slots = SCHED_CFG(c, backlog), n = mine->count / 2;
	n = n < slots - b->count ? n : slots - b->count;
	if (!n)
		return 0;
	loom_barrier_lanes(c); /* tasks are written */
	sched_move(c, sched_mgws_backlog(c), b->head + b->count, slots - 1, sched_ring(c), mine->head,
		   sched_mask(c), n);
	loom_barrier_lanes(c); /* and their slots may be written again */
	mine->head += n;
	mine->count -= n;
	b->count += n;
	return 1;
}

/* The newest of the backlog into the empty local queue: half of it, for they may spawn. */
SCHED_APART int sched_mgws_bring_back(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	struct sched_mgws_level *b = &sched_mgws_keep(c)->backlog;
	uint32_t mask = sched_mask(c), n = (mask + 1) / 2;
	n = n < b->count ? n : b->count;
	b->count -= n;
	sched_move(c, sched_ring(c), mine->head, mask, sched_mgws_backlog(c), b->head + b->count,
		   SCHED_CFG(c, backlog) - 1, n);
	mine->count = n;
	loom_barrier_lanes(c);
	return 1;
}

/* A task that another kind of device must run. 0, or LOOM_EFULL after the run was failed. */
SCHED_SLOW int sched_mgws_send(struct loom_ctx *c, const struct loom_task *task)
{
	if (SCHED_CFG(c, mixed) && sched_mgws_put(c, task->affinity, task))
		return 0;
	if (c->lane == 0 && !loom_stopped(c))
		loom_worker_fail(c, SCHED_CFG(c, mixed) ? LOOM_EFULL : LOOM_ENOTSUP, SCHED_CFG(c, spill));
	return LOOM_EFULL;
}

/* The local queue is full: the ladder. */
SCHED_APART int sched_mgws_overflow(struct loom_ctx *c, const struct loom_task *task)
{
	struct loom_task next;
	for (;;) {
		if (loom_from_lane0(c, (uint64_t)loom_stopped(c)))
			return LOOM_EFULL;
		if (task->affinity == sched_mgws_other(c))
			return sched_mgws_send(c, task);
		if (sched_push(c, task) || (sched_mgws_release(c) && sched_push(c, task)))
			return 0;
		if (sched_mgws_set_aside(c) && sched_push(c, task))
			return 0;
		/* The public queue is full too, or thieves are still copying where there would be
		 * room. */
		enum sched_ran ran = sched_in_place(c, task, &next);
		if (ran == SCHED_RAN)
			return 0;
		if (ran == SCHED_TOO_DEEP)
			break;
		task = &next;
	}
	if (sched_mgws_put(c, LOOM_ON_ANY, task))
		return 0;
	if (c->lane == 0 && !loom_stopped(c))
		loom_worker_fail(c, LOOM_EFULL, SCHED_CFG(c, spill));
	return LOOM_EFULL;
}

/* A task with a priority or an affinity. Where its ring is full it is like any other. */
SCHED_SLOW int sched_mgws_place(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == sched_mgws_other(c))
		return sched_mgws_send(c, task);
	if (task->priority != LOOM_NORMAL && SCHED_CFG(c, priorities)) {
		uint32_t which = task->priority == LOOM_HIGH ? MGWS_HIGH : MGWS_LOW;
		struct sched_mgws_level *l = &sched_mgws_levels(c)->level[which];
		uint32_t mask = sched_mask(c);
		if (l->count <= mask) {
			sched_copy(c, &sched_mgws_level_ring(c, which)[(l->head + l->count) & mask],
				   task);
			l->count++;
			return 0;
		}
	}
	return sched_push(c, task) ? 0 : sched_mgws_overflow(c, task);
}

/* Somebody sleeps, and this worker's task may take long yet: with nothing public, what it has made so far
 * becomes so at once and not when it ends. */
SCHED_SLOW void sched_mgws_feed(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	if (!sched_mgws_empty(sched_mgws_hint(c), sched_mgws_used(c)))
		return;
	uint32_t n = sched_mgws_give(c, sched_ring(c), mine->head, sched_local(c)->mask,
				     mine->count - mine->count / 2);
	mine->head += n;
	mine->count -= n;
}

/* A task like most. */
LOOM_FN int sched_mgws_spawn_any(struct loom_ctx *c, const struct loom_task *task)
{
#ifdef LOOM_DEVICE_COMPILE /* the CPU has a table for this */
	if (LOOM_IS_ALONE(c))
		return sched_alone_spawn(c, task);
#endif
	sched_lane(c)->spawned++;
	if (SCHED_ODD(task))
		return LOOM_FAR(sched_mgws_place, c, task);
	return sched_push(c, task) ? 0 : LOOM_FAR(sched_mgws_overflow, c, task);
}

#ifdef GPULOOM_DEV_CPU_H
SCHED_APART int sched_mgws_spawn_rare(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_mgws_spawn_any(c, task);
}

LOOM_FN int sched_mgws_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_local *l = sched_local(c);
	if (c->lanes != 1 || SCHED_ODD(task) || !sched_push_alone(l, task))
		return sched_mgws_spawn_rare(c, task);
	((struct sched_lane *)(l + 1))->spawned++;
	/* Lanes would have to agree about it, at a price. */
	if (sched_sleepers(&sched_mgws_global(c)->common.bell))
		sched_mgws_feed(c);
	return 0;
}
#else
LOOM_FN int sched_mgws_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_mgws_spawn_any(c, task);
}
#endif

/* A worker in a long task that can be divided: wants one task or more to be public at any time, unless
 * initial ones are unclaimed. Those that the task has spawned come first. */
LOOM_FN int sched_mgws_wanted(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	int64_t yes = 0;
	if (SCHED_CFG(c, apart) && sched_mgws_wanted_afar(c))
		return 1;
	if (c->lane == 0) {
		if (loom_stopped(c))
			yes = LOOM_EINTR;
		else if (sched_mgws_empty(sched_mgws_hint(c), sched_mgws_used(c)))
			yes = !sched_mgws_initial_left(c);
	}
	yes = (int64_t)loom_from_lane0(c, (uint64_t)yes);
	if (yes > 0 && mine->count) {
		uint32_t n = sched_mgws_give(c, sched_ring(c), mine->head, sched_mask(c), mine->count);
		mine->head += n;
		mine->count -= n;
		yes = 0; /* if there was no room, thieves have just been here */
	}
	return (int)yes;
}

/* ---- priorities -------------------------------------------------------------------------- */

/* The newest task of a level, copied for this lane, after a barrier since it was put there. */
LOOM_FN void sched_mgws_pop_level(struct loom_ctx *c, uint32_t which, struct loom_task *task)
{
	struct sched_mgws_level *l = &sched_mgws_levels(c)->level[which];
	l->count--;
	sched_copy_task(task, &sched_mgws_level_ring(c, which)[(l->head + l->count) &
							       sched_mask(c)]);
	loom_barrier_lanes(c);
}

SCHED_SLOW void sched_mgws_share_level(struct loom_ctx *c, uint32_t which)
{
	struct sched_mgws_level *l = &sched_mgws_levels(c)->level[which];
	if (!MGWS_HELD(c, l))
		return;
	uint32_t n = sched_mgws_give(c, sched_mgws_level_ring(c, which), l->head,
				     sched_mask(c), l->count / 2);
	l->head += n;
	l->count -= n;
}

/* Nothing else to do: one task of low priority into the empty local queue, where whatever it spawns goes
 * on top of it; half of the rest is for others. */
LOOM_FN int sched_mgws_low(struct loom_ctx *c)
{
	struct sched_mgws_level *l = &sched_mgws_levels(c)->level[MGWS_LOW];
	struct loom_task t;
	if (!MGWS_HELD(c, l))
		return 0;
	loom_barrier_lanes(c);
	sched_mgws_pop_level(c, MGWS_LOW, &t);
	sched_push(c, &t);
	if (l->count > 1)
		sched_mgws_share_level(c, MGWS_LOW);
	return 1;
}

/* ---- work ------------------------------------------------------------------------------- */

enum { MGWS_STOP = 1, MGWS_SHARE = 2, MGWS_ASKED = 4, MGWS_ASKER_SHIFT = 8 };
#define MGWS_SOMEBODY 0xffffffu

/* Lane 0: the public queue has nothing. A GPU judges by the look before, and looks again without waiting
 * for the answer: a load takes as long as a short task. */
LOOM_FN int sched_mgws_bare(struct sched_mgws_block *b, const struct sched_mgws_own *own,
			    struct sched_mgws_queue *q)
{
#ifdef GPULOOM_DEV_CPU_H
	(void)b;
	return sched_mgws_empty(own, q);
#else
	uint64_t word = b->word;
	b->word = loom_load_relaxed_sys(&q->word);
	return !own->open || (word != own->word && !sched_mgws_left(word));
#endif
}

LOOM_FN uint64_t sched_mgws_claimed(const struct loom_ctx *c, uint64_t next)
{
	return next < c->ctl->initial_tasks ? next : MGWS_ALL;
}

/* Lane 0: some of the initial set is still to be claimed. Thousands of workers would keep the one word's line
 * busy: a GPU's look at it now and then. */
#define MGWS_LOOKS 4u
LOOM_FN int sched_mgws_unclaimed(struct loom_ctx *c, struct sched_mgws_block *b, uint64_t ran)
{
	if (b->claimed == MGWS_ALL)
		return 0;
#ifndef GPULOOM_DEV_CPU_H
	if (ran % MGWS_LOOKS)
		return 1;
#endif
	(void)ran;
	b->claimed = SCHED_CFG(c, apart) ? (sched_mgws_initial_left(c) ? 0 : MGWS_ALL) :
					   sched_mgws_claimed(c, loom_load_relaxed_sys(&sched_mgws_global(c)->next));
	return b->claimed != MGWS_ALL;
}

/* Lane 0, apart: a device that wants tasks, and this one has some; or MGWS_NOBODY. */
LOOM_FN uint32_t sched_mgws_to_answer(struct loom_ctx *c, int can_share)
{
	uint32_t device = sched_mgws_asker(c);
	if (device == MGWS_NOBODY ||
	    (!(can_share && SCHED_CFG(c, afar)) && !sched_mgws_withheld(c) &&
	     sched_mgws_undrawn(loom_load_relaxed_dev(&sched_mgws_global(c)->range)) < 2))
		return MGWS_NOBODY;
	return device;
}

/* Lane 0, apart: whether to answer mail, and whom. A GPU finds that out where it answers, now and then: its loop has
 * no registers for it. */
LOOM_FN uint32_t sched_mgws_asked(struct loom_ctx *c, int can_share, uint64_t ran)
{
#ifdef GPULOOM_DEV_CPU_H
	uint32_t device = sched_mgws_to_answer(c, can_share);
	(void)ran;
	return device == MGWS_NOBODY ? 0u : MGWS_ASKED | device << MGWS_ASKER_SHIFT;
#else
	(void)c, (void)can_share;
	return ran % MGWS_MAIL_ROUNDS ? 0u : MGWS_ASKED | MGWS_SOMEBODY << MGWS_ASKER_SHIFT;
#endif
}

/* Lane 0: what the loop must know before the next task. Loads that hit the cache. */
LOOM_FN uint32_t sched_mgws_news(struct loom_ctx *c, struct sched_mgws_block *b,
				 const struct sched_mgws_own *own, struct sched_mgws_queue *q,
				 int can_share, uint64_t ran)
{
	if (loom_stopped(c))
		return MGWS_STOP;
	uint32_t news = can_share && !sched_mgws_unclaimed(c, b, ran) && sched_mgws_bare(b, own, q) ? MGWS_SHARE : 0;
	return SCHED_CFG(c, apart) ? news | sched_mgws_asked(c, can_share, ran) : news;
}

/* Apart: the answer to a device that asked, or to MGWS_SOMEBODY, from the backlog, or the local queue, or the
 * block. */
SCHED_SLOW int sched_mgws_answer(struct loom_ctx *c, uint32_t asker)
{
	struct sched_lane *mine = sched_lane(c);
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	struct sched_mgws_level *older = &sched_mgws_keep(c)->backlog;
	if (asker == MGWS_SOMEBODY) {
		int can_share = older->count || mine->count >= 2 || b->end - b->next >= 2;
		asker = loom_word_from_lane0(c, c->lane == 0 ? sched_mgws_to_answer(c, can_share) : 0u);
	}
	if (asker == MGWS_NOBODY)
		return 0;
	struct sched_mgws_hand h = {sched_ring(c), mine->head, sched_mask(c), mine->count, mine->count / 2, b->next,
				    b->end};
	if (older->count) {
		h.ring = sched_mgws_backlog(c);
		h.at = older->head;
		h.mask = SCHED_CFG(c, backlog) - 1;
		h.tasks = older->count;
		h.most = (older->count + 1) / 2;
	}
	sched_mgws_grant(c, asker, &h);
	if (older->count) {
		older->head = (uint32_t)h.at;
		older->count = h.tasks;
	} else {
		mine->head = (uint32_t)h.at;
		mine->count = h.tasks;
	}
	b->end = h.end;
	return 0;
}

/* The public queue is empty: offers half of what is held there. */
SCHED_SLOW uint64_t sched_mgws_share(struct loom_ctx *c)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, n = 0;
	struct sched_mgws_level *older = &sched_mgws_keep(c)->backlog;
	if (older->count) {
		n = sched_mgws_give(c, sched_mgws_backlog(c), older->head, SCHED_CFG(c, backlog) - 1,
				    (older->count + 1) / 2);
		older->head += (uint32_t)n;
		older->count -= (uint32_t)n;
	} else if (sched_lane(c)->count >= 2) {
		n = sched_mgws_release(c);
	} else if (b->end - b->next >= 2) {
		uint64_t half = (b->end - b->next) / 2;
		uint64_t most = ((uint64_t)sched_mgws_books(c)->mask + 1) / 2;
		/* Half the ring, so that spawned tasks still find room; all of a ring of one. */
		most = most ? most : 1;
		n = sched_mgws_give(c, c->initial, b->next, ~0ull, half < most ? half : most);
		b->next += n;
	} else {
		sched_mgws_share_level(c, MGWS_HIGH);
	}
	if (c->lane == 0) {
		b->word = sched_mgws_hint(c)->word;
		loom_trace_add(c, LOOM_TRACE_RELEASE, begin, c->worker, n);
	}
	return n;
}

/* Several lanes: tasks of the block into the empty local queue, half of it, for they may spawn. */
LOOM_FN void sched_mgws_stage(struct loom_ctx *c, struct sched_mgws_block *b)
{
	struct sched_lane *mine = sched_lane(c);
	uint32_t mask = sched_mask(c), n = (mask + 1) / 2;
	if (b->end - b->next < n)
		n = (uint32_t)(b->end - b->next);
	sched_move(c, sched_ring(c), mine->head, mask, c->initial, b->next, ~0ull, n);
	mine->count = n;
	b->next += n;
	loom_barrier_lanes(c);
}

#ifdef GPULOOM_DEV_CPU_H
/* *guess = value, but where the guess is right, or two too low, what comes next need not wait for the value
 * to come back from the store buffer: the processor predicts the branch. */
LOOM_FN void sched_guess(uint32_t *guess, uint32_t value)
{
	uint32_t g = *guess;
	if (value == g + 2) {
		g += 2;
		SCHED_ONE_WORD(g);
	} else if (value != g) {
		g = value;
		SCHED_ONE_WORD(g);
	}
	*guess = g;
}

/* Tasks that no other worker lacks: there is less than two, some are public, or initial ones unclaimed. */
LOOM_FN int sched_mgws_keeps(struct loom_ctx *c, struct sched_mgws_block *b, const struct sched_mgws_own *own,
			     struct sched_mgws_queue *q, uint64_t held)
{
	return held < 2 || !sched_mgws_empty(own, q) || sched_mgws_unclaimed(c, b, 0);
}

/* The same for one lane of a CPU, as long as nothing but local and claimed tasks needs a look: here a worker
 * spends its time when tasks are small. Runs up to `most` tasks; how many. *follows: *t is to be run next. */
static __attribute__((noinline)) uint64_t sched_mgws_sprint(struct loom_ctx *c, struct sched_mgws_block *b,
							     struct loom_task *t, uint64_t most, int *follows)
{
	struct sched_local *l = sched_local(c);
	struct sched_lane *mine = sched_lane(c);
	const struct sched_mgws_levels *levels = sched_mgws_levels(c);
	const struct sched_mgws_level *older = &sched_mgws_keep(c)->backlog;
	const struct loom_task *ring = sched_ring(c), *p;
	const struct sched_mgws_own *own = sched_mgws_hint(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	uint32_t count = mine->count;
	uint64_t n = 0;
	while (n < most && !loom_stopped(c) && !levels->level[MGWS_HIGH].count) {
		if (count) {
			p = &ring[(mine->head + count - 1) & l->mask];
			if (SCHED_ODD(p) || !sched_mgws_keeps(c, b, own, q, count))
				break;
			sched_copy_task(t, p);
			p = t;
			mine->count = --count;
		} else {
			p = &c->initial[b->next];
			if (b->next == b->end || older->count || SCHED_ODD(p) ||
			    !sched_mgws_keeps(c, b, own, q, b->end - b->next))
				break;
			b->next++;
		}
		loom_task_run(c, p);
		n++;
		sched_guess(&count, mine->count);
		if (p->join && sched_joined(c, p->join, t)) {
			*follows = 1;
			break;
		}
	}
	return n;
}
#endif

/* Runs the local queue and the block until both are empty. 0 when the run was stopped. */
LOOM_FN int sched_mgws_work(struct loom_ctx *c, uint64_t *ran)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	struct sched_lane *mine = sched_lane(c);
	const struct sched_mgws_level *high = &sched_mgws_levels(c)->level[MGWS_HIGH];
	const struct sched_mgws_level *older = &sched_mgws_keep(c)->backlog;
	const struct loom_task *ring = sched_ring(c);
	const struct sched_mgws_own *own = sched_mgws_hint(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	uint32_t mask = sched_mask(c), other = sched_mgws_other(c);
	uint64_t n = 0, sample = loom_trace_next(c, *ran);
	int on = 1, follows = 0;
	struct loom_task t;
	for (;;) {
		const struct loom_task *p = &t;
#ifdef GPULOOM_DEV_CPU_H
		if (c->lanes == 1 && !follows)
			n += sched_mgws_sprint(c, b, &t,
					       SCHED_CFG(c, apart) && sample - n > MGWS_MAIL_TASKS ?
						       MGWS_MAIL_TASKS :
						       sample - n,
					       &follows);
#endif
		uint32_t urgent = MGWS_HELD(c, high);
		int can_share = mine->count + urgent >= 2 || (uint32_t)(b->end - b->next) >= 2;
		/* Also the barrier between pushes and pop. */
		uint32_t news = loom_word_from_lane0(
			c, c->lane == 0 ? sched_mgws_news(c, b, own, q, can_share, n) : 0);
		if (news & MGWS_STOP) {
			on = 0;
			break;
		}
		if (news & MGWS_SHARE)
			LOOM_FAR_TOGETHER(sched_mgws_share, c);
		if (SCHED_CFG(c, apart) && news & MGWS_ASKED)
			LOOM_FAR_TOGETHER(sched_mgws_answer, c, news >> MGWS_ASKER_SHIFT);
		if (!follows) {
			if (urgent)
				sched_mgws_pop_level(c, MGWS_HIGH, &t);
			else if (mine->count || (older->count && LOOM_FAR_TOGETHER(sched_mgws_bring_back, c)))
				sched_pop(c, mine, ring, mask, &t);
			else if (b->next == b->end)
				break;
			else if (c->lanes == 1)
				p = &c->initial[b->next++];
			else {
				sched_mgws_stage(c, b);
				sched_pop(c, mine, ring, mask, &t);
			}
		}
		follows = 0;
		if (p->affinity == other) {
			LOOM_FAR_TOGETHER(sched_mgws_send, c, p);
			continue;
		}
		if (n == sample && c->trace)
			sample = loom_trace_task(c, n, p);
		else
			loom_task_run(c, p);
		n++;
		if (p->join)
			follows = sched_follows(c, p->join, &t);
	}
	*ran += n;
	return on;
}

/* grain = lane: the same, a task for each lane at a time. Priorities are not heeded. */
LOOM_FN int sched_mgws_work_apart(struct loom_ctx *c, uint64_t *ran)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	struct sched_local *l = sched_local(c);
	struct sched_lane *mine = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	const struct sched_mgws_own *own = sched_mgws_hint(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	uint32_t mask = sched_mask(c), low = 0, backlog = 0, round = 0;
	const uint32_t slots = SCHED_CFG(c, backlog);
	for (;;) {
		uint64_t held = mine->count, n;
		int can_share = backlog || held > c->lanes || (!held && b->end - b->next > c->lanes);
		struct loom_task t;
		/* Also the barrier between pushes and pops. */
		uint32_t news = loom_word_from_lane0(
			c, c->lane == 0 ? sched_mgws_news(c, b, own, q, can_share, round++) : 0);
		if (news & MGWS_STOP)
			return 0;
		if (news & MGWS_SHARE && backlog) {
			n = sched_mgws_give(c, sched_mgws_backlog(c), low, slots - 1, (backlog + 1) / 2);
			low += (uint32_t)n;
			backlog -= (uint32_t)n;
			if (c->lane == 0)
				b->word = own->word;
		} else if (news & MGWS_SHARE) {
			LOOM_FAR_TOGETHER(sched_mgws_share, c);
			held = mine->count;
		}
		if (SCHED_CFG(c, apart) && news & MGWS_ASKED) {
			struct sched_mgws_level *older = &sched_mgws_keep(c)->backlog;
			older->head = low;
			older->count = backlog;
			LOOM_FAR_TOGETHER(sched_mgws_answer, c, news >> MGWS_ASKER_SHIFT);
			low = older->head;
			backlog = older->count;
			older->count = 0;
			held = mine->count;
		}
		if (!held && backlog) {
			held = backlog < (mask + 1) / 2 ? backlog : (mask + 1) / 2;
			backlog -= (uint32_t)held;
			sched_move(c, sched_ring(c), mine->head, mask, sched_mgws_backlog(c),
				   low + backlog, slots - 1, (uint32_t)held);
			loom_barrier_lanes(c);
		}
		if (held) {
			n = held < c->lanes ? held : c->lanes;
			if (c->lane < n)
				sched_copy_task(&t, &ring[(mine->head + held - 1 - c->lane) & mask]);
			held -= n;
		} else {
			n = b->end - b->next < c->lanes ? b->end - b->next : c->lanes;
			if (c->lane < n)
				sched_copy_task(&t, &c->initial[b->next + c->lane]);
			b->next += n;
		}
		if (!n)
			return 1;
		/* Older tasks make room for what these will spawn: a task that finds none goes to the backlog
		 * in front of them, and the tree would be walked by breadth. */
		if (held > (mask + 1) / 4 && slots - backlog >= held) {
			uint32_t old = (uint32_t)held - (mask + 1) / 4;
			sched_move(c, sched_mgws_backlog(c), low + backlog, slots - 1, ring, mine->head, mask,
				   old);
			mine->head += old;
			held -= old;
			backlog += old;
		}
		if (c->lane == 0) {
			l->head = mine->head;
			l->drawn = (uint32_t)held;
			l->low = low;
			l->backlog = backlog;
		}
		loom_barrier_lanes(c); /* places are there to be drawn, and slots to be written */
		if (c->lane < n)
			sched_alone_run(c, &t);
		loom_barrier_lanes(c);
		mine->count = l->drawn <= mask ? l->drawn : mask + 1;
		backlog = l->backlog < slots ? l->backlog : slots;
		*ran += n;
	}
}

/* Takes a block of the initial set: the claim size, or a share of what is left, so that blocks are
 * long at first (few claims) and short at the end (balance). 0 when the set is used up. */
LOOM_FN int sched_mgws_claim(struct loom_ctx *c)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	struct sched_mgws_global *g = sched_mgws_global(c);
	uint64_t all = c->ctl->initial_tasks, from = all, n = 0;
	if (SCHED_CFG(c, apart)) {
		if (c->lane == 0)
			n = sched_mgws_claim_apart(c, &from);
	} else if (c->lane == 0) {
#ifdef GPULOOM_DEV_CPU_H
		uint64_t next = loom_load_relaxed_sys(&g->next);
#else
		uint64_t next = b->claimed; /* an older look will do, and costs no second way to the word */
#endif
		if (next < all) {
			n = SCHED_CFG(c, claim) ? SCHED_CFG(c, claim)
						: (all - next) / (8 * (uint64_t)c->workers);
			n = n ? n : 1;
			if (SCHED_GRAIN(c) == SCHED_LANE) /* whole rounds */
				n = (n + c->lanes - 1) / c->lanes * c->lanes;
			/* Relaxed: the set is constant, the counter orders nothing else. */
			from = loom_fetch_add_relaxed_sys(&g->next, n);
			b->claimed = sched_mgws_claimed(c, from + n);
			from = from < all ? from : all;
			n = all - from < n ? all - from : n;
			sched_local(c)->tally.claimed += n;
		}
	}
	b->next = loom_from_lane0(c, from);
	b->end = b->next + loom_from_lane0(c, n);
	return b->next < b->end;
}

/* Apart: a worker without work draws from the device's range, into its block, which is empty. Where it has
 * reported idle it calls busy() first; in vain now and then, and then it reports idle again. */
LOOM_FN uint32_t sched_mgws_redraw(struct loom_ctx *c, int *idle)
{
	uint64_t some = c->lane == 0 && sched_mgws_initial_left(c);
	if (!loom_from_lane0(c, some))
		return 0;
	if (*idle)
		LOOM_CALL(term, busy, c);
	*idle = 0;
	return (uint32_t)sched_mgws_claim(c);
}

/* ---- idle -------------------------------------------------------------------------------- */

/* For detectors that vote in rounds: tasks that left this worker's hands, or may have. */
LOOM_FN uint64_t sched_mgws_robbed(struct loom_ctx *c)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	struct sched_mgws_global *g = sched_mgws_global(c);
	uint64_t n = 0;
	if (c->lane == 0) {
		if (sched_mgws_books(c) == &mine->own)
			n = mine->own.started[0] + mine->own.started[1];
		else /* as of when this worker found the queue empty, or later */
			n = loom_load_relaxed_sys(&sched_mgws_used(c)->moved);
		for (uint32_t i = 0; i < MGWS_LISTS; i++)
			n += loom_load_acquire_sys(&g->list[i].taken);
		if (SCHED_CFG(c, apart))
			n += mine->posted + loom_load_relaxed_dev(&g->draws);
	}
	return loom_from_lane0(c, n);
}

/* May this worker report idle? Its queue is empty, no thief is copying from it, nothing waits for another kind
 * of device, and what it gave to other devices has been taken. */
LOOM_FN int sched_mgws_workless(struct loom_ctx *c)
{
	uint64_t yes = 0;
	if (c->lane == 0 && !sched_mgws_withheld(c) && !(SCHED_CFG(c, apart) && sched_mgws_owes(c)) &&
	    sched_mgws_hold(c, sched_mgws_used(c))) {
		yes = (uint64_t)sched_mgws_quiet(sched_mgws_books(c), sched_mgws_used(c));
		sched_mgws_settle(c, sched_mgws_books(c), sched_mgws_used(c));
	}
	return (int)loom_from_lane0(c, yes);
}

/* Apart: tasks for another kind of device are for those who ask, while this worker has nothing else to do. */
LOOM_FN void sched_mgws_forward(struct loom_ctx *c)
{
	uint64_t asker = MGWS_NOBODY;
	if (c->lane == 0 && sched_mgws_withheld(c))
		asker = sched_mgws_asker(c);
	asker = loom_from_lane0(c, asker);
	if (asker != MGWS_NOBODY)
		LOOM_FAR_TOGETHER(sched_mgws_answer, c, (uint32_t)asker);
}

/* Apart: this look for work begins at the device's desk. */
LOOM_FN int sched_mgws_to_desk(struct sched_mgws_courier *k)
{
#ifdef GPULOOM_DEV_CPU_H
	(void)k;
	return 1;
#else
	return k->looks++ % MGWS_MAIL_LOOKS == 0;
#endif
}

/* One look for work, wherever it may come from. *idle: this worker has reported idle; 0 afterwards, if it has
 * taken that back in vain. */
LOOM_FN uint32_t sched_mgws_find(struct loom_ctx *c, struct sched_mgws_courier *k, int *idle)
{
	int desk = SCHED_CFG(c, apart) && sched_mgws_to_desk(k);
	uint32_t found = desk ? sched_mgws_redraw(c, idle) : 0;
	if (!found)
		found = sched_mgws_adopt(c, *idle);
	if (!found && SCHED_CFG(c, owners) > 1)
		found = sched_mgws_acquire(c, *idle);
	if (!found)
		found = sched_mgws_steal(c, *idle);
	if (found || !desk)
		return found;
	found = sched_mgws_fetch(c, k, idle);
	return found || *idle ? found : sched_mgws_redraw(c, idle); /* a range may have come */
}

/* Lane 0: there is something to be had. */
LOOM_FN int sched_mgws_sees(struct loom_ctx *c)
{
	return sched_mgws_look(c) || (SCHED_CFG(c, apart) && sched_mgws_posted(c));
}

/* Out of work: looks for some. 0 when there is none any more, or the run was stopped. */
SCHED_SLOW int sched_mgws_seek(struct loom_ctx *c)
{
	struct sched_common *common = &sched_mgws_global(c)->common;
	struct loom_counters *tally = &sched_local(c)->tally;
	struct sched_rest rest = {0, 1, 0, 0, 0};
	struct sched_mgws_courier courier = {0, 0};
	struct sched_mgws_desk *desk = SCHED_CFG(c, apart) ? sched_mgws_desk(c) : (struct sched_mgws_desk *)NULL;
	uint32_t found = 0;
	int idle = 0, done = 0;
	if (c->lane == 0) {
		rest.since = tally->last_task_ns = loom_clock_ns(c);
		tally->idle_entries++;
		if (SCHED_CFG(c, apart))
			loom_fetch_add_relaxed_dev(&desk->hungry, 1u);
	}
	while (!loom_from_lane0(c, (uint64_t)loom_stopped(c))) {
		found = sched_mgws_find(c, &courier, &idle);
		if (found)
			break;
		if (SCHED_CFG(c, apart) && SCHED_CFG(c, mixed) && !idle)
			sched_mgws_forward(c);
		if (!idle) {
			idle = sched_mgws_workless(c);
			if (idle)
				LOOM_CALL(term, idle, c);
		}
		done = idle && LOOM_CALL(term, done, c, sched_mgws_robbed(c));
		if (done)
			break;
		if (c->lane == 0 && courier.fetching) /* who brings the mail does not sleep: no mail rings */
			sched_unlist(&rest, &common->bell);
		if (c->lane == 0)
			sched_rest(c, &common->cfg, &common->bell, &rest, idle && !courier.fetching,
				   rest.listed && sched_mgws_sees(c));
	}
	if (c->lane == 0) {
		uint64_t now = loom_clock_ns(c);
		sched_unlist(&rest, &common->bell);
		if (SCHED_CFG(c, apart)) {
			sched_mgws_leave_desk(c, &courier);
			loom_fetch_add_relaxed_dev(&desk->hungry, ~0u);
		}
		if (done) /* the others may sleep */
			sched_wake(c, &common->bell, ~0u);
		else if (sched_sleepers(&common->bell) && sched_mgws_sees(c))
			sched_wake(c, &common->bell, 1u); /* there is more: see rest.dev.h */
		tally->idle_ns += now - tally->last_task_ns;
		loom_trace_add(c, done ? LOOM_TRACE_END : LOOM_TRACE_IDLE, tally->last_task_ns, c->worker, 0);
	}
	return found != 0;
}

/* ---- run -------------------------------------------------------------------------------- */

LOOM_FN int sched_mgws_begin(struct loom_ctx *c)
{
	sched_start(c);
	struct sched_mgws_keep none = {{0, 0, 0, 0}, {0, 0}, {{{0, 0}, {0, 0}}}};
	sched_mgws_keep(c)->block = none.block;
	sched_mgws_keep(c)->backlog = none.backlog;
	if (MGWS_LEVELLED(c))
		sched_mgws_keep(c)->levels = none.levels;
	if (c->lane == 0) {
		struct sched_mgws_mine *mine = sched_mgws_mine(c);
		struct sched_mgws_mine fresh = {};
		struct sched_mgws_queue *q = (struct sched_mgws_queue *)c->own[LOOM_SCHED];
		*mine = fresh;
		mine->watch.device = c->device;
		sched_local(c)->shared = sched_mgws_find_global(c);
		mine->q = q;
		mine->books = &mine->own;
		mine->own.mask = SCHED_CFG(c, public_queue) - 1;
		mine->own.word = MGWS_NO_WORD;
		if (SCHED_CFG(c, owners) > 1) { /* a hint that tells nothing; the host has set up the books */
			mine->q = (struct sched_mgws_queue *)loom_public(c, LOOM_SCHED, q->leader);
			mine->books = &mine->q->books;
			mine->own.open = 1;
		}
		for (uint32_t i = 0; i < MGWS_BITS_BYTES(c->workers) / 8; i++)
			sched_mgws_bits(c)[i] = 0;
	}
	loom_barrier_lanes(c);
	return 0;
}

LOOM_FN int sched_mgws_end(struct loom_ctx *c, uint64_t ran)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	if (c->lane == 0) {
		struct loom_counters *tally = &sched_local(c)->tally;
		if (sched_mgws_books(c) == &mine->own) {
			sched_mgws_close(&mine->own, q); /* of interest when the run was stopped */
			q->books = mine->own;
		}
		/* Several owners report what was stolen from them once. One may hold the queue yet, to
		 * find that it is empty. */
		if (q == (struct sched_mgws_queue *)c->own[LOOM_SCHED]) {
			int held = sched_mgws_hold(c, q);
			while (!held && !loom_stopped(c))
				held = sched_mgws_hold(c, q);
			if (held) {
				tally->stolen_out += q->books.started[0] + q->books.started[1];
				sched_mgws_drop(c, &q->books, q);
			}
		}
	}
	sched_finish(c, ran);
	return 0;
}

/* The local queue and the block are empty. 0 when there is no work any more, or the run was stopped. */
LOOM_FN int sched_mgws_more(struct loom_ctx *c)
{
	return sched_mgws_acquire(c, 0) || sched_mgws_adopt(c, 0) || sched_mgws_claim(c) || sched_mgws_low(c) ||
	       sched_mgws_seek(c);
}

LOOM_FN void sched_mgws_run(struct loom_ctx *c)
{
	uint64_t ran = 0;
	int on;
	LOOM_FAR_TOGETHER(sched_mgws_begin, c);
	do
		on = SCHED_GRAIN(c) == SCHED_LANE && c->lanes > 1 ? sched_mgws_work_apart(c, &ran)
								  : sched_mgws_work(c, &ran);
	while (on && LOOM_FAR_TOGETHER(sched_mgws_more, c));
	LOOM_FAR_TOGETHER(sched_mgws_end, c, ran);
}

#endif
