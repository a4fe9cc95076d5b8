/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the communication between two GPUs of a host, for bench/gpu.sh peers, without gpuloom.
 *   gpu_peers
 * The program exits with 77 if the host has no two GPUs that can access each other's memory.
 * - relaxed_us, release_us: a round trip of a word in the other GPU's memory, written by a relaxed or by a releasing
 * store.
 * - start_WAY_us, word_WAY_us, sync_WAY_us, pageable_WAY_us: a host thread copies 8 bytes out of GPU 0, into it, or from it to
 * GPU 1, and waits. start: the calls that copy and then let the stream store a word in host memory. word: until the host sees
 * this word. sync: until cudaStreamSynchronize() returns, without a word. pageable: the same for host memory that is not
 * registered.
 * - copy_BYTES_us: both GPUs copy this amount to each other at the same time. */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "gpu_must.h"
#include "times.h"

#define ROUNDS 20000u
#define MOST (8u << 20)

static const size_t sizes[] = {8, 4 << 10, 64 << 10, 256 << 10, 1 << 20, MOST};
static cudaStream_t stream[2];
static void *from[2], *to[2];

static double us_since(uint64_t begin)
{
	return (double)(now_ns() - begin) / 1e3;
}

__global__ void ping(uint64_t *theirs, const uint64_t *mine, int first, int release)
{
	for (uint64_t i = 1, seen = 0; i <= ROUNDS; i++) {
		while (!first && seen < i)
			asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(seen) : "l"(mine) : "memory");
		if (release)
			asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(theirs), "l"(i) : "memory");
		else
			asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(theirs), "l"(i) : "memory");
		while (first && seen < i)
			asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(seen) : "l"(mine) : "memory");
	}
}

static void wait_for_both(void)
{
	for (int d = 0; d < 2; d++) {
		MUST(cudaSetDevice(d));
		MUST(cudaStreamSynchronize(stream[d]));
	}
}

static double round_trip_us(int release)
{
	for (int d = 0; d < 2; d++) {
		MUST(cudaSetDevice(d));
		MUST(cudaMemset(from[d], 0, 8));
		MUST(cudaDeviceSynchronize());
	}
	uint64_t begin = now_ns();
	for (int d = 0; d < 2; d++) {
		MUST(cudaSetDevice(d));
		ping<<<1, 1, 0, stream[d]>>>((uint64_t *)from[1 - d], (const uint64_t *)from[d], d == 0, release);
		MUST(cudaGetLastError());
	}
	wait_for_both();
	return us_since(begin) / ROUNDS;
}

static double copy_us(size_t bytes)
{
	uint64_t begin = 0;
	for (int i = -10; i < 100; i++) {
		if (i == 0) {
			wait_for_both();
			begin = now_ns();
		}
		for (int d = 0; d < 2; d++)
			MUST(cudaMemcpyPeerAsync(to[1 - d], 1 - d, from[d], d, bytes, stream[d]));
	}
	wait_for_both();
	return us_since(begin) / 100;
}

/* ---- copies that a host thread starts and awaits ------------------------------------------- */

typedef int write_word(cudaStream_t stream, uint64_t at, uint64_t value, unsigned flags);

static void copies_by_host(void)
{
	static const char *const way[] = {"out", "in", "to"};
	static char pageable[8];
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *view = NULL, *pinned = NULL;
	write_word *store = driver ? (write_word *)dlsym(driver, "cuStreamWriteValue64_v2") : NULL;
	volatile uint64_t *word = NULL;
	MUST(cudaSetDevice(0));
	MUST(cudaHostAlloc((void **)&word, 8, cudaHostAllocMapped));
	MUST(cudaHostAlloc(&pinned, 8, cudaHostAllocMapped));
	MUST(cudaHostGetDevicePointer(&view, (void *)word, 0));
	*word = 0;
	uint64_t n = 0;
	for (int w = 0; w < 3; w++)
		for (int kind = store ? 0 : 1; kind < (w == 2 ? 2 : 3); kind++) {
			void *host = kind == 2 ? pageable : pinned;
			double start = 0, whole = 0;
			for (int i = -100; i < 2000; i++) {
				uint64_t begin = now_ns();
				MUST(cudaMemcpyAsync(w == 0 ? host : w == 1 ? from[0] : to[1], w == 1 ? host : from[0], 8,
						     cudaMemcpyDefault, stream[0]));
				if (kind == 0 && store(stream[0], (uint64_t)view, ++n, 0))
					return;
				start += i < 0 ? 0 : us_since(begin);
				if (kind != 0)
					MUST(cudaStreamSynchronize(stream[0]));
				while (kind == 0 && *word != n)
					;
				whole += i < 0 ? 0 : us_since(begin);
			}
			if (kind == 0)
				printf("start_%s_us %.3f\n", way[w], start / 2000);
			printf("%s_%s_us %.3f\n", kind == 0 ? "word" : kind == 1 ? "sync" : "pageable", way[w], whole / 2000);
		}
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0); /* so the lines before a time limit are not lost */
	if (!two_gpus())
		return NOT_HERE;
	for (int d = 0; d < 2; d++) {
		MUST(cudaSetDevice(d));
		MUST(cudaDeviceEnablePeerAccess(1 - d, 0));
		MUST(cudaStreamCreateWithFlags(&stream[d], cudaStreamNonBlocking));
		MUST(cudaMalloc(&from[d], MOST));
		MUST(cudaMalloc(&to[d], MOST));
		MUST(cudaMemset(from[d], 0, MOST));
	}
	round_trip_us(0); /* the first call loads the code */
	printf("relaxed_us %.3f\nrelease_us %.3f\n", round_trip_us(0), round_trip_us(1));
	copies_by_host();
	for (size_t bytes : sizes)
		printf("copy_%zu_us %.3f\n", bytes, copy_us(bytes));
	return 0;
}
