/* SPDX-License-Identifier: Apache-2.0 */
/* A call of the CUDA runtime that ends the program when it fails; what the programs of bench/gpu.sh share. */
#ifndef BENCH_GPU_MUST_H
#define BENCH_GPU_MUST_H

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

#endif
