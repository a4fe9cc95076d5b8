/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer on CPUs, with C11 atomics. Lanes are threads. dev.h describes the functions. It also serves for programs that
 * are composed as for GPUs (LOOM_DEVICE_COMPILE) and compiled for threads of the host, with one lane per worker. */
#ifndef GPULOOM_DEV_THREADS_H
#define GPULOOM_DEV_THREADS_H

#include <gpuloom/dev/ctx.h>
#include <gpuloom/dev/futex.h>
#include <gpuloom/dev/libc.h>

#define LOOM_FN static inline __attribute__((unused))

/* A point at which another thread may interleave. A test may define LOOM_YIELD to control the schedule here. With
 * LOOM_PERTURB (`make PERTURB=1`), this point sleeps and yields at random, or calls loom_cpu_yield_hook, which `gpuloom
 * validate` sets. `waits`: 1 if the caller waits for other workers. */
#ifndef LOOM_YIELD
#ifdef LOOM_PERTURB
extern void (*loom_cpu_yield_hook)(int waits);
__attribute__((weak, visibility("default"))) void (*loom_cpu_yield_hook)(int waits);
LOOM_FN void loom_perturb(int waits)
{
	static __thread uint64_t state;
	if (loom_cpu_yield_hook) {
		loom_cpu_yield_hook(waits);
		return;
	}
	if (!state)
		state = ((uint64_t)(uintptr_t)&state >> 4) * 0x9e3779b97f4a7c15ull | 1u;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	if (!(state & 0x1f))
		sched_yield();
	if (!(state & 0xfff))
		usleep((unsigned)(state >> 56));
}
#define LOOM_YIELD() loom_perturb(0)
#define LOOM_YIELD_WAITS() loom_perturb(1)
#else
#define LOOM_YIELD() ((void)0)
#endif
#endif
#ifndef LOOM_YIELD_WAITS
#define LOOM_YIELD_WAITS() LOOM_YIELD()
#endif

/* CPU caches are coherent over all devices that consist of cores, so both scopes have the same code. */
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
/* Stores the data, then the mark with release, which costs nothing here. The release pairs with the acquire of the mark
 * in loom_load_marked_sys(). */
#define loom_store_marked_sys(p, data, mark)                                                       \
	(loom_store_relaxed_sys(&(p)[0], (data)), loom_store_release_sys(&(p)[1], (mark)))
#define loom_load_marked_sys(p, data)                                                              \
	(__extension__({                                                                           \
		uint64_t marked_ = loom_load_acquire_sys(&(p)[1]);                                 \
		*(data) = loom_load_relaxed_sys(&(p)[0]);                                          \
		marked_;                                                                           \
	}))
/* A variable that exists once in a program or plug-in, even if many of its files include this header. */
#define LOOM_ONCE __attribute__((weak, visibility("hidden")))

#ifdef __SANITIZE_THREAD__
/* Thread sanitizer does not model fences. An atomic change of one word replaces them, because all threads see such
 * changes in one order. */
LOOM_ONCE uint64_t loom_fence_word;
#define LOOM_CPU_FENCE(order) ((void)__atomic_fetch_add(&loom_fence_word, 0, __ATOMIC_SEQ_CST))
#else
#define LOOM_CPU_FENCE(order) __atomic_thread_fence(order)
#endif
#define loom_fence_acquire_dev() LOOM_CPU_FENCE(__ATOMIC_ACQUIRE)
#define loom_fence_acquire_sys() LOOM_CPU_FENCE(__ATOMIC_ACQUIRE)
#define loom_fence_release_dev() LOOM_CPU_FENCE(__ATOMIC_RELEASE)
#define loom_fence_release_sys() LOOM_CPU_FENCE(__ATOMIC_RELEASE)
#define loom_fence_acq_rel_sys() LOOM_CPU_FENCE(__ATOMIC_ACQ_REL)
#define loom_fence_seq_cst_dev() LOOM_CPU_FENCE(__ATOMIC_SEQ_CST)
#define loom_fence_seq_cst_sys() LOOM_CPU_FENCE(__ATOMIC_SEQ_CST)

/* C does not order stores after a branch, so this is an acquire, which costs nothing on x86. */
#define loom_load_guard_dev(p) loom_load_acquire_dev(p)

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

