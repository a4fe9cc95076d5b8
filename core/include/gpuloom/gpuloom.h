/* SPDX-License-Identifier: Apache-2.0 */
/* The embedding API: open a stack of plug-ins from a configuration, submit tasks, run, read results. docs/embedding.md
 * describes the use and the costs.
 *
 * The library has no globals, and does not exit, print or install signal handlers. The only environment variable that
 * it reads is GPULOOM_PLUGIN_PATH; options in GPULOOM_SECTION__KEY belong to the command. A program that is set-user-id
 * or has capabilities takes no plug-ins, compilers, caches or temporary folders from the environment. A process may
 * have several stacks, each used by a thread of its own.
 *
 * Threads: calls for one stack, its config and its results must not overlap. Only loom_stack_stop() and loom_strerror()
 * may be called at any time, from any thread or signal handler.
 *
 * Processes: a stack belongs to the process that opened it. In a fork of that process every call for the stack returns
 * LOOM_EBUSY, loom_stack_stop() does nothing, and loom_stack_close() frees private memory only. Workers, shared memory
 * and results of the parent stay as they are. A fork can open stacks of its own. The program may ignore SIGCHLD, wait
 * for any child, and close its standard streams: descriptors of the library and its plug-ins are above 2.
 *
 * Errors: functions return 0 or a negative enum loom_err. `err` may be NULL; a call that fails sets it, and err->text
 * is a sentence for the user. Unless stated otherwise, a failed call creates nothing and pointers must not be NULL.
 * Outputs are the last arguments but `err`. */
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

/* Returns the version of the library that runs, as "0.1.0". The string is constant. Any thread. */
LOOM_EXPORT const char *loom_version(void);

/* ---- configuration ---------------------------------------------------------------------------- */

struct loom_config;

/* The sources of a value; a later one overrides an earlier one. */
enum loom_source {
	LOOM_FROM_DEFAULT = 0,
	LOOM_FROM_FILE,
	LOOM_FROM_ENVIRONMENT,
	LOOM_FROM_COMMAND_LINE,
	LOOM_FROM_API,
};

/* Creates an empty configuration, which the caller destroys. Returns 0 or LOOM_ENOMEM. */
LOOM_EXPORT int loom_config_create(struct loom_config **cfg, struct loom_error *err);
/* Destroys a configuration, after the stacks that were opened from it. NULL is legal. */
LOOM_EXPORT void loom_config_destroy(struct loom_config *cfg);
/* Adds a conf file, whose values replace earlier ones. err->text has all mistakes, one line each, as far as they fit.
 * Returns LOOM_EINVAL for mistakes, LOOM_ENOENT or LOOM_EIO when the file cannot be read. */
LOOM_EXPORT int loom_config_load(struct loom_config *cfg, const char *path, struct loom_error *err);
/* Adds a conf from a text, which is copied; `name` stands for the file in messages. */
LOOM_EXPORT int loom_config_load_text(struct loom_config *cfg, const char *name, const char *text,
				      struct loom_error *err);
/* Sets a value, which overrides files: loom_config_set(cfg, "scheduler.mgws", "public_queue", "64", err). The strings
 * are copied. loom_stack_open() rejects options that do not exist. Returns 0, LOOM_EINVAL or LOOM_ENOMEM. */
LOOM_EXPORT int loom_config_set(struct loom_config *cfg, const char *section, const char *key,
				const char *value, struct loom_error *err);

/* ---- stack ------------------------------------------------------------------------------------ */

struct loom_stack;
struct loom_result;

/* Receives every message at or above the requested level, from any thread. */
typedef void loom_log_fn(void *arg, int level, const char *who, const char *text);

/* The processes that run one job together, each with its own stack of the same configuration. allgather() gives every
 * rank the `bytes` of each, in all[rank * bytes]. It is collective, in the same order on all ranks; the thread that
 * runs the stack calls it. LOOM_EDIED: a rank is gone. During a sample the stack notices within two seconds that a rank
 * of this host has ended; for other hosts, at the end of [run] timeout. */
