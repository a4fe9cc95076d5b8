/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer: the functions that device code calls, in one source for CPUs (C11) and for GPUs (C++20). A workload
 * needs the first three groups. The header LOOM_DEVICE_LAYER implements them on a device; the back end of the device defines
 * this macro. A layer that lacks a name fails to compile, because no weaker fallback exists.
 *
 * "Collective" means that all lanes of the worker make the call. Names contain their memory order and scope: `dev` means
 * the workers of one device, `sys` means all devices and the host. On a CPU both mean the same.
 *
 * Tasks
 *   LOOM_CALL(kind, op, c, ...): calls an op of the selected policy, as in LOOM_CALL(sched, spawn, c, &task)
 *   loom_after(c, turns, pending, task): counts a predecessor of `task` that has ended; see after.h
 *   loom_stopped(c): returns 1 if the run was stopped. A long task polls it
 *   loom_worker_fail(c, code, info): ends the run with an error
 *   loom_at(c, ref): returns the address of a reference
 *   loom_random(c), loom_random_below(c, n): return random numbers, which are the same for the same seed
 *   loom_clock_ns(c): returns the time on the device's clock
 *   LOOM_IS_SINGLE_LANE(c): 1 if this lane runs a task of its own
 *   loom_own_add(c, p, v), loom_own_max(c, p, v): add v to, or raise to v, a uint64_t of the worker's own block. Only
 *      lane 0 calls them. Task functions must not change that block in another way,
 *      because several lanes may run a task each
 *   loom_lowest_bit(v): returns the number of the lowest bit that is 1 in the uint64_t v, which must not be 0
 *   loom_stream(c, n): models n bytes of memory traffic. It costs time on a simulated device, and none on a real one
 *
 * Lanes of a worker
 *   loom_barrier_lanes(c): waits for all lanes and orders their memory; collective
 *   loom_from_lane0(c, v): returns lane 0's uint64_t v to all lanes; collective, and a barrier. loom_word_from_lane0()
 *      does so for a uint32_t. loom_flag_from_lane0(), the cheapest, returns whether it is not 0
 *   loom_distribute(c, n): begins to share pieces of work among lanes that run a task each, so that a lane with many
 *      pieces does not delay the others. n is the number of pieces of this lane. Returns a struct loom_distribute. If
 *      the lanes run one task together, they have the same pieces, and each lane does all of them
 *   loom_distribute_next(&d): returns 1 while pieces remain. If d.mine is 1, this lane has piece d.item of one of the
 *      lanes. All lanes call it until it returns 0
 *   loom_distribute_words(&d, v, n, room): called for a piece. Returns the address of the n uint32_t at v of the lane
 *      that owns the piece. They are in `room`, or at v itself. Collective over the lanes that share the pieces
 *
 * Memory that workers share: pointers to uint32_t or uint64_t in segments
 *   loom_load_{relaxed,acquire}_{dev,sys}(p)            loom_store_{relaxed,release}_{dev,sys}(p, v)
 *   loom_fetch_add_{relaxed,acquire,release,acq_rel}_{dev,sys}(p, v)     (to subtract, add the negative)
 *   loom_fetch_or_{relaxed,acq_rel}_{dev,sys}(p, v)     loom_exchange_acq_rel_{dev,sys}(p, v)
 *   loom_cas_acq_rel_{dev,sys}(p, &expected, v) -> 1 if set     loom_fence_{acquire,release,seq_cst}_{dev,sys}()
 *   loom_fence_acq_rel_sys(): acquire and release by one fence. On some GPUs loom_fence_release_sys() is no acquire
 *   loom_take_ticket_dev(p): increments the uint64_t at p, relaxed, and returns the old value. Lanes that call it
 *      together with the same p get consecutive numbers by one memory access
 *   loom_store_marked_sys(p, data, mark), loom_load_marked_sys(p, &data) -> mark: access a uint64_t and its mark, which
 *      are side by side at p, aligned to 16 bytes. A load that returns a mark returns the data that were stored with
 *      this mark or with a later one. Only one lane stores at a time. They are relaxed: they order no other memory, so
 *      that neither waits for a link
 *
 * Waiting, for policies
 *   loom_pause(c): a pause hint in a spin loop
 *   loom_yield(c): gives up the core if that is possible, else pauses
 *   loom_sleep_on(c, p, v, ns): sleeps while the uint32_t at p is v. p must be in memory that all processes access. The
 *      sleep ends by loom_wake(c, p, n), which wakes up to n sleepers, after ns, or without a reason. A device that
 *      cannot sleep pauses
 *   loom_load_poll_dev(p): a load in a loop that waits. loom_fence_poll_dev() after the last load makes it an acquire.
 *      loom_fence_poll_sys() does so after a relaxed load of scope sys, and costs less than loom_fence_acquire_sys()
 *   loom_load_guard_dev(p): a relaxed load before a branch. Stores after the branch follow the load; loads need not
 *   loom_poll_due(c): returns 1 if a loop of short tasks must poll words that others change: every few us, or always;
 *      collective. Only lane 0's result counts, unless LOOM_POLLS_AGREE is 1: then all lanes get the same
 *   loom_set_state(c, what): records the worker's enum loom_worker_state for messages; only lane 0 has an effect
 *
 * Schedulers
 *   loom_task_run(c, t): runs the task function of t->tag, from the loop of a scheduler
 *   loom_task_run_nested(c, t): does so inside a task function. On a GPU it is a call, but loom_task_run() is inlined.
 *      LOOM_NESTING_MAX limits the depth
 *   LOOM_OUTLINED(fn, c, ...): calls fn(c, ...), a function that is rarely called and large. On a GPU it is not inlined.
 *      Arguments and result are integers, pointers to memory that lanes share, or const struct loom_task *, of which the
 *      task is copied. LOOM_OUTLINED_COLLECTIVE does so for functions in which no lane runs a task of its own
 *   LOOM_LEAF: replaces LOOM_FN in the definition of such a function that has no context
 *
 * Waves, for policies on GPUs
 *   LOOM_WAVE: the number of lanes of a worker that is one wave, and 1 for other workers. If lane 0 waits in a loop and
 *      the other lanes of the wave wait for lane 0, this costs 0.25 us. So all lanes of a wave run such a loop
 *   loom_wave_word(c, v): returns lane 0's uint32_t v to the lanes below LOOM_WAVE, and orders their memory. All of
 *      these lanes call it
 *   loom_wave_all(c, v): returns 1 if v is not 0 in any of the lanes below LOOM_WAVE. All of these lanes call it
 *   loom_match(key): returns a group, a struct loom_match: the lanes of a wave that make this call at the same moment
 *      with the same 64-bit key. It may be the calling lane alone. What these lanes wrote before the call precedes what
 *      the leader does after it. Any lanes may call it
 *   loom_match_leader(g), loom_match_sum(g, v), loom_match_broadcast(g, v): return 1 to one lane of the group, its
 *      leader; the sum of the lanes' uint32_t v; the leader's uint64_t v. All lanes of the group call them */
