/* SPDX-License-Identifier: Apache-2.0 */
/* A device layer for tests: programs that are composed for a GPU run on threads of the host. Threads of a block are
 * fibers (block.h), so a worker has as many lanes as on the GPU. fake_rtc.h replaces the layer of the vendor by this
 * one. Below it has the keywords of CUDA and HIP that cuda.dev.h, hip.dev.h and device code use. dev.h documents the
 * functions. */
#ifndef LOOM_TEST_THREADS_H
#define LOOM_TEST_THREADS_H

#include <gpuloom/dev/ctx.h>
#include <stddef.h>
#include <time.h>

#include "block.h"

static __thread struct block_view *block;

/* Tasks whose lanes all compute the same take as long as all their lanes, so that workers have fewer lanes than on the
 * GPU. fake_rtc.h gives the number of the GPU another name. */
#define LOOM_LANES (LOOM_GPU_LANES / BLOCK_FEWER)

/* ---- keywords --------------------------------------------------------------------------------- */

#define __device__
#define __constant__
#define __grid_constant__
#define __global__
#define __shared__   __thread /* a block is a thread of the host */
#define __align__(n) __attribute__((aligned(n)))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define threadIdx                         block->thread
#define blockIdx                          block->index
#define blockDim                          block->size
#define gridDim   block->blocks
#define __builtin_amdgcn_workgroup_id_x() (block->index.x)
#define __builtin_amdgcn_workitem_id_x()  (block->thread.x)
#define LOOM_FN                           static inline __attribute__((unused))

/* ---- memory ----------------------------------------------------------------------------------- */

/* Many loops poll without a pause, because a GPU runs other warps meanwhile. Here some of the loads give another thread
 * its turn. */
#define THREADS_POLLS 32u
LOOM_FN void threads_polled(void)
{
	if (++block->accesses % THREADS_POLLS == 0)
		block->yield(block);
}

template <typename T> LOOM_FN T threads_load(const T *p, int order)
{
	threads_polled();
	return __atomic_load_n(p, order);
}

template <typename T> LOOM_FN int threads_cas(T *p, T *expected, T v)
{
	int set = __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	if (set)
		block->quiet = 0;
	else
		threads_polled();
	return set;
}

/* A store is progress, so the block does not sleep. */
#define THREADS_LOAD(order, ORDER, T, scope)                                                                           \
	LOOM_FN T loom_load_##order##_##scope(const T *p)                                                              \
	{                                                                                                              \
		return threads_load(p, ORDER);                                                                         \
	}
#define THREADS_STORE(order, ORDER, T, scope)                                                                          \
	LOOM_FN void loom_store_##order##_##scope(T *p, T v)                                                           \
	{                                                                                                              \
		block->quiet = 0;                                                                                      \
		__atomic_store_n(p, v, ORDER);                                                                         \
	}
#define THREADS_CHANGE(op, builtin, order, ORDER, T, scope)                                                            \
	LOOM_FN T loom_##op##_##order##_##scope(T *p, T v)                                                             \
	{                                                                                                              \
		block->quiet = 0;                                                                                      \
		return builtin(p, v, ORDER);                                                                           \
	}
#define THREADS_WORDS(T, scope)                                                                                        \
	THREADS_LOAD(relaxed, __ATOMIC_RELAXED, T, scope)                                                              \
	THREADS_LOAD(acquire, __ATOMIC_ACQUIRE, T, scope)                                                              \
	THREADS_STORE(relaxed, __ATOMIC_RELAXED, T, scope)                                                             \
	THREADS_STORE(release, __ATOMIC_RELEASE, T, scope)                                                             \
	THREADS_CHANGE(fetch_add, __atomic_fetch_add, relaxed, __ATOMIC_RELAXED, T, scope)                             \
	THREADS_CHANGE(fetch_add, __atomic_fetch_add, acquire, __ATOMIC_ACQUIRE, T, scope)                             \
	THREADS_CHANGE(fetch_add, __atomic_fetch_add, release, __ATOMIC_RELEASE, T, scope)                             \
	THREADS_CHANGE(fetch_add, __atomic_fetch_add, acq_rel, __ATOMIC_ACQ_REL, T, scope)                             \
	THREADS_CHANGE(fetch_or, __atomic_fetch_or, relaxed, __ATOMIC_RELAXED, T, scope)                               \
	THREADS_CHANGE(fetch_or, __atomic_fetch_or, acq_rel, __ATOMIC_ACQ_REL, T, scope)                               \
	THREADS_CHANGE(exchange, __atomic_exchange_n, acq_rel, __ATOMIC_ACQ_REL, T, scope)                             \
	LOOM_FN int loom_cas_acq_rel_##scope(T *p, T *expected, T v)                                                   \
	{                                                                                                              \
		return threads_cas(p, expected, v);                                                                    \
	}
THREADS_WORDS(uint32_t, dev)
THREADS_WORDS(uint64_t, dev)
THREADS_WORDS(uint32_t, sys)
THREADS_WORDS(uint64_t, sys)

/* As on HIP: the release of the mark pairs with the acquire of the mark. */
LOOM_FN void loom_store_marked_sys(uint64_t *p, uint64_t data, uint64_t mark)
{
	loom_store_relaxed_sys(&p[0], data);
	loom_store_release_sys(&p[1], mark);
}
LOOM_FN uint64_t loom_load_marked_sys(const uint64_t *p, uint64_t *data)
{
	uint64_t mark = loom_load_acquire_sys(&p[1]);
	*data = loom_load_relaxed_sys(&p[0]);
	return mark;
}

