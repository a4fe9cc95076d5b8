/* SPDX-License-Identifier: Apache-2.0 */
/* fib: a tree of tasks, with or without joins. Device code. */
#ifndef WORKLOAD_FIB_DEV_H
#define WORKLOAD_FIB_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "task.dev.h"
#endif

enum { FIB_SPAWN, FIB_FORK, FIB_ADD };

/* The worker's block. With mode = join the frames of the worker follow. */
struct workload_fib_sum {
	uint64_t sum; /* mode = spawn: sum of the leaves that this worker has run */
	uint64_t pad[7];
	/* For the owner only: number of frames used so far, number of all frames, first of a list of free frames.
	 * Frame f has the name f + 1; 0: none. */
	uint64_t fresh, frames, list;
	uint64_t pad2[5];
	uint64_t returned; /* list of frames that other workers freed; they push, and the owner takes all */
	uint64_t pad3[7];
};

/* A frame is the join of a call with k > 1, which waits for its two calls. Indices of its data: */
enum {
	FIB_RESULT,   /* results of the two calls, here and at the next index */
	FIB_NEXT = 2, /* in a list of free frames: name of the next frame */
};

LOOM_FN struct workload_fib_sum *fib_own(const struct loom_ctx *c, uint32_t worker)
{
	return (struct workload_fib_sum *)loom_public(c, LOOM_WORKLOAD, worker);
}

LOOM_FN struct loom_join *fib_frame(struct workload_fib_sum *w, uint64_t name)
{
	return (struct loom_join *)(w + 1) + (name - 1);
}

/* A program for a GPU contains only the functions of its mode. */
#ifndef FIB_JOINS
#define FIB_OF_MODE(joins) 1
#else
#define FIB_OF_MODE(joins) (FIB_JOINS == (joins))
#endif

/* ---- mode = spawn ------------------------------------------------------------------------- */

/* param[0]: k. A leaf adds fib(1) = 1 or fib(0) = 0 to its worker's sum. */
LOOM_FN void workload_fib_task(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t k = t->param[0];
	if (!FIB_OF_MODE(0))
		return;
	if (k < 2) {
		if (c->lane == 0)
			loom_own_add(c, &((struct workload_fib_sum *)c->own[LOOM_WORKLOAD])->sum, k);
		return;
	}
	struct loom_task child;
	workload_task(&child, t->tag);
	child.param[0] = k - 1;
	LOOM_CALL(sched, spawn, c, &child);
	child.param[0] = k - 2;
	LOOM_CALL(sched, spawn, c, &child);
}

/* ---- mode = join: frames, by lane 0 -------------------------------------------------------- */

/* Returns the name of a free frame of this worker, or 0 if there is none. */
LOOM_FN uint64_t fib_take(struct loom_ctx *c)
{
	struct workload_fib_sum *w = (struct workload_fib_sum *)c->own[LOOM_WORKLOAD];
	uint64_t name = w->list;
	/* Acquire: pairs with the releases in fib_free(). */
	if (!name && w->fresh == w->frames && loom_load_relaxed_sys(&w->returned))
		name = loom_exchange_acq_rel_sys(&w->returned, (uint64_t)0);
	if (name) {
		w->list = fib_frame(w, name)->data[FIB_NEXT];
		return name;
	}
	return w->fresh < w->frames ? ++w->fresh : 0;
}

LOOM_FN void fib_free(struct loom_ctx *c, uint32_t owner, uint64_t name)
{
	struct workload_fib_sum *w = fib_own(c, owner);
	struct loom_join *frame = fib_frame(w, name);
	if (owner == c->worker) {
		frame->data[FIB_NEXT] = w->list;
		w->list = name;
		return;
	}
	/* The owner takes the whole list, so a name cannot reappear while this loop runs (no ABA problem). */
	uint64_t head = loom_load_relaxed_sys(&w->returned);
	do
		frame->data[FIB_NEXT] = head;
	while (!loom_cas_acq_rel_sys(&w->returned, &head, name));
}

/* ---- mode = join: tasks ---------------------------------------------------------------------- */

/* A call. param[0]: k; param[1]: where its result is stored; param[2]: the frame that waits for the result. A call
 * that makes two calls has no join itself. Instead, the task that adds their two results decrements the frame of
 * param[2]. */
LOOM_FN void workload_fib_fork(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t k = t->param[0], name = 0;
	if (!FIB_OF_MODE(1))
		return;
	if (c->single_lane) { /* a lane that runs tasks of its own cannot take frames */
		loom_worker_fail(c, LOOM_EINVAL, 0);
		return;
	}
	if (k < 2) {
		if (c->lane == 0)
			*(uint64_t *)loom_at(c, t->param[1]) = k;
		return;
	}
	if (c->lane == 0)
		name = fib_take(c);
	name = loom_from_lane0(c, name);
	if (!name) {
		if (c->lane == 0)
			loom_worker_fail(c, LOOM_ENOMEM, fib_own(c, c->worker)->frames);
		return;
	}
	struct workload_fib_sum *own = (struct workload_fib_sum *)c->own[LOOM_WORKLOAD];
	struct loom_join *frame = fib_frame(own, name);
	loom_ref at = c->registry[LOOM_WORKLOAD][c->worker] +
		      (uint64_t)((char *)frame - (char *)own);
	if (c->lane == 0) {
		frame->pending = 2;
		workload_task(&frame->next, FIB_ADD);
		frame->next.join = t->param[2];
		frame->next.param[0] = at;
		frame->next.param[1] = t->param[1];
		frame->next.param[2] = (uint64_t)c->worker << 32 | name;
	}
	struct loom_task child;
	workload_task(&child, FIB_FORK);
	child.param[2] = at;
	for (uint64_t i = 0; i < 2; i++) {
		child.param[0] = k - 1 - i;
		child.param[1] = at + sizeof(uint64_t) * (1 + FIB_RESULT + i);
		child.join = child.param[0] < 2 ? at : 0;
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
	}
}

/* Runs when the two calls of a frame have ended. param[0]: the frame; param[1]: where the sum is stored; param[2]:
 * owner and name of the frame. */
LOOM_FN void workload_fib_add(struct loom_ctx *c, const struct loom_task *t)
{
	if (c->lane != 0 || !FIB_OF_MODE(1))
		return;
	struct loom_join *frame = (struct loom_join *)loom_at(c, t->param[0]);
	*(uint64_t *)loom_at(c, t->param[1]) = frame->data[FIB_RESULT] + frame->data[FIB_RESULT + 1];
	fib_free(c, (uint32_t)(t->param[2] >> 32), t->param[2] & 0xffffffffu);
}

#endif