#ifndef GPULOOM_DEV_DEV_H
#define GPULOOM_DEV_DEV_H

#include "ctx.h"

/* LOOM_IS_SINGLE_LANE() is the constant 0 in a program for GPUs whose scheduler gives no lane a task of its own. */
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SINGLE_LANE)
#define LOOM_IS_SINGLE_LANE(c) 0
#else
#define LOOM_IS_SINGLE_LANE(c) ((c)->single_lane != 0)
#endif

#ifndef LOOM_DEVICE_LAYER
#define LOOM_DEVICE_LAYER <gpuloom/dev/layer.h>
#endif
#include LOOM_DEVICE_LAYER

/* LOOM_JOB(op): op with the scope of all workers of the job: LOOM_JOB(loom_load_acquire)(p). In a program for a GPU that has them all,
 * this is the device, in which fences take less time. */
#if defined(LOOM_ONE_DEVICE) && defined(LOOM_REAL_GPU)
#define LOOM_JOB(op) op##_dev
#else
#define LOOM_JOB(op) op##_sys
#endif

#ifndef loom_stream
#define loom_stream(c, n) ((void)(c), (void)(n))
#endif

/* For a loop that waits or is rarely executed. Compilers for GPUs would unroll it if its bound is constant. */
#ifndef LOOM_NO_UNROLL
#define LOOM_NO_UNROLL
#endif

