/* SPDX-License-Identifier: Apache-2.0 */
/* The embedding API: open a stack of plug-ins from a configuration, submit tasks, run them, and read results.
 * docs/embedding.md describes the use and the costs.
 *
 * The library has no globals, and does not exit, print or install signal handlers. The only environment variable that
 * it reads is GPULOOM_PLUGIN_PATH; only the command `gpuloom` takes options from variables such as
 * GPULOOM_SECTION__KEY. If the program is set-user-id or has capabilities, the library takes no plug-ins, compilers,
 * caches or temporary folders from the environment. A process may have several stacks. Each may be used by another
 * thread.
 *
 * Threads: calls for one stack, its configuration and its results must not overlap. Only loom_stack_stop() and
 * loom_strerror() may be called at any time, from any thread or signal handler.
 *
 * Processes: a stack belongs to the process that opened it. In a fork of that process, every call for the stack returns
 * LOOM_EBUSY, loom_stack_stop() does nothing, and loom_stack_close() frees only private memory. Workers, shared memory
 * and results of the parent stay as they are. A fork can open its own stacks. The program may ignore SIGCHLD, and may
 * wait for any child. It may also close its standard streams, because descriptors of the library and its plug-ins are
 * above 2.
 *
 * Errors: functions return 0 or a negative enum loom_err. `err` may be NULL; a call that fails sets it, and err->text
 * is a sentence for the user. A failed call creates nothing, and pointers must not be NULL, unless stated otherwise.
 * Outputs are the last arguments before `err`. */
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

/* Returns the version of the library that runs, such as "0.1.0". The string is constant. Any thread may call this. */
LOOM_EXPORT const char *loom_version(void);

/* ---- configuration ---------------------------------------------------------------------------- */

struct loom_config;

/* The sources of a value. A later source in this list overrides an earlier one. */
enum loom_source {
	LOOM_FROM_DEFAULT = 0,
	LOOM_FROM_FILE,
	LOOM_FROM_ENVIRONMENT,
	LOOM_FROM_COMMAND_LINE,
	LOOM_FROM_API,
};

/* Creates an empty configuration, which the caller destroys. Returns 0 or LOOM_ENOMEM. */
LOOM_EXPORT int loom_config_create(struct loom_config **cfg, struct loom_error *err);
/* Destroys a configuration. The stacks that were opened from it must be closed first. `cfg` may be NULL. */
LOOM_EXPORT void loom_config_destroy(struct loom_config *cfg);
/* Adds a conf file, whose values replace earlier ones. Returns LOOM_EINVAL if the file has mistakes. err->text then has
 * one line for each mistake, as far as the lines fit. Returns LOOM_ENOENT or LOOM_EIO if the file cannot be read. */
LOOM_EXPORT int loom_config_load(struct loom_config *cfg, const char *path, struct loom_error *err);
/* Adds a conf from a text, which is copied. Messages have `name` as the name of the file. */
LOOM_EXPORT int loom_config_load_text(struct loom_config *cfg, const char *name, const char *text,
				      struct loom_error *err);
/* Sets a value, which overrides files: loom_config_set(cfg, "scheduler.mgws", "public_queue", "64", err). The strings
 * are copied. loom_stack_open() rejects options that do not exist. Returns 0, LOOM_EINVAL or LOOM_ENOMEM. */
LOOM_EXPORT int loom_config_set(struct loom_config *cfg, const char *section, const char *key,
				const char *value, struct loom_error *err);

/* ---- stack ------------------------------------------------------------------------------------ */

struct loom_stack;
struct loom_result;

/* Receives every message of `log_level` or of a more severe level, from any thread. */
typedef void loom_log_fn(void *arg, int level, const char *who, const char *text);

/* The processes that run one job together, each with its own stack of the same configuration. allgather() copies the
 * `bytes` at `mine` of each rank r to all[r * bytes], on every rank. All ranks call it in the same order, from the
 * thread that runs the stack. It returns LOOM_EDIED if a rank is gone. During a sample, the stack notices within two
 * seconds that a rank of this host has ended. For a rank of another host, it notices this at the end of [run]
 * timeout.
 *
 * loom_stack_run(), _start() with _wait(), loom_stack_barrier() and loom_comm_open() are calls of all ranks. If such a call
 * fails on one rank, it fails on all, with the reason: the failed rank first waits until the others have come to their
 * next exchange. A rank that has waited until [run] timeout does not wait longer. If loom_stack_open() fails on a rank,
 * the program must end the others. */
