/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer on HIP, for AMD GPUs. dev.h documents the functions.
 *
 * `dev` is the scope of the agent (the GPU), and `sys` the scope of the system. All accesses are atomic builtins of the
 * compiler, because the compiler would move a plain load out of a poll loop.
 *
 * The code follows the memory model of LLVM's AMDGPU back end. Tests compile it for gfx90a and gfx1030; it has not run
 * on AMD hardware yet. A composed program (plugins/device_common/compose) defines LOOM_LANES, LOOM_NESTING_MAX,
 * LOOM_HIP_WAVEFRONT (32 or 64) and LOOM_HIP_CLOCK_KHZ. It also defines the names LOOM_POLICY_* from which LOOM_CALL
 * makes the name of a function. */
#ifndef GPULOOM_DEV_HIP_H
#define GPULOOM_DEV_HIP_H

#if !defined(LOOM_DEVICE_COMPILE) && !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif

#include <gpuloom/dev/ctx.h>
#ifdef LOOM_IR
#include <gpuloom/dev/gpu_ir.h>
#endif

/* Plug-ins test this where the code for threads of the host would be slow on a GPU. */
#ifdef LOOM_DEVICE_COMPILE
#define LOOM_REAL_GPU 1
#endif

#define LOOM_FN static __device__ __attribute__((always_inline, unused))

/* Makes the compiler compute a uint64_t at this place, and not where it is used. */
#define LOOM_COMPUTED(word) asm volatile("" : "+v"(word))

/* ---- memory ----------------------------------------------------------------------------------- */

#define LOOM_HIP_SCOPE_dev __HIP_MEMORY_SCOPE_AGENT
#define LOOM_HIP_SCOPE_sys __HIP_MEMORY_SCOPE_SYSTEM
#define LOOM_HIP_ORDER_relaxed __ATOMIC_RELAXED
#define LOOM_HIP_ORDER_acquire __ATOMIC_ACQUIRE
#define LOOM_HIP_ORDER_release __ATOMIC_RELEASE
#define LOOM_HIP_ORDER_acq_rel __ATOMIC_ACQ_REL

