/* SPDX-License-Identifier: Apache-2.0 */
/* An interleaved run: all variants are open, and one executes at a time, in blocks. An open stack keeps its pages and
 * cache colour. So stacks are opened again, in random order, for each block or every few blocks. */
#ifndef LOOM_INTERLEAVE_H
#define LOOM_INTERLEAVE_H

#include "report/derive.h"
#include "run/engine.h"
#include "stats/stats.h"

#define LOOM__PER_BLOCK_LEAST 8u
#define LOOM__PER_BLOCK_MOST 32u

struct loom__design {
	enum loom__stats_order order;
	uint64_t seed;
	uint32_t blocks;
	/* Samples of each variant in a block; even for ABBA. 0: chosen after the warm-ups, as many as fit into the
	 * block's share of spread_ns, from LOOM__PER_BLOCK_LEAST to LOOM__PER_BLOCK_MOST. */
	uint32_t per_block;
	uint32_t warmup;    /* executions of each variant after opening */
	uint32_t openings;  /* openings of all stacks, at most one per block; 0: chosen by the time of an opening */
	uint32_t rewarm;    /* uncounted executions before a sample that follows another variant's */
	uint64_t budget_ns; /* after this time no block starts; 0: no limit */
	/* The blocks are spread evenly over at least this time, since a shorter run could fall into a burst of load. */
	uint64_t spread_ns;
};

struct loom__arm {
	struct loom_stack *stack; /* prepared and launched */
	struct loom_result *result;
};

struct loom__interleave {
	struct loom__design design;
	struct loom__arm *arm; /* [arms] */
	unsigned arms;
	unsigned *slot; /* the arms in the order of their counted samples */
	size_t slots, room;
	uint32_t blocks; /* complete blocks, of arms * per_block slots each, at the front of `slot` */
	int out_of_budget;
	uint64_t began_ns;
	unsigned stop;              /* atomic: for loom__interleave_stop() */
	struct loom_stack *running; /* atomic: the stack whose sample is in progress, or NULL */
	/* Called after the first block, when all arms have samples. An error ends the run. May be NULL. */
	int (*check)(void *arg, const struct loom__interleave *x, struct loom_error *err);
	/* Closes the stack of an arm, or opens and launches it again. NULL: stacks stay open. */
	int (*reopen)(void *arg, struct loom__interleave *x, unsigned arm, int open, struct loom_error *err);
	uint64_t opening_ns; /* time of the first opening of all stacks */
	void (*progress)(void *arg, const struct loom__interleave *x); /* Called after each execution; may be NULL. */
	const struct loom__derived *derived; /* derived metrics of each sample; may be NULL */
	void *arg;
};

/* Runs warm-ups, then blocks. The caller sets design, arm and arms, zeroes the rest, and frees slot. Returns 0,
 * LOOM_EINTR after a stop, or the error of a failed execution. Complete blocks stay valid. */
int loom__interleave_run(struct loom__interleave *x, struct loom_error *err);

/* Stops the run after the current sample, or at a second call at once, like loom_stack_stop(). Async-signal-safe. */
void loom__interleave_stop(struct loom__interleave *x);

/* Returns the number of blocks that share one opening. */
uint32_t loom__interleave_per_opening(const struct loom__design *d);

/* Returns the executions of the whole run, with warm-ups. The number is an estimate until the warm-ups are done. */
size_t loom__interleave_total(const struct loom__interleave *x);

#endif
