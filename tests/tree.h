/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of tasks for the harness. Each task has one or more ids, which it marks when it runs. */
#ifndef LOOM_TEST_TREE_H
#define LOOM_TEST_TREE_H

#include "harness.h"
#include "rig/tree.h"

#define STAR LOOM__STAR
#define CHAIN LOOM__CHAIN
#define BINARY LOOM__BINARY
#define COMB LOOM__COMB
#define RANDOM LOOM__RANDOM
#define LAZY LOOM__OTHER
#define SHAPES (LOOM__OTHER + 1)

#define MOST 20000u
static uint32_t marks[MOST]; /* the number of lanes that ran each task id */
static uint32_t torn;        /* the number of tasks whose record was changed before they ran */

/* Runs a task with lazy creation. The task marks its ids itself. When other workers want tasks, it spawns a task with
 * half of the remaining ids. */
static void range(struct loom_ctx *c, uint64_t id, uint64_t size, uint64_t seed)
{
	while (size--) {
		__atomic_add_fetch(&marks[id++], 1, __ATOMIC_RELAXED);
		int wanted = LOOM_HAS(c->sched, wanted) ? LOOM_CALL(sched, wanted, c) : size > 1;
		if (wanted < 0)
			return;
		if (wanted && size) {
			uint64_t half = size - size / 2;
			size -= half;
			struct loom_task child = loom__tree_task(id + size, half, LOOM__OTHER, seed);
			if (LOOM_CALL(sched, spawn, c, &child))
				return;
		}
	}
}

#ifndef TREE_NOTE /* a test may note that the task runs */
#define TREE_NOTE(t) ((void)0)
#endif

static void node(struct loom_ctx *c, const struct loom_task *t)
{
	struct loom__tree_walk walk = {0};
	struct loom_task child;
	TREE_NOTE(t);
	if (!loom__tree_whole(t))
		__atomic_add_fetch(&torn, 1, __ATOMIC_RELAXED);
	if (t->param[2] == LAZY) {
		range(c, t->param[0], t->param[1], t->param[3]);
		return;
	}
	__atomic_add_fetch(&marks[t->param[0]], 1, __ATOMIC_RELAXED);
	while (loom__tree_child(t, &walk, &child) && !LOOM_CALL(sched, spawn, c, &child))
		;
}

static loom_task_fn *const tasks[] = {node, node};

/* Returns the parameters of a harness for trees: `initials` roots share `size` ids. */
FAKE_FN struct harness_params tree_params(uint32_t initials, uint32_t size, enum loom__shape shape, uint64_t seed)
{
	static struct loom_task initial[MOST];
	loom__tree_roots(initial, initials, size, shape, seed);
	return (struct harness_params){
	    .task = tasks, .tasks = 2, .initial = initial, .initials = initials, .seed = seed};
}

FAKE_FN struct harness *open_tree(const char *sched, const char *opts, uint32_t workers,
				     uint32_t lanes, uint32_t initials, uint32_t size,
				     enum loom__shape shape, uint64_t seed)
{
	struct harness_params p = tree_params(initials, size, shape, seed);
	p.sched = sched;
	p.sched_opts = opts;
	p.workers = workers;
	p.lanes = lanes;
	return harness_must(&p);
}

FAKE_FN void tree_reset(void)
{
	memset(marks, 0, sizeof(marks));
	torn = 0;
}

/* Checks after a sample that each id was run once by each of `lanes` lanes, and that no record was changed. */
FAKE_FN int tree_check(uint32_t size, uint32_t lanes, struct loom_error *err)
{
	for (uint32_t i = 0; i < size; i++)
		if (marks[i] != lanes)
			return LOOM_FAIL(&fake_host, err, LOOM_EWRONG, "task %u ran %u times", i, marks[i] / lanes);
	return torn ? LOOM_FAIL(&fake_host, err, LOOM_EWRONG, "%u tasks had a changed record", torn) : 0;
}

FAKE_FN int run_tree(struct harness *h, uint32_t size)
{
	struct loom_error err;
	tree_reset();
	int rc = harness_run(h, &err);
	if (rc == LOOM_EFULL && !strstr(err.text, "raise "))
		rc = LOOM_EWRONG;
	if (!rc)
		rc = tree_check(size, h->p.lanes, &err);
	if (rc && rc != LOOM_EFULL)
		fprintf(stderr, "%s, %s, seed %llu: %s\n", h->p.sched, h->p.sched_opts, (unsigned long long)h->p.seed,
			err.text);
	return rc;
}

#endif
