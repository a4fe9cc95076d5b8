/* SPDX-License-Identifier: Apache-2.0 */
/* Runs CUDA kernels on fibers, in many schedules, with the machine model of plugins/device_common/explore/race.h. This
 * header has what kernels call, after the rewriter (rewrite.h) has replaced what is not C++. A thread of a kernel is a
 * fiber, and so is the host code of each rank. docs/explore.md has the rest. */
#ifndef LOOM_EXPLORE_RUN_H
#define LOOM_EXPLORE_RUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of a memory order, and scopes, as in race.h. */
enum { EXPLORE_RELAXED = 0, EXPLORE_ACQUIRE = 1, EXPLORE_RELEASE = 2, EXPLORE_ACQ_REL = 3, EXPLORE_SEQ_CST = 7 };
enum explore_scope { EXPLORE_BLOCK = 1, EXPLORE_DEVICE, EXPLORE_SYSTEM };

/* Where an operation is in the source. The strings must stay valid. what: the operation in words, such as "atomicAdd".
 */
struct explore_place {
	const char *what, *file;
	uint32_t line;
};

/* ---- memory. size: 1, 2, 4 or 8. Each function may switch to another fiber before it performs the access. */
uint64_t explore_load(const struct explore_place *at, const void *p, uint32_t size, int order,
		      enum explore_scope scope);
void explore_store(const struct explore_place *at, void *p, uint32_t size, uint64_t v, int order,
		   enum explore_scope scope);
/* Sets the word to next(old, v), where old is its value. Returns old. */
uint64_t explore_change(const struct explore_place *at, void *p, uint32_t size,
			uint64_t (*next)(uint64_t old, uint64_t v), uint64_t v, int order, enum explore_scope scope);
/* Sets the word to `v` if it is `expected`. Returns the old value. */
uint64_t explore_cas(const struct explore_place *at, void *p, uint32_t size, uint64_t expected, uint64_t v, int order,
		     enum explore_scope scope);
void explore_fence(const struct explore_place *at, int order, enum explore_scope scope);
/* Orders what the thread has seen by ordinary accesses before its later bulk copies (fence.proxy.async). */
void explore_proxy_fence(const struct explore_place *at);
/* A plain access of the PTX interpreter or of the host's copies, which the caller performs. */
void explore_plain(const struct explore_place *at, const void *p, size_t bytes, int is_write);
/* The thread waits for another one, or polls. */
void explore_pause(void);

/* ---- meetings. id: 0 to 15; threads: number of threads that meet, 0: all of the block that have not ended; waits: 0:
 * the thread arrives and goes on (bar.arrive). */
void explore_barrier(const struct explore_place *at, uint32_t id, uint32_t threads, int waits);
/* All threads of the block meet. Returns the number of those that have `is` = 1. */
uint32_t explore_barrier_count(const struct explore_place *at, uint32_t is);
/* The lanes of `mask` meet, and their memory accesses are ordered. */
void explore_syncwarp(const struct explore_place *at, uint32_t mask);
/* The lanes of `mask` meet, each with a value. all[i]: the value of lane i. Orders nothing. Returns the lanes that met.
 */
uint32_t explore_collect(const struct explore_place *at, uint32_t mask, uint64_t v, uint64_t *all);
/* All threads of the grid meet. */
void explore_grid_barrier(const struct explore_place *at);

/* ---- mbarrier objects, in shared memory: PTX ISA, "mbarrier". */
void explore_mbarrier_init(const struct explore_place *at, void *bar, uint32_t count);
/* Adds `bytes` to the bytes that the phase expects, then arrives `count` times (0: only expects). Returns the state:
 * the parity of the phase. */
uint64_t explore_mbarrier_arrive(const struct explore_place *at, void *bar, uint32_t count, uint32_t bytes, int order,
				 enum explore_scope scope);
/* Returns 1 if the phase with this parity has ended. */
int explore_mbarrier_test(const struct explore_place *at, void *bar, uint32_t parity, int order,
			  enum explore_scope scope);

/* ---- bulk copies (cp.async.bulk): the copy is made later, by the asynchronous proxy. bar: the mbarrier that gets the
 * bytes; NULL: the copy belongs to the thread's bulk group. */
void explore_bulk(const struct explore_place *at, void *to, const void *from, uint32_t bytes, void *bar);
void explore_bulk_commit(const struct explore_place *at);
/* Waits until at most `most` groups of the thread are left. reads: 1: only until their sources have been read. */
void explore_bulk_wait(const struct explore_place *at, uint32_t most, int reads);

/* ---- the running thread */
struct explore_index {
	uint32_t x, y, z;
};
struct explore_self {
	struct explore_index thread_idx, block_idx, block_dim, grid_dim;
	uint32_t lane, warp, device;
	char *shared, *dynamic_shared;
};
struct explore_self *explore_self(void);
/* Returns a special register of PTX, such as "%laneid". Ends the program if it is not known. */
uint64_t explore_special(const struct explore_place *at, const char *name);
/* Returns the lanes of the warp that have not ended. */
uint32_t explore_lanes(void);
/* Returns a place for a shared variable, the same in each block. */
uint32_t explore_shared_offset(size_t bytes, size_t align);

/* ---- host code. A rank has one GPU. */
struct explore_stream;
/* body(arg) runs in each thread of the grid; end(arg) after the last. */
void explore_launch(const struct explore_place *at, const struct explore_index *grid, const struct explore_index *block,
		    size_t shared, struct explore_stream *stream, void (*body)(void *arg), void (*end)(void *arg),
		    void *arg);
/* Copies in the stream, after what is in it; from: NULL: sets all bytes to `value`. */
void explore_copy(const struct explore_place *at, void *to, const void *from, int value, size_t bytes,
		  struct explore_stream *stream);
/* non_blocking: 1: the stream does not wait for the default stream, NULL, nor that for it. */
struct explore_stream *explore_stream_create(int non_blocking);
/* Later launches of this host thread go to the GPU of rank d. */
void explore_set_device(const struct explore_place *at, int d);
int explore_device_count(void);
/* Waits until the stream's kernels have ended; NULL: those of all blocking streams; all: 1: those of all streams of the
 * GPU. */
void explore_stream_wait(const struct explore_place *at, struct explore_stream *stream, int all);
/* Returns memory that is freed after the schedule. Its content is not 0. */
void *explore_alloc(size_t bytes);
/* Returns the memory of a rank that has this name, all 0 at the first call. All ranks can access it. */
void *explore_buffer(const char *name, int rank, size_t bytes);
/* A result was wrong. */
void explore_wrong(const struct explore_place *at, const char *text);
/* From the command line: numbers of threads of a block, and of blocks; 0: the harness decides. */
extern uint32_t explore_block_option, explore_grid_option;

/* Ends the program, because it uses something that is not modelled. Exit code 4. */
void explore_refuse(const struct explore_place *at, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* Host code of a rank, which the harness defines. Each schedule calls it from the beginning. */
void explore_rank(int rank, int ranks);

#ifdef __cplusplus
}
#endif
#endif
