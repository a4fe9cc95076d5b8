/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer on the CPU: C11 atomics, lanes as threads. See dev.h for the contract. */
#ifndef GPULOOM_DEV_CPU_H
#define GPULOOM_DEV_CPU_H

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ctx.h"

#define LOOM_FN static inline __attribute__((unused))

/* A point where another thread may come between: a test build defines LOOM_YIELD to take control of
 * the schedule there; `make PERTURB=1` sleeps and yields at random. */
#ifndef LOOM_YIELD
#ifdef LOOM_PERTURB
LOOM_FN void loom_perturb(void)
{
	static __thread uint64_t state;
	if (!state)
		state = ((uint64_t)(uintptr_t)&state >> 4) * 0x9e3779b97f4a7c15ull | 1u;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	if (!(state & 0x1f))
		sched_yield();
	if (!(state & 0xfff))
		usleep((useconds_t)(state >> 56));
}
#define LOOM_YIELD() loom_perturb()
#else
#define LOOM_YIELD() ((void)0)
#endif
#endif

/* The CPU's caches are coherent over all devices made of cores: both scopes are the same code. */
#define LOOM_CPU_LOAD(p, order) (__extension__({ LOOM_YIELD(); __atomic_load_n((p), order); }))
#define LOOM_CPU_STORE(p, v, order) (__extension__({ LOOM_YIELD(); __atomic_store_n((p), (v), order); }))
#define LOOM_CPU_RMW(fn, p, v, order) (__extension__({ LOOM_YIELD(); fn((p), (v), order); }))

#define loom_load_relaxed_dev(p) LOOM_CPU_LOAD(p, __ATOMIC_RELAXED)
#define loom_load_relaxed_sys(p) LOOM_CPU_LOAD(p, __ATOMIC_RELAXED)
#define loom_load_acquire_dev(p) LOOM_CPU_LOAD(p, __ATOMIC_ACQUIRE)
#define loom_load_acquire_sys(p) LOOM_CPU_LOAD(p, __ATOMIC_ACQUIRE)
#define loom_store_relaxed_dev(p, v) LOOM_CPU_STORE(p, v, __ATOMIC_RELAXED)
#define loom_store_relaxed_sys(p, v) LOOM_CPU_STORE(p, v, __ATOMIC_RELAXED)
#define loom_store_release_dev(p, v) LOOM_CPU_STORE(p, v, __ATOMIC_RELEASE)
#define loom_store_release_sys(p, v) LOOM_CPU_STORE(p, v, __ATOMIC_RELEASE)
#define loom_fetch_add_relaxed_dev(p, v) LOOM_CPU_RMW(__atomic_fetch_add, p, v, __ATOMIC_RELAXED)
#define loom_fetch_add_relaxed_sys(p, v) LOOM_CPU_RMW(__atomic_fetch_add, p, v, __ATOMIC_RELAXED)
#define loom_fetch_add_acquire_dev(p, v) LOOM_CPU_RMW(__atomic_fetch_add, p, v, __ATOMIC_ACQUIRE)
#define loom_fetch_add_acquire_sys(p, v) LOOM_CPU_RMW(__atomic_fetch_add, p, v, __ATOMIC_ACQUIRE)
#define loom_fetch_add_release_dev(p, v) LOOM_CPU_RMW(__atomic_fetch_add, p, v, __ATOMIC_RELEASE)
#define loom_fetch_add_release_sys(p, v) LOOM_CPU_RMW(__atomic_fetch_add, p, v, __ATOMIC_RELEASE)
#define loom_fetch_add_acq_rel_dev(p, v) LOOM_CPU_RMW(__atomic_fetch_add, p, v, __ATOMIC_ACQ_REL)
#define loom_fetch_add_acq_rel_sys(p, v) LOOM_CPU_RMW(__atomic_fetch_add, p, v, __ATOMIC_ACQ_REL)
#define loom_fetch_or_relaxed_dev(p, v) LOOM_CPU_RMW(__atomic_fetch_or, p, v, __ATOMIC_RELAXED)
#define loom_fetch_or_relaxed_sys(p, v) LOOM_CPU_RMW(__atomic_fetch_or, p, v, __ATOMIC_RELAXED)
#define loom_fetch_or_acq_rel_dev(p, v) LOOM_CPU_RMW(__atomic_fetch_or, p, v, __ATOMIC_ACQ_REL)
#define loom_fetch_or_acq_rel_sys(p, v) LOOM_CPU_RMW(__atomic_fetch_or, p, v, __ATOMIC_ACQ_REL)
#define loom_fetch_and_relaxed_dev(p, v) LOOM_CPU_RMW(__atomic_fetch_and, p, v, __ATOMIC_RELAXED)
#define loom_fetch_and_relaxed_sys(p, v) LOOM_CPU_RMW(__atomic_fetch_and, p, v, __ATOMIC_RELAXED)
#define loom_fetch_and_acq_rel_dev(p, v) LOOM_CPU_RMW(__atomic_fetch_and, p, v, __ATOMIC_ACQ_REL)
#define loom_fetch_and_acq_rel_sys(p, v) LOOM_CPU_RMW(__atomic_fetch_and, p, v, __ATOMIC_ACQ_REL)
#define loom_exchange_acq_rel_dev(p, v) LOOM_CPU_RMW(__atomic_exchange_n, p, v, __ATOMIC_ACQ_REL)
#define loom_exchange_acq_rel_sys(p, v) LOOM_CPU_RMW(__atomic_exchange_n, p, v, __ATOMIC_ACQ_REL)
#define LOOM_CPU_CAS(p, expected, v)                                                               \
	(__extension__({                                                                           \
		LOOM_YIELD();                                                                      \
		__atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL,             \
					    __ATOMIC_ACQUIRE);                                     \
	}))
