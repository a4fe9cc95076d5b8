/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer on a simulated GPU. dev.h includes this header in programs for simulated GPUs, and documents the
 * functions.
 *
 * A program is composed as for GPUs, and compiled for the host as C++. A worker has one lane and is a fiber. All fibers
 * run on one thread, so accesses are ordinary loads and stores. Each access first adds its cost to the virtual clock.
 * The worker yields when the clock reaches the horizon, which is the time at which another entity (worker or agent) is
 * due. */
#ifndef COMPOSE_SIM_H
#define COMPOSE_SIM_H

#include <gpuloom/dev/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Costs of accesses in ns, as X(name, default, description). local: memory of the same device. host: memory of the
 * host. peer: memory of another device. */
#define LOOM_SIM_COSTS(X)                                                                                              \
	X(load_local, "200", "a load from the device's own memory")                                                    \
	X(load_host, "1100", "a load from host memory")                                                                \
	X(load_peer, "800", "a load from another device's memory")                                                     \
	X(store_local, "10", "a store to the device's own memory, which no worker waits for")                          \
	X(store_host, "20", "a store to host memory")                                                                  \
	X(store_peer, "20", "a store to another device's memory")                                                      \
	X(atomic_local, "200", "a read-modify-write in the device's own memory")                                       \
	X(atomic_host, "1300", "a read-modify-write in host memory")                                                   \
	X(atomic_peer, "900", "a read-modify-write in another device's memory")                                        \
	X(fence_dev, "100", "a fence for the workers of the device")                                                   \
	X(fence_sys, "700", "a fence for all devices and the host")                                                    \
	X(stream, "28", "a read or write of 1 KiB of ordinary memory, where the code calls loom_stream()")             \
	X(task, "1000", "the body of a task, without its calls of the device layer")

enum loom_sim_cost {
#define LOOM_SIM_COST(name, ns, text) LOOM_SIM_##name,
	LOOM_SIM_COSTS(LOOM_SIM_COST)
#undef LOOM_SIM_COST
	    LOOM_SIM_COST_COUNT
};

/* Owners of memory: the number of a device, or one of these. Accesses to the scratchpad memory of workers cost nothing. */
enum { LOOM_SIM_HOST = -1, LOOM_SIM_PRIVATE = -2 };
struct loom_sim_range {
	uintptr_t begin, bytes;
	int32_t owner;
	uint32_t watched; /* number of the agent that waits for stores to this memory, counted from 1; 0: none */
};

/* The memory ranges that a worker accessed last, the latest first. */
#define LOOM_SIM_RANGES 4
struct loom_sim_recent {
	struct loom_sim_range range[LOOM_SIM_RANGES];
};

/* The machine model, which performs the accesses of a program with LOOM_SIM_WEAK. These are the functions of
 * device_common/explore/race.h. ran() is called after each task, and left() when a worker has left its scheduler. */
struct race_site;
enum loom_sim_rmw { LOOM_SIM_ADD, LOOM_SIM_OR, LOOM_SIM_EXCHANGE };
struct loom_sim_memory {
	uint64_t (*load)(struct race_site *at, const void *p, uint32_t size);
	void (*store)(struct race_site *at, void *p, uint32_t size, uint64_t v);
	uint64_t (*change)(struct race_site *at, void *p, uint32_t size, uint32_t op, uint64_t v);
	int (*cas)(struct race_site *at, void *p, uint32_t size, uint64_t *expected, uint64_t v);
	void (*fence)(struct race_site *at);
	void (*plain)(const void *p, size_t bytes, int is_write, const void *where);
	void (*ran)(void);
	void (*left)(void);
};

