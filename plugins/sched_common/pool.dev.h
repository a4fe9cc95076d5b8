/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of spawned tasks, from which any worker may take, and the main loop of its workers. For schedulers that hand
 * out the initial set by counters. Device code; all lanes call the functions together, except where noted.
 *
 * The pool is an array. In each sample it is filled from slot 0 on, tasks are taken in the same order, and each slot is
 * used once. `tail` is the number of slots that were reserved, and larger if workers found no room; `head` is the number
 * of slots that were taken. The word `ready` of a slot is set after the slot was written. When the array is used up,
 * spawned tasks stay with the worker that spawned them (own.dev.h). Each non-coherent device has a pool of its own.
 *
 * `open` is a semaphore: the number of written slots that no worker has claimed. A worker claims a slot by a subtraction
 * from `open`, and an addition to `head` says which slot. So takers never compare and swap, which on a GPU lets one
 * worker succeed per round trip to the memory. A worker that finds no slot adds to `open` what it has subtracted.
 * Until then, others may find no slot although there is one, but the worker itself continues to search.
 *
 * Termination detection stays correct, as with the lists of sched_mgws, for two reasons. First, a worker reports idle
 * only after it has seen the pool empty (head == tail), and an idle worker calls busy() before it raises `head`. So
 * when a worker finds the pool empty and reports idle, the worker that emptied the pool has already called busy().
 * Second, only a worker that runs a task raises `tail`, and that worker has not reported idle. So another worker that
 * does not see the new `tail` yet may safely report idle. */
#ifndef SCHED_POOL_DEV_H
#define SCHED_POOL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "own.dev.h"
#endif

/* The head of a pool, in the block for the stack or for each device. The `ready` words of all slots follow, then the
 * slots. */
struct sched_pool {
	uint64_t room; /* constant: number of slots */
	uint64_t slots_at; /* constant: bytes from this struct to the slots */
	uint64_t pad0[6];
	uint64_t tail, pad1[7];
	uint64_t head, pad2[7];
	uint64_t next, pad3[7]; /* next: the scheduler's counter for the initial set */
	uint64_t open, pad4[7]; /* open: signed; below 0 for a short time */
};
#define SCHED_POOL_SLOTS_AT(room) (sizeof(struct sched_pool) + (((uint64_t)(room) * 4 + 63) & ~63ull))
#define SCHED_POOL_BYTES(room)    (SCHED_POOL_SLOTS_AT(room) + (uint64_t)(room) * sizeof(struct loom_task))

LOOM_FN struct sched_pool *sched_pool(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent)
		       ? (struct sched_pool *)((struct sched_site *)c->on_device[LOOM_SCHED] + 1)
		       : (struct sched_pool *)(sched_common(c) + 1);
}

LOOM_FN uint32_t *sched_pool_ready(struct sched_pool *p, uint64_t at)
{
	return (uint32_t *)(p + 1) + at;
}

LOOM_FN struct loom_task *sched_pool_slot(struct sched_pool *p, uint64_t at)
{
	return (struct loom_task *)((char *)p + p->slots_at) + at;
}

/* Puts a spawned task into the pool. Returns 0 if there is no room. */
LOOM_FN int sched_pool_put(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_pool *p = sched_pool(c);
	uint64_t at = p->room;
	if (c->lane == 0)
		at = loom_fetch_add_relaxed_sys(&p->tail, (uint64_t)1);
	at = loom_from_lane0(c, at);
	if (at >= p->room)
		return 0;
	LOOM_YIELD(); /* tests stall workers here */
	sched_copy_from_registers(c, sched_pool_slot(p, at), task);
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		/* Release: pairs with the acquire in sched_pool_claim(), which then sees the slot and the data of the
		 * task. */
		LOOM_JOB(loom_store_release)(sched_pool_ready(p, at), 1u);
		loom_fetch_add_relaxed_sys(&p->open, (uint64_t)1);
		loom_own_add(c, &sched_local(c)->counters.published, 1);
		sched_wake(c, &sched_common(c)->event, 1);
	}
	return 1;
}

/* Called by lane 0. Returns the number of tasks in the pool. The acquire of `head` pairs with the release in
 * sched_pool_claim(). A worker that takes a task calls busy() before this release. */
