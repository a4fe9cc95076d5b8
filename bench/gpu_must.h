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