/* The interface between the simulator and the programs of a stack. One worker runs at a time. */
struct loom_sim {
	uint64_t now;                   /* the virtual clock, in ns */
	uint64_t horizon;               /* the virtual time at which the worker yields */
	uint64_t events;                /* number of accesses with a cost, plus steps of agents, in this sample */
	/* virtual time of the last change by any worker or agent; a computation counts as a change until it ends */
	uint64_t changed;
	struct loom_sim_recent *recent; /* recent ranges of the running worker */
	const uint32_t *cost;           /* [LOOM_SIM_COST_COUNT]: costs of accesses by the running device, in ns */
	int32_t device;                 /* number of the device whose worker runs */
	uint32_t waiting;               /* 1: the running worker waits for another entity */
	uint64_t waited_at;             /* virtual time of the last wait */
	struct loom_ctl *ctl;           /* control words of the running rank */
	/* 1: a worker of the running rank exited without a stop request. If ranks share tasks, a worker of any rank
	 * counts. */
	uint64_t ended;
	const struct loom_sim_memory *memory; /* NULL: accesses are sequentially consistent */
	void (*yield)(struct loom_sim *sim);
	void (*ended_early)(struct loom_sim *sim);              /* called if a task starts after the sample has ended */
	void (*find)(struct loom_sim *sim, uintptr_t address);  /* makes the range of the address the first of `recent` */
	void (*stored)(struct loom_sim *sim, uint32_t watched); /* called at a store to watched memory */
};

#ifdef __cplusplus
}
#endif

/* ---- programs -------------------------------------------------------------------------------------- */
#ifdef LOOM_SIM

extern "C" {
extern struct loom_sim *loom_sim;
}

#define __device__
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#define LOOM_FN static inline __attribute__((unused))

/* LOOM_SIM_AT(load, acquire, dev) is the site of an access: its place, order and scope. LOOM_SIM_FN: for functions that
 * write the words of struct loom_sim, which the model must not see. */
