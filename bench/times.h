/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks in nanoseconds, and lists of durations. */
#ifndef BENCH_TIMES_H
#define BENCH_TIMES_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline int ascending_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static inline void sort_ns(uint64_t *list, size_t n)
{
	qsort(list, n, sizeof(*list), ascending_ns);
}

#endif