#ifndef LOOM_LEAF
#define LOOM_LEAF LOOM_FN
#endif

#ifndef LOOM_OWN_POLL
#define loom_load_poll_dev(p) loom_load_acquire_dev(p)
#define loom_fence_poll_dev() ((void)0)
#define loom_fence_poll_sys() loom_fence_acquire_sys()
#endif

#ifndef LOOM_OUTLINED
#define LOOM_OUTLINED(fn, ...) fn(__VA_ARGS__)
#define LOOM_OUTLINED_COLLECTIVE(fn, ...) fn(__VA_ARGS__)
#endif

#ifndef LOOM_OWN_WORD_FROM_LANE0
LOOM_FN uint32_t loom_word_from_lane0(struct loom_ctx *c, uint32_t v)
{
	return (uint32_t)loom_from_lane0(c, v);
}
#endif

#ifndef LOOM_OWN_FLAG_FROM_LANE0
LOOM_FN int loom_flag_from_lane0(struct loom_ctx *c, uint32_t v)
{
	return loom_word_from_lane0(c, v) != 0;
}
#endif

#ifndef LOOM_WAVE
#define LOOM_WAVE 1u
LOOM_FN uint32_t loom_wave_word(struct loom_ctx *c, uint32_t v)
{
	(void)c;
	return v;
}
#define loom_wave_all(c, v) ((v) != 0)
#endif

LOOM_FN void *loom_at(const struct loom_ctx *c, loom_ref ref)
{
	return c->segment[LOOM_REF_SEGMENT(ref)] + LOOM_REF_OFFSET(ref);
}

LOOM_FN void *loom_public(const struct loom_ctx *c, int kind, uint32_t worker)
{
	return loom_at(c, c->registry[kind][worker]);
}

/* xorshift64*: good enough for the choice of victims, and reproducible for the same seed, worker and sample. */
LOOM_FN uint64_t loom_random(struct loom_ctx *c)
{
	uint64_t x = c->random;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	c->random = x;
	return x * 0x2545f4914f6cdd1dull;
}

/* Returns a uniform number from 0 to n - 1; n must not be 0. Multiplies the upper half of a random number by n, which
 * needs no division. */
LOOM_FN uint32_t loom_random_below(struct loom_ctx *c, uint32_t n)
{
	return (uint32_t)(((loom_random(c) >> 32) * n) >> 32);
}

/* Definitions for a device layer without groups of lanes: each group is one lane. */
#ifndef LOOM_OWN_MATCH
struct loom_match {
	uint32_t one;
};

LOOM_FN struct loom_match loom_match(uint64_t key)
{
	struct loom_match g = {1};
	(void)key;
	return g;
}

LOOM_FN int loom_match_leader(struct loom_match g)
{
	return (int)g.one;
}

LOOM_FN uint32_t loom_match_sum(struct loom_match g, uint32_t v)
{
	(void)g;
	return v;
}

LOOM_FN uint64_t loom_match_broadcast(struct loom_match g, uint64_t v)
{
	(void)g;
	return v;
}

LOOM_FN uint64_t loom_take_ticket_dev(uint64_t *p)
{
	return loom_fetch_add_relaxed_dev(p, (uint64_t)1);
}
#endif

#ifndef LOOM_OWN_DISTRIBUTE
struct loom_distribute {
	uint32_t n, item, mine;
};

LOOM_FN struct loom_distribute loom_distribute(const struct loom_ctx *c, uint32_t n)
{
	struct loom_distribute d = {n, ~0u, 1};
	(void)c;
	return d;
}

