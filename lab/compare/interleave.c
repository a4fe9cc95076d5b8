/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/interleave.h"
#include "facts/facts.h"
#include "facts/must.h"

#include <stdlib.h>
#include <time.h>

/* The pause before each sample. Workers of the previous variant spin for a while before they sleep (the CPU device: 50
 * us by default). In this time they would take CPU time from the sample. */
#define SETTLE_NS      200000
#define OPENINGS_NS    60000000000u
#define OPENINGS_LEAST 10u

void loom__interleave_stop(struct loom__interleave *x)
{
	unsigned asked = __atomic_add_fetch(&x->stop, 1, __ATOMIC_RELAXED);
	struct loom_stack *s = __atomic_load_n(&x->running, __ATOMIC_RELAXED);
	if (!s)
		return;
	loom_stack_stop(s);
	if (asked > 1) /* the first stop request may have reached the stack of another variant */
		loom_stack_stop(s);
}

static int stopped(const struct loom__interleave *x)
{
	return __atomic_load_n(&x->stop, __ATOMIC_RELAXED) != 0;
}

int loom__holds_gpu(const struct loom_stack *s)
{
	uint32_t d = 0;
	while (d < s->layout.devices && (s->shape[d].kind != LOOM_ON_GPU || s->shape[d].flags & LOOM_SHAPE_PERSISTENT))
		d++;
	return d < s->layout.devices;
}

/* Retires the stack that holds a GPU, unless it is `next`. */
static int release_gpu(struct loom__interleave *x, const struct loom_stack *next, struct loom_error *err)
{
	struct loom_stack *s = x->holder;
	if (!s || s == next)
		return 0;
	x->holder = NULL;
	return loom__stack_retire(s, err);
}

static int execute(struct loom__interleave *x, unsigned arm, int warmup, struct loom_error *err)
{
	static const struct timespec settle = {.tv_nsec = SETTLE_NS};
	struct loom__arm *a = &x->arm[arm];
	if (stopped(x))
		return LOOM__FAIL(err, LOOM_EINTR, "interrupted after %u of %u blocks", x->blocks, x->design.blocks);
	/* A variant without a GPU may be a program that uses one (workload exec). */
	int holds = loom__holds_gpu(a->stack), rc = release_gpu(x, holds ? a->stack : NULL, err);
	if (holds && !rc) {
		x->holder = a->stack;
		rc = loom__stack_launch(a->stack, err);
	}
	nanosleep(&settle, NULL); /* a signal shortens the pause, which is harmless */
	__atomic_store_n(&x->running, a->stack, __ATOMIC_RELAXED);
	rc = rc ? rc : loom__stack_sample(a->stack, a->result, warmup, err);
	__atomic_store_n(&x->running, NULL, __ATOMIC_RELAXED);
	if (!rc && x->derived)
		rc = loom__derived_sample(x->derived, &a->result->sample[a->result->samples - 1], err);
	if (!rc && x->progress)
		x->progress(x->arg, x);
	return rc;
}

static int warm(struct loom__interleave *x, unsigned arm, uint32_t times, struct loom_error *err)
{
	int rc = 0;
	for (uint32_t i = 0; i < times && !rc; i++)
		rc = execute(x, arm, 1, err);
	return rc;
}

/* Runs one block: passes over all variants, each in an order of its own from loom__stats_block_order(). */
static int block(struct loom__interleave *x, uint32_t number, unsigned *order, struct loom_error *err)
{
	const struct loom__design *d = &x->design;
	uint32_t per_pass = d->order == LOOM__STATS_ABBA ? 2 : 1, passes = d->per_block / per_pass;
	for (uint32_t pass = 0; pass < passes; pass++) {
		uint64_t draw = (uint64_t)number * passes + pass;
		size_t n = loom__stats_block_order(d->seed, draw, d->order, x->arms, order);
		for (size_t i = 0; i < n; i++) {
			int after_other = !x->slots || x->slot[x->slots - 1] != order[i];
			int rc = after_other ? warm(x, order[i], d->rewarm, err) : 0;
			if (!rc)
				rc = execute(x, order[i], 0, err);
			if (rc)
				return rc;
			x->slot[x->slots++] = order[i];
		}
	}
	return 0;
}

/* Records the state of the devices of all variants. */
static void look(const struct loom__interleave *x)
{
	for (unsigned a = 0; a < x->arms; a++)
		loom__facts_look(x->arm[a].stack, x->arm[a].result);
}

/* Waits until block `number` is due. The blocks are spread evenly over spread_ns. */
static void await_turn(const struct loom__interleave *x, uint32_t number)
{
	uint64_t due = x->began_ns + x->design.spread_ns / x->design.blocks * number, now;
	while ((now = loom__now_ns()) < due && !stopped(x)) {
		uint64_t left = due - now;
		struct timespec t = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
		nanosleep(&t, NULL); /* a signal ends the sleep */
	}
}

