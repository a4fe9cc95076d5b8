/* SPDX-License-Identifier: Apache-2.0 */
/* workload_synthetic: tasks with the properties that options set. Device code. */
#ifndef WORKLOAD_SYNTHETIC_DEV_H
#define WORKLOAD_SYNTHETIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "task.dev.h"
#endif

/* The stack's block. Constant. Tasks are numbered level by level: the initial tasks are 0 to tasks - 1. */
struct synthetic {
	uint64_t tasks;
	uint64_t shortest, span; /* a task takes at least `shortest` steps, and at most `span` more */
	uint64_t cpu_below, gpu_below; /* 2^32 times the share of tasks for CPUs only; for CPUs or GPUs only */
	uint32_t spawn, depth;
	uint32_t kind[LOOM_MAX_DEVICES]; /* LOOM_ON_CPU or LOOM_ON_GPU of each device */
};

/* The worker's block. The sums of the tasks' numbers and of their squares show that each task was run once. */
struct synthetic_count {
	uint64_t tasks, sum, squares;
	uint64_t misplaced; /* number of tasks that ran on a kind of device that their affinity excludes */
	uint64_t work;      /* result of the arithmetic, stored so that the compiler keeps it */
	uint64_t pad[3];
};

LOOM_FN uint64_t synthetic_draw(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Makes a task. param[0]: number of the task; param[1]: its level, from 0. */
LOOM_FN void synthetic_task(const struct synthetic *s, uint64_t number, uint64_t level, struct loom_task *t)
{
	uint64_t draw = synthetic_draw(~number) >> 32;
	workload_task(t, 0);
	t->affinity = draw < s->cpu_below ? LOOM_ON_CPU : draw < s->gpu_below ? LOOM_ON_GPU : LOOM_ON_ANY;
	t->param[0] = number;
	t->param[1] = level;
}

/* On a GPU all lanes do the same arithmetic. */
LOOM_FN void workload_synthetic_task(struct loom_ctx *c, const struct loom_task *t)
{
	const struct synthetic *s = (const struct synthetic *)c->global[LOOM_WORKLOAD];
	struct synthetic_count *count = (struct synthetic_count *)c->own[LOOM_WORKLOAD];
	uint64_t number = t->param[0], x = synthetic_draw(number), steps;
	steps = s->shortest + ((x >> 32) * (s->span + 1) >> 32);
	LOOM_NO_UNROLL
	for (uint64_t i = 0; i < steps; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	if (c->lane == 0) {
		loom_own_add(c, &count->tasks, 1);
		loom_own_add(c, &count->sum, number);
		loom_own_add(c, &count->squares, number * number);
		loom_own_add(c, &count->misplaced, t->affinity && t->affinity != s->kind[c->device]);
		loom_own_add(c, &count->work, x);
	}
	if (t->param[1] >= s->depth)
		return;
	struct loom_task child;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < s->spawn; i++) {
		synthetic_task(s, s->tasks + number * s->spawn + i, t->param[1] + 1, &child);
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
	}
}

#endif
