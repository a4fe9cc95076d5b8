/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that are the same for the same seed: splitmix64 (Steele, Lea and Flood 2014). Every seed is good.
 * Device code has copies of these functions, such as loom_gpu_mix() in plugins/device_common/compose/kernel.dev.h. From the
 * same seed, they make the same choices. */
#ifndef LOOM_LIB_RANDOM_H
#define LOOM_LIB_RANDOM_H

#include <stdint.h>

/* Every bit of x affects every bit of the result. */
static inline uint64_t loom__mix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Returns the next number of the sequence. Before the first call, *state is the seed. */
static inline uint64_t loom__random(uint64_t *state)
{
	uint64_t x = *state;
	*state += 0x9e3779b97f4a7c15ull;
	return loom__mix64(x);
}

#endif