#ifdef LOOM_SIM_WEAK
#define LOOM_SIM_IS_WEAK 1
#define LOOM_SIM_FN      LOOM_FN __attribute__((no_sanitize_thread))
#define LOOM_SIM_relaxed RACE_RELAXED
#define LOOM_SIM_acquire RACE_ACQUIRE
#define LOOM_SIM_release RACE_RELEASE
#define LOOM_SIM_acq_rel RACE_ACQ_REL
#define LOOM_SIM_seq_cst RACE_SEQ_CST
#define LOOM_SIM_dev     RACE_DEV
#define LOOM_SIM_sys     RACE_SYS
#define LOOM_SIM_AT(op, order, scope)                                                                                  \
	(__extension__({                                                                                               \
		static struct race_site at_ = {__FILE__, __func__, #op "_" #order "_" #scope, __LINE__,                \
					       LOOM_SIM_##order, LOOM_SIM_##scope};                                    \
		&at_;                                                                                                  \
	}))

/* The compiler inserts calls of these functions at plain accesses (-fsanitize=thread). */
#define LOOM_SIM_CALL                      extern "C" __attribute__((visibility("hidden"), no_sanitize_thread))
#define LOOM_SIM_PLAIN(p, bytes, is_write) loom_sim->memory->plain(p, bytes, is_write, __builtin_return_address(0))
#define LOOM_SIM_PLAIN_CALL(name, bytes, is_write)                                                                     \
	LOOM_SIM_CALL void __tsan_##name(void *p)                                                                      \
	{                                                                                                              \
		LOOM_SIM_PLAIN(p, bytes, is_write);                                                                    \
	}
#define LOOM_SIM_PLAIN_CALLS(n)                                                                                        \
	LOOM_SIM_PLAIN_CALL(read##n, n, 0)                                                                             \
	LOOM_SIM_PLAIN_CALL(write##n, n, 1)                                                                            \
	LOOM_SIM_PLAIN_CALL(unaligned_read##n, n, 0)                                                                   \
	LOOM_SIM_PLAIN_CALL(unaligned_write##n, n, 1)
LOOM_SIM_PLAIN_CALLS(1)
LOOM_SIM_PLAIN_CALLS(2)
LOOM_SIM_PLAIN_CALLS(4)
LOOM_SIM_PLAIN_CALLS(8)
LOOM_SIM_PLAIN_CALLS(16)
LOOM_SIM_CALL void __tsan_read_range(void *p, long bytes)
{
	LOOM_SIM_PLAIN(p, bytes, 0);
}
LOOM_SIM_CALL void __tsan_write_range(void *p, long bytes)
{
	LOOM_SIM_PLAIN(p, bytes, 1);
}
LOOM_SIM_CALL void __tsan_init(void)
{
}
LOOM_SIM_CALL void __tsan_func_entry(void *at)
{
	(void)at;
}
LOOM_SIM_CALL void __tsan_func_exit(void *at)
{
	(void)at;
}
/* clang replaces calls of memcpy() and so on by these. */
LOOM_SIM_CALL void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	LOOM_SIM_PLAIN(from, bytes, 0);
	LOOM_SIM_PLAIN(to, bytes, 1);
	return __builtin_memcpy(to, from, bytes);
}
LOOM_SIM_CALL void *__tsan_memset(void *to, int c, size_t bytes)
{
	LOOM_SIM_PLAIN(to, bytes, 1);
	return __builtin_memset(to, c, bytes);
}
#else
#define LOOM_SIM_IS_WEAK 0
#define LOOM_SIM_FN      LOOM_FN
#define LOOM_SIM_AT(op, order, scope) 0
#endif

LOOM_SIM_FN void loom_sim_spend(uint64_t ns)
{
	struct loom_sim *sim = loom_sim;
	sim->events++;
	sim->now += ns;
	if (sim->now >= sim->horizon)
		sim->yield(sim);
}

LOOM_SIM_FN const struct loom_sim_range *loom_sim_range(const void *p)
{
	struct loom_sim *sim = loom_sim;
	const struct loom_sim_range *r = sim->recent->range;
	for (uint32_t i = 0; i < LOOM_SIM_RANGES; i++)
		if ((uintptr_t)p - r[i].begin < r[i].bytes)
			return &r[i];
	sim->find(sim, (uintptr_t)p);
	return r;
}

/* Adds the cost of an access to the virtual clock. local: index of the first of three costs, for local, host and peer
 * memory. Returns the field `watched` of the memory's range. */
LOOM_SIM_FN uint32_t loom_sim_access(const void *p, uint32_t local)
{
	struct loom_sim *sim = loom_sim;
	const struct loom_sim_range *r = loom_sim_range(p);
	uint32_t watched = r->watched;
	if (r->owner != LOOM_SIM_PRIVATE)
		loom_sim_spend(sim->cost[local + (r->owner == sim->device ? 0 : r->owner == LOOM_SIM_HOST ? 1 : 2)]);
	return watched;
}

template <typename T> LOOM_FN T loom_sim_load(const T *p, struct race_site *at)
{
	loom_sim_access(p, LOOM_SIM_load_local);
	return LOOM_SIM_IS_WEAK ? (T)loom_sim->memory->load(at, p, sizeof(T)) : *(const volatile T *)p;
}

LOOM_SIM_FN void loom_sim_changed(uint32_t watched)
{
	struct loom_sim *sim = loom_sim;
	if (sim->changed < sim->now)
		sim->changed = sim->now;
	if (watched)
		sim->stored(sim, watched);
}

/* Adds the cost of a change, and records the change, because other entities may wait for it. */
LOOM_SIM_FN void loom_sim_change(const void *p, uint32_t local)
{
	loom_sim_changed(loom_sim_access(p, local));
}

template <typename T, typename V> LOOM_FN void loom_sim_store(T *p, V v, struct race_site *at)
{
	loom_sim_change(p, LOOM_SIM_store_local);
	if (LOOM_SIM_IS_WEAK)
		loom_sim->memory->store(at, p, sizeof(T), (uint64_t)(T)v);
	else
		*(volatile T *)p = (T)v;
}

template <typename T, typename V> LOOM_FN T loom_sim_rmw(T *p, enum loom_sim_rmw op, V value, struct race_site *at)
{
	loom_sim_change(p, LOOM_SIM_atomic_local);
	if (LOOM_SIM_IS_WEAK)
		return (T)loom_sim->memory->change(at, p, sizeof(T), op, (uint64_t)(T)value);
	T old = *(volatile T *)p, v = (T)value;
	*(volatile T *)p = (T)(op == LOOM_SIM_ADD ? old + v : op == LOOM_SIM_OR ? old | v : v);
	return old;
}

/* A failed compare-and-swap changes nothing. */
template <typename T, typename V> LOOM_FN int loom_sim_cas(T *p, T *expected, V v, struct race_site *at)
{
	uint32_t watched = loom_sim_access(p, LOOM_SIM_atomic_local);
	uint64_t old = LOOM_SIM_IS_WEAK ? (uint64_t)*expected : (uint64_t)*(volatile T *)p;
	int set = LOOM_SIM_IS_WEAK ? loom_sim->memory->cas(at, p, sizeof(T), &old, (uint64_t)(T)v) : (T)old == *expected;
	if (!set) {
		*expected = (T)old;
		return 0;
	}
	loom_sim_changed(watched);
	if (!LOOM_SIM_IS_WEAK)
		*(volatile T *)p = (T)v;
	return 1;
}

LOOM_FN void loom_sim_fence(uint32_t cost, struct race_site *at)
{
	loom_sim_spend(loom_sim->cost[cost]);
	if (LOOM_SIM_IS_WEAK)
		loom_sim->memory->fence(at);
}

/* Without LOOM_SIM_WEAK, one worker runs at a time, so all accesses are sequentially consistent. */
#define loom_load_relaxed_dev(p)             loom_sim_load(p, LOOM_SIM_AT(load, relaxed, dev))
#define loom_load_relaxed_sys(p)             loom_sim_load(p, LOOM_SIM_AT(load, relaxed, sys))
#define loom_load_acquire_dev(p)             loom_sim_load(p, LOOM_SIM_AT(load, acquire, dev))
#define loom_load_acquire_sys(p)             loom_sim_load(p, LOOM_SIM_AT(load, acquire, sys))
#define loom_store_relaxed_dev(p, v)         loom_sim_store(p, v, LOOM_SIM_AT(store, relaxed, dev))
#define loom_store_relaxed_sys(p, v)         loom_sim_store(p, v, LOOM_SIM_AT(store, relaxed, sys))
#define loom_store_release_dev(p, v)         loom_sim_store(p, v, LOOM_SIM_AT(store, release, dev))
#define loom_store_release_sys(p, v)         loom_sim_store(p, v, LOOM_SIM_AT(store, release, sys))
#define loom_fetch_add_relaxed_dev(p, v)     loom_sim_rmw(p, LOOM_SIM_ADD, v, LOOM_SIM_AT(fetch_add, relaxed, dev))
#define loom_fetch_add_relaxed_sys(p, v)     loom_sim_rmw(p, LOOM_SIM_ADD, v, LOOM_SIM_AT(fetch_add, relaxed, sys))
#define loom_fetch_add_acquire_dev(p, v)     loom_sim_rmw(p, LOOM_SIM_ADD, v, LOOM_SIM_AT(fetch_add, acquire, dev))
#define loom_fetch_add_acquire_sys(p, v)     loom_sim_rmw(p, LOOM_SIM_ADD, v, LOOM_SIM_AT(fetch_add, acquire, sys))
#define loom_fetch_add_release_dev(p, v)     loom_sim_rmw(p, LOOM_SIM_ADD, v, LOOM_SIM_AT(fetch_add, release, dev))
#define loom_fetch_add_release_sys(p, v)     loom_sim_rmw(p, LOOM_SIM_ADD, v, LOOM_SIM_AT(fetch_add, release, sys))
#define loom_fetch_add_acq_rel_dev(p, v)     loom_sim_rmw(p, LOOM_SIM_ADD, v, LOOM_SIM_AT(fetch_add, acq_rel, dev))
#define loom_fetch_add_acq_rel_sys(p, v)     loom_sim_rmw(p, LOOM_SIM_ADD, v, LOOM_SIM_AT(fetch_add, acq_rel, sys))
#define loom_fetch_or_relaxed_dev(p, v)      loom_sim_rmw(p, LOOM_SIM_OR, v, LOOM_SIM_AT(fetch_or, relaxed, dev))
#define loom_fetch_or_relaxed_sys(p, v)      loom_sim_rmw(p, LOOM_SIM_OR, v, LOOM_SIM_AT(fetch_or, relaxed, sys))
#define loom_fetch_or_acq_rel_dev(p, v)      loom_sim_rmw(p, LOOM_SIM_OR, v, LOOM_SIM_AT(fetch_or, acq_rel, dev))
#define loom_fetch_or_acq_rel_sys(p, v)      loom_sim_rmw(p, LOOM_SIM_OR, v, LOOM_SIM_AT(fetch_or, acq_rel, sys))
#define loom_exchange_acq_rel_dev(p, v)      loom_sim_rmw(p, LOOM_SIM_EXCHANGE, v, LOOM_SIM_AT(exchange, acq_rel, dev))
#define loom_exchange_acq_rel_sys(p, v)      loom_sim_rmw(p, LOOM_SIM_EXCHANGE, v, LOOM_SIM_AT(exchange, acq_rel, sys))
#define loom_cas_acq_rel_dev(p, expected, v) loom_sim_cas(p, expected, v, LOOM_SIM_AT(cas, acq_rel, dev))
#define loom_cas_acq_rel_sys(p, expected, v) loom_sim_cas(p, expected, v, LOOM_SIM_AT(cas, acq_rel, sys))
#define loom_store_marked_sys(p, data, mark)                                                                           \
	(loom_sim_store(&(p)[0], data, LOOM_SIM_AT(store_marked, relaxed, sys)),                                       \
	 loom_sim_store(&(p)[1], mark, LOOM_SIM_AT(store_marked, release, sys)))
/* A GPU loads both words at once, so neither may be stale: in the model they are read by adds of 0. */
LOOM_FN uint64_t loom_sim_load_marked(const uint64_t *p, uint64_t *data, struct race_site *at)
{
	if (!LOOM_SIM_IS_WEAK) {
		uint64_t mark = loom_sim_load(p + 1, at);
		*data = p[0];
		return mark;
	}
	loom_sim_access(p, LOOM_SIM_load_local);
	uint64_t mark = loom_sim->memory->change(at, (void *)(p + 1), 8, LOOM_SIM_ADD, 0);
	*data = loom_sim->memory->change(at, (void *)p, 8, LOOM_SIM_ADD, 0);
	return mark;
}
#define loom_load_marked_sys(p, data) loom_sim_load_marked(p, data, LOOM_SIM_AT(load_marked, acquire, sys))
#define loom_fence_acquire_dev()             loom_sim_fence(LOOM_SIM_fence_dev, LOOM_SIM_AT(fence, acquire, dev))
#define loom_fence_release_dev()             loom_sim_fence(LOOM_SIM_fence_dev, LOOM_SIM_AT(fence, release, dev))
#define loom_fence_seq_cst_dev()             loom_sim_fence(LOOM_SIM_fence_dev, LOOM_SIM_AT(fence, seq_cst, dev))
#define loom_fence_acquire_sys()             loom_sim_fence(LOOM_SIM_fence_sys, LOOM_SIM_AT(fence, acquire, sys))
#define loom_fence_release_sys()             loom_sim_fence(LOOM_SIM_fence_sys, LOOM_SIM_AT(fence, release, sys))
#define loom_fence_seq_cst_sys()             loom_sim_fence(LOOM_SIM_fence_sys, LOOM_SIM_AT(fence, seq_cst, sys))
#define loom_fence_acq_rel_sys()             loom_sim_fence(LOOM_SIM_fence_sys, LOOM_SIM_AT(fence, acq_rel, sys))

/* Adds the time of a computation to the virtual clock. The computation counts as a change, so that a long computation
 * does not look like a stall. */
LOOM_SIM_FN void loom_sim_compute(uint64_t ns)
{
	struct loom_sim *sim = loom_sim;
	if (sim->changed < sim->now + ns)
		sim->changed = sim->now + ns;
	loom_sim_spend(ns);
}
#define loom_stream(c, n) loom_sim_compute((uint64_t)(n)*loom_sim->cost[LOOM_SIM_stream] / 1024)

#define LOOM_PAUSE_NS 32
LOOM_SIM_FN void loom_nanosleep(uint32_t ns)
{
	loom_sim->waiting = 1;
	loom_sim->waited_at = loom_sim->now;
	loom_sim_spend(ns);
	loom_sim->waiting = 0;
}

LOOM_FN uint32_t loom_lowest_bit(uint64_t v)
{
	return (uint32_t)__builtin_ctzll(v);
}

LOOM_FN void loom_pause(const struct loom_ctx *c)
{
	(void)c;
	loom_nanosleep(LOOM_PAUSE_NS);
}

LOOM_FN uint64_t loom_clock_ns(const struct loom_ctx *c)
{
	(void)c;
	return loom_sim->now;
}

/* A worker has one lane, so the barrier is empty. */
LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	(void)c;
}

LOOM_FN uint64_t loom_from_lane0(struct loom_ctx *c, uint64_t value)
{
	(void)c;
	return value;
}

#define LOOM_COMPUTED(word) ((void)(word))
#define LOOM_YIELD()        loom_sim_spend(0)

#include <gpuloom/dev/gpu.h>

/* Outlining saves no registers in a program for the host, so these calls are inlined. */
#undef LOOM_OUTLINED
#undef LOOM_OUTLINED_COLLECTIVE

#endif
#endif
