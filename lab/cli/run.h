/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of gpuloom run and sweep: their ranks, and progress. */
#ifndef LOOM_CLI_RUN_H
#define LOOM_CLI_RUN_H

#include "cli/cli.h"
#include "ranks/boot.h"
#include "run/engine.h"
#include "stack/plan.h"

/* Commands that run as several ranks; only rank 0 prints. */
/* Returns 1 when the ranks must be threads of this process, as on simulated devices. *ranks is then set, or *status is
 * an exit code if they cannot be threads. */
int loom__ranks_threads(const struct loom__cli *cli, const char *n, const struct loom__plan *plan, uint32_t *ranks,
			int *status);
/* Starts the ranks. `n`: the argument of -n, or NULL to use `ranks`. Returns 1 in a rank, which continues and calls
 * loom__ranks_end(). Returns 0 in the parent of the ranks, or after an error, with an exit code in *status. */
int loom__ranks_begin(struct loom__cli *cli, const char *n, uint32_t ranks, struct loom__boot *boot, int *status);
/* Reports an error (err->code not 0), and returns `status`. */
int loom__ranks_end(const struct loom__cli *cli, struct loom__boot *boot, int status,
		    const struct loom_error *err);

/* Ranks as threads of this command, for simulated devices. The caller runs rank 0; the other ranks follow rank 0. */
struct loom__rank_threads;

enum loom__rank_threads_mode {
	LOOM__RANK_THREADS_RUN,    /* the other ranks call loom__stack_run(), as rank 0 does */
	LOOM__RANK_THREADS_SAMPLE, /* the other ranks wait for loom__rank_threads_sample() */
};
/* Starts ranks 1 to `ranks` - 1, with plans from cfg. The caller opens rank 0 with loom__rank_threads_ranks(). */
int loom__rank_threads_start(struct loom_config *cfg, uint32_t ranks, enum loom__rank_threads_mode mode,
			     struct loom__rank_threads **others, struct loom_error *err);
const struct loom_ranks *loom__rank_threads_ranks(const struct loom__rank_threads *c);
/* Makes signals stop all stacks, of which `stack` is that of rank 0; with c NULL, only `stack`. `text` is as for
 * loom__on_stop(), which also ends this effect. */
void loom__rank_threads_on_stop(struct loom__rank_threads *c, struct loom_stack *stack, const char *text);
/* Runs a sample on all ranks; with c NULL, on `stack` only. */
int loom__rank_threads_sample(struct loom__rank_threads *c, struct loom_stack *stack, struct loom_result *result,
			      int warmup, struct loom_error *err);
/* Ends rank 0 with `code`, 0 or an error in *err. Waits for the other ranks and closes their stacks. Returns the first
 * error, in *err, that is more than the end of another rank. With c NULL, returns `code`. */
int loom__rank_threads_finish(struct loom__rank_threads *c, int code, struct loom_error *err);

/* Progress of a run: one line, or all workers. */
struct loom__watch {
	const struct loom__cli *cli;
	int line;            /* one line, if on a terminal */
	int workers;         /* for --watch */
	uint64_t drawn_ns;
	uint64_t beat_ns;    /* the time of the last progress line */
	uint64_t beat_cpu_ns; /* CPU time of this process at that time */
	size_t executions;   /* completed executions */
	unsigned lines; /* lines on the terminal to redraw */
};

/* Prints the elapsed time once per second during an execution. */
void loom__watch_beat(void *arg, const struct loom_stack *s, uint64_t since_ns);
/* Prints the progress of a verification. `done` is the completed share, from 0 to 1. */
void loom__watch_verifying(void *arg, const struct loom_stack *s, uint64_t since_ns, double done);
/* Called after each execution, when workers have written their counters, so watching does not slow them. */
void loom__watch_sample(void *arg, const struct loom_stack *s, const struct loom_result *r);
/* Clears the lines on the terminal. */
void loom__watch_end(struct loom__watch *w);

#endif
