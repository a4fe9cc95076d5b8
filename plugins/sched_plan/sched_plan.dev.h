/* SPDX-License-Identifier: Apache-2.0 */
/* sched_plan: a worker first runs the initial tasks of its list, then steals. Device code.
 *
 * The lists are made on the device at the start of each sample, because costs may be known only there. The first workers store the
 * costs, each lane that of one task, if there are enough. The lanes of worker 0 sort the tasks into classes of falling cost, by
 * counting, and all workers wait. Then the tasks are dealt. A task that costs more than an equal share of all tasks that are not more
 * expensive has a list for itself. The other tasks go to the other lists in turn, forwards and backwards, so the longest tasks begin
 * first and the sums of the lists are about equal. The place of each task of a list follows from its number, so the plan is one array
 * and four numbers (struct plan_shape). With many tasks per worker, or equal costs, lists are contiguous shares of the initial set, and
 * nothing is sorted. When sorted, tasks of cost 0 are not run.
 *
 * A worker takes tasks from its own list by additions to the list's word `next`: an eighth of the remaining tasks at a time, and
 * single tasks at the end. It computes this number from the end of its last tasks, so it does not load `next` before the
 * addition; tasks that thieves have taken since then only make the number larger than an eighth. When its list is used up, it
 * takes tasks from the lists of other workers in the same way, but loads `next` first.
 *
 * A set of bits with two levels tells thieves which lists may have tasks. Level 0 has a bit for each list, level 1 has a bit
 * for each word of level 0. A search of the set loads about four words, even if a GPU has thousands of workers. No task is
 * added to a list, so bits are only cleared. The worker that takes the last tasks of a list clears the bit of the list. If the
 * word becomes 0, the worker clears the bit of the word. Before these bits are cleared, thieves may find the list in the set
 * although the list is used up. They go on to the next list, and do not wait for the worker. When a search ends, the thief has
 * seen every list used up.
 *
 * Accesses to lists and sets are relaxed, because the plan is constant and these words order no other accesses. Model:
 * tests/models/plan.pml. */
#ifndef SCHED_PLAN_DEV_H
#define SCHED_PLAN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../sched_common/pool.dev.h"
#endif

/* Where the costs come from: all are equal; the workload's cost(), or the descriptors of tasks; an array that the host has
 * written. */
enum plan_source { PLAN_EQUAL, PLAN_DECLARED, PLAN_ARRAY };

#define PLAN_FINE      256u	   /* with so many tasks per worker or more, lists are contiguous shares */
#define PLAN_MOST      8192u	   /* and with more tasks than this, because one worker sorts them while all others wait */
#define PLAN_CLASSES   256u	   /* classes of costs: eight for each power of 2 */
#define PLAN_COST_MOST 0x7fffffffu /* higher costs count as this */

/* How the tasks are dealt. If `sorted` is 0, list w is a contiguous share of the initial set: `full` tasks, and one more if w is
 * below `rest`. Otherwise each of the first `solo` lists has one task. Each of the others has a task of each of `full` rounds;
 * a last round has only `rest` tasks. */
struct plan_shape {
	uint32_t listed; /* number of tasks in all lists */
	uint32_t solo, full, rest, sorted;
	uint32_t measures; /* 1: workers measure the times of tasks */
	uint32_t steals;   /* 0: a worker takes only from its own list */
	uint32_t pad;
};

/* The worker's block; the slots of its overflow list follow. */
struct plan_block {
	struct sched_own_list own;
	uint64_t next; /* number of tasks of this worker's list that were taken */
	uint64_t list; /* number of the list from which this worker took tasks last; at first, its own */
	uint64_t pad[6]; /* the slots of the overflow list begin at a multiple of 64 bytes */
};

/* The plan, in the block for the stack. At `arrays_at` bytes from this struct are three arrays with an element for each initial task:
 * `cost` and `order`, of uint32_t, and `class`, of uint8_t and in whole words of 8. `order` has the tasks in the order of falling
 * cost. */
struct plan {
	struct plan_shape shape;
	uint32_t ready;	 /* 1: the plan is made */
	uint32_t source; /* constant: enum plan_source */
	uint64_t arrays_at; /* constant */
	uint64_t plan_ns; /* time that the plan took */
	uint32_t stored; /* number of workers that have stored the costs of their tasks */
	uint32_t pad;
};

/* ---- the set of lists that may have tasks ----------------------------------------------------- */