LOOM_FN uint64_t sched_pool_filled(struct sched_pool *p)
{
	uint64_t head = LOOM_JOB(loom_load_acquire)(&p->head), tail = loom_load_relaxed_sys(&p->tail);
	tail = tail < p->room ? tail : p->room;
	return tail > head ? tail - head : 0;
}

/* Called by lane 0. Claims a slot, and waits until it has been written. Returns its number, or p->room if there is no slot to
 * claim or the run was stopped. The claimed slot was reserved, because slots are counted in `open` after they were reserved.
 * But it may be another one than those that were counted, whose worker is still writing it. */
LOOM_FN uint64_t sched_pool_claim(struct loom_ctx *c, struct sched_pool *p)
{
	if ((int64_t)loom_fetch_add_relaxed_sys(&p->open, ~0ull) <= 0) {
		loom_fetch_add_relaxed_sys(&p->open, (uint64_t)1);
		return p->room;
	}
	/* Release: pairs with the acquire in sched_pool_filled(). A worker that finds the pool empty sees this worker as
	 * busy. */
	uint64_t at = LOOM_JOB(loom_fetch_add_release)(&p->head, (uint64_t)1);
	LOOM_NO_UNROLL
	while (!LOOM_JOB(loom_load_acquire)(sched_pool_ready(p, at))) {
		if (loom_stopped(c))
			return p->room;
		loom_pause(c);
	}
	sched_local(c)->counters.acquired++;
	return at;
}

/* Takes a task. Returns 1 if it got a task. *idle: 1 if this worker has reported idle. The function sets *idle to 0
 * when it calls busy(), even if another worker takes the task first. The load of `open` comes first: if many workers subtracted and
 * added at the same time without it, `open` would stay below 1, and none would get a task. */
LOOM_FN int sched_pool_take(struct loom_ctx *c, int *idle, struct loom_task *task)
{
	struct sched_pool *p = sched_pool(c);
	uint64_t at = p->room;
	if (!loom_flag_from_lane0(c, c->lane == 0 && (int64_t)loom_load_relaxed_sys(&p->open) > 0))
		return 0;
	if (*idle)
		LOOM_CALL(term, busy, c);
	*idle = 0;
	if (c->lane == 0)
		at = sched_pool_claim(c, p);
	at = loom_from_lane0(c, at);
	if (at == p->room)
		return 0;
	sched_copy_task(task, sched_pool_slot(p, at));
	return 1;
}

/* Waits for a task of the pool. Called when the worker's own tasks and all initial tasks are used up. Returns 0 if no
 * task will come, or if the run was stopped. */
SCHED_NOINLINE int sched_pool_search(struct loom_ctx *c, struct loom_task *task)
{
	struct sched_local *l = sched_local(c);
	struct sched_common *common = sched_common(c);
	struct sched_pool *p = sched_pool(c);
	struct sched_rest rest = {0, 1, 0, 0, 0};
	uint64_t since = 0, begin = loom_trace_now(c);
	int idle = 0, done = 0, found = sched_pool_take(c, &idle, task);
	if (found)
		return 1;
	if (c->lane == 0) {
		rest.since = since = loom_clock_ns(c);
		l->counters.last_task_ns = since;
		l->counters.idle_entries++;
		loom_set_state(c, LOOM_STATE_SEARCH);
	}
	LOOM_NO_UNROLL
	while (!found && !done) {
		uint64_t filled = 0;
		if (c->lane == 0)
			filled = loom_stopped(c) ? ~0ull : sched_pool_filled(p);
		filled = loom_from_lane0(c, filled);
		if (filled == ~0ull)
			break;
		if (!filled && !idle) {
			LOOM_CALL(term, idle, c);
			idle = 1;
		}
		if (filled) {
			found = sched_pool_take(c, &idle, task);
			rest.pauses = 1;
		} else {
			done = LOOM_CALL(term, done, c,
					 loom_from_lane0(c, c->lane == 0 ? LOOM_JOB(loom_load_acquire)(&p->head) : 0));
		}
		if (c->lane == 0 && !found && !done)
			sched_rest(c, &common->cfg, &common->event, &rest, idle, filled != 0);
	}
	if (c->lane == 0) {
		sched_unlist(&rest, &common->event);
		/* At the end of the run, all sleeping workers must wake. If the pool still has tasks, one worker must
		 * wake, because a spawn may have skipped its wake-up. */
		if (done || (found && sched_pool_filled(p)))
			sched_wake(c, &common->event, done ? ~0u : 1u);
		l->counters.idle_ns += loom_clock_ns(c) - since;
		if (LOOM_TRACE_OF(c))
			loom_trace_add(c, done ? LOOM_TRACE_END : LOOM_TRACE_IDLE, begin, c->worker, 0);
		loom_set_state(c, LOOM_STATE_TASKS);
	}
	return found;
}

