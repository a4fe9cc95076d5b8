/* SPDX-License-Identifier: Apache-2.0 */
/* Measures sums of n floats without gpuloom, for bench/gpu.sh reduce.
 *   gpu_reduce FLOATS
 * prints, each as the median of 11 measurements:
 * - cub_us: cub::DeviceReduce::Sum. A CUDA graph has many consecutive calls, so that the host does not bound them; the time of the
 *   graph by events is divided by their number. The start of each kernel is included.
 * - kernel_us: a sum inside a cooperative kernel, with cub::BlockReduce and grid.sync(), by the clock of the GPU: after a barrier of
 *   all blocks, until one block has the sum. workload_reduce has the same clock. The fastest of three numbers of blocks counts.
 * The sums are compared with the right ones. */
#include <algorithm>
#include <cmath>
#include <cooperative_groups.h>
#include <cstdio>
#include <cub/cub.cuh>
#include <cuda_runtime.h>

#include "gpu_must.h"

#define THREADS 256
#define TURNS   11

/* The sum of 256 consecutive floats is 256 * 257 / 2. */
__global__ void fill(float *out, size_t n)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
		out[i] = (float)(i % 256 + 1);
}

/* The first round is not timed. A thread's sums of floats are exact, because they are below 2^24. */
__global__ void __launch_bounds__(THREADS) sums(const float4 *in, size_t quads, unsigned rounds, double *part, double *sum,
						unsigned long long *ns)
{
	typedef cub::BlockReduce<double, THREADS> block;
	__shared__ block::TempStorage room;
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	const size_t all = (size_t)gridDim.x * THREADS, first = (size_t)blockIdx.x * THREADS + threadIdx.x;
	for (unsigned round = 0; round <= rounds; round++) {
		float4 own = {0, 0, 0, 0};
		grid.sync();
		unsigned long long begin = gpu_ns();
#pragma unroll 8
		for (size_t i = first; i < quads; i += all) {
			float4 x = in[i];
			own.x += x.x, own.y += x.y, own.z += x.z, own.w += x.w;
		}
		double mine = block(room).Sum((double)own.x + own.y + own.z + own.w);
		if (gridDim.x > 1) {
			if (threadIdx.x == 0)
				part[blockIdx.x] = mine;
			grid.sync();
			mine = 0;
			for (unsigned i = threadIdx.x; blockIdx.x == 0 && i < gridDim.x; i += THREADS)
				mine += ((volatile double *)part)[i];
			mine = block(room).Sum(mine);
		}
		if (first == 0) {
			*ns += round ? gpu_ns() - begin : 0;
			*sum = mine;
		}
	}
}

static void must_be(const char *what, double sum, size_t n, double within)
{
	const double right = (double)(n / 256) * (256 * 257 / 2);
	if (std::fabs(sum - right) <= within * right)
		return;
	fprintf(stderr, "gpu_reduce: %s: the sum is %.0f instead of %.0f\n", what, sum, right);
	exit(1);
}

static float cub_us(const float *in, size_t n, unsigned times)
{
	cudaStream_t stream;
	cudaGraph_t captured;
	cudaGraphExec_t graph;
	void *room = nullptr;
	size_t bytes = 0;
	float *out, sum, us[TURNS];
	MUST(cudaMalloc(&out, sizeof(*out)));
	MUST(cub::DeviceReduce::Sum(room, bytes, in, out, (int)n));
	MUST(cudaMalloc(&room, bytes));
	MUST(cudaStreamCreate(&stream));
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	for (unsigned i = 0; i < times; i++)
		MUST(cub::DeviceReduce::Sum(room, bytes, in, out, (int)n, stream));
	MUST(cudaStreamEndCapture(stream, &captured));
	MUST(cudaGraphInstantiate(&graph, captured, 0));
	for (int turn = -1; turn < TURNS; turn++) {
		gpu_busy();
		us[std::max(turn, 0)] = gpu_us([&] { MUST(cudaGraphLaunch(graph, 0)); }) / (float)times;
	}
	MUST(cudaMemcpy(&sum, out, sizeof(sum), cudaMemcpyDeviceToHost));
	must_be("cub", sum, n, 1e-3);
	return median(us, TURNS);
}

static float kernel_us(const float *in, size_t n, unsigned rounds, unsigned blocks)
{
	size_t quads = n / 4;
	double *part, sum;
	unsigned long long *ns, took;
	float us[TURNS];
	MUST(cudaMalloc(&part, (blocks + 1) * sizeof(*part)));
	MUST(cudaMalloc(&ns, sizeof(*ns)));
	double *at = part + blocks;
	void *arguments[] = {&in, &quads, &rounds, &part, &at, &ns};
	for (float &one : us) {
		MUST(cudaMemset(ns, 0, sizeof(*ns)));
		MUST(cudaLaunchCooperativeKernel((const void *)sums, blocks, THREADS, arguments, 0, 0));
		MUST(cudaMemcpy(&took, ns, sizeof(took), cudaMemcpyDeviceToHost));
		MUST(cudaMemcpy(&sum, at, sizeof(sum), cudaMemcpyDeviceToHost));
		must_be("kernel", sum, n, 0);
		one = (float)took / 1e3f / (float)rounds;
	}
	return median(us, TURNS);
}

int main(int argc, char **argv)
{
	size_t n = argc == 2 ? (size_t)atoll(argv[1]) : 0;
	if (n < 1024 || n > (size_t)1 << 28 || n % 256) {
		fprintf(stderr, "usage: gpu_reduce FLOATS (1024 to 2^28, a multiple of 256)\n");
		return 2;
	}
	unsigned times = (unsigned)std::clamp<size_t>(((size_t)1 << 28) / n, 10, 200);
	int sms;
	float *in, best = INFINITY;
	MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	MUST(cudaMalloc(&in, n * sizeof(*in)));
	fill<<<1024, 256>>>(in, n);
	printf("cub_us %.4f\n", cub_us(in, n, times));
	for (unsigned blocks : {1u, (unsigned)sms, 2 * (unsigned)sms})
		if (blocks > 1 || n <= (size_t)1 << 20) /* one block takes milliseconds for more, and its sums of floats would not be exact */
			best = std::min(best, kernel_us(in, n, times, blocks));
	printf("kernel_us %.4f\n", best);
	return 0;
}
