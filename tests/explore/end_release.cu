// End barrier without release at system scope. gpuloom explore must say: race on out, between the peer's store and the
// load of the rank after its kernel.
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

/* Each rank adds one part, and stores the sums into the results of all ranks. */
__global__ void sum(of_ranks<uint32_t> end, of_ranks<int> in, of_ranks<int> out, of_ranks<uint32_t> start, int rank)
{
	meet(start.at, rank, 1);
	if (threadIdx.x == 0)
		for (int r = 0; r < RANKS; r++)
			out.at[r][rank] = in.at[0][rank] + in.at[1][rank];
	__syncthreads();
#ifdef FAULT
	asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(&end.at[threadIdx.x][rank]), "r"(1) : "memory");
#else
	put_release(&end.at[threadIdx.x][rank], 1);
#endif
	wait_for(&end.at[rank][threadIdx.x], 1);
}

void explore_rank(int rank, int ranks)
{
	auto start = buffers<uint32_t>("start", RANKS), end = buffers<uint32_t>("end", RANKS);
	auto in = buffers<int>("in", RANKS), out = buffers<int>("out", RANKS);
	for (int i = 0; i < RANKS; i++)
		in.at[rank][i] = 10 * rank + i;
	sum<<<1, RANKS>>>(end, in, out, start, rank);
	cudaDeviceSynchronize();
	explore_expect(out.at[rank][0] == 10 && out.at[rank][1] == 12, "the sums are 10 and 12");
}
