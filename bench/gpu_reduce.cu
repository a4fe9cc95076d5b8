/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the vendor's sum of n floats, for bench/gpu.sh reduce, without gpuloom.
 *   gpu_reduce FLOATS
 * prints cub_us, the time of cub::DeviceReduce::Sum: the median of 11 measurements. A measurement is the time of many
 * consecutive calls in a stream, taken with CUDA events, divided by the number of calls. */
#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <cuda_runtime.h>

#include "gpu_must.h"

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

int main(int argc, char **argv)
{
	size_t n = argc == 2 ? (size_t)atoll(argv[1]) : 0, bytes = 0;
	if (n < 1 || n > (size_t)1 << 28) {
		fprintf(stderr, "usage: gpu_reduce FLOATS (1 to 2^28)\n");
		return 2;
	}
	float *in, *out;
	void *room = nullptr;
	MUST(cudaMalloc(&in, n * sizeof(*in)));
	MUST(cudaMalloc(&out, sizeof(*out)));
	fill<<<1024, 256>>>(in, n);
	MUST(cub::DeviceReduce::Sum(room, bytes, in, out, (int)n));
	MUST(cudaMalloc(&room, bytes));
	printf("cub_us %.4f\n", cost([&] { MUST(cub::DeviceReduce::Sum(room, bytes, in, out, (int)n)); }, n));
	MUST(cudaDeviceSynchronize());
	return 0;
}