#define PLAN_WORDS(bits) (((bits) + 63) / 64)
/* The set precedes the slots of the pool: the words of level 0, then those of level 1. At first all bits are set, also those of
 * lists that do not exist. */
#define PLAN_SET_BYTES(lists) (8 * ((PLAN_WORDS(lists) + PLAN_WORDS(PLAN_WORDS(lists)) + 7) & ~7ull))

LOOM_FN uint64_t *plan_set(const struct loom_ctx *c)
{
	struct sched_pool *p = sched_pool(c);
	return (uint64_t *)((char *)p + SCHED_POOL_SLOTS_AT(p->room));
}

/* Called by lane 0. Returns the first list from `list` on that may have tasks, or at least `lists` if there is none. */
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
		bits = word < words ? loom_load_relaxed_sys(&set[word]) : 0;
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
	uint32_t word = list / 64, after = lists - word * 64;
	uint64_t exist = after < 64 ? (1ull << after) - 1 : ~0ull;
	if ((loom_fetch_add_relaxed_sys(&set[word], 0 - bit) & exist) == bit)
		loom_fetch_add_relaxed_sys(&level1[word / 64], 0 - (1ull << (word % 64)));
}

/* ---- the plan --------------------------------------------------------------------------------- */

LOOM_FN struct plan *plan_of(const struct loom_ctx *c)
{
	return (struct plan *)(SCHED_CFG(c, noncoherent) ? (char *)(sched_common(c) + 1)
							 : (char *)plan_set(c) + PLAN_SET_BYTES(c->workers));
}

/* The worker's copy of the shape, in its private block. */
LOOM_FN struct plan_shape *plan_shape(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	return (struct plan_shape *)sched_private(c);
#else
	return (struct plan_shape *)((char *)sched_private(c) + ((SCHED_OWN_EXTRA(c->lanes) + 15) & ~15ull));
#endif
}

#define PLAN_ARRAYS_BYTES(tasks) (8 * (uint64_t)(tasks) + (((uint64_t)(tasks) + 7) & ~7ull))

LOOM_FN uint32_t *plan_cost_of(struct plan *p)
{
	return (uint32_t *)((char *)p + p->arrays_at);
}

/* Returns the cost of an initial task as the workload, or else the task's descriptor (task.h), declares it. */
#ifdef LOOM_WORKLOAD_COSTS
#define plan_declared(c, task) LOOM_CALL(workload, cost, c, task)
#else
LOOM_FN uint64_t plan_declared(struct loom_ctx *c, const struct loom_task *task)
{
	uint64_t bytes = task->data.bytes;
#ifndef LOOM_DEVICE_COMPILE
	if (LOOM_HAS(c->workload, cost))
		return LOOM_CALL(workload, cost, c, task);
#endif
	if (task->data.access & LOOM_COST)
		return *(const uint32_t *)loom_at(c, task->data.ref);
	return bytes ? bytes : 1;
}
#endif

union plan_float {
	float number;
	uint32_t bits;
};

/* Classes are numbered by falling cost. The costs of a class differ by an eighth at most: the class is given by the exponent of a
 * float and the three digits after its first. */
LOOM_FN uint32_t plan_class(uint32_t cost)
{
	union plan_float x;
	x.number = (float)cost;
	return PLAN_CLASSES - 1 - ((x.bits - 0x3f800000u) >> 20);
}

/* Adds to a word that only lanes of this worker use. Returns its value before. */
LOOM_FN uint32_t plan_add(const struct loom_ctx *c, uint32_t *p, uint32_t n)
{
	if (c->lanes != 1)
		return loom_fetch_add_relaxed_dev(p, n);
	return (*p += n) - n;
}

/* What the lanes of worker 0 share while they make the plan. It is in the worker's empty local queue, if that has room for it. */
struct plan_sum { /* sums over the classes of a lane */
	uint32_t tasks;
	float cost;
};
struct plan_scratch {
	uint32_t class_at[PLAN_CLASSES]; /* number of tasks of each class; then the place in `order` of the next one */
	/* a struct plan_sum for each lane follows */
};
#define PLAN_SOLO(scratch) (&(scratch)->class_at[0]) /* number of lists that have one task: no cost is so high that it has class 0 */
#define PLAN_SCRATCH_BYTES(lanes)	  (PLAN_CLASSES * 4 + 8ull * (lanes))
#define PLAN_SCRATCH_FITS(lanes, queue) (PLAN_SCRATCH_BYTES(lanes) <= (queue) * sizeof(struct loom_task))

