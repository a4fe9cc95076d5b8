/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the vendor's sum of n floats, for bench/gpu.sh reduce, without gpuloom.
 *   gpu_reduce
 * For n = 2^9 ... 2^28 the program prints two values:
 * - cub_N_us: cub::DeviceReduce::Sum.
 * - launched_N_us: two kernels. The first kernel computes the sum of each block, and the second kernel adds these sums.
 * The end of the first kernel serves as the barrier. A value is the median of 11 measurements. A measurement is the
 * time of many consecutive calls, taken with CUDA events, divided by the number of calls. */
#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <cuda_runtime.h>

#include "gpu_must.h"

#define THREADS 512

static __device__ float of_block(float sum)
{
	typedef cub::BlockReduce<float, THREADS> Reduce;
	__shared__ typename Reduce::TempStorage room;
	return Reduce(room).Sum(sum);
}

__global__ void sums(const float4 *in, size_t quads, float *out)
{
	float sum = 0;
#pragma unroll 8
	for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < quads; i += (size_t)gridDim.x * THREADS) {
		float4 q = in[i];
		sum += (q.x + q.y) + (q.z + q.w);
	}
	sum = of_block(sum);
	if (threadIdx.x == 0)
		out[blockIdx.x] = sum;
}

__global__ void last(const float *in, unsigned n, float *out)
{
	float sum = 0;
	for (unsigned i = threadIdx.x; i < n; i += THREADS)
		sum += in[i];
	sum = of_block(sum);
	if (threadIdx.x == 0)
		*out = sum;
}

__global__ void fill(float *out, size_t n)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
		out[i] = (float)(i % 256 + 1);
}

template <class F> static float cost(F once, size_t n)
{
	float us[11];
	int times = (int)std::clamp<size_t>(((size_t)1 << 28) / n, 10, 200);
	auto often = [&] {
		for (int i = 0; i < times; i++)
			once();
	};
	often();
	for (float &one : us)
		one = gpu_us(often) / (float)times;
	return median(us, 11);
}

int main(void)
{
	const size_t most = (size_t)1 << 28;
	float *in, *out, *blocks;
	void *room = nullptr;
	size_t bytes = 0;
	cudaDeviceProp p;
	MUST(cudaGetDeviceProperties(&p, 0));
	const unsigned all = (unsigned)p.multiProcessorCount * (2048 / THREADS);
	MUST(cudaMalloc(&in, most * sizeof(*in)));
	MUST(cudaMalloc(&out, sizeof(*out)));
	MUST(cudaMalloc(&blocks, all * sizeof(*blocks)));
	fill<<<all, 256>>>(in, most);
	MUST(cub::DeviceReduce::Sum(room, bytes, in, out, (int)most));
	MUST(cudaMalloc(&room, bytes));
	for (size_t n = 512; n <= most; n *= 2) {
		printf("cub_%zu_us %.4f\n", n,
		       cost([&] { MUST(cub::DeviceReduce::Sum(room, bytes, in, out, (int)n)); }, n));
		printf("launched_%zu_us %.4f\n", n, cost([&] {
			unsigned some = (unsigned)std::clamp<size_t>(n / 4 / THREADS, 1, all);
			sums<<<some, THREADS>>>((const float4 *)in, n / 4, blocks);
			last<<<1, THREADS>>>(blocks, some, out);
		}, n));
	}
	MUST(cudaDeviceSynchronize());
	return 0;
}