struct loom_ranks {
	size_t size;
	uint32_t rank, ranks;
	void *self;
	int (*allgather)(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err);
	/* Equal for all ranks that are threads of this process, on devices with a virtual clock. NULL: ranks are
	 * processes. */
	const void *job;
	/* 1: if a rank ends with an error, its launcher ends the others with the reason of this rank. So a rank whose
	 * call has failed returns at once, and does not wait for the next exchange. 0: the others are not ended. */
	uint64_t launched;
};

struct loom_stack_params {
	size_t size; /* sizeof(struct loom_stack_params) */
	loom_log_fn *log; /* NULL: messages are dropped */
	void *log_arg;
	int log_level; /* enum loom_level of plugin.h, from 0 (only errors) to 3 (debug) */
	const struct loom_ranks *ranks; /* NULL: no other ranks. Must stay valid until the stack is closed */
};

/* Opens and connects the plug-ins that cfg selects, and runs the coherence probe of the transport. The caller closes
 * the stack. Until then, cfg must not be changed or destroyed. `params` may be NULL. Returns LOOM_EINVAL if the
 * configuration is wrong; err->text has all mistakes. Returns LOOM_EUNAVAIL if this machine or build lacks something,
 * and LOOM_ENOTSUP if plug-ins do not fit together. Also returns LOOM_ENOMEM, and errors of plug-ins. */
LOOM_EXPORT int loom_stack_open(struct loom_config *cfg, const struct loom_stack_params *params,
				struct loom_stack **stack, struct loom_error *err);
/* Stops a run in progress, ends the workers within two seconds, and frees the stack. In a fork of the process that
 * opened the stack, frees only private memory. `stack` may be NULL. If a task does not return after a stop, its thread
 * cannot be ended. Then the stack's memory stays allocated, and the program must keep what the task uses. */
LOOM_EXPORT void loom_stack_close(struct loom_stack *stack);

/* ---- task functions and memory: only between runs. After the first run, these calls end the waiting workers, so
 *      the next run starts new ones, and compiles the functions of the stack again. They return LOOM_EBUSY if a run is
 *      in progress or its workers have not left, and LOOM_ENOMEM if memory runs out. */

/* Registers a task function for the CPU devices and returns its tag. `name` is copied. With process isolation, the
 * function runs in children that are forked when a run begins. Then only its writes to memory of the stack
 * (loom_stack_alloc) are kept. Returns LOOM_EINVAL without a name or a function. */
LOOM_EXPORT int loom_stack_task(struct loom_stack *stack, const char *name, loom_task_fn *fn,
				uint32_t *tag, struct loom_error *err);

/* Registers task functions as source for devices of every kind. The source is text in the common subset of C11 and C++.
 * gpuloom/dev/dev.h, sched.h and task.h are included before it. Each of the n names is a function
 *   LOOM_FN void NAME(struct loom_ctx *c, const struct loom_task *t)
 * In the source, LOOM_TAG_NAME is its tag; in the program, tags[i] is the tag of names[i]. `text` is copied; NULL: the
 * content of the file is read. The next run compiles the source: for GPUs by their run-time compiler, for CPUs by $CC
 * or cc. That run returns LOOM_EPLUGIN with file and line for a mistake, and LOOM_EUNAVAIL without a compiler. */
LOOM_EXPORT int loom_stack_source(struct loom_stack *stack, const char *file, const char *text,
				  const char *const *names, uint32_t n, uint32_t *tags,
				  struct loom_error *err);

/* Registers compiled task functions (<gpuloom/dev/ir.h>): LTO-IR or PTX for CUDA devices, or a shared object for CPU
 * devices. The library recognises the format by the first bytes. `data` is copied; NULL: the content of the file is
 * read. Call this once for each kind of device. A name that other IR has registered keeps its tag. Returns LOOM_EINVAL
 * if the name was registered in another way. */
