/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding of sizes. */
#ifndef LOOM_LIB_ALIGN_H
#define LOOM_LIB_ALIGN_H

#include <stdint.h>

/* Rounds `value` up to a multiple of `unit`, a power of two. */
static inline uint64_t loom__align(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) & ~(unit - 1);
}

static inline int loom__is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* Returns the smallest power of two that is n or more. */
static inline uint64_t loom__power_of_two(uint64_t n)
{
	uint64_t p = 1;
	while (p < n)
		p *= 2;
	return p;
}

#endif
