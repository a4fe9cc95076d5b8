/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the cost of the vendor's barriers on a GPU, for bench/gpu.sh barriers, without gpuloom.
 *   gpu_barriers                       all of the following
 *   gpu_barriers grid BLOCKS THREADS   one of the first kind
 *   gpu_barriers tile|coalesced N      cycles of sync() of a tile of N lanes of one warp, or of N coalesced lanes, as table 4
 *                                      of the study measures them: by the GPU's clock, 512 times, the fastest of 20
 *   gpu_barriers launch N              JSON for workload_exec: the time on the GPU for each of N queued empty kernels
 * - grid_BLOCKS_THREADS_us: grid.sync() of cooperative groups, with BLOCKS blocks of THREADS threads on each
 * multiprocessor.
 * - block_THREADS_us, warp_us: __syncthreads() and __syncwarp() of one block.
 * - cluster_us: the hardware barrier of clusters of 8 blocks of 256 threads, one block per multiprocessor.
 * - host_us: the time from the launch of an empty cooperative kernel until the host detects the kernel's end.
 * A value is the median of 11 differences between few and many rounds, as in workload_barrier. */
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#include "gpu_must.h"

namespace cg = cooperative_groups;

#define FEW 512
#define MORE 5120

__global__ void grid(unsigned rounds)
{
	cg::grid_group all = cg::this_grid();
	for (unsigned i = 0; i < rounds; i++)
		all.sync();
}

__global__ void block(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		__syncthreads();
}

__global__ void warp(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		__syncwarp();
}

__global__ void __cluster_dims__(8, 1, 1) cluster(unsigned rounds)
{
	cg::cluster_group mine = cg::this_cluster();
	for (unsigned i = 0; i < rounds; i++)
		mine.sync();
}

__global__ void nothing(unsigned) {}

template <class Group> __device__ long long cycles_of(Group group)
{
	long long begin = clock64();
#pragma unroll 8
	for (unsigned i = 0; i < FEW; i++)
		group.sync();
	return clock64() - begin;
}

template <unsigned N> __global__ void tile(long long *cycles, unsigned)
{
	long long mine = cycles_of(cg::tiled_partition<N>(cg::this_thread_block()));
	if (!threadIdx.x)
		*cycles = mine;
}

__global__ void coalesced(long long *cycles, unsigned lanes)
{
	if (threadIdx.x >= lanes)
		return;
	long long mine = cycles_of(cg::coalesced_threads());
	if (!threadIdx.x)
		*cycles = mine;
}

static double group_cycles(const char *kind, unsigned lanes)
{
	static void (*const tiles[])(long long *, unsigned) = {tile<1>, tile<2>, tile<4>, tile<8>, tile<16>, tile<32>};
	void (*kernel)(long long *, unsigned) = coalesced;
	long long *cycles, least = 0;
	for (unsigned i = 0; i < 6 && !strcmp(kind, "tile"); i++)
		if (lanes == 1u << i)
			kernel = tiles[i];
	if (lanes < 1 || lanes > 32 || (kernel == coalesced && strcmp(kind, "coalesced"))) {
		fprintf(stderr, "gpu_barriers: a tile is 1, 2, 4, 8, 16 or 32 lanes, coalesced lanes are 1 to 32\n");
		exit(2);
	}
	MUST(cudaMallocManaged(&cycles, sizeof(*cycles)));
	for (int i = 0; i <= 20; i++) { /* the first time fetches the code */
		kernel<<<1, 32>>>(cycles, lanes);
		MUST(cudaDeviceSynchronize());
		least = i < 2 || *cycles < least ? *cycles : least;
	}
	MUST(cudaFree(cycles));
	return (double)least / FEW;
}

static float once(void (*kernel)(unsigned), unsigned blocks, unsigned threads, unsigned rounds, bool together)
{
	void *args[] = {&rounds};
	return gpu_us([&] {
		if (together)
			MUST(cudaLaunchCooperativeKernel((const void *)kernel, blocks, threads, args, 0, 0));
		else
			MUST(cudaLaunchKernel((const void *)kernel, blocks, threads, args, 0, 0));
	});
}