LOOM_EXPORT int loom_stack_ir(struct loom_stack *stack, const char *file, const void *data, size_t bytes,
			      const char *const *names, uint32_t n, uint32_t *tags, struct loom_error *err);

/* Allocates `bytes` of zeroed memory, aligned to 64 bytes. Workers access it as loom_at(c, ref), and the caller as
 * *host. The stack frees it when the stack is closed. Returns LOOM_EFULL after some 250 calls, LOOM_EINVAL for 0 bytes,
 * LOOM_ENOMEM without touching memory if less is left, and LOOM_EINTR if loom_stack_stop() ends the call. */
LOOM_EXPORT int loom_stack_alloc(struct loom_stack *stack, size_t bytes, loom_ref *ref, void **host,
				 struct loom_error *err);

/* Adopts memory that the program has allocated: on a GPU of the stack (cudaMalloc(), a tensor, managed memory) or on
 * the host. Host memory is registered with the GPUs while it is adopted. Workers find the memory at loom_at(c, *ref);
 * nothing is copied. The program must not free the memory before it releases the memory or closes the stack. Neither
 * call frees it. Memory of a GPU needs a stack whose devices all access it directly. Returns LOOM_EINVAL if the memory
 * is not aligned to 8 bytes, if `bytes` is more than the allocation has, or if neither the process nor a GPU of the stack
 * has all of it, because it was freed. Returns LOOM_EUNAVAIL with the reason if a device cannot access the memory, and
 * LOOM_EFULL. The call ends workers that wait for the next run, as loom_stack_alloc() does. */
LOOM_EXPORT int loom_stack_adopt(struct loom_stack *stack, void *memory, size_t bytes, loom_ref *ref,
				 struct loom_error *err);
/* Releases adopted memory. Workers must not use it afterwards. Returns LOOM_EINVAL if it was not adopted, and
 * LOOM_EBUSY if a run may use it. */
LOOM_EXPORT int loom_stack_release(struct loom_stack *stack, loom_ref ref, struct loom_error *err);

/* ---- runs ------------------------------------------------------------------------------------- */

/* Appends copies of n tasks to the initial set of the next run. This is possible while a run is in progress. The
 * submitted tasks stay until a run has begun with them. If a run is refused or fails to begin, they still stay. Returns
 * LOOM_EINVAL if a tag is not registered, `tasks` is NULL or the conf selects a workload, and LOOM_ENOMEM if memory
 * runs out. After an error, no task was added. */
LOOM_EXPORT int loom_stack_submit(struct loom_stack *stack, const struct loom_task *tasks, size_t n,
				  struct loom_error *err);

/* Runs the submitted tasks and all tasks that they spawn, for at most [run] timeout (60 s by default). If the conf
 * selects a workload, runs the workload instead, [run] warmup and samples times, each time with that timeout.
 *
 * The caller destroys *result. *result is also set after an error, if a sample had begun. If `result` is NULL, nothing
 * is measured, so that a run may take only microseconds.
 *
 * LOOM_ETIMEDOUT, LOOM_EINTR: the deadline or loom_stack_stop() ended the run. Unfinished tasks are dropped; effects of
 * finished tasks stay. LOOM_EWRONG: tasks were lost, or the workload's answer is wrong. LOOM_EDIED: a process or kernel
 * of a device died. LOOM_EBUSY: the deadline or loom_stack_stop() has ended an earlier run, but its workers have not
 * left, because a task does not poll loom_stopped(). This call has changed nothing, and a call after they have left
 * succeeds. Errors of tasks and plug-ins are returned, too. After any error the stack can run again, except if
 * err->text says to close it. */
LOOM_EXPORT int loom_stack_run(struct loom_stack *stack, struct loom_result **result,
			       struct loom_error *err);

/* The two halves of loom_stack_run(), for submitted tasks. loom_stack_start() returns when the workers have started.
 * loom_stack_wait() returns when they are done, or LOOM_EAGAIN after timeout_ns; then call it again. Between the two,
 * the stack may be stopped or closed, and may get tasks for the next run. [run] timeout counts from the start, but only
 * loom_stack_wait() checks it. Measured times count from the start. LOOM_EINVAL: the conf selects a workload, or
 * loom_stack_wait() found no run that was started or put into a stream. */
