/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's local queue of spawned tasks. The worker takes the newest task first. Device code.
 *
 * Taking the newest task first keeps queues small, because a worker then walks its part of the task tree depth-first.
 * The queue then holds at most (children - 1) tasks per level of the tree. If the oldest task came first, it would hold
 * a whole level. Tasks are published from the other end, because the oldest task is nearest to the root and has the
 * most work below it.
 *
 * The private block has struct sched_local, one struct sched_lane per lane, the ring, and the scheduler's own state.
 * Every lane has its own indices. Lanes take the same steps, so the indices stay equal without communication. A GPU's
 * lanes hold them in registers (loom_ctx.regs). All lanes copy a task together. So a barrier is needed between a copy
 * into a slot and the first load from the slot, and between the last load and the next copy. */
#ifndef SCHED_QUEUE_DEV_H
#define SCHED_QUEUE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "rest.dev.h"
#endif

typedef uint64_t __attribute__((__may_alias__)) sched_word;
#define SCHED_WORDS 8u /* number of 8-byte words of a task */

#ifndef LOOM_YIELD /* CPU tests define it */
#define LOOM_YIELD() ((void)0)
#endif

/* The state of a worker that its lanes share. Only lane 0 writes to it while the worker runs. */
struct sched_local {
	uint32_t mask; /* number of slots of the local queue, minus 1 */
	uint32_t in_place_depth;
	uint32_t lanes;
	/* If granularity is `lane`, while lanes run tasks: head and count of the local queue, then of the backlog.
	 * Lanes add to a count before they check it, so it may exceed the size of the queue. */
	uint32_t head, count, backlog_head, backlog_count;
	uint32_t sent;      /* number of tasks that lanes have passed on, because this device may not run them */
	void *global, *job; /* on CPUs: saved results of mgws_global() and mgws_job() */
	uint64_t at, end;   /* indices of the claimed initial tasks that have not begun: first, and last + 1 */
	struct loom_counters counters; /* stored to c->counters when the worker ends */
};

/* The ring follows, and lanes of a GPU access it in pieces of 16 bytes. */
#ifdef __cplusplus
static_assert(sizeof(struct sched_local) % 64 == 0, "whole cache lines");
#else
_Static_assert(sizeof(struct sched_local) % 64 == 0, "whole cache lines");
#endif

struct sched_lane {
	uint32_t head;  /* the oldest task is in slot head & mask */
	uint32_t count; /* number of tasks in the queue */
	uint64_t spawned; /* number of tasks spawned */
};
/* Returns whether the task has an affinity or reserved bits. Most tasks have none. */
#define SCHED_HAS_ATTRIBUTES(task) (*(const sched_word *)(task) >> 32)

/* Size of a state that each lane has in the private block, for all lanes. The size is 0 on a GPU, because its lanes use
 * registers. */
#ifdef LOOM_DEVICE_COMPILE
#define SCHED_PER_LANE(lanes, bytes) ((uint64_t)0)
#else
#define SCHED_PER_LANE(lanes, bytes) (((uint64_t)(lanes) * (bytes) + 63u) & ~63ull)
#endif
#define SCHED_LANES_BYTES(lanes) SCHED_PER_LANE(lanes, sizeof(struct sched_lane))
#define SCHED_LOCAL_BYTES(lanes, slots)                                                                                \
	(sizeof(struct sched_local) + SCHED_LANES_BYTES(lanes) + (uint64_t)(slots) * sizeof(struct loom_task))

LOOM_FN struct sched_local *sched_local(const struct loom_ctx *c)
{
	return (struct sched_local *)c->local[LOOM_SCHED];
}

/* Returns the number of slots of the local queue, minus 1. */
#ifdef SCHED_CONSTANTS
#define sched_mask(c) (SCHED_CFG(c, local_queue) - 1)
#else
#define sched_mask(c) (sched_local(c)->mask)
#endif

