/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of bench/gpu.sh share checked calls of the CUDA runtime, and times. */
#ifndef BENCH_GPU_MUST_H
#define BENCH_GPU_MUST_H

#include <algorithm>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
	do {                                                                                       \
		cudaError_t rc = (call);                                                           \
		if (rc != cudaSuccess) {                                                           \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(rc));                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { NOT_HERE = 77 }; /* exit status: the measurement is not possible on this machine */

/* Returns 1 if there are two GPUs that reach each other's memory. Otherwise says so. */
static inline int two_gpus(void)
{
	int devices = 0, there = 0, back = 0;
	if (cudaGetDeviceCount(&devices) == cudaSuccess && devices >= 2) {
		MUST(cudaDeviceCanAccessPeer(&there, 0, 1));
		MUST(cudaDeviceCanAccessPeer(&back, 1, 0));
	}
	if (!there || !back)
		fprintf(stderr, "no two GPUs here that reach each other's memory\n");
	return there && back;
}

/* The clock of the GPU, in ns. */
static inline __device__ unsigned long long gpu_ns(void)
{
	unsigned long long ns;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
	return ns;
}

/* Keeps the GPU busy for 0.1 ms, in which the host queues what is timed next. */
static __global__ void gpu_busy_ns(unsigned ns)
{
	unsigned long long begin = gpu_ns();
	while (gpu_ns() - begin < ns)
		;
}

static inline void gpu_busy(void)
{
	gpu_busy_ns<<<1, 1>>>(100000);
	MUST(cudaGetLastError());
}

/* Returns the GPU time in us of the work that once() launches. */
template <class F> static float gpu_us(F once)
{
	static cudaEvent_t begin, end; /* each F has its own events, so timings may be nested */
	float ms;
	if (!begin) {
		MUST(cudaEventCreate(&begin));
		MUST(cudaEventCreate(&end));
	}
	MUST(cudaEventRecord(begin));
	once();
	MUST(cudaEventRecord(end));
	MUST(cudaEventSynchronize(end));
	MUST(cudaEventElapsedTime(&ms, begin, end));
	return ms * 1e3f;
}

template <class T> static T median(T *list, int n)
{
	std::sort(list, list + n);
	return list[n / 2];
}

#endif
