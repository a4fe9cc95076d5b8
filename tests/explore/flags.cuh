/* SPDX-License-Identifier: Apache-2.0 */
/* Flags between ranks, for the kernels of this folder. A kernel with -DFAULT has one fault; without, it has none. */
#pragma once
#include <cstdint>
#include <cuda_runtime.h>

enum { RANKS = 2 };

__device__ inline void put_release(uint32_t *flag, uint32_t v)
{
	asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(v) : "memory");
}

__device__ inline void put_relaxed(uint32_t *flag, uint32_t v)
{
	asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(v) : "memory");
}

__device__ inline uint32_t get_acquire(const uint32_t *flag)
{
	uint32_t v;
	asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	return v;
}

__device__ inline uint32_t get_relaxed(const uint32_t *flag)
{
	uint32_t v;
	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	return v;
}

__device__ inline void wait_for(const uint32_t *flag, uint32_t v)
{
	while (get_acquire(flag) != v)
		;
}

/* flag[r]: the flags of rank r, one for each rank that sets it. All threads of the block and what they have written are
 * ordered. */
__device__ inline void meet(uint32_t *const *flag, int rank, uint32_t v)
{
	__syncthreads();
	if (threadIdx.x < RANKS) {
		put_release(&flag[threadIdx.x][rank], v);
		wait_for(&flag[rank][threadIdx.x], v);
	}
	__syncthreads();
}

template <class T> struct of_ranks {
	T *at[RANKS];
};

template <class T> of_ranks<T> buffers(const char *name, size_t count)
{
	of_ranks<T> b;
	for (int r = 0; r < RANKS; r++)
		b.at[r] = explore::buffer<T>(name, r, count);
	return b;
}