/* Returns how many workers store costs: so many that each lane has one task, if the first device has them. */
LOOM_FN uint32_t plan_makers(const struct loom_ctx *c)
{
	uint32_t enough = 1 + (uint32_t)c->ctl->initial_tasks / c->lanes;
	return enough < c->count ? enough : c->count;
}

/* Stores the costs and classes of this worker's tasks. */
LOOM_FN void plan_store_costs(struct loom_ctx *c, struct plan *p)
{
	const uint32_t n = (uint32_t)c->ctl->initial_tasks;
	uint32_t *costs = plan_cost_of(p);
	uint8_t *classes = (uint8_t *)(costs + 2ull * n);
	LOOM_NO_UNROLL
	for (uint32_t i = c->worker * c->lanes + c->lane; i < n; i += plan_makers(c) * c->lanes) {
		uint64_t cost = p->source == PLAN_ARRAY ? costs[i] : plan_declared(c, &c->initial[i]);
		cost = cost < PLAN_COST_MOST ? cost : PLAN_COST_MOST;
		costs[i] = (uint32_t)cost;
		classes[i] = (uint8_t)(cost ? plan_class((uint32_t)cost) : 0);
	}
	loom_stream(c, (uint64_t)n / plan_makers(c) * sizeof(struct loom_task));
	loom_barrier_lanes(c);
	/* Release: pairs with the acquire in plan_make(), after which worker 0 reads the classes. */
	if (c->lane == 0)
		LOOM_JOB(loom_fetch_add_release)(&p->stored, 1u);
}

/* Adds the numbers of tasks to their classes. With `order`, classes have places, to which the tasks are written. A lane reads the
 * classes of eight tasks by one load, and adds once if they are the same, because additions to a word wait for each other. Loops are
 * not unrolled, because this code runs once in a sample, and a GPU takes longer to load it than to run it. */
LOOM_FN void plan_sort(struct loom_ctx *c, struct plan *p, struct plan_scratch *s, uint32_t *order)
{
	const uint32_t n = (uint32_t)c->ctl->initial_tasks;
	const uint64_t *classes = (const uint64_t *)(plan_cost_of(p) + 2ull * n);
	LOOM_NO_UNROLL
	for (uint32_t eight = c->lane; 8 * eight < n; eight += c->lanes) {
		uint64_t left = classes[eight];
		const uint32_t all = 8 * eight + 8 <= n && left == (left & 255) * 0x0101010101010101ull; /* have the same class */
		LOOM_NO_UNROLL
		for (uint32_t i = 8 * eight, some = all ? 8 : 1; i < n && left; i += some, left = all ? 0 : left >> 8) {
			if (!(left & 255))
				continue;
			uint32_t place = plan_add(c, &s->class_at[left & 255], some);
			LOOM_NO_UNROLL
			for (uint32_t k = 0; order && k < some; k++)
				order[place + k] = i + k;
		}
	}
	loom_barrier_lanes(c);
}

/* Returns a cost in the middle of a class. */
LOOM_FN float plan_cost_in(uint32_t number)
{
	union plan_float x;
	x.bits = 0x3f800000u + ((PLAN_CLASSES - 1 - number) << 20) + (1u << 19);
	return x.number;
}

/* Lanes add up the sums of their group, and then those of the groups. */
#define PLAN_GROUP 16u

/* Replaces the number of tasks of each class by the place at which the class begins, and finds the shape. A class has its own
 * lists if one of its tasks costs more than an equal share of what this class and the next ones cost, among the lists that are
 * left. Then the same holds for each class before it. */