struct loom_ranks {
	size_t size;
	uint32_t rank, ranks;
	void *self;
	int (*allgather)(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err);
	/* Equal for all ranks that are threads of this process, on devices with a virtual clock; NULL: processes. */
	const void *job;
};

struct loom_stack_params {
	size_t size; /* sizeof(struct loom_stack_params) */
	loom_log_fn *log; /* NULL: silent */
	void *log_arg;
	int log_level; /* enum loom_level of plugin.h: 0 errors only .. 3 debug */
	const struct loom_ranks *ranks; /* NULL: this process alone. Must stay valid until the stack is closed */
};

/* Opens and connects the plug-ins that cfg selects, and runs the coherence probe of the transport. The caller closes
 * the stack; cfg must not change or go before. `params` may be NULL. LOOM_EINVAL: the configuration is wrong, and
 * err->text has all mistakes. LOOM_EUNAVAIL: this machine or build lacks something. LOOM_ENOTSUP: plug-ins do not fit
 * together. Also LOOM_ENOMEM, and errors of plug-ins. */
LOOM_EXPORT int loom_stack_open(struct loom_config *cfg, const struct loom_stack_params *params,
				struct loom_stack **stack, struct loom_error *err);
/* Stops a run in progress, ends the workers within two seconds, and frees the stack. In a fork of the process that
 * opened the stack, it frees private memory only. NULL is legal. A thread whose task does not return after a stop
 * cannot be ended: the stack's memory then stays allocated, and what the task uses must stay too. */
LOOM_EXPORT void loom_stack_close(struct loom_stack *stack);

/* ---- task functions and memory: only between runs. After the first run these calls end the waiting workers, so
 *      the next run starts new ones and compiles the functions of the stack again. LOOM_EBUSY: a run is in progress, or
 *      its workers have not left. LOOM_ENOMEM. */

/* Registers a task function for the CPU devices and returns its tag. `name` is copied. With process isolation the
 * function runs in children that are forked when a run begins: only its writes to stack memory (loom_stack_alloc) are
 * kept. LOOM_EINVAL: no name or no function. */
LOOM_EXPORT int loom_stack_task(struct loom_stack *stack, const char *name, loom_task_fn *fn,
				uint32_t *tag, struct loom_error *err);

/* Registers task functions as source for devices of every kind: text in the common subset of C11 and C++, over
 * gpuloom/dev/dev.h, sched.h and task.h, which are included. Each of the n names is
 *   LOOM_FN void NAME(struct loom_ctx *c, const struct loom_task *t)
 * In the source LOOM_TAG_NAME is its tag; here, tags[i] is that of names[i]. `text` is copied; NULL: the content of the
 * file. The next run compiles the source: for GPUs by their run-time compiler, for CPUs by $CC or cc. That run returns
 * LOOM_EPLUGIN with file and line for a mistake, and LOOM_EUNAVAIL without a compiler. */
LOOM_EXPORT int loom_stack_source(struct loom_stack *stack, const char *file, const char *text,
				  const char *const *names, uint32_t n, uint32_t *tags,
				  struct loom_error *err);

/* Registers compiled task functions (<gpuloom/dev/ir.h>): LTO-IR or PTX for CUDA devices, a shared object for CPU
 * devices; the first bytes tell which. `data` is copied; NULL: the content of the file. Call it once per kind of
 * device: a name that came in other IR keeps its tag. LOOM_EINVAL: the name was registered in another way. */
LOOM_EXPORT int loom_stack_ir(struct loom_stack *stack, const char *file, const void *data, size_t bytes,
			      const char *const *names, uint32_t n, uint32_t *tags, struct loom_error *err);

