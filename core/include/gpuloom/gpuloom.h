/* SPDX-License-Identifier: Apache-2.0 */
/* The embedding API: open a stack of plug-ins from a configuration, submit tasks, run, read results.
 *
 * The library has no globals, never exits, prints or installs signal handlers; several stacks may
 * live in one process. A stack and its config belong to one thread at a time; loom_stack_stop() alone
 * may be called from any thread or signal handler. Outputs are the last arguments but `err`. */
#ifndef GPULOOM_GPULOOM_H
#define GPULOOM_GPULOOM_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_VERSION_MAJOR 0
#define LOOM_VERSION_MINOR 1
#define LOOM_VERSION_PATCH 0

/* "0.1.0" */
LOOM_EXPORT const char *loom_version(void);

/* ---- configuration ---------------------------------------------------------------------------- */

struct loom_config;

/* Where a value came from; later ones win. */
enum loom_source {
	LOOM_FROM_DEFAULT = 0,
	LOOM_FROM_FILE,
	LOOM_FROM_ENVIRONMENT,
	LOOM_FROM_COMMAND_LINE,
	LOOM_FROM_API,
};

LOOM_EXPORT int loom_config_create(struct loom_config **cfg, struct loom_error *err);
LOOM_EXPORT void loom_config_destroy(struct loom_config *cfg); /* NULL is legal */
/* Adds a conf file. All its mistakes are in err->text, one line each, as far as they fit. */
LOOM_EXPORT int loom_config_load(struct loom_config *cfg, const char *path, struct loom_error *err);
/* The same from memory; `name` stands for the file in messages. */
LOOM_EXPORT int loom_config_load_text(struct loom_config *cfg, const char *name, const char *text,
				      struct loom_error *err);
/* loom_config_set(cfg, "scheduler.mgws", "public_queue", "64", err): wins over files. */
LOOM_EXPORT int loom_config_set(struct loom_config *cfg, const char *section, const char *key,
				const char *value, struct loom_error *err);

/* ---- stack ------------------------------------------------------------------------------------ */

struct loom_stack;
struct loom_result;

/* Receives every message at or above the level asked for; may be called from any thread. */
typedef void loom_log_fn(void *arg, int level, const char *who, const char *text);

/* The processes that run one job together, each with a stack of its own from the same configuration: how
 * they find each other. allgather() gives every rank what each gave, all[rank * bytes]; collective, in
 * the same order on all, called by the thread that runs the stack. LOOM_EDIED when a rank is gone. */
struct loom_ranks {
	size_t size;
	uint32_t rank, ranks;
	void *self;
	int (*allgather)(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err);
};

struct loom_stack_params {
	size_t size; /* sizeof(struct loom_stack_params) */
	loom_log_fn *log; /* NULL: silent */
	void *log_arg;
	int log_level; /* enum loom_level of plugin.h: 0 errors only .. 3 debug */
	const struct loom_ranks *ranks; /* NULL: this process alone. Valid until the stack is closed */
};

/* Opens and wires the plug-ins that cfg selects, and runs the transport's coherence probe. `params`
 * may be NULL. cfg may be destroyed after the stack only. */
LOOM_EXPORT int loom_stack_open(struct loom_config *cfg, const struct loom_stack_params *params,
				struct loom_stack **stack, struct loom_error *err);
LOOM_EXPORT void loom_stack_close(struct loom_stack *stack); /* NULL is legal */

/* Registers a task function for the CPU devices and gives its tag. Before the first run only. With
 * process isolation the function runs in forked children: what it writes outside of stack memory
 * (loom_stack_alloc) is lost. */
LOOM_EXPORT int loom_stack_task(struct loom_stack *stack, const char *name, loom_task_fn *fn,
				uint32_t *tag, struct loom_error *err);

/* Registers task functions as source, for devices of every kind: text in C11 that is C++ as well, like a
 * plug-in's device code, over gpuloom/dev/dev.h, sched.h and task.h, which are included. Each of the n names is
 *   LOOM_FN void NAME(struct loom_ctx *c, const struct loom_task *t)
 * and LOOM_TAG_NAME is its tag in the source, tags[i] that of names[i] here. `text` is copied; NULL: what the
 * file holds. Before the first run, which compiles it: GPUs by their run-time compiler, CPUs by the machine's C
 * compiler ($CC, or cc). A mistake is LOOM_EPLUGIN with file and line, no compiler LOOM_EUNAVAIL. */
LOOM_EXPORT int loom_stack_source(struct loom_stack *stack, const char *file, const char *text,
				  const char *const *names, uint32_t n, uint32_t *tags,
				  struct loom_error *err);

/* Registers task functions that are compiled already, as <gpuloom/dev/ir.h> says: LTO-IR or PTX for CUDA devices, a
 * shared object for CPU devices; what it is shows from its first bytes. `data` is copied; NULL: what the file holds.
 * For devices of several kinds call it once for each: a name that came in other IR keeps its tag, one that came
 * otherwise is LOOM_EINVAL. Before the first run. */
LOOM_EXPORT int loom_stack_ir(struct loom_stack *stack, const char *file, const void *data, size_t bytes,
			      const char *const *names, uint32_t n, uint32_t *tags, struct loom_error *err);

/* Zeroed memory that every worker sees as loom_at(c, ref) and the caller as *host. Lives until the
 * stack is closed. Before the first run only. 64-byte aligned. */
LOOM_EXPORT int loom_stack_alloc(struct loom_stack *stack, size_t bytes, loom_ref *ref, void **host,
				 struct loom_error *err);

/* Copies tasks into the initial set of the next run. */
LOOM_EXPORT int loom_stack_submit(struct loom_stack *stack, const struct loom_task *tasks, size_t n,
				  struct loom_error *err);

/* Runs the submitted tasks, and all that they spawn, to the end. With a workload in the conf it runs
 * that instead, [run] warmup and samples times. *result (may be NULL) also comes with an error once
 * any sample was measured; destroy it. */
LOOM_EXPORT int loom_stack_run(struct loom_stack *stack, struct loom_result **result,
			       struct loom_error *err);

/* Asks a run in progress to end: once = after the current sample, again = now. Async-signal-safe. */
LOOM_EXPORT void loom_stack_stop(struct loom_stack *stack);

/* ---- results ---------------------------------------------------------------------------------- */

/* Median over the samples of a metric ("seconds", "tasks_per_s", "steals", ...). */
LOOM_EXPORT int loom_result_median(const struct loom_result *result, const char *metric, double *value);
/* One sample's metric, samples counted from 0. */
LOOM_EXPORT int loom_result_sample(const struct loom_result *result, size_t sample, const char *metric,
				   double *value);
LOOM_EXPORT size_t loom_result_samples(const struct loom_result *result);
/* The whole result as JSON (docs/results.md); free() it. NULL: out of memory. */
LOOM_EXPORT char *loom_result_json(const struct loom_result *result);
LOOM_EXPORT void loom_result_destroy(struct loom_result *result); /* NULL is legal */

#ifdef __cplusplus
}
#endif
#endif