LOOM_FN int loom_distribute_next(struct loom_distribute *d)
{
	return ++d->item < d->n;
}
LOOM_FN const uint32_t *loom_distribute_words(const struct loom_distribute *d, const uint32_t *v, uint32_t n, uint32_t *room)
{
	(void)d, (void)n, (void)room;
	return v;
}
#endif

/* Lane 0 changes a word of its worker's block. If each lane runs a task of its own, several lanes may change it at the
 * same time, so these functions use atomics. */
#ifndef LOOM_OWN_ADD
LOOM_FN void loom_own_add(struct loom_ctx *c, uint64_t *p, uint64_t v)
{
	if (LOOM_IS_SINGLE_LANE(c))
		loom_fetch_add_relaxed_dev(p, v);
	else
		*p += v;
}

LOOM_FN void loom_own_max(struct loom_ctx *c, uint64_t *p, uint64_t v)
{
	if (LOOM_IS_SINGLE_LANE(c)) {
		uint64_t seen = loom_load_relaxed_dev(p);
		while (seen < v && !loom_cas_acq_rel_dev(p, &seen, v))
			;
	} else if (*p < v) {
		*p = v;
	}
}
#endif

/* Returns 1 if the host or a failed worker has ended the run. Lanes may get different answers; loom_from_lane0() makes
 * them equal. A device layer may replace this by a version whose answer is one call old. */
#ifndef LOOM_OWN_STOPPED
LOOM_FN int loom_stopped(const struct loom_ctx *c)
{
	return loom_load_relaxed_sys(&c->ctl->stop) != 0;
}
#endif

/* gpu.h explains polls. */
#ifndef LOOM_POLLS_AGREE
#define LOOM_POLLS_AGREE 1
LOOM_FN int loom_poll_due(struct loom_ctx *c)
{
	(void)c;
	return 1;
}
#endif

/* Definitions for a device that can neither give up a core nor sleep. */
#ifndef LOOM_OWN_SLEEP
LOOM_FN void loom_yield(const struct loom_ctx *c)
{
	loom_pause(c);
}

LOOM_FN void loom_sleep_on(const struct loom_ctx *c, uint32_t *word, uint32_t seen, uint64_t most_ns)
{
	(void)word, (void)seen, (void)most_ns;
	loom_pause(c);
}

LOOM_FN void loom_wake(const struct loom_ctx *c, uint32_t *word, uint32_t most)
{
	(void)c, (void)word, (void)most;
}
#endif

/* The control words of the host. On a device where c->ctl is a copy, the device layer defines this. */
#ifndef LOOM_HOST_CTL
#define LOOM_HOST_CTL(c) ((c)->ctl)
#endif

/* Ends the run with an error. If several workers call it, the first call determines the error. `code` is an enum
 * loom_err. */
LOOM_FN void loom_worker_fail(struct loom_ctx *c, int code, uint64_t info)
{
	struct loom_ctl *ctl = LOOM_HOST_CTL(c);
	uint32_t none = 0;
	if (loom_cas_acq_rel_sys(&ctl->failed, &none, (uint32_t)-code)) {
		loom_store_relaxed_sys(&ctl->failed_worker, c->worker);
		loom_store_relaxed_sys(&ctl->failed_info, info);
		/* Release: pairs with the acquire in loom__worker_failure(), after which the host reads worker, code
		 * and info. */
		loom_store_release_sys(&ctl->failed_ready, 1u);
	}
	loom_store_relaxed_sys(&ctl->stop, 1u);
	if (ctl != c->ctl)
		loom_store_relaxed_sys(&c->ctl->stop, 1u);
}

#ifdef LOOM_TASKS_IN_TABLE
LOOM_FN void loom_task_run(struct loom_ctx *c, const struct loom_task *t)
{
	if (__builtin_expect(t->tag < c->tasks, 1))
		c->task[t->tag](c, t);
	else
		loom_worker_fail(c, LOOM_ENOENT, t->tag);
}

LOOM_FN void loom_task_run_nested(struct loom_ctx *c, const struct loom_task *t)
{
	loom_task_run(c, t);
}
#endif

#include "after.h"
#include "trace.h"

#endif