#ifdef LOOM_DEVICE_COMPILE
#define SCHED_REGS_LANE 0 /* index in loom_ctx.regs; the scheduler's own state starts at SCHED_REGS_OWN */
#define SCHED_REGS_OWN  2
LOOM_FN struct sched_lane *sched_lane(const struct loom_ctx *c)
{
	return (struct sched_lane *)&c->regs[SCHED_REGS_LANE];
}

LOOM_FN struct sched_lane *sched_single_lane(const struct loom_ctx *c)
{
	return sched_lane(c);
}
#else
LOOM_FN struct sched_lane *sched_lane(const struct loom_ctx *c)
{
	return (struct sched_lane *)(sched_local(c) + 1) + c->lane;
}

/* sched_lane() for the context of a single lane. */
LOOM_FN struct sched_lane *sched_single_lane(const struct loom_ctx *c)
{
	return (struct sched_lane *)(sched_local(c) + 1) + (c->single_lane ? c->single_lane - 1 : c->lane);
}
#endif

/* GPUs align scratchpad memory to this many bytes, so that the compiler can load two words at a time. */
#ifdef LOOM_DEVICE_COMPILE
#define SCHED_ALIGNED(p) ((struct loom_task *)__builtin_assume_aligned(p, 16))
#else
#define SCHED_ALIGNED(p) ((struct loom_task *)(p))
#endif

LOOM_FN struct loom_task *sched_ring_behind(struct sched_local *l)
{
#ifdef LOOM_LANES
	uint32_t lanes = LOOM_LANES;
#else
	uint32_t lanes = l->lanes;
#endif
	return SCHED_ALIGNED((char *)(l + 1) + SCHED_LANES_BYTES(lanes));
}

LOOM_FN struct loom_task *sched_ring(const struct loom_ctx *c)
{
	return SCHED_ALIGNED((char *)(sched_local(c) + 1) + SCHED_LANES_BYTES(c->lanes));
}

/* Returns the scheduler's own state, which follows the ring. */
LOOM_FN void *sched_private(const struct loom_ctx *c)
{
	return sched_ring(c) + sched_mask(c) + 1;
}

/* Copies of tasks use words of 8 bytes on CPUs. A task was usually written shortly before, in such words, and store
 * forwarding needs a load that is not wider than the store. A wider load would wait until the words are in the cache.
 * SCHED_KEEP_WORD() keeps the compiler from merging words. */
#ifdef GPULOOM_DEV_CPU_H
#define SCHED_KEEP_WORD(w) __asm__("" : "+r"(w))
/* The last two words are the data descriptor. They are copied by one access, because they are rarely written word by
 * word. This saves an eighth of the time of a tiny task. */
typedef uint64_t sched_pair __attribute__((vector_size(16), __may_alias__, aligned(8)));
#define SCHED_SINGLE_WORDS (SCHED_WORDS - 2u)
#define SCHED_UNROLL       _Pragma("GCC unroll 8")
#else
#define SCHED_KEEP_WORD(w) ((void)0)
#define SCHED_SINGLE_WORDS SCHED_WORDS
#define SCHED_UNROLL
#endif

/* Copies a whole task. This lane copies all words. */
LOOM_FN void sched_copy_task(struct loom_task *to, const struct loom_task *from)
{
	sched_word *t = (sched_word *)to;
	const sched_word *f = (const sched_word *)from;
	SCHED_UNROLL
	for (uint32_t i = 0; i < SCHED_SINGLE_WORDS; i++) {
		uint64_t w = f[i];
		SCHED_KEEP_WORD(w);
		t[i] = w;
	}
#ifdef GPULOOM_DEV_CPU_H
	*(sched_pair *)&t[SCHED_SINGLE_WORDS] = *(const sched_pair *)&f[SCHED_SINGLE_WORDS];
#endif
}

/* Attributes for functions with rare code, so that hot functions stay small. SCHED_SLOW functions are also compiled for
 * size. SCHED_NOINLINE functions are not compiled for size, because some task trees call them often. */
