// Counter reused across launches of a graph. gpuloom explore must say: race on data, between the copy of a rank in a
// launch and the sum of the other in the launch before.
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

__global__ void sum(of_ranks<uint32_t> start, of_ranks<uint32_t> end, uint32_t *launches, uint32_t argument, of_ranks<int> data,
		    const int *in, int *out, int rank)
{
	unsigned t = threadIdx.x;
#ifdef FAULT
	uint32_t n = argument; /* the value at the capture: the flags have it from the first launch on */
#else
	uint32_t n = *launches + 1;
#endif
	data.at[rank][t] = in[t];
	meet(start.at, rank, n);
	out[t] = data.at[0][t] + data.at[1][t];
	meet(end.at, rank, n);
	if (t == 0)
		*launches = n;
}

void explore_rank(int rank, int ranks)
{
	auto start = buffers<uint32_t>("start", RANKS), end = buffers<uint32_t>("end", RANKS);
	auto launches = buffers<uint32_t>("launches", 1);
	auto data = buffers<int>("data", RANKS), in = buffers<int>("in", RANKS), out = buffers<int>("out", RANKS);
	for (int replay = 0; replay < 2; replay++) { /* of a graph with this launch */
		for (int i = 0; i < RANKS; i++)
			in.at[rank][i] = 10 * rank + i + replay;
		sum<<<1, RANKS>>>(start, end, launches.at[rank], 1, data, in.at[rank], out.at[rank], rank);
		cudaDeviceSynchronize();
		explore_expect(out.at[rank][1] == 12 + 2 * replay, "the sum of replay n is 12 + 2 n");
	}
}