LOOM_FN int sched_pool_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	sched_lane(c)->spawned++;
	if (SCHED_HAS_ATTRIBUTES(task) && !sched_own_allows(c, task))
		return LOOM_EFULL;
	return sched_pool_put(c, task) ? 0 : sched_own_keep(c, task);
}

/* Returns 1 if tasks should be spawned, because the pool has room and has fewer tasks than there are workers. */
LOOM_FN int sched_pool_wanted(struct loom_ctx *c)
{
	struct sched_pool *p = sched_pool(c);
	int64_t yes = 0;
	if (c->lane == 0)
		yes = loom_stopped(c) ? LOOM_EINTR
				      : loom_load_relaxed_sys(&p->tail) < p->room && sched_pool_filled(p) < c->workers;
	return (int)loom_from_lane0(c, (uint64_t)yes);
}

/* ---- the worker's loop ------------------------------------------------------------------------ */

#define SCHED_NO_TASK ~0ull
#define SCHED_STOPPED (~0ull - 1)

/* Called by lane 0. Claims an initial task for this worker, and returns its index, or SCHED_NO_TASK if none is left. */
typedef uint64_t sched_claim_next(struct loom_ctx *c);

/* Returns the array for the times of initial tasks in ns, by index of the task, or NULL if no times are wanted. It is called for
 * each task, because its result would take two registers from the tasks. NULL in its place: no times are wanted. */
typedef uint32_t *sched_times(const struct loom_ctx *c);

/* Runs tasks until the job ends. The loop has only one call of loom_task_run(), because a GPU's program inlines it. */
LOOM_FN void sched_pool_run(struct loom_ctx *c, sched_claim_next claim, sched_times times)
{
	struct sched_lane *q = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c);
	uint64_t ran = 0, sample = loom_trace_next(c, 0), begin = 0;
	int more = 1, follows = 0; /* more: 1 if initial tasks may be left; follows: 1 if t is the task of a join */
	struct loom_task t;
	for (;;) {
		uint64_t at = SCHED_NO_TASK;
		int own = follows || q->count || sched_own_lane(c)->listed;
		if (c->lane == 0)
			at = loom_stopped(c) ? SCHED_STOPPED : own || !more ? SCHED_NO_TASK : claim(c);
		at = loom_from_lane0(c, at); /* also the barrier before sched_pop() */
		if (at == SCHED_STOPPED)
			break;
		if (at != SCHED_NO_TASK) {
			sched_copy_task(&t, &c->initial[at]);
		} else if (!follows && own) {
			if (!q->count)
				sched_own_refill(c);
			loom_barrier_lanes(c);
			sched_pop(c, q, ring, mask, &t);
		} else if (!follows) {
			more = 0;
			if (!sched_pool_search(c, &t))
				break;
		}
		if (SCHED_HAS_ATTRIBUTES(&t) && !sched_own_allows(c, &t))
			break;
		if (at != SCHED_NO_TASK && c->lane == 0 && times && times(c))
			begin = loom_clock_ns(c);
		if (LOOM_TRACE_OF(c) && ran == sample)
			sample = loom_trace_task(c, sample, &t);
		else
			loom_task_run(c, &t);
		ran++;
		if (at != SCHED_NO_TASK && times && times(c)) {
			loom_barrier_lanes(c);
			if (c->lane == 0) {
				uint64_t took = loom_clock_ns(c) - begin;
				times(c)[at] = took < ~0u ? (uint32_t)took : ~0u;
			}
		}
		follows = t.join && sched_decrement_join(c, t.join, &t);
	}
	sched_own_end(c);
	sched_finish(c, ran);
}

#endif
