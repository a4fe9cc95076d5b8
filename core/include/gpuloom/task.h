/* SPDX-License-Identifier: Apache-2.0 */
/* The task record and segment addresses: what hosts, CPU workers and GPU workers share. */
#ifndef GPULOOM_TASK_H
#define GPULOOM_TASK_H

#include "dev/types.h"

/* Segment (upper 16 bits) and byte offset (lower 48): memory that several devices see has no common
 * base address (MGWS thesis, 5.3). 0 is never a valid reference. */
typedef uint64_t loom_ref;
#define LOOM_REF(segment, offset) ((uint64_t)(segment) << 48 | (uint64_t)(offset))
#define LOOM_REF_SEGMENT(ref) ((uint32_t)((ref) >> 48))
#define LOOM_REF_OFFSET(ref) ((ref) & 0xffffffffffffull)

enum { LOOM_READ = 1, LOOM_WRITE = 2 };

/* Memory that a task uses (MGWS thesis, 4.5: data descriptor). */
struct loom_data {
	loom_ref ref;
	uint64_t bytes : 56, access : 8; /* LOOM_READ | LOOM_WRITE */
};

enum { LOOM_NORMAL = 0, LOOM_HIGH = 1, LOOM_LOW = 2 };

/* A task: one cache line, copied by value between queues. `tag` names the task function. */
struct loom_task {
	uint32_t tag;
	uint8_t priority; /* LOOM_NORMAL, LOOM_HIGH, LOOM_LOW; a scheduler may ignore it */
	uint8_t affinity; /* LOOM_ON_ANY, LOOM_ON_CPU, LOOM_ON_GPU: which devices may run it */
	uint16_t reserved; /* 0 */
	loom_ref join; /* struct loom_join to lower when the task has ended; 0: none */
	uint64_t param[4];
	struct loom_data data;
};
#ifdef __cplusplus
static_assert(sizeof(struct loom_task) == 64, "a task is one cache line");
#else
_Static_assert(sizeof(struct loom_task) == 64, "a task is one cache line");
#endif

/* What follows when several tasks have ended: each names it as its `join`, and the worker that ends
 * the last of them goes on with `next`, which counts as spawned. No worker ever waits. It is in memory
 * that all workers see, 64-byte aligned, and belongs to the program: `next` is copied before it runs, so
 * its task function may put the record to another use. */
struct loom_join {
	uint64_t pending; /* how many tasks: set before the first of them is spawned */
	uint64_t data[7]; /* the program's: what the tasks leave for `next` */
	struct loom_task next;
};
#ifdef __cplusplus
static_assert(sizeof(struct loom_join) == 128, "two cache lines");
#else
_Static_assert(sizeof(struct loom_join) == 128, "two cache lines");
#endif

struct loom_ctx; /* the calling worker: dev/dev.h */

/* A task function. Collective: every lane of the worker enters it with the same task. */
typedef void loom_task_fn(struct loom_ctx *c, const struct loom_task *task);

#endif