#ifdef GPULOOM_DEV_CPU_H
#define SCHED_SLOW     static __attribute__((noinline, cold, unused))
#define SCHED_NOINLINE static __attribute__((noinline, unused))
#else
#define SCHED_SLOW     LOOM_FN
#define SCHED_NOINLINE LOOM_FN
#endif

/* SCHED_SEVERAL(c) is 1 if the worker has several lanes, as all workers of GPUs do. */
#ifdef LOOM_DEVICE_COMPILE
#define SCHED_SEVERAL(c) 1
#else
#define SCHED_SEVERAL(c) ((c)->lanes != 1)
#endif

/* SCHED_SINGLE_LANE(c) is 1 if the caller is a single lane that runs a task of its own. In a GPU's program, either all
 * callers are single lanes, or none is. */
#ifndef LOOM_DEVICE_COMPILE
#define SCHED_SINGLE_LANE(c) ((c)->single_lane != 0)
#elif defined(LOOM_SINGLE_LANE)
#define SCHED_SINGLE_LANE(c) 1
#else
#define SCHED_SINGLE_LANE(c) 0
#endif

/* Returns a context with which this lane runs a task of its own, until sched_end_single(). cpu: the scheduler's ops for
 * this task, on a CPU. */
#ifdef LOOM_DEVICE_COMPILE
#define sched_begin_single(c, cpu) sched_single_ctx(c)
LOOM_FN struct loom_ctx sched_single_ctx(const struct loom_ctx *c)
#else
LOOM_FN struct loom_ctx sched_begin_single(const struct loom_ctx *c, const struct loom_sched_dev *cpu)
#endif
{
	struct loom_ctx single = *c;
	single.single_lane = c->lane + 1;
	single.lane = 0;
	single.lanes = 1;
#ifndef LOOM_DEVICE_COMPILE
	single.sched = cpu;
#endif
	return single;
}

LOOM_FN void sched_end_single(struct loom_ctx *c, const struct loom_ctx *single)
{
	c->random = single->random;
	c->stop_seen = single->stop_seen;
	sched_lane(c)->spawned = sched_single_lane(single)->spawned; /* on a GPU, `spawned` is in the context */
}

/* Returns the value v of lane 0, or of the caller if it is a single lane. */
LOOM_FN uint64_t sched_agree(struct loom_ctx *c, uint64_t v)
{
	return SCHED_SINGLE_LANE(c) ? v : loom_from_lane0(c, v);
}

/* Copies this lane's words of one task. Lanes share the words. */
SCHED_SLOW void sched_copy_words(const struct loom_ctx *c, struct loom_task *to, const struct loom_task *from)
{
	sched_word *t = (sched_word *)to;
	const sched_word *f = (const sched_word *)from;
	for (uint32_t i = c->lane; i < SCHED_WORDS; i += c->lanes)
		t[i] = f[i];
}

LOOM_FN void sched_copy_one(const struct loom_ctx *c, struct loom_task *to, const struct loom_task *from)
{
	if (SCHED_SEVERAL(c))
		sched_copy_words(c, to, from);
	else
		sched_copy_task(to, from);
}

/* Copies this lane's pairs of words of n tasks. It loads two pairs before it stores them, because a GPU's loads take
 * long, but several can be in flight. On a GPU, segments and private blocks have the alignment of a pair. */
#ifdef LOOM_DEVICE_COMPILE
#define SCHED_PAIR_ALIGNED 16
#else
#define SCHED_PAIR_ALIGNED 8
#endif
struct __attribute__((__may_alias__, aligned(SCHED_PAIR_ALIGNED))) sched_words {
	uint64_t a, b;
};
#define SCHED_PAIRS (SCHED_WORDS / 2u) /* number of pairs of words in a task */
#define SCHED_PAIR(ring, at, mask, i)                                                                                  \
	((struct sched_words *)&(ring)[((at) + (i) / SCHED_PAIRS) & (mask)])[(i) % SCHED_PAIRS]
