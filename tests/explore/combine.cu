// Combine that reads before the flag. gpuloom explore must say: race on token, between the store of the expert's rank and the
// load in combine.
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

/* The expert of a rank returns its result to the other rank, and counts it there. */
__global__ void dispatch(int *token, uint32_t *count, int v)
{
	token[threadIdx.x] = v + threadIdx.x;
	asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(count), "r"(1) : "memory");
}

__global__ void combine(const int *token, const uint32_t *count, int *out)
{
	unsigned t = threadIdx.x;
#ifdef FAULT
	int v = token[t]; /* to hide its latency */
	wait_for(count, 2);
#else
	wait_for(count, 2);
	int v = token[t];
#endif
	out[t] = 100 + v;
}

void explore_rank(int rank, int ranks)
{
	auto token = buffers<int>("token", 2), out = buffers<int>("out", 2);
	auto count = buffers<uint32_t>("count", 1);
	dispatch<<<1, 2>>>(token.at[1 - rank], count.at[1 - rank], 10 * rank);
	combine<<<1, 2>>>(token.at[rank], count.at[rank], out.at[rank]);
	cudaDeviceSynchronize();
	explore_expect(out.at[rank][1] == 101 + 10 * (1 - rank), "the combined value is that of the peer's expert");
}
