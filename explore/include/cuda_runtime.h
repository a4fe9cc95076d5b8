/* SPDX-License-Identifier: Apache-2.0 */
/* The part of CUDA that `gpuloom explore` knows, in place of CUDA's headers. docs/explore.md lists it. An operation
 * takes its place in the source by a default argument. */
#ifndef LOOM_EXPLORE_CUDA_RUNTIME_H
#define LOOM_EXPLORE_CUDA_RUNTIME_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <tuple>
#include <type_traits>

#include <gpuloom/explore/run.h>

#define __global__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n)    __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__
#define __builtin_assume(x) ((void)(x))
#define EXPLORE_AT(what)    explore_place at = {what, __builtin_FILE(), __builtin_LINE()}

/* ---- threads */
typedef explore_index uint3;
#define threadIdx (::explore_self()->thread_idx)
#define blockIdx  (::explore_self()->block_idx)
#define blockDim  (::explore_self()->block_dim)
#define gridDim   (::explore_self()->grid_dim)
#define warpSize  32

struct dim3 : explore_index {
	dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : explore_index{x_, y_, z_} {}
	dim3(const explore_index &i) : explore_index(i) {}
};

/* ---- vectors */
#define EXPLORE_VECTOR(name, type, bytes)                                                                              \
	struct alignas(2 * bytes) name##2 {                                                                            \
		type x, y;                                                                                             \
	};                                                                                                             \
	struct name##3 {                                                                                               \
		type x, y, z;                                                                                          \
	};                                                                                                             \
	struct alignas(4 * bytes < 16 ? 4 * bytes : 16) name##4 {                                                      \
		type x, y, z, w;                                                                                       \
	};                                                                                                             \
	static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                        \
	static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                             \
	static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
#define uint3 explore_uint3 /* the type of threadIdx */
EXPLORE_VECTOR(char, char, 1)
EXPLORE_VECTOR(uchar, unsigned char, 1)
EXPLORE_VECTOR(short, short, 2)
EXPLORE_VECTOR(ushort, unsigned short, 2)
EXPLORE_VECTOR(int, int, 4)
EXPLORE_VECTOR(uint, unsigned, 4)
EXPLORE_VECTOR(float, float, 4)
EXPLORE_VECTOR(double, double, 8)
EXPLORE_VECTOR(longlong, long long, 8)
EXPLORE_VECTOR(ulonglong, unsigned long long, 8)
#undef uint3

namespace explore {
template <class T> uint64_t to_bits(T v)
{
	static_assert(sizeof(T) <= 8, "an access of at most 8 bytes");
	uint64_t b = 0;
	memcpy(&b, &v, sizeof(v));
	return b;
}
template <class T> T from_bits(uint64_t b)
{
	T v;
	memcpy(&v, &b, sizeof(v));
	return v;
}
template <class T> using same = std::type_identity_t<T>;
} // namespace explore