LOOM_LEAF void sched_copy_pairs(uint32_t lane, uint32_t lanes, struct loom_task *to, uint32_t to_at, uint32_t to_mask,
				const struct loom_task *from, uint32_t from_at, uint32_t from_mask, uint32_t n)
{
	uint32_t end = n * SCHED_PAIRS;
	LOOM_NO_UNROLL
	for (uint32_t i = lane, j = i + lanes; i < end; i += 2 * lanes, j += 2 * lanes) {
		struct sched_words x = {0, 0}, y = {0, 0};
		LOOM_YIELD();
		x = SCHED_PAIR(from, from_at, from_mask, i);
		if (j < end)
			y = SCHED_PAIR(from, from_at, from_mask, j);
		SCHED_PAIR(to, to_at, to_mask, i) = x;
		if (j < end)
			SCHED_PAIR(to, to_at, to_mask, j) = y;
	}
}

/* Returns the time for counters. On a CPU it is 0 if nothing reads times of this sample, because asking the clock takes as
 * long as a small task. */
LOOM_FN uint64_t sched_time(const struct loom_ctx *c)
{
#ifdef GPULOOM_DEV_CPU_H
	if (c->ctl->untimed)
		return 0;
#endif
	return loom_clock_ns(c);
}

/* Copies this lane's words of n tasks from ring to ring. A mask of all ones stands for an array that does not wrap. */
LOOM_FN void sched_copy_ring(const struct loom_ctx *c, struct loom_task *to, uint64_t to_at, uint64_t to_mask,
			     const struct loom_task *from, uint64_t from_at, uint64_t from_mask, uint32_t n)
{
	if (SCHED_SEVERAL(c)) {
		if (from_mask == ~0ull) {
			from += from_at;
			from_at = 0;
		}
		if (to_mask == ~0ull) {
			to += to_at;
			to_at = 0;
		}
		sched_copy_pairs(c->lane, c->lanes, to, (uint32_t)to_at, (uint32_t)to_mask, from, (uint32_t)from_at,
				 (uint32_t)from_mask, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		LOOM_YIELD(); /* tests stall thieves here */
		to[(to_at + i) & to_mask] = from[(from_at + i) & from_mask];
	}
}

LOOM_FN void sched_start(struct loom_ctx *c)
{
	struct sched_local *l = sched_local(c);
	c->depth = 0;
#ifdef GPULOOM_DEV_CPU_H /* on a GPU, the kernel clears private blocks and contexts */
	struct loom_counters none = {0};
	struct sched_lane nothing = {0, 0, 0};
	if (c->lane == 0) {
		l->counters = none;
		l->sent = 0;
		l->at = l->end = 0;
	}
	*sched_lane(c) = nothing;
#endif
	if (c->lane == 0) {
		uint32_t depth = SCHED_CFG(c, in_place_depth);
		l->lanes = c->lanes;
		l->mask = SCHED_CFG(c, local_queue) - 1;
		/* LOOM_NESTING_MAX is a limit of the device layer, because the stack of a GPU's thread is small. */
		l->in_place_depth = depth < LOOM_NESTING_MAX ? depth : LOOM_NESTING_MAX;
		l->counters.begin_ns = sched_time(c);
		l->counters.last_task_ns = l->counters.begin_ns;
	}
	loom_barrier_lanes(c);
}

/* Stores the counters for the host. ran: number of tasks that the worker's loop has run. */
LOOM_FN void sched_finish(struct loom_ctx *c, uint64_t ran)
{
	struct sched_local *l = sched_local(c);
	if (SCHED_GRANULARITY(c) == SCHED_LANE && SCHED_SEVERAL(c) && c->lane != 0)
		loom_fetch_add_relaxed_dev(&l->counters.spawned, sched_lane(c)->spawned);
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		l->counters.executed += ran - l->sent;
		l->counters.spawned += sched_lane(c)->spawned;
		l->counters.end_ns = sched_time(c);
	}
#ifdef GPULOOM_DEV_CPU_H
	if (c->lane == 0)
		*c->counters = l->counters;
#else
	/* All lanes store, because the counters may be across a link that thousands of workers use at this time. */
	loom_barrier_lanes(c);
	LOOM_NO_UNROLL
	for (uint32_t i = c->lane; i < sizeof(l->counters) / 8; i += c->lanes)
		((sched_word *)c->counters)[i] = ((const sched_word *)&l->counters)[i];
#endif
}