static float cost(void (*kernel)(unsigned), unsigned blocks, unsigned threads, bool together)
{
	float v[11];
	once(kernel, blocks, threads, FEW, together);
	for (float &one : v) {
		float few = once(kernel, blocks, threads, FEW, together);
		one = (once(kernel, blocks, threads, FEW + MORE, together) - few) / MORE;
	}
	return median(v, 11);
}

/* Runs until the host sets *go. Kernels that the host launches meanwhile wait in the queue. */
__global__ void hold(volatile int *go)
{
	while (!*go)
		;
}

/* Returns the time per kernel of n empty kernels that are queued while hold() runs, as in figure 1 of GPU-TN. The value
 * is the median of 101 measurements. */
static float launch_us(int n)
{
	static float v[101];
	int *go, *go_there;
	cudaEvent_t begin, end;
	MUST(cudaHostAlloc(&go, sizeof(*go), cudaHostAllocMapped));
	MUST(cudaHostGetDevicePointer(&go_there, go, 0));
	MUST(cudaEventCreate(&begin));
	MUST(cudaEventCreate(&end));
	nothing<<<1, 32>>>(0);
	for (float &one : v) {
		float ms;
		*(volatile int *)go = 0;
		hold<<<1, 1>>>(go_there);
		MUST(cudaEventRecord(begin));
		for (int i = 0; i < n; i++)
			nothing<<<1, 32>>>(0);
		MUST(cudaEventRecord(end));
		*(volatile int *)go = 1;
		MUST(cudaEventSynchronize(end));
		MUST(cudaEventElapsedTime(&ms, begin, end));
		one = ms * 1e3f / (float)n;
	}
	MUST(cudaEventDestroy(begin));
	MUST(cudaEventDestroy(end));
	MUST(cudaFreeHost(go));
	return median(v, 101);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "launch")) {
		int n = atoi(argv[2]);
		if (n < 1 || n > 512) { /* the queue must hold all n kernels while hold() runs */
			fprintf(stderr, "gpu_barriers launch: from 1 to 512 kernels\n");
			return 2;
		}
		printf("{\"launch_us\": %.4f}\n", launch_us(n));
		return 0;
	}
	if (argc == 3 && (!strcmp(argv[1], "tile") || !strcmp(argv[1], "coalesced"))) {
		printf("%s_cycles %.3f\n", argv[1], group_cycles(argv[1], (unsigned)atoi(argv[2])));
		return 0;
	}
	cudaDeviceProp p;
	MUST(cudaGetDeviceProperties(&p, 0));
	unsigned sms = (unsigned)p.multiProcessorCount;
	if (argc == 4 && !strcmp(argv[1], "grid")) {
		printf("grid_us %.4f\n", cost(grid, (unsigned)atoi(argv[2]) * sms, (unsigned)atoi(argv[3]), true));
		return 0;
	}
	for (unsigned threads = 32; threads <= 1024; threads *= 2)
		for (unsigned blocks = 1; blocks <= 32; blocks *= 2) {
			int fit = 0;
			MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, grid, (int)threads, 0));
			if (blocks <= (unsigned)fit)
				printf("grid_%u_%u_us %.4f\n", blocks, threads,
				       cost(grid, blocks * sms, threads, true));
		}
	for (unsigned threads = 32; threads <= 1024; threads *= 2)
		printf("block_%u_us %.5f\n", threads, cost(block, 1, threads, false));
	printf("warp_us %.5f\n", cost(warp, 1, 32, false));
	printf("cluster_us %.4f\n", cost(cluster, sms / 8 * 8, 256, false));
	float v[101];
	for (float &one : v) {
		MUST(cudaDeviceSynchronize());
		one = gpu_us([&] { once(nothing, sms, 256, 0, true); });
	}
	printf("host_us %.3f\n", median(v, 101));
	return 0;
}
