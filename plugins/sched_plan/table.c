/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/heap.h"

void plan_table_free(struct plan_table *t)
{
	free(t->order);
	free(t->first);
	*t = (struct plan_table){0};
}

struct ranked {
	uint64_t cost;
	uint32_t task, worker;
};

static int by_falling_cost(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	return x->cost != y->cost ? (x->cost < y->cost) - (x->cost > y->cost)
				  : (x->task > y->task) - (x->task < y->task);
}

static int all_equal(uint64_t tasks, const uint64_t *cost)
{
	for (uint64_t i = 1; i < tasks; i++)
		if (cost[i] != cost[0])
			return 0;
	return 1;
}

static void equal_shares(struct plan_table *t, const uint64_t *cost)
{
	uint64_t each = t->tasks / t->workers, rest = t->tasks % t->workers;
	for (uint64_t i = 0; i < t->tasks; i++)
		t->order[i] = (uint32_t)i;
	for (uint32_t w = 0; w <= t->workers; w++)
		t->first[w] = w * each + (w < rest ? w : rest);
	t->longest = cost && t->tasks ? (each + (rest > 0)) * cost[0] : 0;
}

/* Makes contiguous shares of equal cost. A task on the boundary of two shares goes to the share that contains the larger part
 * of the task's cost. */
static void equal_costs(struct plan_table *t, const uint64_t *cost)
{
	double sum = 0, before = 0;
	uint64_t i = 0;
	for (uint64_t k = 0; k < t->tasks; k++) {
		t->order[k] = (uint32_t)k;
		sum += (double)cost[k];
	}
	for (uint32_t w = 0; w < t->workers; w++) {
		double end = sum / t->workers * (w + 1), begin = before;
		t->first[w] = i;
		for (; i < t->tasks && (w + 1 == t->workers || before + (double)cost[i] / 2 <= end); i++)
			before += (double)cost[i];
		t->longest = (uint64_t)(before - begin) > t->longest ? (uint64_t)(before - begin) : t->longest;
	}
	t->first[t->workers] = t->tasks;
}

/* Gives each task to the worker with the smallest sum of costs so far. In the heap `due` is this sum, and `turn` is the
 * number of the worker. If several workers have the smallest sum, the worker with the lowest number gets the task. */
static int place(struct plan_table *t, struct ranked *r)
{
	struct heap h = {0};
	if (heap_make_room(&h, t->workers))
		return ENOMEM;
	for (uint32_t w = 0; w < t->workers; w++)
		heap_add(&h, (struct heap_entry){.turn = w});
	for (uint64_t i = 0; i < t->tasks; i++) {
		uint64_t due = h.at[0].due + r[i].cost;
		r[i].worker = (uint32_t)h.at[0].turn;
		t->longest = due > t->longest ? due : t->longest;
		t->first[r[i].worker + 1]++;
		heap_move(&h, 0, due);
	}
	free(h.at);
	return 0;
}

int plan_table_make(struct plan_table *t, uint64_t tasks, const uint64_t *cost, uint32_t workers)
{
	int fine = tasks / PLAN_FINE >= workers;
	*t = (struct plan_table){.tasks = tasks, .workers = workers};
	t->order = calloc(tasks + 1, sizeof(*t->order));
	t->first = calloc(workers + 1ull, sizeof(*t->first));
	int equal = !cost || all_equal(tasks, cost), code = !t->order || !t->first ? ENOMEM : 0;
	struct ranked *r = equal || fine || code ? NULL : calloc(tasks, sizeof(*r));
	uint64_t *at = r ? calloc(workers, sizeof(*at)) : NULL;
	if (!code && equal) {
		equal_shares(t, cost);
	} else if (!code && fine) {
		equal_costs(t, cost);
	} else if (!code) {
		for (uint64_t i = 0; r && i < tasks; i++)
			r[i] = (struct ranked){.cost = cost[i], .task = (uint32_t)i};
		if (r)
			qsort(r, tasks, sizeof(*r), by_falling_cost);
		code = r && at ? place(t, r) : ENOMEM;
		for (uint32_t w = 0; !code && w < workers; w++) {
			t->first[w + 1] += t->first[w];
			at[w] = t->first[w];
		}
		for (uint64_t i = 0; !code && i < tasks; i++)
			t->order[at[r[i].worker]++] = r[i].task;
	}
	free(at);
	free(r);
	if (code)
		plan_table_free(t);
	return code;
}