/* ---- atomic functions: relaxed, with the scope of the device, or what their names say */
#define EXPLORE_ATOMIC_SCOPE(name, scope, next)                                                                        \
	template <class T> T name(T *p, explore::same<T> v, EXPLORE_AT(#name))                                         \
	{                                                                                                              \
		auto f = [](uint64_t o, uint64_t n) {                                                                  \
			T old = explore::from_bits<T>(o), v = explore::from_bits<T>(n);                                \
			(void)old;                                                                                     \
			return explore::to_bits<T>(next);                                                                 \
		};                                                                                                     \
		return explore::from_bits<T>(                                                                          \
		    explore_change(&at, p, sizeof(T), f, explore::to_bits<T>(v), EXPLORE_RELAXED, scope));                \
	}
#define EXPLORE_ATOMIC(name, next)                                                                                     \
	EXPLORE_ATOMIC_SCOPE(name, EXPLORE_DEVICE, next)                                                               \
	EXPLORE_ATOMIC_SCOPE(name##_block, EXPLORE_BLOCK, next)                                                        \
	EXPLORE_ATOMIC_SCOPE(name##_system, EXPLORE_SYSTEM, next)
EXPLORE_ATOMIC(atomicAdd, (T)(old + v))
EXPLORE_ATOMIC(atomicSub, (T)(old - v))
EXPLORE_ATOMIC(atomicExch, v)
EXPLORE_ATOMIC(atomicMin, old < v ? old : v)
EXPLORE_ATOMIC(atomicMax, old > v ? old : v)
EXPLORE_ATOMIC(atomicInc, (T)(old >= v ? 0 : old + 1))
EXPLORE_ATOMIC(atomicDec, (T)(old == 0 || old > v ? v : old - 1))
EXPLORE_ATOMIC(atomicAnd, (T)(old & v))
EXPLORE_ATOMIC(atomicOr, (T)(old | v))
EXPLORE_ATOMIC(atomicXor, (T)(old ^ v))
#define EXPLORE_CAS(name, scope)                                                                                       \
	template <class T> T name(T *p, explore::same<T> expected, explore::same<T> v, EXPLORE_AT(#name))              \
	{                                                                                                              \
		return explore::from_bits<T>(explore_cas(&at, p, sizeof(T), explore::to_bits<T>(expected),                \
							 explore::to_bits<T>(v), EXPLORE_RELAXED, scope));                \
	}
EXPLORE_CAS(atomicCAS, EXPLORE_DEVICE)
EXPLORE_CAS(atomicCAS_block, EXPLORE_BLOCK)
EXPLORE_CAS(atomicCAS_system, EXPLORE_SYSTEM)

/* ---- fences and barriers */
#define EXPLORE_FENCE(name, scope)                                                                                     \
	static inline void name(EXPLORE_AT(#name)) { explore_fence(&at, EXPLORE_SEQ_CST, scope); }
EXPLORE_FENCE(__threadfence_block, EXPLORE_BLOCK)
EXPLORE_FENCE(__threadfence, EXPLORE_DEVICE)
EXPLORE_FENCE(__threadfence_system, EXPLORE_SYSTEM)

static inline void __syncthreads(EXPLORE_AT("__syncthreads")) { explore_barrier(&at, 0, 0, 1); }
static inline int __syncthreads_count(int is, EXPLORE_AT("__syncthreads_count"))
{
	return (int)explore_barrier_count(&at, is != 0);
}
static inline int __syncthreads_or(int is, EXPLORE_AT("__syncthreads_or"))
{
	return explore_barrier_count(&at, is != 0) > 0;
}
static inline int __syncthreads_and(int is, EXPLORE_AT("__syncthreads_and"))
{
	return explore_barrier_count(&at, is == 0) == 0;
}
static inline void __syncwarp(uint32_t mask = ~0u, EXPLORE_AT("__syncwarp")) { explore_syncwarp(&at, mask); }
static inline void __nanosleep(uint32_t) { explore_pause(); }

/* ---- lanes */
static inline uint32_t __activemask() { return explore_lanes(); }
static inline uint32_t __ballot_sync(uint32_t mask, int is, EXPLORE_AT("__ballot_sync"))
{
	uint64_t all[32];
	uint32_t lanes = explore_collect(&at, mask, is != 0, all), bits = 0;
	for (int i = 0; i < 32; i++)
		bits |= (lanes >> i & 1 && all[i]) << i;
	return bits;
}
static inline int __any_sync(uint32_t mask, int is, EXPLORE_AT("__any_sync"))
{
	uint64_t all[32];
	uint32_t lanes = explore_collect(&at, mask, is != 0, all);
	for (int i = 0; i < 32; i++)
		if (lanes >> i & 1 && all[i])
			return 1;
	return 0;
}
static inline int __all_sync(uint32_t mask, int is, EXPLORE_AT("__all_sync")) { return !__any_sync(mask, !is, at); }

namespace explore {
/* Returns the value of lane `from`. */
template <class T> T shuffle(const explore_place &at, uint32_t mask, T v, int from)
{
	uint64_t all[32];
	uint32_t lanes = explore_collect(&at, mask, to_bits<T>(v), all);
	/* The value of a lane that has left is undefined. */
	return from >= 0 && from < 32 && lanes >> from & 1 ? from_bits<T>(all[from]) : from_bits<T>(0xcdcdcdcdcdcdcdcd);
}
static inline int lane() { return (int)explore_self()->lane; }
/* Returns `from` if it is in the same group of `width` lanes as the lane itself; otherwise the lane itself. */
static inline int in_group(int from, int width) { return from / width == lane() / width && from >= 0 ? from : lane(); }
} // namespace explore
template <class T> T __shfl_sync(uint32_t mask, T v, int from, int width = 32, EXPLORE_AT("__shfl_sync"))
{
	return explore::shuffle(at, mask, v, explore::lane() / width * width + from % width);
}
template <class T> T __shfl_up_sync(uint32_t mask, T v, uint32_t by, int width = 32, EXPLORE_AT("__shfl_up_sync"))
{
	return explore::shuffle(at, mask, v, explore::in_group(explore::lane() - (int)by, width));
}
template <class T> T __shfl_down_sync(uint32_t mask, T v, uint32_t by, int width = 32, EXPLORE_AT("__shfl_down_sync"))
{
	return explore::shuffle(at, mask, v, explore::in_group(explore::lane() + (int)by, width));
}
template <class T> T __shfl_xor_sync(uint32_t mask, T v, int with, int width = 32, EXPLORE_AT("__shfl_xor_sync"))
{
	return explore::shuffle(at, mask, v, explore::in_group(explore::lane() ^ with, width));
}
#define EXPLORE_REDUCE(name, next)                                                                                     \
	template <class T> T name(uint32_t mask, T v, EXPLORE_AT(#name))                                               \
	{                                                                                                              \
		uint64_t all[32];                                                                                      \
		uint32_t lanes = explore_collect(&at, mask, explore::to_bits<T>(v), all);                                 \
		int first = __builtin_ctz(lanes);                                                                      \
		T a = explore::from_bits<T>(all[first]);                                                               \
		for (int i = first + 1; i < 32; i++)                                                                   \
			if (lanes >> i & 1) {                                                                          \
				T b = explore::from_bits<T>(all[i]);                                                   \
				a = next;                                                                              \
			}                                                                                              \
		return a;                                                                                              \
	}
EXPLORE_REDUCE(__reduce_add_sync, a + b)
EXPLORE_REDUCE(__reduce_min_sync, a < b ? a : b)
EXPLORE_REDUCE(__reduce_max_sync, a > b ? a : b)
EXPLORE_REDUCE(__reduce_or_sync, a | b)
EXPLORE_REDUCE(__reduce_and_sync, a & b)

/* ---- loads and stores with a hint for caches: plain accesses */
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> T __ldca(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> T __ldlu(const T *p) { return *p; }
template <class T> T __ldcv(const T *p) { return *(const volatile T *)p; }
template <class T> void __stcg(T *p, explore::same<T> v) { *p = v; }
template <class T> void __stcs(T *p, explore::same<T> v) { *p = v; }
template <class T> void __stwb(T *p, explore::same<T> v) { *p = v; }
template <class T> void __stwt(T *p, explore::same<T> v) { *(volatile T *)p = v; }

/* ---- bits, clocks, addresses */
static inline int __popc(uint32_t v) { return __builtin_popcount(v); }
static inline int __popcll(uint64_t v) { return __builtin_popcountll(v); }
static inline int __ffsll(uint64_t v) { return __builtin_ffsll((long long)v); }
static inline int __clzll(uint64_t v) { return v ? __builtin_clzll(v) : 64; }
static inline int __float_as_int(float v) { return (int)explore::to_bits(v); }
static inline uint32_t __float_as_uint(float v) { return (uint32_t)explore::to_bits(v); }
static inline float __int_as_float(int v) { return explore::from_bits<float>((uint32_t)v); }
static inline float __uint_as_float(uint32_t v) { return explore::from_bits<float>(v); }
static inline long long __double_as_longlong(double v) { return (long long)explore::to_bits(v); }
static inline double __longlong_as_double(long long v) { return explore::from_bits<double>((uint64_t)v); }
static inline int __ffs(uint32_t v) { return __builtin_ffs((int)v); }
static inline int __clz(uint32_t v) { return v ? __builtin_clz(v) : 32; }
static inline long long clock64(EXPLORE_AT("clock64")) { return (long long)explore_special(&at, "%clock64"); }
static inline void __trap(EXPLORE_AT("__trap")) { explore_wrong(&at, "the kernel called __trap()"); }
static inline size_t __cvta_generic_to_shared(const void *p) { return (size_t)p; }
static inline size_t __cvta_generic_to_global(const void *p) { return (size_t)p; }
template <class T> T min(T a, explore::same<T> b) { return a < b ? a : b; }
template <class T> T max(T a, explore::same<T> b) { return a > b ? a : b; }

/* ---- host code */
typedef explore_stream *cudaStream_t;
typedef enum { cudaSuccess = 0 } cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum { cudaStreamDefault, cudaStreamNonBlocking };
static inline const char *cudaGetErrorString(cudaError_t) { return "no error"; }
static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
template <class T> cudaError_t cudaMalloc(T **p, size_t bytes)
{
	*p = (T *)explore_alloc(bytes);
	return cudaSuccess;
}
template <class T> cudaError_t cudaMallocHost(T **p, size_t bytes) { return cudaMalloc(p, bytes); }
static inline cudaError_t cudaFree(void *) { return cudaSuccess; }
static inline cudaError_t cudaFreeHost(void *) { return cudaSuccess; }
static inline cudaError_t cudaGetDevice(int *d)
{
	*d = (int)explore_self()->device;
	return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceCount(int *n)
{
	*n = explore_device_count();
	return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int d, EXPLORE_AT("cudaSetDevice"))
{
	explore_set_device(&at, d);
	return cudaSuccess;
}
static inline cudaError_t cudaDeviceCanAccessPeer(int *can, int, int)
{
	*can = 1;
	return cudaSuccess;
}
static inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
static inline cudaError_t cudaStreamCreate(cudaStream_t *s)
{
	*s = explore_stream_create(0);
	return cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
	*s = explore_stream_create(flags == cudaStreamNonBlocking);
	return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t s, EXPLORE_AT("cudaStreamSynchronize"))
{
	explore_stream_wait(&at, s, 0);
	return cudaSuccess;
}
static inline cudaError_t cudaDeviceSynchronize(EXPLORE_AT("cudaDeviceSynchronize"))
{
	explore_stream_wait(&at, NULL, 1);
	return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t s = NULL,
					  EXPLORE_AT("cudaMemcpyAsync"))
{
	explore_copy(&at, to, from, 0, bytes, s);
	return cudaSuccess;
}
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind, EXPLORE_AT("cudaMemcpy"))
{
	explore_copy(&at, to, from, 0, bytes, NULL);
	explore_stream_wait(&at, NULL, 0);
	return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *to, int v, size_t bytes, cudaStream_t s = NULL, EXPLORE_AT("cudaMemsetAsync"))
{
	explore_copy(&at, to, NULL, v, bytes, s);
	return cudaSuccess;
}
static inline cudaError_t cudaMemset(void *to, int v, size_t bytes, EXPLORE_AT("cudaMemset"))
{
	explore_copy(&at, to, NULL, v, bytes, NULL);
	explore_stream_wait(&at, NULL, 0); /* CUDA does not promise it, but programs rely on it */
	return cudaSuccess;
}

/* ---- what the rewriter calls, and what harnesses call */

#define explore_expect(condition, text)                                                                                \
	do {                                                                                                           \
		static const explore_place expect_at = {"explore_expect", __FILE__, __LINE__};                         \
		if (!(condition))                                                                                      \
			explore_wrong(&expect_at, text);                                                               \
	} while (0)

namespace explore {
/* Memory of a rank, all 0 at first. All ranks get the same address for the same name and rank. */
template <class T> T *buffer(const char *name, int rank, size_t count)
{
	return (T *)explore_buffer(name, rank, count * sizeof(T));
}

template <class T, class Place> __attribute__((noinline, no_sanitize("thread"))) T &shared(Place)
{
	static const uint32_t offset = explore_shared_offset(sizeof(T), alignof(T) > 16 ? alignof(T) : 16);
	return *(T *)(explore_self()->shared + offset);
}
template <class T> T *dynamic_shared() { return (T *)explore_self()->dynamic_shared; }

struct shape {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
};
static inline shape grid(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = NULL)
{
	return {grid, block, shared, stream};
}
template <class Kernel, class... Args> void launch(const explore_place &at, Kernel kernel, const shape &s, Args... args)
{
	struct call {
		Kernel kernel;
		std::tuple<Args...> args;
	};
	call *c = new (explore_alloc(sizeof(call))) call{kernel, {args...}};
	explore_launch(
	    &at, &s.grid, &s.block, s.shared, s.stream,
	    [](void *arg) { std::apply(((call *)arg)->kernel, std::tuple<Args...>(((call *)arg)->args)); },
	    [](void *arg) { ((call *)arg)->~call(); }, c);
}
} // namespace explore

#include <gpuloom/explore/ptx.h>

#endif
