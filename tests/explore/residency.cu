// Residency. gpuloom explore (with fewer resident blocks than 4) must say: hang (a block spins on one that was not launched).
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

/* A chain of prefix sums: each block waits for its predecessor. */
__global__ void prefix(uint32_t *ticket, uint32_t *sum, const uint32_t *in, int rank)
{
#ifdef FAULT
	unsigned place = gridDim.x - 1 - blockIdx.x; /* the predecessor is launched later */
#else
	unsigned place = atomicAdd(ticket, 1u); /* the predecessor has begun */
#endif
	uint32_t before = 0;
	while (place && !(before = get_acquire(&sum[place - 1])))
		;
	put_release(&sum[place], before + in[place]);
}

void explore_rank(int rank, int ranks)
{
	auto ticket = buffers<uint32_t>("ticket", 1), sum = buffers<uint32_t>("sum", 4), in = buffers<uint32_t>("in", 4);
	if (rank)
		return;
	for (int i = 0; i < 4; i++)
		in.at[0][i] = 1 + i;
	prefix<<<4, 1>>>(ticket.at[0], sum.at[0], in.at[0], rank);
	cudaDeviceSynchronize();
	explore_expect(sum.at[0][3] == 10, "the last sum is 10");
}