/* Called when a worker has had no task since counters.last_task_ns and can get none. The worker reports idle, waits
 * until all workers are idle, and ends. */
LOOM_FN void sched_leave(struct loom_ctx *c, uint64_t ran)
{
	struct sched_local *l = sched_local(c);
	struct sched_common *common = sched_common(c);
	struct sched_rest rest = {0, 1, 0, 0, 0};
	int done = 0;

	if (c->lane == 0) {
		rest.since = l->counters.last_task_ns;
		l->counters.idle_entries++;
		loom_set_state(c, LOOM_STATE_SEARCH);
	}
	if (!loom_from_lane0(c, (uint64_t)loom_stopped(c))) {
		LOOM_CALL(term, idle, c);
		for (;;) {
			done = LOOM_CALL(term, done, c, 0);
			if (done || loom_from_lane0(c, (uint64_t)loom_stopped(c)))
				break;
			if (c->lane == 0)
				sched_rest(c, &common->cfg, &common->event, &rest, 1, 0);
		}
	}
	if (c->lane == 0) {
		sched_unlist(&rest, &common->event);
		if (done) /* other workers may sleep */
			sched_wake(c, &common->event, ~0u);
		l->counters.idle_ns += sched_time(c) - l->counters.last_task_ns;
		loom_trace_add(c, LOOM_TRACE_END, l->counters.last_task_ns, c->worker, 0);
	}
	sched_finish(c, ran);
}

/* Copies a task that each lane holds in registers. Registers have no addresses, so the words cannot be indexed. If
 * there are enough lanes, each lane selects and stores one word. */
LOOM_FN void sched_copy_from_registers(const struct loom_ctx *c, struct loom_task *to, const struct loom_task *task)
{
#if defined(GPULOOM_DEV_CPU_H) || LOOM_LANES < 8
	sched_copy_one(c, to, task);
#else
	const sched_word *f = (const sched_word *)task;
	uint64_t word = f[0];
	for (uint32_t i = 1; i < SCHED_WORDS; i++)
		word = c->lane == i ? f[i] : word;
	LOOM_COMPUTED(word); /* so that the compiler leaves only the store in the branch */
	if (c->lane < SCHED_WORDS)
		((sched_word *)to)[c->lane] = word;
#endif
}

/* Pushes a task. Returns 1, or 0 if the queue is full. */
LOOM_FN int sched_push(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_lane *mine = sched_lane(c);
	uint32_t mask = sched_mask(c);
	if (mine->count > mask)
		return 0;
	sched_copy_from_registers(c, &sched_ring(c)[(mine->head + mine->count) & mask], task);
	mine->count++;
	return 1;
}

#ifdef GPULOOM_DEV_CPU_H
/* sched_push() for a worker of one lane, whose ring is at a constant offset. */
LOOM_FN int sched_push_one_lane(struct sched_local *l, const struct loom_task *task)
{
	struct sched_lane *mine = (struct sched_lane *)(l + 1);
	struct loom_task *ring = (struct loom_task *)((char *)mine + SCHED_LANES_BYTES(1));
	uint32_t count = mine->count;
	if (count > l->mask)
		return 0;
	mine->count = count + 1;
	sched_copy_task(&ring[(mine->head + count) & l->mask], task);
	return 1;
}
#endif

