/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of tasks that prove a scheduler right: every task runs exactly once and arrives whole. */
#ifndef LOOM_TEST_TREE_H
#define LOOM_TEST_TREE_H

#include "harness.h"

enum shape { STAR, CHAIN, BINARY, COMB, RANDOM, LAZY, SHAPES };

/* A task owns the ids [id, id + size): it marks `id` and shares the rest among its children. */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MOST 20000u
static uint32_t marks[MOST]; /* how many lanes ran task id */
static uint32_t torn;        /* tasks that arrived changed */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

HARNESS_FN struct loom_task make(uint64_t id, uint64_t size, enum shape shape, uint64_t seed)
{
	struct loom_task t = {.tag = id & 1};
	t.param[0] = id;
	t.param[1] = size;
	t.param[2] = (uint64_t)shape;
	t.param[3] = seed;
	t.data.ref = mix(id + size);
	t.data.bytes = mix(id) >> 8;
	return t;
}

static uint64_t children(const struct loom_task *t)
{
	uint64_t rest = t->param[1] - 1;
	switch ((enum shape)t->param[2]) {
	case STAR:
		return rest;
	case CHAIN:
		return rest != 0;
	case BINARY:
		return rest < 2 ? rest : 2;
	case COMB: /* a chain with a leaf at each link */
		return rest < 2 ? rest : 2;
	default:
		rest = rest < 40 ? rest : 40;
		return rest ? 1 + mix(t->param[0] ^ t->param[3]) % rest : 0;
	}
}

/* Lazy creation: the task marks its ids itself, and gives half of the rest away when that is wanted. */
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
			struct loom_task child = make(id + size, half, LAZY, seed);
			if (LOOM_CALL(sched, spawn, c, &child))
				return;
		}
	}
}

static void node(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t id = t->param[0], rest = t->param[1] - 1, next = id + 1, k = children(t);
	if (t->data.bytes != mix(id) >> 8 || t->data.ref != mix(id + t->param[1]) || t->tag != (id & 1))
		__atomic_add_fetch(&torn, 1, __ATOMIC_RELAXED);
	if (t->param[2] == LAZY) {
		range(c, id, t->param[1], t->param[3]);
		return;
	}
	__atomic_add_fetch(&marks[id], 1, __ATOMIC_RELAXED);
	for (uint64_t i = 0; i < k; i++) {
		uint64_t size = rest / (k - i);
		if (t->param[2] == COMB && i == 0 && k == 2)
			size = 1;
		struct loom_task child = make(next, size, (enum shape)t->param[2], t->param[3]);
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
		next += size;
		rest -= size;
	}
}

static loom_task_fn *const tasks[] = {node, node};

static uint32_t tree_apart, tree_second_kind __attribute__((unused)); /* harness_params */
static const char *tree_term; /* the detector of the trees to be opened; NULL: term_counter */

/* The same as `initials` roots that share `size` ids. */
HARNESS_FN struct harness *open_tree(const char *sched, const char *opts, uint32_t workers,
				     uint32_t lanes, uint32_t initials, uint32_t size,
				     enum shape shape, uint64_t seed)
{
	static struct loom_task initial[MOST];
	struct loom_error err;
	uint32_t next = 0;
	for (uint32_t i = 0; i < initials; i++) {
		uint32_t n = (size - next) / (initials - i);
		initial[i] = make(next, n, shape, seed);
		next += n;
	}
	struct harness *h = harness_open(&(struct harness_params){.sched = sched,
								  .sched_opts = opts,
								  .term = tree_term,
								  .apart = tree_apart,
								  .second_kind = tree_second_kind,
								  .task = tasks,
								  .tasks = 2,
								  .initial = initial,
								  .initials = initials,
								  .workers = workers,
								  .lanes = lanes,
								  .seed = seed},
					 &err);
	harness_must(h != NULL, sched, &err);
	return h;
}

HARNESS_FN int run_tree(struct harness *h, uint32_t size)
{
	struct loom_error err;
	memset(marks, 0, sizeof(marks));
	torn = 0;
	int rc = harness_run(h, &err);
	if (rc == LOOM_EFULL && !strstr(err.text, "raise spill"))
		rc = LOOM_EWRONG;
	if (rc && rc != LOOM_EFULL)
		fprintf(stderr, "%s, %s: %s\n", h->p.sched, h->p.sched_opts, err.text);
	for (uint32_t i = 0; !rc && i < size; i++)
		if (marks[i] != h->p.lanes) {
			fprintf(stderr, "%s, %s, seed %llu: task %u ran %u times\n", h->p.sched,
				h->p.sched_opts, (unsigned long long)h->p.seed, i,
				marks[i] / h->p.lanes);
			rc = LOOM_EWRONG;
		}
	if (!rc && torn)
		rc = LOOM_EWRONG;
	return rc;
}

#endif
