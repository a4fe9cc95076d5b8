/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's local queue of spawned tasks, which the worker takes newest first. Device code.
 *
 * Newest first keeps queues small: a worker walks its part of the task tree depth-first, and holds at most (children -
 * 1) tasks per level. Oldest first would hold a whole level. Tasks are published from the other end: the oldest task is
 * nearest to the root and has the most work below it.
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
#define SCHED_WORDS 8u /* words of a task */

#ifndef LOOM_YIELD /* defined for CPUs */
#define LOOM_YIELD() ((void)0)
#endif

/* Only lane 0 writes this struct while the worker runs. */
struct sched_local {
	uint32_t mask; /* slots - 1 */
	uint32_t in_place_depth;
	uint32_t lanes;
	/* With granularity = lane, while lanes run tasks: head and count of the local queue and of the backlog. A count
	 * may exceed the room of its queue. */
	uint32_t head, count, backlog_head, backlog_count;
	uint32_t sent;      /* tasks given to lanes that may not run them */
	void *global, *job; /* on CPUs: results of mgws_global() and mgws_job() */
	uint64_t at, end;   /* pool.dev.h: initial tasks that are claimed and not begun */
	struct loom_counters counters; /* stored to c->counters at the end */
};

struct sched_lane {
	uint32_t head;  /* the oldest task is in slot head & mask */
	uint32_t count; /* tasks held */
	uint64_t spawned;
};
/* Returns whether the task has a priority, an affinity or reserved bits. Most tasks have none. */
#define SCHED_HAS_ATTRIBUTES(task) (*(const sched_word *)(task) >> 32)

/* Bytes for all lanes in the private block; 0 on a GPU. */
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

/* Slots of the local queue, minus 1. */
#ifdef SCHED_CONSTANTS
#define sched_mask(c) (SCHED_CFG(c, local_queue) - 1)
#else
#define sched_mask(c) (sched_local(c)->mask)
#endif

#ifdef LOOM_DEVICE_COMPILE
#define SCHED_REGS_LANE 0 /* first of loom_ctx.regs; the scheduler's own state starts at SCHED_REGS_OWN */
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

/* sched_lane() of a single lane. */
LOOM_FN struct sched_lane *sched_single_lane(const struct loom_ctx *c)
{
	return (struct sched_lane *)(sched_local(c) + 1) + (c->single_lane ? c->single_lane - 1 : c->lane);
}
#endif

/* A GPU's shared memory has this alignment, so the compiler can load two words at a time. */
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

/* Store forwarding needs a load as wide as the store. A task was just written in words of 8 bytes, so it is read in
 * 8-byte words: a wider load would wait for the cache. SCHED_KEEP_WORD() keeps the compiler from merging words. */
#ifdef GPULOOM_DEV_CPU_H
#define SCHED_KEEP_WORD(w) __asm__("" : "+r"(w))
/* The data descriptor at the end is rarely written word by word, so it is copied at once. That saves an eighth of the
 * time of a tiny task. */
typedef uint64_t sched_pair __attribute__((vector_size(16), __may_alias__, aligned(8)));
#define SCHED_SINGLE_WORDS (SCHED_WORDS - 2u)
#define SCHED_UNROLL       _Pragma("GCC unroll 8")
#else
#define SCHED_KEEP_WORD(w) ((void)0)
#define SCHED_SINGLE_WORDS SCHED_WORDS
#define SCHED_UNROLL
#endif

/* Copies a whole task by this lane. */
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

/* These keep rare code out of the hot functions, so that hot functions stay small. SCHED_NOINLINE code is not rare in
 * every task tree, so it is not compiled for size. */
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

/* SCHED_SINGLE_LANE(c) is 1 if the caller is a single lane, which runs a task of its own. In a GPU's program either
 * all pushes are by single lanes, or none. */
#ifndef LOOM_DEVICE_COMPILE
#define SCHED_SINGLE_LANE(c) ((c)->single_lane != 0)
#elif defined(LOOM_SINGLE_LANE)
#define SCHED_SINGLE_LANE(c) 1
#else
#define SCHED_SINGLE_LANE(c) 0
#endif

/* Returns the context of a single lane, valid until sched_end_single(). cpu: the ops that its task calls on a CPU. */
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
	sched_lane(c)->spawned = sched_single_lane(single)->spawned; /* on a GPU the count is in the context */
}

/* Returns the value of lane 0, or of the single lane. */
LOOM_FN uint64_t sched_agree(struct loom_ctx *c, uint64_t v)
{
	return SCHED_SINGLE_LANE(c) ? v : loom_from_lane0(c, v);
}

/* Copies this lane's words of one task. */
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

