/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that run the tasks of a gpuloom workload in parallel loops of another runtime, or in kernels, share this code. They
 * run the same task functions on the same data. The workload verifies the result. A program times its loops itself and prints JSON. */
#ifndef BENCH_UNEVEN_H
#define BENCH_UNEVEN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a workload has in memory before a sample: the block for the stack, and its initial tasks (struct loom_task). */
struct harness;
struct uneven_memory {
	void *block;
	const void *task;
	uint64_t bytes, tasks;
};

/* Opens a workload. OPTIONS has the form "a=b c=d". If `warps` is not 0, the memory is that for a GPU whose workers have so many warps,
 * which multiply matrices. Returns NULL after it has printed an error. uneven_verify() returns 0, or 3 after
 * it has printed an error. */
struct harness *uneven_open(const char *workload, const char *options, uint32_t warps, struct uneven_memory *memory);
int uneven_verify(struct harness *h);

/* Runs task i of the loop, on a thread whose number is below `workers`. */
typedef void uneven_body(void *job, uint64_t i, uint32_t thread);

/* The program of each runtime implements these functions. uneven_loop() calls body(job, i, thread) for all i < n with
 * the runtime's loop schedule `schedule`. */
void uneven_begin(uint32_t workers, const char *schedule);
void uneven_loop(uint64_t n, uneven_body *body, void *job);

/* The main function, with the arguments WORKLOAD OPTIONS SCHEDULE SAMPLES. Prints {"seconds": [...]}. */
int uneven_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
