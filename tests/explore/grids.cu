// Different grids per rank. gpuloom explore must say: hang (block 1 of rank 0 waits for block 1 of rank 1).
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

/* Block b of a rank meets block b of the other one. */
__global__ void sum(of_ranks<uint32_t> flag, of_ranks<int> in, int *out, int n, int rank)
{
	of_ranks<uint32_t> mine;
	for (int r = 0; r < RANKS; r++)
		mine.at[r] = flag.at[r] + RANKS * blockIdx.x;
	meet(mine.at, rank, 1);
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = in.at[0][i] + in.at[1][i];
}

void explore_rank(int rank, int ranks)
{
	int own = rank == 0 ? 4 : 2, most = 4; /* the numbers of tokens differ */
	auto flag = buffers<uint32_t>("flag", 2 * RANKS);
	auto in = buffers<int>("in", most), out = buffers<int>("out", most);
	for (int i = 0; i < own; i++)
		in.at[rank][i] = 10 * rank + i;
#ifdef FAULT
	int blocks = own / 2;
#else
	int blocks = most / 2;
#endif
	sum<<<blocks, 2>>>(flag, in, out.at[rank], own, rank);
	cudaDeviceSynchronize();
	explore_expect(out.at[rank][1] == 12, "the sum is 12");
}
