/* SPDX-License-Identifier: Apache-2.0 */
/* Chance that is the same in each run. */
#ifndef GPULOOM_SHARED_MIX_H
#define GPULOOM_SHARED_MIX_H

#include <stdint.h>

/* splitmix64: every bit of x reaches every bit of the result. kernel.dev.h has the same for GPUs: the same seed gives the
 * same choices there. */
static inline uint64_t mix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

#endif
