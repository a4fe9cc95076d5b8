/* SPDX-License-Identifier: Apache-2.0 */
/* The embedding API: open a stack of plug-ins from a configuration, submit tasks, run, read results. docs/embedding.md
 * shows how, and what it costs.
 *
 * The library has no globals, never exits, prints or installs signal handlers. Of the environment it reads
 * GPULOOM_PLUGIN_PATH; options in GPULOOM_SECTION__KEY are the command's. A set-user-id program, or one with
 * capabilities, takes nothing from the environment: no plug-ins, compilers, caches or temporary folders. Several stacks may live in one process, each
 * used by a thread of its own.
 *
 * Threads: a stack, its config and its results belong to one thread at a time: calls for them must not overlap. Only
 * loom_stack_stop() and loom_strerror() may be called at any time, from any thread or signal handler.
 *
 * Processes: a stack belongs to the process that opened it. In a fork of that process every call for it is LOOM_EBUSY,
 * loom_stack_stop() does nothing, and loom_stack_close() frees private memory only: the workers, what they share and the
 * results of the parent stay as they are. A fork can open stacks of its own. The program may ignore SIGCHLD or wait for
 * any child, and may have closed its standard streams: descriptors of the library and its plug-ins are above 2.
 *
 * Errors: 0 or a negative enum loom_err. `err` may be NULL; it is written when a call fails, and err->text is a
 * sentence for the user. What a failed call would have made does not exist, unless it says so. Outputs are the last
 * arguments but `err`. A pointer must not be NULL unless it says so. */
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

/* "0.1.0": of the library that runs. Constant. Any thread. */
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

/* An empty configuration, the caller's: destroy it. LOOM_ENOMEM. */
LOOM_EXPORT int loom_config_create(struct loom_config **cfg, struct loom_error *err);
/* After the stacks that were opened from it. NULL is legal. */
LOOM_EXPORT void loom_config_destroy(struct loom_config *cfg);
/* Adds a conf file: what stands in it replaces what came before. All its mistakes are in err->text, one line each, as
 * far as they fit. LOOM_EINVAL: mistakes; LOOM_ENOENT, LOOM_EIO: it cannot be read. */
LOOM_EXPORT int loom_config_load(struct loom_config *cfg, const char *path, struct loom_error *err);
/* The same from memory, which is copied; `name` stands for the file in messages. */
LOOM_EXPORT int loom_config_load_text(struct loom_config *cfg, const char *name, const char *text,
				      struct loom_error *err);
/* loom_config_set(cfg, "scheduler.mgws", "public_queue", "64", err): wins over files. The strings are copied. Whether
 * such an option exists shows when a stack is opened. LOOM_EINVAL, LOOM_ENOMEM. */
LOOM_EXPORT int loom_config_set(struct loom_config *cfg, const char *section, const char *key,
				const char *value, struct loom_error *err);

/* ---- stack ------------------------------------------------------------------------------------ */

struct loom_stack;
struct loom_result;

/* Receives every message at or above the level asked for; may be called from any thread. */
typedef void loom_log_fn(void *arg, int level, const char *who, const char *text);

/* The processes that run one job together, each with a stack of its own from the same configuration: how
 * they find each other. allgather() gives every rank what each gave, all[rank * bytes]; collective, in
 * the same order on all, called by the thread that runs the stack. LOOM_EDIED when a rank is gone. In mid-sample the
 * stack sees within a second or two that a rank of this host has ended; one of another host at the end of [run] timeout. */
struct loom_ranks {
	size_t size;
	uint32_t rank, ranks;
	void *self;
	int (*allgather)(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err);
	/* Ranks that are threads of this process, one stack each, all on devices with a virtual clock: the same for all of
	 * them. NULL: each rank is a process. */
	const void *job;
};

struct loom_stack_params {
	size_t size; /* sizeof(struct loom_stack_params) */
	loom_log_fn *log; /* NULL: silent */
	void *log_arg;
	int log_level; /* enum loom_level of plugin.h: 0 errors only .. 3 debug */
	const struct loom_ranks *ranks; /* NULL: this process alone. Valid until the stack is closed */
};

