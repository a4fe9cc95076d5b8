/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/base.h"

uint64_t loom__now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
