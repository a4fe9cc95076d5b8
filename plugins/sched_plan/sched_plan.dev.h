/* SPDX-License-Identifier: Apache-2.0 */
/* sched_plan: a worker first runs the initial tasks that a static table gives it, then steals. Device code.
 *
 * The table gives each worker a list of initial tasks. A worker takes tasks from its own list by additions to the list's word
 * `next`: an eighth of the remaining tasks at a time, and single tasks at the end. It computes this number from the end of its
 * last tasks, so it does not load `next` before the addition; tasks that thieves have taken since then only make the number
 * larger than an eighth. When its list is used up, it takes tasks from the lists of other workers in the same way, but loads
 * `next` first.
 *
 * A set of bits with two levels tells thieves which lists may have tasks. Level 0 has a bit for each list, level 1 has a bit
 * for each word of level 0. A search of the set loads about four words, even if a GPU has thousands of workers. No task is
 * added to a list, so bits are only cleared. The worker that takes the last tasks of a list clears the bit of the list. If the
 * word becomes 0, the worker clears the bit of the word. Before these bits are cleared, thieves may find the list in the set
 * although the list is used up. They go on to the next list, and do not wait for the worker. When a search ends, the thief has
 * seen every list used up.
 *
 * All accesses are relaxed, because the table is constant and these words order no other accesses. Model:
 * tests/models/plan.pml. */
#ifndef SCHED_PLAN_DEV_H
#define SCHED_PLAN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../sched_common/pool.dev.h"
#endif

/* The worker's block; the slots of its overflow list follow. */
struct plan_block {
	struct sched_own_list own;
	uint64_t next;	     /* index in the table of the next task to take */
	uint64_t begin, end; /* constant: the indices in the table at which the list begins and ends */
	uint64_t victim;     /* number of the list from which this worker stole last; at first, the number of its own list */
	uint64_t steals;     /* constant: 0: this worker takes only from its own list */
	uint64_t measures;   /* constant: 1: workers measure the times of tasks */
	uint64_t pad[2]; /* the slots of the overflow list begin at a multiple of 64 bytes */
};

/* The scheduler's own part of the device's block, at sched_site.more_at. An array of the indices of initial tasks follows: the
 * table. A second array follows if workers measure times: for each initial task its time in ns, or 0 if this device did not
 * run it. Only these times change while workers run. */
struct plan_site {
	uint64_t tasks; /* number of initial tasks */
	uint64_t pad[7];
};

LOOM_FN struct plan_site *plan_site(const struct loom_ctx *c)
{
	struct sched_site *site = (struct sched_site *)c->on_device[LOOM_SCHED];
	return (struct plan_site *)((char *)site + site->more_at);
}

/* ---- the set of lists that may have tasks ----------------------------------------------------- */

#define PLAN_WORDS(bits) (((bits) + 63) / 64)
/* The set follows the pool: the words of level 0, then those of level 1. */
#define PLAN_SET_BYTES(lists) (8 * ((PLAN_WORDS(lists) + PLAN_WORDS(PLAN_WORDS(lists)) + 7) & ~7ull))

LOOM_FN uint64_t *plan_set(const struct loom_ctx *c)
{
	struct sched_pool *p = sched_pool(c);
	return (uint64_t *)((char *)p + SCHED_POOL_BYTES(p->room));
}

/* Called by lane 0. Returns the first list from `list` on that may have tasks, or `lists` if there is none. */
LOOM_FN uint32_t plan_find(const uint64_t *set, uint32_t lists, uint32_t list)
{
	uint32_t words = PLAN_WORDS(lists), word = list / 64;
	const uint64_t *level1 = set + words;
	uint64_t bits;
	if (list >= lists)
		return lists;
	bits = loom_load_relaxed_sys(&set[word]) >> (list % 64);
	if (bits)
		return list + loom_lowest_bit(bits);
	word++;
	LOOM_NO_UNROLL
	while (word < words) {
		bits = loom_load_relaxed_sys(&level1[word / 64]) >> (word % 64);
		if (!bits) {
			word = (word / 64 + 1) * 64;
			continue;
		}
		word += loom_lowest_bit(bits);
		bits = loom_load_relaxed_sys(&set[word]);
		if (bits)
			return word * 64 + loom_lowest_bit(bits);
		word++; /* the bit of this word in level 1 is about to be cleared */
	}
	return lists;
}

/* Called by lane 0 of the worker that has taken the last tasks of the list. A bit is cleared once, so a subtraction
 * clears it. */
LOOM_FN void plan_remove(uint64_t *set, uint32_t lists, uint32_t list)
{
	uint64_t bit = 1ull << (list % 64), *level1 = set + PLAN_WORDS(lists);
	uint32_t word = list / 64;
	if (loom_fetch_add_relaxed_sys(&set[word], 0 - bit) == bit)
		loom_fetch_add_relaxed_sys(&level1[word / 64], 0 - (1ull << (word % 64)));
}

