/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the drivers without a GPU (fake_kernel.h) and the programs that they run, which are compiled
 * for the host (threads.h, threads_kernel.h). */
#ifndef LOOM_TEST_BLOCK_H
#define LOOM_TEST_BLOCK_H

#include <stddef.h>
#include <stdint.h>

struct loom_probe;

#define BLOCK_FEWER 8 /* a block has so many threads for one thread of these drivers */

/* The threads that meet: those of a wave, of a worker, or of the whole block. */
enum { BLOCK_WAVE = 1, BLOCK_WORKER, BLOCK_ALL };

struct block_number {
	uint32_t x;
};

/* A block of threads, as the program sees it. All threads of a block are fibers of one thread of the host, one of which
 * runs at a time. */
struct block_view {
	struct block_number thread, index, size; /* threadIdx, blockIdx and blockDim */
	uint32_t accesses;   /* number of atomic loads; in some of them another thread gets its turn */
	uint32_t quiet;      /* number of yields and naps since a thread of the block has last stored a word */
	uint64_t (*slot)[2]; /* [size]: values that threads pass to each other, in turn */
	unsigned char *turn; /* [size]: the slot that a thread uses next */
	/* Let the other threads of the block run. pause: this thread waits; yield: it may wait. */
	void (*pause)(struct block_view *block);
	void (*yield)(struct block_view *block);
	/* A barrier of the threads first to first + count - 1. */
	void (*meet)(struct block_view *block, int kind, uint32_t first, uint32_t count);
	/* Called by all threads of a worker before a sample. */
	void (*begin)(struct block_view *block, uint32_t worker);
	/* Called by lane 0 of the device's first worker after a sample. small: 1 if the worker has left a small sample.
	 * last: 1 if the device is the second of the probe's pair. */
	void (*end)(int small, struct loom_probe *probe, int last);
	struct block_number blocks; /* gridDim */
};

/* What a program exports, under this name. */
#define BLOCK_PROGRAM "block_program"
struct block_program {
	void (*run)(struct block_view *block, const void *parameter);
	const char *kernel; /* name of the kernel */
	size_t parameter_bytes;
	void *launch; /* the launch record; NULL: the kernel has none */
	size_t launch_bytes;
};

#endif