#define LOOM_HIP_LOAD(order, scope, T)                                                             \
	LOOM_FN T loom_load_##order##_##scope(const T *p)                                          \
	{                                                                                          \
		return __hip_atomic_load(p, LOOM_HIP_ORDER_##order, LOOM_HIP_SCOPE_##scope);       \
	}
#define LOOM_HIP_STORE(order, scope, T)                                                            \
	LOOM_FN void loom_store_##order##_##scope(T *p, T v)                                       \
	{                                                                                          \
		__hip_atomic_store(p, v, LOOM_HIP_ORDER_##order, LOOM_HIP_SCOPE_##scope);          \
	}
#define LOOM_HIP_RMW(op, order, scope, T)                                                          \
	LOOM_FN T loom_##op##_##order##_##scope(T *p, T v)                                         \
	{                                                                                          \
		return __hip_atomic_##op(p, v, LOOM_HIP_ORDER_##order, LOOM_HIP_SCOPE_##scope);    \
	}
#define LOOM_HIP_CAS(scope, T)                                                                     \
	LOOM_FN int loom_cas_acq_rel_##scope(T *p, T *expected, T v)                               \
	{                                                                                          \
		T want = *expected;                                                                \
		int set = __hip_atomic_compare_exchange_strong(                                    \
			p, &want, v, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE, LOOM_HIP_SCOPE_##scope);  \
		*expected = want;                                                                  \
		return set;                                                                        \
	}

#define LOOM_HIP_ALL(scope, T)                                                                     \
	LOOM_HIP_LOAD(relaxed, scope, T)                                                           \
	LOOM_HIP_LOAD(acquire, scope, T)                                                           \
	LOOM_HIP_STORE(relaxed, scope, T)                                                          \
	LOOM_HIP_STORE(release, scope, T)                                                          \
	LOOM_HIP_RMW(fetch_add, relaxed, scope, T)                                                 \
	LOOM_HIP_RMW(fetch_add, acquire, scope, T)                                                 \
	LOOM_HIP_RMW(fetch_add, release, scope, T)                                                 \
	LOOM_HIP_RMW(fetch_add, acq_rel, scope, T)                                                 \
	LOOM_HIP_RMW(fetch_or, relaxed, scope, T)                                                  \
	LOOM_HIP_RMW(fetch_or, acq_rel, scope, T)                                                  \
	LOOM_HIP_RMW(exchange, acq_rel, scope, T)                                                  \
	LOOM_HIP_CAS(scope, T)

LOOM_HIP_ALL(dev, uint32_t)
LOOM_HIP_ALL(dev, uint64_t)
LOOM_HIP_ALL(sys, uint32_t)
LOOM_HIP_ALL(sys, uint64_t)

/* HIP documents no access of 16 bytes as atomic, so data and mark are two accesses. The release of the mark pairs with
 * the acquire of the mark. */
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

/* scope: the name of the fence's scope; "" is the whole system. */
#define LOOM_HIP_FENCE(name, order, scope)                                                         \
	LOOM_FN void loom_fence_##name(void)                                                       \
	{                                                                                          \
		__builtin_amdgcn_fence(order, scope);                                              \
	}
LOOM_HIP_FENCE(acquire_dev, __ATOMIC_ACQUIRE, "agent")
LOOM_HIP_FENCE(acquire_sys, __ATOMIC_ACQUIRE, "")
LOOM_HIP_FENCE(release_dev, __ATOMIC_RELEASE, "agent")
LOOM_HIP_FENCE(release_sys, __ATOMIC_RELEASE, "")
LOOM_HIP_FENCE(acq_rel_sys, __ATOMIC_ACQ_REL, "")
LOOM_HIP_FENCE(seq_cst_dev, __ATOMIC_SEQ_CST, "agent")
LOOM_HIP_FENCE(seq_cst_sys, __ATOMIC_SEQ_CST, "")

/* ---- time ------------------------------------------------------------------------------------- */

#define LOOM_PAUSE_NS 32

LOOM_FN uint32_t loom_lowest_bit(uint64_t v)
{
	return (uint32_t)__builtin_ctzll(v);
}

/* One count of s_sleep is 64 clocks, which take about 32 ns. */
LOOM_FN void loom_nanosleep(uint32_t ns)
{
	for (uint32_t slept = 0; slept < ns; slept += 32)
		__builtin_amdgcn_s_sleep(1);
}

LOOM_FN void loom_pause(const struct loom_ctx *c)
{
	(void)c;
	__builtin_amdgcn_s_sleep(1);
}

/* Reads the clock that the whole device shares. */
#ifndef LOOM_HIP_CLOCK_KHZ
#define LOOM_HIP_CLOCK_KHZ 100000u
#endif
LOOM_FN uint64_t loom_hip_clock(void)
{
#if __has_builtin(__builtin_readsteadycounter)
	return __builtin_readsteadycounter();
#elif defined(__GFX11__) || defined(__GFX12__)
	return __builtin_amdgcn_s_sendmsg_rtnl(0x83); /* the message MSG_RTN_GET_REALTIME */
#else
	return __builtin_amdgcn_s_memrealtime();
#endif
}

LOOM_FN uint64_t loom_clock_ns(const struct loom_ctx *c)
{
	(void)c;
	uint64_t t = loom_hip_clock();
#if 1000000u % LOOM_HIP_CLOCK_KHZ
	/* In two steps, because the product would overflow after days. */
	return t / LOOM_HIP_CLOCK_KHZ * 1000000u + t % LOOM_HIP_CLOCK_KHZ * 1000000u / LOOM_HIP_CLOCK_KHZ;
#else
	return t * (1000000u / LOOM_HIP_CLOCK_KHZ);
#endif
}

/* ---- lanes ------------------------------------------------------------------------------------ */

/* Older compilers define the size of a wavefront by this macro. */
#if !defined(LOOM_HIP_WAVEFRONT) && defined(__AMDGCN_WAVEFRONT_SIZE)
#define LOOM_HIP_WAVEFRONT __AMDGCN_WAVEFRONT_SIZE
#endif
#if defined(LOOM_HIP_WAVEFRONT) && defined(LOOM_LANES)
#if LOOM_LANES % LOOM_HIP_WAVEFRONT
#error "gpuloom: lanes must be a multiple of the wavefront's size"
#endif
#if LOOM_LANES == LOOM_HIP_WAVEFRONT
#define LOOM_HIP_WAVE
#endif
#endif

#ifdef LOOM_HIP_WAVE
/* The lanes of a wavefront run in lock-step, so the barrier only orders memory. */
LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	if (LOOM_IS_SINGLE_LANE(c))
		return;
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
	__builtin_amdgcn_wave_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

LOOM_FN uint64_t loom_from_lane0(struct loom_ctx *c, uint64_t value)
{
	if (LOOM_IS_SINGLE_LANE(c))
		return value;
	loom_barrier_lanes(c);
	uint32_t low = (uint32_t)__builtin_amdgcn_readlane((int)(uint32_t)value, 0);
	uint32_t high = (uint32_t)__builtin_amdgcn_readlane((int)(uint32_t)(value >> 32), 0);
	return (uint64_t)high << 32 | low;
}

#define LOOM_OWN_WORD_FROM_LANE0
LOOM_FN uint32_t loom_word_from_lane0(struct loom_ctx *c, uint32_t v)
{
	if (LOOM_IS_SINGLE_LANE(c))
		return v;
	loom_barrier_lanes(c);
	return (uint32_t)__builtin_amdgcn_readlane((int)v, 0);
}
#define LOOM_WAVE (LOOM_LANES + 0u)
#define loom_wave_word(c, v) loom_word_from_lane0(c, v)
#define loom_wave_all(c, v)  __all((int)(v))
#else
LOOM_FN void loom_barrier_lanes(struct loom_ctx *c)
{
	if (LOOM_IS_SINGLE_LANE(c))
		return;
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#define LOOM_SLOTS_IN_TURN
#endif

/* For gpuloom/dev/collective.h. */
#define LOOM_COMM_SYNC() __syncthreads()
#define LOOM_COMM_ANY(x) __syncthreads_or(x)

#include <gpuloom/dev/gpu.h>

#endif