/* ---- tasks ------------------------------------------------------------------------------------ */

/* The first worker whose list this worker may take from, and the number of these lists. Lists have numbers from 0 on
 * in the set. */
LOOM_FN uint32_t plan_first(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent) ? c->first : 0;
}

LOOM_FN uint32_t plan_lists(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent) ? c->count : c->workers;
}

/* Called by lane 0. Takes tasks from a list of which all tasks before index `taken` of the table are taken, and returns their
 * number; *at: set to the index in the table of the first of these tasks. `taken` is before the end of the list. */
LOOM_FN uint64_t plan_take(struct loom_ctx *c, struct plan_block *b, uint32_t list, uint64_t taken, uint64_t *at)
{
	uint64_t end = b->end, n = (end - taken) / 8;
	n = n ? n : 1;
	*at = loom_fetch_add_relaxed_sys(&b->next, n);
	if (*at >= end)
		return 0;
	if (n < end - *at)
		return n;
	plan_remove(plan_set(c), plan_lists(c), list);
	return end - *at;
}

/* Called by lane 0 of a thief, as plan_take(). The load keeps thieves from adding to the words of lists that are used up. */
LOOM_FN uint64_t plan_take_from(struct loom_ctx *c, uint32_t list, uint64_t *at)
{
	struct plan_block *b = (struct plan_block *)loom_public(c, LOOM_SCHED, plan_first(c) + list);
	uint64_t next = loom_load_relaxed_sys(&b->next);
	return next < b->end ? plan_take(c, b, list, next, at) : 0;
}

/* Called by lane 0. Takes tasks from the lists of other workers. Tries the list of its last theft first. Then searches
 * from the list that follows the worker's own list, so that thieves start at different lists. */
LOOM_FN uint64_t plan_steal(struct loom_ctx *c, uint64_t *at)
{
	struct loom_counters *counters = &sched_local(c)->counters;
	struct plan_block *b = (struct plan_block *)c->own[LOOM_SCHED];
	const uint64_t *set = plan_set(c);
	uint32_t lists = plan_lists(c), own = c->worker - plan_first(c), list = (uint32_t)b->victim;
	uint64_t n = list != own ? plan_take_from(c, list, at) : 0;
	int wrapped = 0;
	counters->steal_attempts += list != own;
	if (!n)
		list = own + 1;
	LOOM_NO_UNROLL
	while (!n) {
		list = plan_find(set, lists, list);
		if (list < lists) {
			counters->steal_attempts++;
			n = plan_take_from(c, list, at);
			list += !n;
		} else if (wrapped) {
			return 0;
		} else {
			wrapped = 1;
			list = 0;
		}
	}
	counters->steals++;
	counters->stolen_in += n;
	b->victim = list;
	return n;
}

/* Called by lane 0. Returns the next initial task. When l->at is at or after the end of the worker's own list, or before its
 * beginning, this list is used up. */
LOOM_FN uint64_t plan_claim(struct loom_ctx *c)
{
	struct sched_local *l = sched_local(c);
	if (l->at == l->end) {
		struct plan_block *b = (struct plan_block *)c->own[LOOM_SCHED];
		uint64_t at = 0, n = 0;
		if (l->at >= b->begin && l->at < b->end)
			n = plan_take(c, b, c->worker - plan_first(c), l->at, &at);
		l->counters.claimed += n;
		if (!n && b->steals)
			n = plan_steal(c, &at);
		if (!n) {
			/* The tasks of its own list that this worker did not take were taken by other workers. */
			l->counters.stolen_out = b->end - b->begin - l->counters.claimed;
			return SCHED_NO_TASK;
		}
		l->at = at;
		l->end = at + n;
	}
	return ((const uint32_t *)(plan_site(c) + 1))[l->at++];
}

LOOM_FN int sched_plan_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_pool_spawn(c, task);
}

LOOM_FN int sched_plan_wanted(struct loom_ctx *c)
{
	return sched_pool_wanted(c);
}

LOOM_FN uint32_t *plan_times(const struct loom_ctx *c)
{
	if (!((const struct plan_block *)c->own[LOOM_SCHED])->measures)
		return (uint32_t *)NULL;
	struct plan_site *site = plan_site(c);
	return (uint32_t *)(site + 1) + site->tasks;
}

LOOM_FN void sched_plan_run(struct loom_ctx *c)
{
	sched_own_start(c);
	if (c->lane == 0) {
		struct sched_local *l = sched_local(c);
		l->at = l->end = ((const struct plan_block *)c->own[LOOM_SCHED])->begin;
	}
	sched_pool_run(c, plan_claim, plan_times);
}

#endif
