// Fence of too small a scope. gpuloom explore must say: race on data, between the store of one rank and the load of the other.
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

__global__ void send(int *data, volatile uint32_t *flag, int v)
{
	data[threadIdx.x] = v;
	__syncthreads();
	if (threadIdx.x)
		return;
#ifdef FAULT
	__threadfence(); /* orders for the threads of this device only */
#else
	__threadfence_system();
#endif
	*flag = 1;
}

__global__ void receive(const int *data, const volatile uint32_t *flag, int *out)
{
	while (*flag != 1)
		;
	__threadfence_system();
	out[threadIdx.x] = data[threadIdx.x];
}

void explore_rank(int rank, int ranks)
{
	int *data = explore::buffer<int>("data", 1, 2), *out = explore::buffer<int>("out", 1, 2);
	uint32_t *flag = explore::buffer<uint32_t>("flag", 1, 1);
	if (rank == 0)
		send<<<1, 2>>>(data, flag, 7);
	else
		receive<<<1, 2>>>(data, flag, out);
	cudaDeviceSynchronize();
	explore_expect(rank == 0 || out[1] == 7, "the data is 7");
}
