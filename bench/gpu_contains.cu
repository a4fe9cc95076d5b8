/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the speed of a plain kernel that searches a text, for bench/gpu.sh contains, without gpuloom.
 *   gpu_contains WORD FILE
 * - seconds: the median of 20 launches over the whole file, by events; the GPU is busy until the host has queued the launch. A lane
 *   reads 16 bytes per step, of which it has four in flight, and searches for the first two bytes of the word. The fastest of four
 *   numbers of blocks counts.
 * - places: the matches of the word. */
#include <cmath>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_must.h"

#define TURNS 20
#define BATCH 4 /* loads that a lane has in flight */

__constant__ unsigned char word[64];

__device__ int begins(const unsigned char *text, uint64_t bytes, uint64_t at, int n)
{
	for (int i = 0; i < n; i++)
		if (at + i >= bytes || text[at + i] != word[i])
			return 0;
	return 1;
}

__global__ void search(const uint4 *text, uint64_t bytes, int n, unsigned long long *places)
{
	uint64_t step = (uint64_t)gridDim.x * blockDim.x, pieces = (bytes + 15) / 16;
	uint32_t first = 0x01010101u * word[0], second = 0x01010101u * word[n > 1];
	uint32_t any = n > 1 ? 0 : ~0u;
	for (uint64_t from = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; from < pieces; from += BATCH * step) {
		uint4 v[BATCH];
#pragma unroll
		for (int b = 0; b < BATCH; b++)
			if (from + b * step < pieces)
				v[b] = __ldg(text + from + b * step);
#pragma unroll
		for (int b = 0; b < BATCH && from + b * step < pieces; b++) {
			uint64_t i = from + b * step;
			uint32_t next = ((const unsigned char *)text)[i * 16 + 16], part[5] = {v[b].x, v[b].y, v[b].z, v[b].w, next};
			for (int k = 0; k < 4; k++)
				for (uint32_t mask = __vcmpeq4(part[k], first) &
						     (__vcmpeq4(part[k] >> 8 | part[k + 1] << 24, second) | any);
				     mask; mask &= mask - 1) {
					int bit = __ffs(mask) - 1;
					if (bit % 8 == 0 &&
					    begins((const unsigned char *)text, bytes, i * 16 + k * 4 + bit / 8, n))
						atomicAdd(places, 1);
				}
		}
	}
}

int main(int argc, char **argv)
{
	if (argc != 3 || !argv[1][0] || strlen(argv[1]) > sizeof(word)) {
		fprintf(stderr, "usage: gpu_contains WORD FILE\n");
		return 2;
	}
	FILE *f = fopen(argv[2], "rb");
	if (!f) {
		perror(argv[2]);
		return 1;
	}
	fseek(f, 0, SEEK_END);
	uint64_t bytes = (uint64_t)ftell(f), room = (bytes + 31) & ~15ull;
	rewind(f);
	unsigned char *text = (unsigned char *)calloc(room, 1);
	if (!text || fread(text, 1, bytes, f) != bytes) {
		fprintf(stderr, "%s: cannot be read\n", argv[2]);
		return 1;
	}
	fclose(f);
	uint4 *near;
	unsigned long long *places, found = 0;
	float us[TURNS];
	int processors = 0;
	MUST(cudaMalloc(&near, room));
	MUST(cudaMalloc(&places, sizeof(*places)));
	MUST(cudaMemcpy(near, text, room, cudaMemcpyHostToDevice));
	MUST(cudaMemcpyToSymbol(word, argv[1], strlen(argv[1])));
	MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
	float best = INFINITY;
	for (int each : {4, 8, 16, 32}) {
		for (int turn = -2; turn < TURNS; turn++) { /* the first two turns warm the caches */
			MUST(cudaMemset(places, 0, sizeof(*places)));
			gpu_busy();
			us[turn < 0 ? 0 : turn] =
			    gpu_us([&] { search<<<processors * each, 128>>>(near, bytes, (int)strlen(argv[1]), places); });
		}
		best = std::min(best, median(us, TURNS));
	}
	MUST(cudaMemcpy(&found, places, sizeof(found), cudaMemcpyDeviceToHost));
	printf("seconds %.6g\nplaces %llu\n", (double)best / 1e6, found);
	return 0;
}