uint32_t loom__interleave_per_opening(const struct loom__design *d)
{
	return d->openings && d->openings < d->blocks ? d->blocks / d->openings : 1;
}

size_t loom__interleave_total(const struct loom__interleave *x)
{
	const struct loom__design *d = &x->design;
	uint32_t each = d->per_block ? d->per_block : LOOM__PER_BLOCK_LEAST;
	return x->arms * ((size_t)d->warmup * (d->openings ? d->openings : d->blocks) + (size_t)d->blocks * each);
}

/* Chooses how often all stacks are opened. The statistics count an opening as one observation. So there is one opening
 * per block if all openings together take less than a minute. If they take longer, there are fewer openings, but enough
 * for a confidence interval. loom__interleave_per_opening() may make more of them, up to twice as many. */
static uint32_t choose_openings(const struct loom__interleave *x)
{
	uint64_t fit = x->opening_ns ? OPENINGS_NS / x->opening_ns : UINT64_MAX;
	fit = fit < OPENINGS_LEAST ? OPENINGS_LEAST : fit;
	return !x->reopen ? 1 : fit < x->design.blocks ? (uint32_t)fit : x->design.blocks;
}

/* Runs the warm-ups of all variants in turn, so that all caches are equally warm when the blocks start. */
static int warm_all(struct loom__interleave *x, struct loom_error *err)
{
	int rc = 0;
	for (uint32_t i = 0; i < x->design.warmup && !rc; i++)
		for (unsigned a = 0; a < x->arms && !rc; a++)
			rc = warm(x, a, 1, err);
	return rc;
}

/* Opens all stacks again, in random order. All stacks are closed before the first is opened, so that any variant can
 * get the memory of any other variant. The kernel that holds a GPU ends first, because drivers wait for kernels when
 * they free memory, also that of another stack. */
static int reopen_all(struct loom__interleave *x, uint32_t number, unsigned *order, struct loom_error *err)
{
	int rc = release_gpu(x, NULL, err);
	loom__stats_block_order(~x->design.seed, number, LOOM__STATS_RANDOM, x->arms, order);
	for (int open = 0; open < 2; open++)
		for (unsigned a = 0; a < x->arms && !rc; a++)
			rc = x->reopen(x->arg, x, order[a], open, err);
	return rc ? rc : warm_all(x, err);
}

/* Chooses the number of samples per block so that the blocks fill spread_ns, because more samples make the median and
 * the best sample of a block more stable. The choice depends only on the time of the warm-ups, so that no result
 * influences it. */
static uint32_t choose_per_block(const struct loom__interleave *x)
{
	const struct loom__design *d = &x->design;
	uint64_t warmups = (uint64_t)x->arms * d->warmup, gone = loom__now_ns() - x->began_ns;
	if (!warmups || !gone)
		return LOOM__PER_BLOCK_LEAST;
	uint64_t fit = d->spread_ns / d->blocks / x->arms * warmups / gone;
	return fit < LOOM__PER_BLOCK_LEAST  ? LOOM__PER_BLOCK_LEAST
	       : fit > LOOM__PER_BLOCK_MOST ? LOOM__PER_BLOCK_MOST
					    : (uint32_t)fit & ~1u;
}

int loom__interleave_run(struct loom__interleave *x, struct loom_error *err)
{
	struct loom__design *d = &x->design;
	unsigned *order = loom__must(calloc(2 * (size_t)x->arms, sizeof(*order)));
	int rc = 0;
	x->began_ns = loom__now_ns();
	for (unsigned a = 0; a < x->arms; a++)
		x->arm[a].result->began_ns = x->began_ns; /* all variants have the same time axis */
	if (!d->openings)
		d->openings = choose_openings(x);
	d->openings = d->openings < d->blocks ? d->openings : d->blocks;
	rc = rc ? rc : warm_all(x, err);
	if (!d->per_block)
		d->per_block = choose_per_block(x);
	x->room = (size_t)x->arms * d->per_block * d->blocks;
	x->slot = rc ? NULL : loom__must(calloc(x->room ? x->room : 1, sizeof(*x->slot)));
	for (uint32_t b = 0; b < d->blocks && !rc; b++) {
		await_turn(x, b);
		if (d->budget_ns && loom__now_ns() - x->began_ns > d->budget_ns) {
			x->out_of_budget = 1;
			break;
		}
		if (b && b % loom__interleave_per_opening(d) == 0 && !stopped(x) && x->reopen)
			rc = reopen_all(x, b, order, err);
		if (!rc) {
			look(x);
			rc = block(x, b, order, err);
			look(x);
		}
		if (!rc)
			x->blocks++;
		if (!rc && !b && x->check)
			rc = x->check(x->arg, x, err);
	}
	free(order);
	struct loom_error ending;
	int ended = release_gpu(x, NULL, rc ? &ending : err);
	return rc ? rc : ended;
}
