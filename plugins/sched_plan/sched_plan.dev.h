/* SPDX-License-Identifier: Apache-2.0 */
/* A static table first, then stealing of what is left. Device code.
 *
 * The table gives each worker a list of initial tasks. A worker takes from its own list, an eighth of what is left
 * at a time and at the end single tasks, by additions to the list's word `next`. When its list is used up it takes
 * from the lists of others in the same way. There are two other kinds of table: the static split, in which each
 * worker takes from its own list alone, and one list from which all workers take single tasks. Nothing is added to a
 * list, so an empty list stays empty. One word has the number of the first list that may have tasks. Thieves take
 * from this list, and end their search when the word is behind the last list. All accesses are relaxed: the table is
 * constant, and these words order nothing else. Model: tests/models/plan.pml. */
#ifndef SCHED_PLAN_DEV_H
#define SCHED_PLAN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sched/pool.dev.h"
#endif

/* The worker's block; the slots of its overflow list follow. */
struct plan_block {
	struct sched_own_list own;
	uint64_t next;	     /* the next task of the list, as an index of the table */
	uint64_t begin, end; /* constant: bounds of the list */
	uint64_t single;     /* constant: tasks are taken one at a time from the start */
	uint64_t took_ns;    /* time from the start of the worker to its end, for collect() */
	uint64_t pad[3];
};

/* The part of the device's block after the pool. The table follows: the index of each task. With `measures`, an
 * array for the times of this device's tasks in ns follows the table. Only the times change. */
struct plan_site {
	uint64_t tasks;
	uint64_t measures;
	uint64_t pad[6];
};

LOOM_FN struct plan_site *plan_site(const struct loom_ctx *c)
{
	struct sched_site *site = (struct sched_site *)c->on_device[LOOM_SCHED];
	return (struct plan_site *)((char *)site + site->more_at);
}

/* Called by lane 0. Takes tasks from a list, and returns their number; *at is the place of the first one. */
LOOM_FN uint64_t plan_take(struct plan_block *b, uint64_t *at)
{
	uint64_t next = loom_load_relaxed_sys(&b->next), end = b->end, n;
	if (next >= end)
		return 0;
	n = b->single ? 1 : (end - next) / 8;
	n = n ? n : 1;
	next = loom_fetch_add_relaxed_sys(&b->next, n);
	*at = next;
	return next >= end ? 0 : n < end - next ? n : end - next;
}

/* Called by lane 0. Takes tasks from the lists of other workers. If stealing is off, the host has set the word
 * behind the last list. */
LOOM_FN uint64_t plan_steal(struct loom_ctx *c, uint64_t *at)
{
	struct loom_counters *counters = &sched_local(c)->counters;
	uint64_t *word = &sched_pool(c)->next, victim = loom_load_relaxed_sys(word), n;
	uint32_t first = SCHED_CFG(c, noncoherent) ? c->first : 0, lists = SCHED_CFG(c, noncoherent) ? c->count : c->workers;
	LOOM_NO_UNROLL
	while (victim < lists) {
		counters->steal_attempts++;
		n = plan_take((struct plan_block *)loom_public(c, LOOM_SCHED, first + (uint32_t)victim), at);
		if (n) {
			counters->steals++;
			counters->stolen_in += n;
			return n;
		}
		/* Another thief may have moved it already: then `victim` is the new value. */
		if (loom_cas_acq_rel_sys(word, &victim, victim + 1))
			victim++;
	}
	return 0;
}

/* Called by lane 0. Returns the next initial task. */
LOOM_FN uint64_t plan_claim(struct loom_ctx *c)
{
	struct sched_local *l = sched_local(c);
	if (l->at == l->end) {
		uint64_t at = 0, n = plan_take((struct plan_block *)c->own[LOOM_SCHED], &at);
		l->counters.claimed += n;
		if (!n)
			n = plan_steal(c, &at);
		if (!n) {
			/* Other workers took the tasks of its list that this worker did not take. */
			const struct plan_block *b = (const struct plan_block *)c->own[LOOM_SCHED];
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

LOOM_FN void sched_plan_run(struct loom_ctx *c)
{
	const struct plan_site *site = plan_site(c);
	uint32_t *times = site->measures ? (uint32_t *)(site + 1) + site->tasks : (uint32_t *)NULL;
	uint64_t begin = loom_clock_ns(c);
	sched_own_start(c);
	sched_pool_run(c, plan_claim, times);
	if (c->lane == 0)
		((struct plan_block *)c->own[LOOM_SCHED])->took_ns = loom_clock_ns(c) - begin;
}

#endif
