/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the programs that run the tasks of a workload of gpuloom in the parallel loops of another runtime: the same machine
 * code on the same data, checked by the workload, timed inside, and printed as JSON. */
#ifndef BENCH_UNEVEN_H
#define BENCH_UNEVEN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs task i of the loop, on a thread whose number is below `workers`. */
typedef void uneven_body(void *job, uint64_t i, uint32_t thread);

/* Implemented by the runtime: body(job, i, thread) for all i < n, in the schedule that is called `schedule`. */
void uneven_begin(uint32_t workers, const char *schedule);
void uneven_loop(uint64_t n, uneven_body *body, void *job);

/* PROGRAM WORKLOAD OPTIONS SCHEDULE SAMPLES: options as "a=b c=d". Prints {"seconds": [...]}. */
int uneven_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
