// Missing wait between the two phases of a two-shot sum. gpuloom explore must say: race on part, between both phases.
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

/* Rank r adds element r of all ranks, then each rank gathers the sums. */
__global__ void sum(of_ranks<uint32_t> start, of_ranks<uint32_t> middle, of_ranks<int> in, of_ranks<int> part, int *out,
		    int rank)
{
	unsigned t = threadIdx.x;
	meet(start.at, rank, 1);
	if (t == 0)
		*part.at[rank] = in.at[0][rank] + in.at[1][rank];
#ifdef FAULT
	__syncthreads(); /* orders the threads of this block only */
#else
	meet(middle.at, rank, 1);
#endif
	out[t] = *part.at[t];
}

void explore_rank(int rank, int ranks)
{
	auto start = buffers<uint32_t>("start", RANKS), middle = buffers<uint32_t>("middle", RANKS);
	auto in = buffers<int>("in", RANKS), part = buffers<int>("part", 1), out = buffers<int>("out", RANKS);
	for (int i = 0; i < RANKS; i++)
		in.at[rank][i] = 10 * rank + i;
	sum<<<1, RANKS>>>(start, middle, in, part, out.at[rank], rank);
	cudaDeviceSynchronize();
	explore_expect(out.at[rank][0] == 10 && out.at[rank][1] == 12, "the sums are 10 and 12");
}