/* Opens and wires the plug-ins that cfg selects, and runs the transport's coherence probe. The stack is the caller's:
 * close it. cfg must not change or go before that. `params` may be NULL. LOOM_EINVAL: the configuration is wrong, and
 * err->text has all its mistakes; LOOM_EUNAVAIL: this machine or build lacks something; LOOM_ENOTSUP: plug-ins do not
 * go together; LOOM_ENOMEM, and what plug-ins return. */
LOOM_EXPORT int loom_stack_open(struct loom_config *cfg, const struct loom_stack_params *params,
				struct loom_stack **stack, struct loom_error *err);
/* Ends the workers, within a second or two, and frees what the stack holds; a run in progress is stopped first. In a fork
 * of the process that opened it: frees private memory, nothing else. NULL is legal. Where a task does not return after
 * a stop, its thread cannot be ended: the memory of the stack then stays allocated, and what the task uses must stay too. */
LOOM_EXPORT void loom_stack_close(struct loom_stack *stack);

/* ---- task functions and memory: between runs. After the first run they end the workers that wait, so the next run
 *      starts new ones, and compiles the functions of the stack again. LOOM_EBUSY: a run is in progress, or its workers
 *      are still there. LOOM_ENOMEM. */

/* Registers a task function for the CPU devices and gives its tag. `name` is copied. With process isolation the function
 * runs in children that are forked when a run begins: what it writes outside of stack memory (loom_stack_alloc) is
 * lost. LOOM_EINVAL: no name or no function. */
LOOM_EXPORT int loom_stack_task(struct loom_stack *stack, const char *name, loom_task_fn *fn,
				uint32_t *tag, struct loom_error *err);

/* Registers task functions as source, for devices of every kind: text in C11 that is C++ as well, like a
 * plug-in's device code, over gpuloom/dev/dev.h, sched.h and task.h, which are included. Each of the n names is
 *   LOOM_FN void NAME(struct loom_ctx *c, const struct loom_task *t)
 * and LOOM_TAG_NAME is its tag in the source, tags[i] that of names[i] here. `text` is copied; NULL: what the
 * file holds. The next run compiles it: GPUs by their run-time compiler, CPUs by the machine's C
 * compiler ($CC, or cc). A mistake is that run's LOOM_EPLUGIN with file and line, no compiler its LOOM_EUNAVAIL. */
LOOM_EXPORT int loom_stack_source(struct loom_stack *stack, const char *file, const char *text,
				  const char *const *names, uint32_t n, uint32_t *tags,
				  struct loom_error *err);

/* Registers task functions that are compiled already, as <gpuloom/dev/ir.h> says: LTO-IR or PTX for CUDA devices, a
 * shared object for CPU devices; what it is shows from its first bytes. `data` is copied; NULL: what the file holds.
 * For devices of several kinds call it once for each: a name that came in other IR keeps its tag, one that came
 * otherwise is LOOM_EINVAL. */
LOOM_EXPORT int loom_stack_ir(struct loom_stack *stack, const char *file, const void *data, size_t bytes,
			      const char *const *names, uint32_t n, uint32_t *tags, struct loom_error *err);

/* `bytes` of zeroed memory, 64-byte aligned, that every worker sees as loom_at(c, ref) and the caller as *host. It is
 * the stack's, until that is closed. Some 250 times at most: LOOM_EFULL. LOOM_EINVAL: 0 bytes. */
LOOM_EXPORT int loom_stack_alloc(struct loom_stack *stack, size_t bytes, loom_ref *ref, void **host,
				 struct loom_error *err);

/* ---- runs ------------------------------------------------------------------------------------- */

/* Copies n tasks into the initial set of the next run, behind those that are there: also while a run is in progress.
 * They stay until a run has begun with them: one that is refused, or fails to begin, leaves them. LOOM_EINVAL: a tag
 * that is not registered, or the conf selects a workload; LOOM_ENOMEM: none of them was added. */
LOOM_EXPORT int loom_stack_submit(struct loom_stack *stack, const struct loom_task *tasks, size_t n,
				  struct loom_error *err);