LOOM_FN void plan_place_classes(struct loom_ctx *c, struct plan *p, struct plan_scratch *s)
{
	const uint32_t each = (PLAN_CLASSES + c->lanes - 1) / c->lanes, first = c->lane * each;
	const uint32_t end = first + each < PLAN_CLASSES ? first + each : PLAN_CLASSES;
	const uint32_t group = c->lane / PLAN_GROUP * PLAN_GROUP, last = c->lanes - 1;
	uint32_t tasks = 0, all = 0, solo = 0;
	float cost = 0, left = 0;
	struct plan_sum *sum = (struct plan_sum *)(s + 1);
	LOOM_NO_UNROLL
	for (uint32_t i = first; i < end; i++) {
		tasks += s->class_at[i];
		cost += (float)s->class_at[i] * plan_cost_in(i);
	}
	sum[c->lane].tasks = tasks;
	sum[c->lane].cost = cost;
	loom_barrier_lanes(c);
	struct plan_sum before = {0, 0};
	LOOM_NO_UNROLL
	for (uint32_t i = group; i < c->lane; i++) {
		before.tasks += sum[i].tasks;
		before.cost += sum[i].cost;
	}
	if (c->lane == last || c->lane - group == PLAN_GROUP - 1) { /* only this lane reads its sum */
		sum[c->lane].tasks += before.tasks;
		sum[c->lane].cost += before.cost;
	}
	loom_barrier_lanes(c);
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i <= last; i += PLAN_GROUP) {
		const struct plan_sum of = sum[last - i < PLAN_GROUP ? last : i + PLAN_GROUP - 1];
		before.tasks += i < group ? of.tasks : 0;
		before.cost += i < group ? of.cost : 0;
		all += of.tasks;
		left += of.cost;
	}
	tasks = before.tasks;
	left -= before.cost;
	LOOM_NO_UNROLL
	for (uint32_t i = first ? first : 1; i < end; i++) {
		uint32_t n = s->class_at[i];
		if (tasks + n < c->workers && plan_cost_in(i) * (float)(c->workers - tasks) > left)
			solo += n;
		s->class_at[i] = tasks;
		tasks += n;
		left -= (float)n * plan_cost_in(i);
	}
	if (solo)
		plan_add(c, PLAN_SOLO(s), solo);
	loom_barrier_lanes(c);
	if (c->lane != 0)
		return;
	solo = *PLAN_SOLO(s);
	p->shape.listed = all;
	p->shape.solo = solo;
	p->shape.full = (all - solo) / (c->workers - solo);
	p->shape.rest = (all - solo) % (c->workers - solo);
	p->shape.sorted = 1;
}

/* Called by the workers that store costs. Returns 0. */
LOOM_FN int plan_make(struct loom_ctx *c)
{
	struct plan *p = plan_of(c);
	struct plan_scratch *s = PLAN_SCRATCH_FITS(c->lanes, sched_mask(c) + 1) ? (struct plan_scratch *)sched_ring(c)
										: (struct plan_scratch *)(plan_shape(c) + 1);
	const uint32_t n = (uint32_t)c->ctl->initial_tasks;
	uint64_t begin = loom_clock_ns(c);
	plan_store_costs(c, p);
	if (c->worker)
		return 0;
	LOOM_NO_UNROLL
	for (uint32_t i = c->lane; i < PLAN_CLASSES; i += c->lanes)
		s->class_at[i] = 0;
	LOOM_NO_UNROLL
	while (c->lane == 0 && LOOM_JOB(loom_load_acquire)(&p->stored) < plan_makers(c) && !loom_stopped(c))
		loom_pause(c);
	loom_barrier_lanes(c);
	plan_sort(c, p, s, (uint32_t *)NULL);
	plan_place_classes(c, p, s);
	plan_sort(c, p, s, plan_cost_of(p) + n);
	loom_stream(c, (uint64_t)n * 16);
	if (c->lane == 0) {
		p->plan_ns = loom_clock_ns(c) - begin;
		/* Release: pairs with the acquire in plan_begin(), after which all workers read the plan. */
		LOOM_JOB(loom_store_release)(&p->ready, 1u);
	}
	return 0;
}

/* Makes the plan, or waits for it. */
LOOM_FN void plan_begin(struct loom_ctx *c)
{
	struct plan *p = plan_of(c);
	const uint64_t n = c->ctl->initial_tasks;
	const int sorted = p->source != PLAN_EQUAL && c->workers > 1 && n <= PLAN_MOST && n < (uint64_t)PLAN_FINE * c->workers;
	if (sorted && c->first == 0 && c->worker < plan_makers(c))
		LOOM_OUTLINED_COLLECTIVE(plan_make, c);
	if (c->lane == 0) {
		struct plan_shape *shape = plan_shape(c);
		LOOM_NO_UNROLL
		while (sorted && !LOOM_JOB(loom_load_acquire)(&p->ready) && !loom_stopped(c))
			loom_pause(c);
		*shape = p->shape;
		if (sorted) {
			/* worker 0 counts the tasks that need not run */
			sched_local(c)->counters.executed += c->worker ? 0 : n - shape->listed;
		} else {
			shape->listed = (uint32_t)n;
			shape->full = (uint32_t)(n / c->workers);
			shape->rest = (uint32_t)(n % c->workers);
		}
	}
	loom_barrier_lanes(c);
}

/* ---- lists ------------------------------------------------------------------------------------ */