#define loom_cas_acq_rel_dev(p, expected, v) LOOM_CPU_CAS(p, expected, v)
#define loom_cas_acq_rel_sys(p, expected, v) LOOM_CPU_CAS(p, expected, v)
#ifdef __SANITIZE_THREAD__
/* Thread sanitizer knows no fences. Changes of one word have an order that all agree on. */
static uint64_t loom_fence_word __attribute__((unused));
#define LOOM_CPU_FENCE(order) ((void)__atomic_fetch_add(&loom_fence_word, 0, __ATOMIC_SEQ_CST))
#else
#define LOOM_CPU_FENCE(order) __atomic_thread_fence(order)
#endif
#define loom_fence_acquire_dev() LOOM_CPU_FENCE(__ATOMIC_ACQUIRE)
#define loom_fence_acquire_sys() LOOM_CPU_FENCE(__ATOMIC_ACQUIRE)
#define loom_fence_release_dev() LOOM_CPU_FENCE(__ATOMIC_RELEASE)
#define loom_fence_release_sys() LOOM_CPU_FENCE(__ATOMIC_RELEASE)
#define loom_fence_seq_cst_dev() LOOM_CPU_FENCE(__ATOMIC_SEQ_CST)
#define loom_fence_seq_cst_sys() LOOM_CPU_FENCE(__ATOMIC_SEQ_CST)

LOOM_FN void loom_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

LOOM_FN void loom_doing(const struct loom_ctx *c, enum loom_doing what)
{
	if (c->lane == 0 && c->counters)
		__atomic_store_n(&c->counters->doing, (uint64_t)what, __ATOMIC_RELAXED);
}

#ifndef LOOM_OWN_SLEEP /* a test build may bring its own ways to wait, as with LOOM_YIELD */
#define LOOM_OWN_SLEEP
LOOM_FN void loom_pause(const struct loom_ctx *c)
{
	LOOM_YIELD();
	if (c->flags & LOOM_CTX_CROWDED)
		sched_yield();
	else
		loom_relax();
}

LOOM_FN void loom_give_way(const struct loom_ctx *c)
{
	(void)c;
	LOOM_YIELD();
	sched_yield();
}

/* Not FUTEX_PRIVATE: workers of one stack may be threads of several processes. */
LOOM_FN void loom_sleep_on(const struct loom_ctx *c, uint32_t *word, uint32_t seen, uint64_t most_ns)
{
	struct timespec most = {.tv_sec = (time_t)(most_ns / 1000000000u),
				.tv_nsec = (long)(most_ns % 1000000000u)};
	(void)c;
	syscall(SYS_futex, word, FUTEX_WAIT, seen, &most, NULL, 0);
}

LOOM_FN void loom_wake(const struct loom_ctx *c, uint32_t *word, uint32_t most)
{
	(void)c;
	syscall(SYS_futex, word, FUTEX_WAKE, most < 0x7fffffffu ? most : 0x7fffffffu, NULL, NULL, 0);
}
#endif

LOOM_FN uint64_t loom_clock_ns(const struct loom_ctx *c)
{
	struct timespec t;
	(void)c;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Lanes of one worker are threads of one process. */
struct loom_lanes {
	uint32_t arrived;
	uint32_t round; /* futex: lanes wait for it to change */
	uint64_t slot[2];
};

/* A central barrier: spins a little, then sleeps, because lanes may outnumber cores. */
LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	if (c->lanes == 1)
		return;
	struct loom_lanes *t = c->together;
	uint32_t round = __atomic_load_n(&t->round, __ATOMIC_RELAXED);
	LOOM_YIELD();
	/* Release what this lane wrote; the last one to come acquires it all ... */
	if (__atomic_add_fetch(&t->arrived, 1, __ATOMIC_ACQ_REL) == c->lanes) {
		__atomic_store_n(&t->arrived, 0, __ATOMIC_RELAXED);
		/* ... and passes it on to those that see the new round. */
		__atomic_store_n(&t->round, round + 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &t->round, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
		return;
	}
	for (int spin = 0; __atomic_load_n(&t->round, __ATOMIC_ACQUIRE) == round; spin++) {
		if (spin < 64)
			loom_relax();
		else
			syscall(SYS_futex, &t->round, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
	}
}

/* Two slots in turn: a lane may still read slot 0 while lane 0 writes slot 1, and the barrier of that
 * second broadcast has everyone past the first before slot 0 is written again. */
LOOM_FN uint64_t loom_from_lane0(struct loom_ctx *c, uint64_t value)
{
	if (c->lanes == 1)
		return value;
	struct loom_lanes *t = c->together;
	uint32_t turn = c->turn;
	c->turn = turn ^ 1;
	if (c->lane == 0)
		t->slot[turn] = value;
	loom_barrier_lanes(c);
	return t->slot[turn];
}

/* LOOM_CALL(term, idle, c, ...): through the stack's table. */
#define LOOM_CALL(kind, op, ...) (LOOM_FIRST(__VA_ARGS__, 0)->kind->op(__VA_ARGS__))
#define LOOM_FIRST(first, ...) (first)

/* Runs the task function of t->tag. */
LOOM_FN void loom_task_run(struct loom_ctx *c, const struct loom_task *t)
{
	c->task[t->tag](c, t);
}

#define LOOM_NESTING_MAX 0x7fffffffu /* what the stack bears is for the scheduler to know */

LOOM_FN void loom_task_run_nested(struct loom_ctx *c, const struct loom_task *t)
{
	loom_task_run(c, t);
}

#endif
