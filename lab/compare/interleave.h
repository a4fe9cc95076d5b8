/* SPDX-License-Identifier: Apache-2.0 */
/* An interleaved run: the stacks of all variants are open, and one stack executes at a time, in blocks. While a stack
 * is open, it keeps its memory pages. The addresses of these pages affect cache conflicts, and thereby the measured
 * times. To vary the addresses, all stacks are opened again, in random order, before each block or every few blocks. */
#ifndef LOOM_INTERLEAVE_H
#define LOOM_INTERLEAVE_H

#include "report/view/derive.h"
#include "run/engine.h"
#include "stats/stats.h"

#define LOOM__PER_BLOCK_LEAST 8u
#define LOOM__PER_BLOCK_MOST 32u

struct loom__design {
	enum loom__stats_order order;
	uint64_t seed;
	uint32_t blocks;
	/* Samples of each variant in a block; even for ABBA. 0: the run chooses the number after the warm-ups, so that
	 * blocks fill spread_ns, from LOOM__PER_BLOCK_LEAST to LOOM__PER_BLOCK_MOST. */
	uint32_t per_block;
	uint32_t warmup;    /* number of executions of each variant after each opening */
	/* number of openings of all stacks, at most one per block; 0: the run chooses it by the time that an opening takes */
	uint32_t openings;
	uint32_t rewarm;    /* number of uncounted executions before a sample, if another variant ran before it */
	uint64_t budget_ns; /* after this time no block starts; 0: no limit */
	/* The blocks are spread evenly over at least this time, because a shorter run could fall into a burst of
	 * load. */
	uint64_t spread_ns;
};

struct loom__arm {
	struct loom_stack *stack; /* prepared, and launched unless it holds a GPU */
	struct loom_result *result;
};

struct loom__interleave {
	struct loom__design design;
	struct loom__arm *arm; /* [arms] the variants */
	unsigned arms;
	unsigned *slot; /* [slots] the indices of the variants in the order of their counted samples */
	size_t slots, room;
	uint32_t blocks; /* number of complete blocks; each has arms * per_block entries at the front of `slot` */
	int out_of_budget;
	uint64_t began_ns;
	struct loom_stack *holder;  /* the launched stack that holds a GPU, or NULL */
	unsigned stop;              /* number of stop requests; atomic, for loom__interleave_stop() */
	struct loom_stack *running; /* the stack whose sample is in progress, or NULL; atomic */
	/* Called after the first block, when all variants have samples. An error ends the run. May be NULL. */
	int (*check)(void *arg, const struct loom__interleave *x, struct loom_error *err);
	/* Closes the stack of variant `arm` if `open` is 0; opens and launches it again if `open` is 1. If this
	 * function is NULL, stacks stay open. */
	int (*reopen)(void *arg, struct loom__interleave *x, unsigned arm, int open, struct loom_error *err);
	uint64_t opening_ns; /* time of the first opening of all stacks */
	void (*progress)(void *arg, const struct loom__interleave *x); /* called after each execution; may be NULL */
	const struct loom__derived *derived; /* derived metrics of each sample; may be NULL */
	void *arg;
};

/* Runs warm-ups, then blocks. The caller sets design, arm and arms, zeroes the other members, and frees `slot`. Returns
 * 0, LOOM_EINTR after a stop, or the error of a failed execution. Complete blocks are valid in all cases. */
int loom__interleave_run(struct loom__interleave *x, struct loom_error *err);

/* Returns whether the workers of a launched stack keep a GPU busy between samples. Workers of another stack could not start
 * there, and calls of the driver that open one could wait for ever. So such a stack is launched for its samples alone, and
 * retired before the next variant's. */
int loom__holds_gpu(const struct loom_stack *s);

/* Stops the run after the current sample. A second call stops it at once, like loom_stack_stop(). Async-signal-safe. */
void loom__interleave_stop(struct loom__interleave *x);

/* Returns the number of blocks that share one opening of the stacks, rounded down, so that there are as many as asked for. */
uint32_t loom__interleave_per_opening(const struct loom__design *d);

/* Returns the number of executions in the whole run, with warm-ups. The number is an estimate until the warm-ups are
 * done. */
size_t loom__interleave_total(const struct loom__interleave *x);

#endif