/* Allocates `bytes` of zeroed memory, 64-byte aligned, that workers access as loom_at(c, ref) and the caller as *host.
 * The stack owns it until closed. LOOM_EFULL: some 250 calls were made. LOOM_EINVAL: 0 bytes. */
LOOM_EXPORT int loom_stack_alloc(struct loom_stack *stack, size_t bytes, loom_ref *ref, void **host,
				 struct loom_error *err);

/* Adopts memory that the program has allocated: on a GPU of the stack (cudaMalloc(), a tensor, managed memory) or on
 * the host. Host memory is registered with the GPUs while it is adopted. Workers find the memory at loom_at(c, *ref);
 * nothing is copied. The program must not free the memory before it releases it or closes the stack; neither call frees
 * it. Memory of one GPU is for GPUs that reach it directly. LOOM_EINVAL: not aligned to 8 bytes, or more than the
 * allocation has; LOOM_EUNAVAIL: a device does not reach it, and err->text says why; LOOM_EFULL. The call ends workers
 * that wait for the next run, as loom_stack_alloc() does. */
LOOM_EXPORT int loom_stack_adopt(struct loom_stack *stack, void *memory, size_t bytes, loom_ref *ref,
				 struct loom_error *err);
/* Releases adopted memory; workers must not use it afterwards. LOOM_EINVAL: it was not adopted. LOOM_EBUSY: runs may
 * use it. */
LOOM_EXPORT int loom_stack_release(struct loom_stack *stack, loom_ref ref, struct loom_error *err);

/* ---- runs ------------------------------------------------------------------------------------- */

/* Appends copies of n tasks to the initial set of the next run, also while a run is in progress. They stay until a run
 * has begun with them; a run that is refused or fails to begin leaves them. LOOM_EINVAL: a tag is not registered, or
 * the conf selects a workload. LOOM_ENOMEM: none was added. */
LOOM_EXPORT int loom_stack_submit(struct loom_stack *stack, const struct loom_task *tasks, size_t n,
				  struct loom_error *err);

/* Runs the submitted tasks, and all that they spawn, to the end, for at most [run] timeout (60 s by default). With a
 * workload in the conf, the workload runs instead, [run] warmup and samples times, each with that timeout.
 *
 * The caller destroys *result, which is also set with an error once a sample has begun. With `result` NULL nothing is
 * measured, which makes a run of microseconds.
 *
 * LOOM_ETIMEDOUT, LOOM_EINTR: the deadline or loom_stack_stop() ended the run; unfinished tasks are dropped, effects of
 * the others stay. LOOM_EWRONG: tasks were lost, or the workload's answer is wrong. LOOM_EDIED: a process or kernel of
 * a device died. LOOM_EBUSY: workers of such an ended run have not left because a task does not poll loom_stopped();
 * nothing was changed, and a run after they have left succeeds. Errors of tasks and plug-ins also come through. After
 * any error the stack can run again, unless err->text says to close it. */
LOOM_EXPORT int loom_stack_run(struct loom_stack *stack, struct loom_result **result,
			       struct loom_error *err);

/* The two halves of loom_stack_run(), for submitted tasks. Start returns when the workers have started. Wait returns
 * when they are done, or LOOM_EAGAIN after timeout_ns: wait again. Between the two, the stack may be stopped, closed,
 * or given tasks for the next run. [run] timeout counts from the start, and only wait checks it. Figures count from the
 * start. LOOM_EINVAL: the conf selects a workload, or (wait) nothing was started or put into a stream. */
LOOM_EXPORT int loom_stack_start(struct loom_stack *stack, struct loom_error *err);
LOOM_EXPORT int loom_stack_wait(struct loom_stack *stack, uint64_t timeout_ns, struct loom_result **result,
				struct loom_error *err);