LOOM_EXPORT int loom_stack_start(struct loom_stack *stack, struct loom_error *err);
LOOM_EXPORT int loom_stack_wait(struct loom_stack *stack, uint64_t timeout_ns, struct loom_result **result,
				struct loom_error *err);

/* Puts a run of the submitted tasks into a stream of the program (cudaStream_t, hipStream_t; NULL: the default stream).
 * The run follows earlier work of the stream, and later work follows the run. The calling thread does not wait, and may
 * submit tasks again at once. While the stream is being captured, the run becomes a part of the graph: each launch of
 * the graph runs the same tasks. Such graphs must not run at the same time as each other or as other runs of the stack.
 * They are valid until memory is added to the stack, or until an error; launches after that do nothing. All launches must
 * have ended before task functions are added or the stack is closed.
 *
 * loom_stack_wait() waits for all runs that were put into streams since its last call. It returns the first error of
 * these runs and of runs of graphs. Until it has returned, the stack refuses other runs with LOOM_EBUSY. Runs that
 * follow a failed run do nothing. [run] timeout does not count, because the stream may have other work.
 *
 * A run in a stream begins with at most 1,024 tasks. LOOM_ENOTSUP: the stack has other devices than one GPU, or the
 * host has a part in each run; err->text names the plug-in. LOOM_EINVAL: the stream belongs to another GPU, or is being
 * captured before the stack has run once. LOOM_EBUSY: another stream has runs that have not ended. LOOM_EFULL: too many
 * tasks wait in the stream or are in graphs. */
LOOM_EXPORT int loom_stack_enqueue(struct loom_stack *stack, void *stream, struct loom_error *err);

/* Ends the run or the loom_stack_alloc() in progress with LOOM_EINTR, if there is one. A run of submitted tasks ends when the running tasks
 * return or poll loom_stopped(). A workload ends after the current sample; at a second call of loom_stack_stop(), it
 * ends at once. Runs in a stream end when a thread is in loom_stack_wait() or calls it. Any thread or signal handler may
 * call this until the stack is closed.
 *
 * The library does not know when the program launches graphs. So if the stack has runs in valid graphs, the request stays
 * until the next call of loom_stack_wait(), loom_stack_run() or loom_stack_start() has returned LOOM_EINTR. Until then,
 * loom_stack_enqueue() returns LOOM_EINTR, too. From the request on, launches of the graphs do nothing, whether they are
 * already in a stream or not; the stream goes on with its other work. A run that a graph has begun before the request ends
 * when its tasks return, or in loom_stack_wait(), as runs in a stream do. When loom_stack_wait() has returned, no worker of
 * a graph is left, the graphs are no longer valid, and the stack can run again, even if launches of these graphs are still
 * in the stream. */
LOOM_EXPORT void loom_stack_stop(struct loom_stack *stack);

/* Returns when all ranks have called it. It works with any conf. */
LOOM_EXPORT int loom_stack_barrier(struct loom_stack *stack, struct loom_error *err);

/* ---- results ---------------------------------------------------------------------------------- */

/* Returns the median of a metric over the samples. docs/reading-output.md lists names and units ("seconds", "tasks_per_s",
 * "executed").
 * Returns LOOM_ENOENT if no sample has the metric, and LOOM_EINVAL if a pointer is NULL. */
LOOM_EXPORT int loom_result_median(const struct loom_result *result, const char *metric, double *value);
/* Returns the metric of one sample. Samples count from 0, without warm-ups. LOOM_ENOENT: there is no such sample or
 * metric. */
LOOM_EXPORT int loom_result_sample(const struct loom_result *result, size_t sample, const char *metric,
				   double *value);
/* Returns the number of samples: 1 for submitted tasks, 0 after an error. `result` may be NULL. */
LOOM_EXPORT size_t loom_result_samples(const struct loom_result *result);
/* Returns the result as JSON (docs/results.md), which the caller frees by free(). Returns NULL if memory ran out. */
LOOM_EXPORT char *loom_result_json(const struct loom_result *result);
/* Destroys a result, before or after its stack is closed. `result` may be NULL. */
LOOM_EXPORT void loom_result_destroy(struct loom_result *result);

#ifdef __cplusplus
}
#endif
#endif