#ifdef __SANITIZE_THREAD__ /* which does not model fences, see cpu.h */
static uint64_t threads_fence_word;
#define THREADS_FENCE(order) ((void)__atomic_fetch_add(&threads_fence_word, 0, __ATOMIC_SEQ_CST))
#else
#define THREADS_FENCE(order) __atomic_thread_fence(order)
#endif
#define loom_fence_acquire_dev() THREADS_FENCE(__ATOMIC_ACQUIRE)
#define loom_fence_acquire_sys() THREADS_FENCE(__ATOMIC_ACQUIRE)
#define loom_fence_release_dev() THREADS_FENCE(__ATOMIC_RELEASE)
#define loom_fence_release_sys() THREADS_FENCE(__ATOMIC_RELEASE)
#define loom_fence_acq_rel_sys() THREADS_FENCE(__ATOMIC_ACQ_REL)
#define loom_fence_seq_cst_dev() THREADS_FENCE(__ATOMIC_SEQ_CST)
#define loom_fence_seq_cst_sys() THREADS_FENCE(__ATOMIC_SEQ_CST)
#define LOOM_COMPUTED(word)      ((void)(word))

/* ---- time ------------------------------------------------------------------------------------- */

#define LOOM_PAUSE_NS 32
LOOM_FN uint32_t loom_lowest_bit(uint64_t v)
{
	return (uint32_t)__builtin_ctzll(v);
}

LOOM_FN void loom_nanosleep(uint32_t ns)
{
	(void)ns;
	block->pause(block);
}

LOOM_FN void loom_pause(const struct loom_ctx *c)
{
	(void)c;
	block->pause(block);
}

LOOM_FN uint64_t loom_clock_ns(const struct loom_ctx *c)
{
	struct timespec t;
	(void)c;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- lanes ------------------------------------------------------------------------------------ */

#ifdef LOOM_HIP_WAVEFRONT
#define THREADS_WAVE (LOOM_HIP_WAVEFRONT / BLOCK_FEWER)
#else
#define THREADS_WAVE (32 / BLOCK_FEWER)
#endif

/* Returns the first of the threads that meet, and their number. */
LOOM_FN uint32_t threads_first(int kind, uint32_t *count)
{
	*count = kind == BLOCK_WAVE ? THREADS_WAVE : kind == BLOCK_WORKER ? LOOM_LANES : block->size.x;
	return kind == BLOCK_ALL ? 0 : block->thread.x / *count * *count;
}

/* The barrier of these threads. */
LOOM_FN uint32_t threads_meet(int kind, uint32_t *count)
{
	uint32_t first = threads_first(kind, count);
	block->meet(block, kind, first, *count);
	return first;
}

/* Passes a value to the threads of the group, and meets them. Returns the slot of the first one. Two slots take turns,
 * because a thread may pass its next value before all have read this one. */
LOOM_FN const uint64_t (*threads_pass(int kind, uint64_t v, uint32_t *count, uint32_t *turn))[2]
{
	uint32_t me = block->thread.x;
	*turn = block->turn[me];
	block->turn[me] ^= 1;
	block->slot[me][*turn] = v;
	return &block->slot[threads_meet(kind, count)];
}

LOOM_FN uint64_t threads_from(int kind, uint64_t v, uint32_t thread)
{
	uint32_t count, turn;
	const uint64_t(*slot)[2] = threads_pass(kind, v, &count, &turn);
	return slot[thread][turn];
}

/* Returns the number of threads of the group whose `v` is not 0. */
LOOM_FN uint32_t threads_votes(int kind, int v)
{
	uint32_t count, turn, votes = 0;
	const uint64_t(*slot)[2] = threads_pass(kind, v != 0, &count, &turn);
	for (uint32_t i = 0; i < count; i++)
		votes += (uint32_t)slot[i][turn];
	return votes;
}

LOOM_FN void threads_barrier(int kind)
{
	uint32_t count;
	threads_meet(kind, &count);
}
#define __syncthreads()         threads_barrier(BLOCK_ALL)
#define __syncthreads_or(v)     ((int)threads_votes(BLOCK_ALL, (v) != 0))
#define __syncwarp()            threads_barrier(BLOCK_WAVE)
#define __any_sync(mask, v)     ((int)threads_votes(BLOCK_WAVE, (v) != 0))
#define __shfl_sync(mask, v, i) ((uint32_t)threads_from(BLOCK_WAVE, v, i))

LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	if (!LOOM_IS_SINGLE_LANE(c))
		threads_barrier(BLOCK_WORKER);
}

#if LOOM_LANES == THREADS_WAVE
#define LOOM_HIP_WAVE
LOOM_FN uint64_t loom_from_lane0(struct loom_ctx *c, uint64_t value)
{
	return LOOM_IS_SINGLE_LANE(c) ? value : threads_from(BLOCK_WAVE, value, 0);
}
#define LOOM_WAVE            (LOOM_LANES + 0u)
#define loom_wave_word(c, v) loom_word_from_lane0(c, v)
#define loom_wave_all(c, v)  (threads_votes(BLOCK_WAVE, (v) != 0) == LOOM_LANES)
#else
#define LOOM_SLOTS_IN_TURN
#endif

#define LOOM_COMM_SYNC() __syncthreads()
#define LOOM_COMM_ANY(x) __syncthreads_or(x)
#define LOOM_COMM_TEAM THREADS_WAVE
#define LOOM_COMM_TEAM_ANY(team, lanes, x) ((int)threads_votes(BLOCK_WAVE, (x) != 0))

#include <gpuloom/dev/gpu.h>

#endif
