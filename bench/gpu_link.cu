/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the link between a GPU and the host, for bench/gpu.sh triggers, requests and waits, without gpuloom.
 *   gpu_link [NAME]         one of the following, or all
 * - stores_lane, stores_warp, stores_grid: 8-byte words per second that one lane, a warp, or all multiprocessors store
 * into a ring in host memory. One host thread counts the words. The producers check for space only once per quarter of
 * the ring.
 * - round_trip_us: the GPU increments a word of host memory and the host answers.
 * - load_us: a load from host memory. The latency of a posted store is about half of this time.
 * - launch_us: the time from the launch of an empty kernel until the host detects the kernel's end. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gpu_must.h"
#include "times.h"

#define ENTRIES (1u << 16)
#define QUARTER (ENTRIES / 4)

struct ring {
	uint64_t tail, pad[7];
	uint64_t word[ENTRIES];
};

/* Lane `me` stores the words me, me + lanes, and so on. Each word holds its lap number. */
__global__ void produce(volatile struct ring *ring, uint64_t n, uint64_t *seen)
{
	uint64_t lanes = (uint64_t)gridDim.x * blockDim.x, me = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	for (uint64_t i = me; i < n; i += lanes) {
		/* Lane 0 reads the tail once per quarter of the ring, and repeatedly while the ring is full. */
		while (i >= *(volatile uint64_t *)seen + ENTRIES)
			if (me == 0)
				*(volatile uint64_t *)seen = ring->tail;
		if (me == 0 && i % (QUARTER - QUARTER % lanes + lanes) < lanes)
			*(volatile uint64_t *)seen = ring->tail;
		asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(&ring->word[i % ENTRIES]), "l"(1 + i / ENTRIES)
			     : "memory");
	}
	/* Other lanes may still wait for space. */
	while (me == 0 && *(volatile uint64_t *)seen + ENTRIES < n)
		*(volatile uint64_t *)seen = ring->tail;
}

struct count {
	struct ring *ring;
	uint64_t n, first, last;
};

static void *count(void *arg)
{
	struct count *c = (struct count *)arg;
	uint64_t at = 0;
	while (at < c->n) {
		uint64_t from = at;
		while (at < c->n && at - from < 256 &&
		       __atomic_load_n(&c->ring->word[at % ENTRIES], __ATOMIC_ACQUIRE) == 1 + at / ENTRIES)
			at++;
		if (at == from)
			continue;
		c->last = now_ns();
		if (!from)
			c->first = c->last;
		__atomic_store_n(&c->ring->tail, at, __ATOMIC_RELEASE);
	}
	return NULL;
}

static double stores(struct ring *host, struct ring *dev, uint64_t *seen, int blocks, int threads, uint64_t n)
{
	struct count c = {host, n, 0, 0};
	pthread_t thread;
	memset(host, 0, sizeof(*host));
	MUST(cudaMemset(seen, 0, 8));
	MUST(cudaDeviceSynchronize());
	pthread_create(&thread, NULL, count, &c);
	produce<<<blocks, threads>>>(dev, n, seen);
	pthread_join(thread, NULL);
	MUST(cudaDeviceSynchronize());
	return (double)n / (double)(c.last - c.first) * 1e9;
}

__global__ void ping(uint64_t *up, const uint64_t *down, uint64_t n)
{
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t v;
		asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(up), "l"(i) : "memory");
		do
			asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(down) : "memory");
		while (v < i);
	}
}

__global__ void load(const uint64_t *from, uint64_t n, uint64_t *took)
{
	uint64_t begin = gpu_ns(), at = 0;
	for (uint64_t i = 0; i < n; i++) /* each word is 0, so the address of each load depends on the previous load */
		asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(at) : "l"(from + at) : "memory");
	*took = gpu_ns() - begin + at; /* `at` is 0, but without this use the compiler would remove the loads */
}

__global__ void nothing(void)
{
}

int main(int argc, char **argv)
{
	auto wanted = [&](const char *name) { return argc < 2 || !strcmp(argv[1], name); };
	struct ring *host, *dev;
	uint64_t *seen, *words, *words_dev;
	cudaDeviceProp prop;
	MUST(cudaGetDeviceProperties(&prop, 0));
	MUST(cudaHostAlloc(&host, sizeof(*host), cudaHostAllocMapped));
	MUST(cudaHostGetDevicePointer(&dev, host, 0));
	MUST(cudaMalloc(&seen, 8));
	struct {
		const char *name;
		int blocks, threads;
		uint64_t n;
	} shape[] = {{"stores_lane", 1, 1, 400000},
		     {"stores_warp", 1, 32, 10000000},
		     {"stores_grid", prop.multiProcessorCount, 32, 20000000}};
	for (auto &s : shape) {
		if (!wanted(s.name))
			continue;
		double best[3];
		for (double &b : best)
			b = stores(host, dev, seen, s.blocks, s.threads, s.n);
		printf("%s %.4g\n", s.name, median(best, 3));
	}
	MUST(cudaHostAlloc(&words, 128, cudaHostAllocMapped));
	MUST(cudaHostGetDevicePointer(&words_dev, words, 0));
	memset(words, 0, 128);
	const uint64_t trips = 20000;
	uint64_t begin = now_ns();
	if (wanted("round_trip_us"))
		ping<<<1, 1>>>(words_dev, words_dev + 8, trips);
	for (uint64_t i = 1; i <= trips && wanted("round_trip_us"); i++) {
		while (__atomic_load_n(words, __ATOMIC_ACQUIRE) < i)
			;
		__atomic_store_n(words + 8, i, __ATOMIC_RELEASE);
	}
	if (wanted("round_trip_us"))
		printf("round_trip_us %.3f\n", (double)(now_ns() - begin) / (double)trips / 1e3);
	MUST(cudaDeviceSynchronize());
	memset(words, 0, 128);
	load<<<1, 1>>>(words_dev, 10000, words_dev + 8);
	MUST(cudaDeviceSynchronize());
	printf("load_us %.3f\n", (double)words[8] / 10000 / 1e3);
	uint64_t took[1001];
	for (uint64_t &t : took) {
		begin = now_ns();
		nothing<<<1, 32>>>();
		MUST(cudaDeviceSynchronize());
		t = now_ns() - begin;
	}
	printf("launch_us %.2f\n", (double)median(took, 1001) / 1e3);
	return 0;
}
