/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers in float16 and bfloat16 that the host makes, and their values. */
#ifndef TASKS_HALF_H
#define TASKS_HALF_H

#include <stdint.h>

#include "lib/random.h"
#include "../common/host.h"
#include "tile.dev.h"

static const char *const half_types[] = {"float16", "bfloat16", NULL};

/* Returns random number i of a seed. Its absolute value is at least 1/16 and below 1. */
static inline uint16_t half_random(uint64_t seed, uint64_t i, uint32_t bfloat)
{
	uint64_t x = loom__mix64(seed ^ i * 0x9e3779b97f4a7c15ull);
	uint32_t sign = (uint32_t)x << 15 & 0x8000u, exponent = (uint32_t)(x >> 1 & 3), rest = (uint32_t)(x >> 8);
	return (uint16_t)(bfloat ? sign | (123 + exponent) << 7 | (rest & 0x7f) : sign | (11 + exponent) << 10 | (rest & 0x3ff));
}

/* Stores n random numbers of the seed, from number `from` on. Returns 0, or an error if the run was stopped. */
static inline int half_fill(const struct loom_host *host, uint16_t *to, uint64_t n, uint64_t seed, uint64_t from,
			    uint32_t bfloat, struct loom_error *err)
{
	int rc = 0;
	for (uint64_t i = 0; i < n && !(rc = workload_goes_on(host, i, n, err)); i++)
		to[i] = half_random(seed, from + i, bfloat);
	return rc;
}

/* Returns how many of `all` results to check: as many as were asked for, or if that is 0, those that take 2^30 steps of `each`. */
static inline uint32_t half_checked(uint32_t asked, uint64_t all, double each)
{
	double most = asked ? asked : 0x1p30 / each;
	return (uint32_t)(most < 1 ? 1 : most < (double)all ? most : (double)all);
}

static inline double half_value(uint16_t bits, uint32_t bfloat)
{
	return (double)tile_number(bits, bfloat);
}

#endif
