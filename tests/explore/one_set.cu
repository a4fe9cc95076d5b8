// One set of counters instead of two. gpuloom explore must say: hang (a rank waits for a value that the peer overwrote).
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

#ifdef FAULT
enum { SETS = 1 };
#else
enum { SETS = 2 };
#endif

/* A rank may begin the next barrier before its peer has seen the flag of this one, and must not overwrite it. */
__device__ void barrier(of_ranks<uint32_t> flag, uint32_t *count, int rank)
{
	__syncthreads();
	unsigned t = threadIdx.x;
	if (t < RANKS) {
		uint32_t n = ++count[t], set = n % SETS * RANKS;
		put_release(&flag.at[t][set + rank], n);
		wait_for(&flag.at[rank][set + t], n);
	}
	__syncthreads();
}

__global__ void sum(of_ranks<uint32_t> flag, uint32_t *count, of_ranks<int> in, int *out, int rank)
{
	barrier(flag, count, rank);
	out[threadIdx.x] = in.at[0][threadIdx.x] + in.at[1][threadIdx.x];
	barrier(flag, count, rank);
}

void explore_rank(int rank, int ranks)
{
	auto flag = buffers<uint32_t>("flag", SETS * RANKS), count = buffers<uint32_t>("count", RANKS);
	auto in = buffers<int>("in", RANKS), out = buffers<int>("out", RANKS);
	for (int i = 0; i < RANKS; i++)
		in.at[rank][i] = 10 * rank + i;
	for (int call = 0; call < 2; call++)
		sum<<<1, RANKS>>>(flag, count.at[rank], in, out.at[rank], rank);
	cudaDeviceSynchronize();
	explore_expect(out.at[rank][1] == 12, "the sum is 12");
}