/* Runs the submitted tasks, and all that they spawn, to the end: at most for [run] timeout, which is 60 s unless the
 * configuration says otherwise, however well the job goes on. With a workload in the conf it runs that instead, [run]
 * warmup and samples times, each with that timeout.
 *
 * *result is the caller's; result may be NULL, and then nothing is measured, which makes a run of microseconds. It
 * also comes with an error, once a sample was begun; destroy it.
 *
 * LOOM_ETIMEDOUT, LOOM_EINTR: the deadline or loom_stack_stop() ended it; what its tasks did is done, the others are
 * dropped. LOOM_EWRONG: tasks were lost, or the workload's answer is wrong. LOOM_EDIED: a device's process or kernel.
 * LOOM_EBUSY: workers of an earlier run, which ended like that, are still there because a task does not poll
 * loom_stopped(): nothing was touched, and a run after they have left will do. Or what a task or plug-in failed with.
 * After any error the stack can run again, unless err->text says to close it. */
LOOM_EXPORT int loom_stack_run(struct loom_stack *stack, struct loom_result **result,
			       struct loom_error *err);

/* loom_stack_run() in two halves, for submitted tasks: start returns when the workers have been started, wait
 * when they are done, or after timeout_ns with LOOM_EAGAIN: wait again. Between them the stack may be waited for,
 * stopped, submitted to for the next run, and closed. [run] timeout counts from the start, and is checked by wait
 * alone. Figures are from start on, the time in which workers wake up included. LOOM_EINVAL: the conf selects a
 * workload, or (wait) nothing was started. */
LOOM_EXPORT int loom_stack_start(struct loom_stack *stack, struct loom_error *err);
LOOM_EXPORT int loom_stack_wait(struct loom_stack *stack, uint64_t timeout_ns, struct loom_result **result,
				struct loom_error *err);

/* Asks the run in progress to end with LOOM_EINTR. Submitted tasks: now, that is when the tasks that are being run
 * return or poll loom_stopped(). A workload: once = after the current sample, again = now. Without a run in
 * progress nothing happens. Any thread, and signal handlers, as long as the stack is not closed. */
LOOM_EXPORT void loom_stack_stop(struct loom_stack *stack);

/* ---- collectives: all ranks call them, in the same order, between runs. The conf selects a workload that carries them out,
 *      as `[run] workload = allreduce`, and a trigger: the workers of all ranks take part, in one sample, for [run] timeout at
 *      most. Workers of CPUs stay for the next one, and the trigger's threads with them. Of one rank nothing is done.
 *      LOOM_EINVAL: no such workload, or ranks do not call alike, which none of them then does; LOOM_EDIED: a rank is gone;
 *      LOOM_EBUSY and others: as loom_stack_run(). After an error the vector is what it was. */

/* The sum of all ranks' vectors, in the caller's memory: each rank has it, to the last bit the same, since the order of the
 * additions is the algorithm's. At most as large as the workload's `bytes`. */
LOOM_EXPORT int loom_stack_allreduce(struct loom_stack *stack, float *vector, uint64_t floats, struct loom_error *err);
/* All ranks get the vector of rank `root`. A signalling NaN may come as a quiet one. */
LOOM_EXPORT int loom_stack_broadcast(struct loom_stack *stack, uint32_t root, float *vector, uint64_t floats,
				     struct loom_error *err);
/* Returns when all ranks have called it. With any conf. */
LOOM_EXPORT int loom_stack_barrier(struct loom_stack *stack, struct loom_error *err);

/* ---- results ---------------------------------------------------------------------------------- */

/* Median over the samples of a metric ("seconds", "tasks_per_s", "steals", ...: docs/results.md has names and units).
 * LOOM_ENOENT: no sample has it; LOOM_EINVAL: a NULL. */
LOOM_EXPORT int loom_result_median(const struct loom_result *result, const char *metric, double *value);
/* One sample's metric, samples counted from 0, without warm-ups. LOOM_ENOENT. */
LOOM_EXPORT int loom_result_sample(const struct loom_result *result, size_t sample, const char *metric,
				   double *value);
/* How many samples there are: 1 for submitted tasks, 0 after an error. NULL is legal. */
LOOM_EXPORT size_t loom_result_samples(const struct loom_result *result);
/* The whole result as JSON (docs/results.md), the caller's: free() it. NULL: out of memory. */
LOOM_EXPORT char *loom_result_json(const struct loom_result *result);
/* Before or after its stack is closed. NULL is legal. */
LOOM_EXPORT void loom_result_destroy(struct loom_result *result);

#ifdef __cplusplus
}
#endif
#endif
