// Lamport buffer that is not cleared. gpuloom explore must say: a wrong sum in call 3.
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

enum { BUFFERS = 3, CALLS = 4 };

/* A word that is not 0 is data and flag. Calls use three buffers in turn. */
__global__ void sum(of_ranks<uint32_t> buffer, uint32_t v, uint32_t *out, int call, int rank)
{
	unsigned t = threadIdx.x, now = call % BUFFERS * RANKS, last = (call + BUFFERS - 1) % BUFFERS * RANKS;
	__shared__ uint32_t part[RANKS];
	put_relaxed(&buffer.at[t][now + rank], v);
	while (!(part[t] = get_relaxed(&buffer.at[rank][now + t])))
		;
#ifndef FAULT
	put_relaxed(&buffer.at[rank][last + t], 0);
#endif
	__syncthreads();
	if (t == 0)
		out[call] = part[0] + part[1];
}

void explore_rank(int rank, int ranks)
{
	auto buffer = buffers<uint32_t>("buffer", BUFFERS * RANKS), out = buffers<uint32_t>("out", CALLS);
	for (int call = 0; call < CALLS; call++)
		sum<<<1, RANKS>>>(buffer, 10 * rank + call + 1, out.at[rank], call, rank);
	cudaDeviceSynchronize();
	for (uint32_t call = 0; call < CALLS; call++)
		explore_expect(out.at[rank][call] == 12 + 2 * call, "the sum of call n is 12 + 2 n");
}