/* A workaround for the EEVDF scheduler of Linux 6.6 and later, measured on 6.18. When a thread of a session or control
 * group sleeps or wakes, 6.18 computes the weight of the group again, and adds to its credit. Suppose that one thread
 * sleeps and wakes some hundred times a second, and that another thread of the group can always run on that core. Then
 * threads of other groups do not run on that core for seconds. They run only when no thread of the first group can. So
 * every thread that yields in a loop, in any process, sleeps during the gap: the first half millisecond of each 20 ms.
 * A wait by loom_cpu_yield() may therefore end half a millisecond later. On older kernels, threads yield without a
 * gap. */
#define LOOM_GAP_NS 500000u
#define LOOM_GAP_EVERY_NS 20000000u
/* If the first `gap_ns` of the current 20 ms have not passed, sleeps until then and returns 1. Otherwise returns 0.
 * `now_ns` is a time on CLOCK_MONOTONIC, with or without its whole seconds. */
LOOM_FN int loom_leave_gap(uint64_t now_ns, uint32_t gap_ns)
{
	uint32_t since = (uint32_t)(now_ns % LOOM_GAP_EVERY_NS);
	struct timespec nap; /* without a designated initializer, which C++17 lacks */
	nap.tv_sec = 0;
	nap.tv_nsec = since < gap_ns ? (long)(gap_ns - since) : 0;
	if (nap.tv_nsec)
		nanosleep(&nap, NULL);
	return nap.tv_nsec != 0;
}

/* Returns 1 if a kernel with a release such as "6.1.0-49-amd64" needs the gap: from 6.6 on, or if the release has
 * another form. */
LOOM_FN int loom_needs_gap(const char *release)
{
	uint32_t number[2] = {0, 0};
	for (uint32_t i = 0; i < 2; i++) {
		if (*release < '0' || *release > '9')
			return 1;
		for (; *release >= '0' && *release <= '9'; release++)
			number[i] = number[i] * 10 + (uint32_t)(*release - '0');
		release += *release == '.';
	}
	return number[0] > 6 || (number[0] == 6 && number[1] >= 6);
}

/* Whether this kernel needs the gap. 1: yes; 2: no; 0: not yet determined. */
LOOM_ONCE uint32_t loom_gap;
LOOM_FN int loom_has_gap(void)
{
	/* Relaxed: every thread that loads 0 determines the same value. */
	uint32_t gap = __atomic_load_n(&loom_gap, __ATOMIC_RELAXED);
	if (!gap) {
		struct utsname of_host;
		gap = uname(&of_host) || loom_needs_gap(of_host.release) ? 1 : 2;
		__atomic_store_n(&loom_gap, gap, __ATOMIC_RELAXED);
	}
	return gap == 1;
}

LOOM_FN void loom_cpu_yield(void)
{
	struct timespec now;
	if (loom_has_gap()) {
		clock_gettime(LOOM_CLOCK, &now);
		if (loom_leave_gap((uint64_t)now.tv_nsec, LOOM_GAP_NS))
			return;
	}
	sched_yield();
}

/* Sleeps for a short time inside a wait that has lasted `waited_ns`. The nap lengthens the wait by at most a quarter,
 * or by `least_ns` if that is more. Frequent naps of a thread delay other groups if another thread is busy, as
 * described at LOOM_GAP_NS. */
#define LOOM_NAP_MOST_NS 4000000u
LOOM_FN void loom_nap(uint64_t waited_ns, uint64_t least_ns)
{
	uint64_t ns = waited_ns / 4 < LOOM_NAP_MOST_NS ? waited_ns / 4 : LOOM_NAP_MOST_NS;
	ns = ns < least_ns ? least_ns : ns;
	struct timespec nap;
	nap.tv_sec = (time_t)(ns / 1000000000u);
	nap.tv_nsec = (long)(ns % 1000000000u);
	nanosleep(&nap, NULL);
}

LOOM_FN uint32_t loom_lowest_bit(uint64_t v)
{
	return (uint32_t)__builtin_ctzll(v);
}

/* A test may define LOOM_OWN_SLEEP and other waits. In a composed program policies do not sleep, as on a GPU. */
#ifndef LOOM_OWN_SLEEP
LOOM_FN void loom_pause(const struct loom_ctx *c)
{
	LOOM_YIELD_WAITS();
	if (c->flags & LOOM_CTX_OVERSUBSCRIBED)
		loom_cpu_yield();
	else
		loom_relax();
}
#ifndef LOOM_DEVICE_COMPILE
LOOM_FN void loom_yield(const struct loom_ctx *c)
{
	(void)c;
	LOOM_YIELD_WAITS();
	loom_cpu_yield();
}
#define LOOM_OWN_SLEEP
/* The futex is not FUTEX_PRIVATE, because workers of a stack may be threads of several processes. */
LOOM_FN void loom_sleep_on(const struct loom_ctx *c, uint32_t *word, uint32_t seen, uint64_t most_ns)
{
	struct timespec now;
	(void)c;
#ifdef LOOM_PERTURB
	if (loom_cpu_yield_hook) { /* returns early, because a sleep may end without a wake */
		loom_cpu_yield_hook(1);
		return;
	}
#endif
	clock_gettime(LOOM_CLOCK, &now);
	loom_futex_sleep(word, seen, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + most_ns, 0);
}

