// Start barrier without order. gpuloom explore must say: race on data of the peer, between the copy and the sum.
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

__global__ void sum(of_ranks<uint32_t> start, of_ranks<int> data, const int *in, int *out, int rank)
{
	unsigned t = threadIdx.x;
	data.at[rank][t] = in[t];
	__syncthreads();
#ifdef FAULT
	put_relaxed(&start.at[t][rank], 1);
	while (get_relaxed(&start.at[rank][t]) != 1)
		;
#else
	put_release(&start.at[t][rank], 1);
	wait_for(&start.at[rank][t], 1);
#endif
	__syncthreads();
	out[t] = data.at[0][t] + data.at[1][t];
}

void explore_rank(int rank, int ranks)
{
	auto start = buffers<uint32_t>("start", RANKS);
	auto data = buffers<int>("data", RANKS), in = buffers<int>("in", RANKS), out = buffers<int>("out", RANKS);
	for (int i = 0; i < RANKS; i++)
		in.at[rank][i] = 10 * rank + i;
	sum<<<1, RANKS>>>(start, data, in.at[rank], out.at[rank], rank);
	cudaDeviceSynchronize();
	explore_expect(out.at[rank][1] == 12, "the sum is 12");
}
