/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of bench/embed_tbb.cpp: rivals that need a compiler of C++ or OpenMP. */
#ifndef BENCH_EMBED_H
#define BENCH_EMBED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns NULL if the build has no oneTBB. */
void *embed_tbb_open(int threads);
void embed_tbb_run(void *arena, void (*work)(uint64_t i), uint64_t n);
void embed_tbb_close(void *arena);

/* A loop of the calling thread and another one, which take one iteration at a time. */
void embed_omp_run(void (*work)(uint64_t i), uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
