/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of a compiled program, as its compiler reports them. */
#ifndef GPULOOM_GPU_RESOURCES_H
#define GPULOOM_GPU_RESOURCES_H

#include <stdint.h>

struct resources {
	uint32_t registers; /* registers per thread of the kernel */
	uint32_t shared;    /* bytes of static shared memory per block */
	uint32_t stack;     /* bytes of stack per thread for the kernel function without the functions that it calls */
	uint32_t spills;    /* bytes of registers that all functions store to memory and load back, because registers ran out */
	uint32_t nested;    /* bytes of stack per thread for all functions that the kernel calls: one level of nested tasks */
};

#endif