/* Puts a run of the submitted tasks into a stream of the program (cudaStream_t, hipStream_t; NULL: the default stream). The
 * run follows earlier work of the stream, and later work follows the run. The calling thread does not wait, and may submit
 * tasks again at once. While the stream is being captured, the run becomes a part of the graph: each launch of the graph
 * runs the same tasks. Such graphs must not run beside each other or beside other runs of the stack. They are valid until
 * task functions or memory are added to the stack, until an error, or until the stack is closed.
 *
 * loom_stack_wait() then waits for all runs that were put into streams since its last call, and returns the first error of
 * these runs and of runs of graphs. Until then the stack refuses other runs with LOOM_EBUSY. Runs behind a failed run do
 * nothing. [run] timeout does not count, because the stream may have other work.
 *
 * At most 1,024 tasks. LOOM_ENOTSUP: the stack is not of one GPU, or the host has a part in each run; err->text names the
 * plug-in. LOOM_EINVAL: a stream of another GPU, or a stream that is being captured before a first run of the stack.
 * LOOM_EBUSY: another stream has runs that have not ended. LOOM_EFULL: too many tasks wait in the stream or are in
 * graphs. */
LOOM_EXPORT int loom_stack_enqueue(struct loom_stack *stack, void *stream, struct loom_error *err);

/* Ends the run in progress with LOOM_EINTR, if there is one. Submitted tasks end when the running ones return or poll
 * loom_stopped(). A workload ends after the current sample; at a second call, at once. Any thread or signal handler may
 * call this until the stack is closed. */
LOOM_EXPORT void loom_stack_stop(struct loom_stack *stack);

/* ---- collectives: all ranks call them in the same order, between runs. The conf must select a workload for them,
 *      as `[run] workload = allreduce`, and a trigger. The workers of all ranks take part, in one sample of at most
 *      [run] timeout. CPU workers and threads of the trigger stay for the next one. With one rank they do nothing.
 *      LOOM_EINVAL: no such workload, or the calls of the ranks differ, and none is executed. LOOM_EDIED: a rank is
 *      gone. LOOM_EBUSY and others: as loom_stack_run(). An error leaves the vector unchanged. */

/* Sums the vectors of all ranks in memory of the callers, to the last bit the same on each: the algorithm fixes the
 * order of additions. The vector must not exceed the workload's `bytes`. */
LOOM_EXPORT int loom_stack_allreduce(struct loom_stack *stack, float *vector, uint64_t floats, struct loom_error *err);
/* Copies the vector of rank `root` to all ranks. A signalling NaN may arrive as a quiet one. */
LOOM_EXPORT int loom_stack_broadcast(struct loom_stack *stack, uint32_t root, float *vector, uint64_t floats,
				     struct loom_error *err);
/* Returns when all ranks have called it. Works with any conf. */
LOOM_EXPORT int loom_stack_barrier(struct loom_stack *stack, struct loom_error *err);

/* ---- results ---------------------------------------------------------------------------------- */

/* Returns the median over the samples of a metric ("seconds", "tasks_per_s", ...: docs/results.md lists names and
 * units). LOOM_ENOENT: no sample has it. LOOM_EINVAL: a pointer is NULL. */
LOOM_EXPORT int loom_result_median(const struct loom_result *result, const char *metric, double *value);
/* Returns the metric of one sample. Samples count from 0, without warm-ups. LOOM_ENOENT: there is none. */
LOOM_EXPORT int loom_result_sample(const struct loom_result *result, size_t sample, const char *metric,
				   double *value);
/* Returns the number of samples: 1 for submitted tasks, 0 after an error. NULL is legal. */
LOOM_EXPORT size_t loom_result_samples(const struct loom_result *result);
/* Returns the result as JSON (docs/results.md), which the caller frees by free(); NULL: out of memory. */
LOOM_EXPORT char *loom_result_json(const struct loom_result *result);
/* Destroys a result, before or after its stack is closed. NULL is legal. */
LOOM_EXPORT void loom_result_destroy(struct loom_result *result);

#ifdef __cplusplus
}
#endif
#endif
