/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of a compiled program, as its compiler reports them. */
#ifndef GPULOOM_GPU_RESOURCES_H
#define GPULOOM_GPU_RESOURCES_H

#include <stdint.h>

struct resources {
	uint32_t registers; /* of the kernel, per thread */
	uint32_t shared;    /* static, per block */
	uint32_t stack;     /* of the kernel itself, bytes per thread */
	uint32_t spills;    /* bytes stored and loaded again because registers ran out, of all functions */
	uint32_t nested;    /* stack of all functions that it calls: one level of nested tasks */
};

#endif
