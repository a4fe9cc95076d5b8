/* SPDX-License-Identifier: Apache-2.0 */
/* The task record, and references to memory. Hosts, CPU workers and GPU workers share both. */
#ifndef GPULOOM_TASK_H
#define GPULOOM_TASK_H

#include "dev/types.h"

/* A reference: the number of a segment (upper 16 bits) and an offset in bytes (lower 48 bits). It replaces an address,
 * because shared memory has no common base address (MGWS thesis, 5.3). 0 is never a valid reference. */
typedef uint64_t loom_ref;
#define LOOM_REF(segment, offset) ((uint64_t)(segment) << 48 | (uint64_t)(offset))
#define LOOM_REF_SEGMENT(ref) ((uint32_t)((ref) >> 48))
#define LOOM_REF_OFFSET(ref) ((ref) & 0xffffffffffffull)

/* COST: the descriptor names the cost of the task, and no memory that the task uses. */
enum { LOOM_READ = 1, LOOM_WRITE = 2, LOOM_COST = 4 };

/* Memory that a task uses. It is the data descriptor of the MGWS thesis, 4.5. A scheduler that plans, such as sched_plan, takes
 * `bytes` as the cost of an initial task of a program. With LOOM_COST, `ref` is a uint32_t that has the cost, in any unit. The
 * scheduler reads it at the start of the run, so a kernel that the run follows may have written it. 0: the task has nothing to
 * do, and need not run, so it must have no `join`. */
struct loom_data {
	loom_ref ref;
	uint64_t bytes : 56, access : 8; /* access: LOOM_READ | LOOM_WRITE, or LOOM_COST */
};

/* A task: one cache line, which is copied from queue to queue. `tag` is the number of the task function. */
struct loom_task {
	uint32_t tag;
	uint8_t affinity; /* LOOM_ON_ANY, LOOM_ON_CPU or LOOM_ON_GPU: the devices that may run the task */
	uint8_t reserved[3]; /* must be 0 */
	loom_ref join; /* reference of the struct loom_join to decrement when the task has ended; 0: none */
	uint64_t param[4];
	struct loom_data data;
};
#ifdef __cplusplus
static_assert(sizeof(struct loom_task) == 64, "a task is one cache line");
#else
_Static_assert(sizeof(struct loom_task) == 64, "a task is one cache line");
#endif

/* Several tasks name the same record as their `join`. The worker that ends the last of these tasks continues with
 * `next`, which counts as a spawned task. No worker waits. The record is in memory of the program that all workers can
 * access, aligned to 64 bytes. `next` is copied before it runs, so its task function may use the record again. */
struct loom_join {
	uint64_t pending; /* number of these tasks, set before the first of them is spawned */
	uint64_t data[7]; /* for the program: results of the tasks, which `next` reads */
	struct loom_task next;
};
#ifdef __cplusplus
static_assert(sizeof(struct loom_join) == 128, "two cache lines");
#else
_Static_assert(sizeof(struct loom_join) == 128, "two cache lines");
#endif

struct loom_ctx; /* the calling worker (dev/dev.h) */

/* A task function. It is collective: every lane of the worker calls it with the same task. */
typedef void loom_task_fn(struct loom_ctx *c, const struct loom_task *task);

#endif