/* Copies this lane's pairs of words of n tasks, two pairs at a time: a GPU's loads take long, but many can be in
 * flight. On a GPU, segments and private blocks have this alignment. */
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

/* Copies this lane's words of n tasks from ring to ring. A mask of all ones stands for an array. */
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
#ifdef GPULOOM_DEV_CPU_H /* a GPU's kernel clears private blocks and contexts */
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
		/* A GPU's stack is small: its device layer has a bound of its own. */
		l->in_place_depth = depth < LOOM_NESTING_MAX ? depth : LOOM_NESTING_MAX;
		l->counters.begin_ns = loom_clock_ns(c);
		l->counters.last_task_ns = l->counters.begin_ns;
	}
	loom_barrier_lanes(c);
}

/* Stores the counters for the host. ran: tasks that the worker's loop has run. */
LOOM_FN void sched_finish(struct loom_ctx *c, uint64_t ran)
{
	struct sched_local *l = sched_local(c);
	if (SCHED_GRANULARITY(c) == SCHED_LANE && SCHED_SEVERAL(c) && c->lane != 0)
		loom_fetch_add_relaxed_dev(&l->counters.spawned, sched_lane(c)->spawned);
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		l->counters.executed += ran - l->sent;
		l->counters.spawned += sched_lane(c)->spawned;
		l->counters.end_ns = loom_clock_ns(c);
	}
#ifdef GPULOOM_DEV_CPU_H
	if (c->lane == 0)
		*c->counters = l->counters;
#else
	/* All lanes store: the counters may be behind a link that thousands of workers use at this time. */
	loom_barrier_lanes(c);
	LOOM_NO_UNROLL
	for (uint32_t i = c->lane; i < sizeof(l->counters) / 8; i += c->lanes)
		((sched_word *)c->counters)[i] = ((const sched_word *)&l->counters)[i];
#endif
}

/* Called when a worker can get no more tasks, and has had none since counters.last_task_ns. It reports idle, and leaves
 * with the other workers. */
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
		l->counters.idle_ns += loom_clock_ns(c) - l->counters.last_task_ns;
		loom_trace_add(c, LOOM_TRACE_END, l->counters.last_task_ns, c->worker, 0);
	}
	sched_finish(c, ran);
}

/* Copies a task that all lanes hold in registers, which have no addresses. So each lane selects its word, if there are
 * enough lanes. */
LOOM_FN void sched_copy_from_registers(const struct loom_ctx *c, struct loom_task *to, const struct loom_task *task)
{
#if defined(GPULOOM_DEV_CPU_H) || LOOM_LANES < 8
	sched_copy_one(c, to, task);
#else
	const sched_word *f = (const sched_word *)task;
	uint64_t word = f[0];
	for (uint32_t i = 1; i < SCHED_WORDS; i++)
		word = c->lane == i ? f[i] : word;
	LOOM_COMPUTED(word); /* this keeps only one store in the branch */
	if (c->lane < SCHED_WORDS)
		((sched_word *)to)[c->lane] = word;
#endif
}

/* Returns 1, or 0 if the queue is full. */
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
/* sched_push() by a worker of one lane, whose ring is at a constant offset. */
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

/* Pops the newest task and copies it for this lane. A barrier has followed the last push. The caller keeps the
 * addresses in registers, because this is the hot path. */
LOOM_FN void sched_pop(struct loom_ctx *c, struct sched_lane *mine, const struct loom_task *ring, uint32_t mask,
		       struct loom_task *task)
{
	mine->count--;
	sched_copy_task(task, &ring[(mine->head + mine->count) & mask]);
	loom_barrier_lanes(c); /* from here on spawned tasks may overwrite the slot */
}

/* Returns whether this worker cannot decrement the join. Non-coherent devices cannot decrement each other's joins; a
 * device's own joins are in the segment of its workers' blocks. In another rank the reference names other memory, so
 * tasks that ranks share must not have joins. */
LOOM_FN int sched_join_is_foreign(const struct loom_ctx *c, loom_ref join)
{
	return SCHED_CFG(c, remote_workers) ||
	       (SCHED_CFG(c, noncoherent) &&
		LOOM_REF_SEGMENT(join) != LOOM_REF_SEGMENT(c->registry[LOOM_SCHED][c->worker]));
}

/* Decrements the join of an ended task. Returns 1 if it was the last: *next is the join's task, counted as spawned. */
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

/* Runs the task inside its spawner. Returns SCHED_GOES_ON if *next is the task of its join, for which the caller finds
 * a place. `task` and `next` may be the same. */
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

/* Places a task for which the local queue has no room. place() looks for room in queues, then the task runs in place,
 * then spill() puts it on a list. Both return 0 when done, or a negative error; place() also returns 1 if there is no
 * room. */
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