/* Pops the newest task and copies it for this lane. The caller has called a barrier after the last push. It passes the
 * addresses, which it keeps in registers, because this is the hot path. */
LOOM_FN void sched_pop(struct loom_ctx *c, struct sched_lane *mine, const struct loom_task *ring, uint32_t mask,
		       struct loom_task *task)
{
	mine->count--;
	sched_copy_task(task, &ring[(mine->head + mine->count) & mask]);
	loom_barrier_lanes(c); /* from here on spawned tasks may overwrite the slot */
}

/* Returns 1 if this worker cannot decrement the join. Non-coherent devices cannot decrement the joins of other devices.
 * A device's own joins are in the segment of its workers' blocks. In another rank, the same reference names other
 * memory. So tasks that ranks share must not have joins. */
LOOM_FN int sched_join_is_foreign(const struct loom_ctx *c, loom_ref join)
{
	return SCHED_CFG(c, remote_workers) ||
	       (SCHED_CFG(c, noncoherent) &&
		LOOM_REF_SEGMENT(join) != LOOM_REF_SEGMENT(c->registry[LOOM_SCHED][c->worker]));
}

/* Decrements the join of a task that has ended. Returns 1 if it was the last task of the join. In that case *next is
 * the task that the join starts, which counts as spawned. */
LOOM_FN int sched_decrement_join(struct loom_ctx *c, loom_ref ref, struct loom_task *next)
{
	struct loom_join *j = (struct loom_join *)loom_at(c, ref);
	if (sched_join_is_foreign(c, ref)) {
		if (c->lane == 0)
			loom_worker_fail(c, LOOM_EUNAVAIL, ref);
		return 0;
	}
	if (!loom_last(c, &j->pending))
		return 0;
	sched_copy_task(next, &j->next);
	loom_barrier_lanes(c); /* from here on the record may be reused */
	sched_single_lane(c)->spawned++;
	return 1;
}

enum sched_ran { SCHED_TOO_DEEP, SCHED_RAN, SCHED_GOES_ON };

/* Runs a task inside the task that spawned it. Returns SCHED_GOES_ON if this task was the last task of its join. In
 * that case *next is the task that the join starts, and the caller must place it. `task` and `next` may be the same. */
LOOM_FN enum sched_ran sched_run_in_place(struct loom_ctx *c, const struct loom_task *task, struct loom_task *next)
{
	struct sched_local *l = sched_local(c);
	loom_ref join = task->join;
	if (LOOM_NESTING_MAX == 0 || c->depth >= l->in_place_depth)
		return SCHED_TOO_DEEP;
	c->depth++;
	loom_task_run_nested(c, task);
	c->depth--;
	if (c->lane == 0) {
		loom_own_add(c, &l->counters.in_place, 1);
		loom_own_add(c, &l->counters.executed, 1);
	}
	return join && sched_decrement_join(c, join, next) ? SCHED_GOES_ON : SCHED_RAN;
}

/* Places a task for which the local queue has no room. place() searches other queues for room. If there is none, the
 * task runs inside its spawner. If tasks are nested too deep, spill() puts the task on a list. place() and spill()
 * return 0 when they have placed the task, or a negative error. place() returns 1 if it finds no room. */
typedef int sched_place(struct loom_ctx *c, const struct loom_task *task);
LOOM_FN int sched_place_task(struct loom_ctx *c, const struct loom_task *task, sched_place *place, sched_place *spill)
{
	struct loom_task next;
	for (;;) {
		if (sched_agree(c, (uint64_t)loom_stopped(c)))
			return LOOM_EFULL;
		int rc = place(c, task);
		if (rc <= 0)
			return rc;
		enum sched_ran ran = sched_run_in_place(c, task, &next);
		if (ran == SCHED_RAN)
			return 0;
		if (ran == SCHED_TOO_DEEP)
			return spill(c, task);
		task = &next;
	}
}

#endif
