/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of `gpuloom run` and `gpuloom sweep`: their ranks, and progress. */
#ifndef LOOM_CLI_RUN_H
#define LOOM_CLI_RUN_H

#include "cli/cli.h"
#include "ranks/boot.h"
#include "run/engine.h"
#include "stack/plan.h"

/* Ranks of a command. Only rank 0 prints. */
/* Returns 1 if the ranks must be threads of this process, as on simulated devices. In this case also sets *ranks or,
 * after an error, sets *status to an exit code. Returns 0 if the ranks are processes. */
int loom__ranks_threads(const struct loom__cli *cli, const char *n, const struct loom__plan *plan, uint32_t *ranks,
			int *status);
/* Starts ranks that are processes. `n` is the argument of -n; if it is NULL, the number of ranks is `ranks`. Returns 1
 * in a rank, which continues and calls loom__ranks_end(). Returns 0 in the parent of the ranks, or after an error, with
 * an exit code in *status. */
int loom__ranks_begin(struct loom__cli *cli, const char *n, uint32_t ranks, struct loom__boot *boot, int *status);
/* Ends a rank. Reports the error if err->code is not 0. Returns `status`. */
int loom__ranks_end(const struct loom__cli *cli, struct loom__boot *boot, int status,
		    const struct loom_error *err);

/* Ranks as threads of this command, for simulated devices. The caller runs rank 0, which the other ranks follow. */
struct loom__rank_threads;

enum loom__rank_threads_mode {
	LOOM__RANK_THREADS_RUN,    /* the other ranks call loom__stack_run(), as rank 0 does */
	LOOM__RANK_THREADS_SAMPLE, /* the other ranks wait for loom__rank_threads_sample() */
};
/* Starts ranks 1 to `ranks` - 1, with plans from cfg. The caller opens the stack of rank 0, with
 * loom__rank_threads_ranks() as its ranks. */
int loom__rank_threads_start(struct loom_config *cfg, uint32_t ranks, enum loom__rank_threads_mode mode,
			     struct loom__rank_threads **others, struct loom_error *err);
const struct loom_ranks *loom__rank_threads_ranks(const struct loom__rank_threads *c);
/* Makes signals stop the stacks of all ranks. `stack` is the stack of rank 0; if c is NULL, this stack is the only one.
 * `text` is as for loom__on_stop(). A call of loom__on_stop() ends this effect. */
void loom__rank_threads_on_stop(struct loom__rank_threads *c, struct loom_stack *stack, const char *text);
/* Runs a sample on all ranks, or on `stack` only if c is NULL. */
int loom__rank_threads_sample(struct loom__rank_threads *c, struct loom_stack *stack, struct loom_result *result,
			      int warmup, struct loom_error *err);
/* Ends rank 0 with `code`, which is 0 or the error in *err. Waits for the other ranks, and closes their stacks. Returns
 * the first error of any rank, with its text in *err, or 0. LOOM_EDIED is returned only if no rank has another error.
 * If c is NULL, returns `code`. */
int loom__rank_threads_finish(struct loom__rank_threads *c, int code, struct loom_error *err);

/* Progress of a run, in one line. */
struct loom__watch {
	const struct loom__cli *cli;
	int line;            /* 1: prints a line, because stderr is a terminal */
	int silent;          /* 1: prints no progress of a verification either */
	uint64_t drawn_ns;
	uint64_t beat_ns;    /* time of the last progress line */
	uint64_t beat_cpu_ns; /* CPU time of this process at beat_ns */
	size_t executions;   /* number of completed executions */
};

/* Prints the elapsed time once per second during an execution. */
void loom__watch_beat(void *arg, const struct loom_stack *s, uint64_t since_ns);
/* Prints the progress of a verification. `done` is the completed share, from 0 to 1. */
void loom__watch_verifying(void *arg, const struct loom_stack *s, uint64_t since_ns, double done);
/* Called after each execution. At this time workers have written their counters, so reading the counters slows no
 * worker. */
void loom__watch_sample(void *arg, const struct loom_stack *s, const struct loom_result *r);
/* Clears the line on the terminal. */
void loom__watch_end(struct loom__watch *w);

#endif
