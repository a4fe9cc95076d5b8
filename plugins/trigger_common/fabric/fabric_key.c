/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric_key.h"

#include <sys/random.h>

/* Smaller keys are not used, because they could be found by trial. */
#define GUESSED 0x10000u

int fabric_key(uint64_t bytes, uint64_t *key)
{
	uint64_t mask = bytes < sizeof(*key) ? (1ull << 8 * bytes) - 1 : UINT64_MAX;
	do {
		if (getrandom(key, sizeof(*key), 0) != sizeof(*key))
			return -1;
		*key &= mask;
	} while (*key < GUESSED && mask >= UINT32_MAX);
	return 0;
}
