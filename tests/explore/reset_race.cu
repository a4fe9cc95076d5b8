// Flag reset races with the next start. gpuloom explore must say: hang (a rank waits for a start flag that was reset).
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

/* start and end flags hold 0 or 1. A call resets the flags for the next one. */
__global__ void sum(of_ranks<uint32_t> start, of_ranks<uint32_t> end, of_ranks<int> in, int *out, int rank)
{
	unsigned t = threadIdx.x;
	put_relaxed(&end.at[rank][t], 0);
	put_release(&start.at[t][rank], 1);
	wait_for(&start.at[rank][t], 1);
	__syncthreads();
	out[t] = in.at[0][t] + in.at[1][t];
	__syncthreads();
#ifdef FAULT
	/* The flag of thread 1 lets rank 1 begin its next call, whose start flag thread 0 may then reset. */
	if (t == 0)
		for (int r = 0; r < RANKS; r++)
			put_relaxed(&start.at[rank][r], 0);
#else
	put_relaxed(&start.at[rank][t], 0); /* before the end flag for the rank that sets it */
#endif
	put_release(&end.at[t][rank], 1);
	wait_for(&end.at[rank][t], 1);
}

void explore_rank(int rank, int ranks)
{
	auto start = buffers<uint32_t>("start", RANKS), end = buffers<uint32_t>("end", RANKS);
	auto in = buffers<int>("in", RANKS), out = buffers<int>("out", RANKS);
	for (int i = 0; i < RANKS; i++)
		in.at[rank][i] = 10 * rank + i;
	for (int call = 0; call < 2; call++)
		sum<<<1, RANKS>>>(start, end, in, out.at[rank], rank);
	cudaDeviceSynchronize();
	explore_expect(out.at[rank][1] == 12, "the sum is 12");
}
