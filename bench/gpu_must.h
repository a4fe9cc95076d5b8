/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of bench/gpu.sh share: a call of the CUDA runtime that ends the program when it fails, and times. */
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

/* us that the GPU takes for what once() launches. */
template <class F> static float gpu_us(F once)
{
	static cudaEvent_t begin, end; /* each F has its own, so one may be timed within another */
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