LOOM_FN void loom_wake(const struct loom_ctx *c, uint32_t *word, uint32_t most)
{
	(void)c;
	loom_futex_wake(word, most, 0);
}
#endif
#endif
LOOM_FN uint64_t loom_clock_ns(const struct loom_ctx *c)
{
	struct timespec t;
	(void)c;
	clock_gettime(LOOM_CLOCK, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#ifdef LOOM_DEVICE_COMPILE
#define __device__
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#define LOOM_COMPUTED(word) ((void)(word))
#define LOOM_PAUSE_NS 32
LOOM_FN void loom_nanosleep(uint32_t ns)
{
	struct timespec nap;
	nap.tv_sec = 0;
	nap.tv_nsec = (long)ns;
	nanosleep(&nap, NULL);
}

LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	(void)c;
}

LOOM_FN uint64_t loom_from_lane0(struct loom_ctx *c, uint64_t value)
{
	(void)c;
	return value;
}

#include <gpuloom/dev/gpu.h>

/* Outlining saves no registers in a program for the host, so these calls are inlined. */
#undef LOOM_OUTLINED
#undef LOOM_OUTLINED_COLLECTIVE
#else
LOOM_FN void loom_set_state(const struct loom_ctx *c, enum loom_worker_state what)
{
	if (c->lane == 0 && c->counters)
		__atomic_store_n(&c->counters->state, (uint64_t)what, __ATOMIC_RELAXED);
}
#define GPULOOM_DEV_CPU_H /* device code tests this: it is compiled into plug-ins for CPUs, and may sleep and call the C library */
/* State that the lanes of a worker share. They are threads of one process. */
struct loom_lanes {
	uint32_t arrived;
	uint32_t round; /* futex word, on which lanes wait until it changes */
	uint64_t slot[2];
};

/* A central barrier. A lane spins briefly and then sleeps, because there may be more lanes than cores. */
LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	if (c->lanes == 1)
		return;
	struct loom_lanes *t = c->together;
	uint32_t round = __atomic_load_n(&t->round, __ATOMIC_RELAXED);
	LOOM_YIELD();
	/* Acquire and release: publishes what this lane wrote. The last lane to arrive sees the writes of all lanes. */
	if (__atomic_add_fetch(&t->arrived, 1, __ATOMIC_ACQ_REL) == c->lanes) {
		__atomic_store_n(&t->arrived, 0, __ATOMIC_RELAXED);
		/* Release: pairs with the acquire in the loop below. The other lanes then see the writes of all
		 * lanes. */
		__atomic_store_n(&t->round, round + 1, __ATOMIC_RELEASE);
		loom_futex_wake(&t->round, 0x7fffffff, FUTEX_PRIVATE_FLAG);
		return;
	}
	for (int spin = 0; __atomic_load_n(&t->round, __ATOMIC_ACQUIRE) == round; spin++) {
		if (spin < 64)
			loom_relax();
		else
			loom_futex_sleep(&t->round, round, 0, FUTEX_PRIVATE_FLAG);
	}
}

/* Returns the value of lane 0 to all lanes. Two slots alternate, because a lane may still read slot 0 while lane 0
 * writes slot 1. Before lane 0 writes slot 0 again, the barrier of the broadcast with slot 1 makes sure that all lanes
 * have read it. */
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

/* LOOM_CALL(term, idle, c, ...) calls an op by the stack's table of pointers. */
#define LOOM_CALL(kind, op, ...) (LOOM_FIRST(__VA_ARGS__, 0)->kind->op(__VA_ARGS__))
#define LOOM_FIRST(first, ...) (first)

#define LOOM_TASKS_IN_TABLE          /* dev.h runs tasks by the table `task` of the context if this is defined */
#define LOOM_NESTING_MAX 0x7fffffffu /* no limit here, because the scheduler knows the size of its stacks */
#endif

#endif
