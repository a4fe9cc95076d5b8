/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of a compiled program, as its compiler reports them. */
#ifndef GPULOOM_GPU_RESOURCES_H
#define GPULOOM_GPU_RESOURCES_H

#include <stdint.h>

struct resources {
	uint32_t registers; /* registers of a thread of the kernel */
	uint32_t shared;    /* static shared memory of a block */
	uint32_t stack;     /* stack of the kernel itself, bytes per thread */
	uint32_t spills;    /* bytes stored and loaded again because registers ran out, in all functions */
	uint32_t nested;    /* stack of all functions that it calls, which is one level of nested tasks */
};

#endif