/* Returns the number of tasks of list w. It is 0 only from list `listed` on. */
LOOM_FN uint32_t plan_length(const struct loom_ctx *c, uint32_t w)
{
	const struct plan_shape *s = plan_shape(c);
	uint32_t turn = w - s->solo;
	if (w < s->solo)
		return 1;
	if (s->sorted && s->full % 2) /* the last round goes backwards */
		turn = c->workers - 1 - w;
	return s->full + (turn < s->rest);
}

/* Returns the index of task i of list w. */
LOOM_FN uint32_t plan_task(const struct loom_ctx *c, uint32_t w, uint32_t i)
{
	const struct plan_shape *s = plan_shape(c);
	if (!s->sorted)
		return w * s->full + (w < s->rest ? w : s->rest) + i;
	struct plan *p = plan_of(c);
	uint32_t lists = c->workers - s->solo, turn = w - s->solo;
	uint32_t at = w < s->solo ? w : s->solo + i * lists + (i % 2 ? lists - 1 - turn : turn);
	return (plan_cost_of(p) + c->ctl->initial_tasks)[at];
}

/* The first worker whose list this worker may take from, and the number of these lists that have had tasks. Lists have numbers
 * from 0 on in the set. */
LOOM_FN uint32_t plan_first(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent) ? c->first : 0;
}

LOOM_FN uint32_t plan_lists(const struct loom_ctx *c)
{
	uint32_t first = plan_first(c), listed = plan_shape(c)->listed;
	uint32_t lists = SCHED_CFG(c, noncoherent) ? c->count : c->workers, some = listed > first ? listed - first : 0;
	return some < lists ? some : lists;
}

/* Called by lane 0. Takes tasks from a list of which the first `taken` tasks are taken, and returns their number; *at: set to the
 * number of the first of these tasks. The list has more than `taken` tasks. */
LOOM_FN uint64_t plan_take(struct loom_ctx *c, struct plan_block *b, uint32_t list, uint64_t taken, uint64_t *at)
{
	uint64_t end = plan_length(c, plan_first(c) + list), n = (end - taken) / 8;
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
	return next < plan_length(c, plan_first(c) + list) ? plan_take(c, b, list, next, at) : 0;
}

/* Called by lane 0. Takes tasks from the lists of other workers. Tries the list of its last theft first. Then searches
 * from the list that follows the worker's own list, so that thieves start at different lists. */
LOOM_FN uint64_t plan_steal(struct loom_ctx *c, uint64_t *at)
{
	struct loom_counters *counters = &sched_local(c)->counters;
	struct plan_block *b = (struct plan_block *)c->own[LOOM_SCHED];
	const uint64_t *set = plan_set(c);
	uint32_t lists = plan_lists(c), own = c->worker - plan_first(c), list = (uint32_t)b->list;
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
	b->list = list;
	return n;
}

/* Called by lane 0. Returns the next initial task. l->at and l->end count in the list b->list. */
LOOM_FN uint64_t plan_claim(struct loom_ctx *c)
{
	struct sched_local *l = sched_local(c);
	struct plan_block *b = (struct plan_block *)c->own[LOOM_SCHED];
	if (l->at == l->end) {
		uint32_t own = c->worker - plan_first(c), length = plan_length(c, c->worker);
		uint64_t at = 0, n = 0;
		if (b->list == own && l->at < length)
			n = plan_take(c, b, own, l->at, &at);
		l->counters.claimed += n;
		if (!n && plan_shape(c)->steals)
			n = plan_steal(c, &at);
		if (!n) {
			/* The tasks of its own list that this worker did not take were taken by other workers. */
			l->counters.stolen_out = length - l->counters.claimed;
			return SCHED_NO_TASK;
		}
		l->at = at;
		l->end = at + n;
	}
	return plan_task(c, plan_first(c) + (uint32_t)b->list, (uint32_t)l->at++);
}

#define sched_plan_spawn  sched_pool_spawn
#define sched_plan_wanted sched_pool_wanted

/* The times of initial tasks in ns, by index of the task, are in the device's block. A task that this device did not run has 0. */
LOOM_FN uint32_t *plan_times(const struct loom_ctx *c)
{
	if (!plan_shape(c)->measures)
		return (uint32_t *)NULL;
	struct sched_site *site = (struct sched_site *)c->on_device[LOOM_SCHED];
	return (uint32_t *)((char *)site + site->more_at);
}

LOOM_FN void sched_plan_run(struct loom_ctx *c)
{
	sched_own_start(c);
	plan_begin(c);
	sched_pool_run(c, plan_claim, plan_times);
}

#endif
