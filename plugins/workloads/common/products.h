/* SPDX-License-Identifier: Apache-2.0 */
/* What the hosts of workloads ask about GPUs whose warps multiply matrices. */
#ifndef WORKLOAD_PRODUCTS_H
#define WORKLOAD_PRODUCTS_H

#include <gpuloom/plugin.h>

#define WORKLOAD_WARP 32u

/* Returns 1 if there are GPUs, or devices of a test, and the warps of all of them multiply matrices. */
static inline uint32_t workload_products(const struct loom_layout *layout)
{
	uint32_t gpus = 0;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *shape = &layout->device[d];
		if (shape->kind != LOOM_ON_GPU && !(shape->flags & LOOM_SHAPE_PRODUCTS))
			continue;
		if (!(shape->flags & LOOM_SHAPE_PRODUCTS) || !shape->lanes || shape->lanes % WORKLOAD_WARP)
			return 0;
		gpus++;
	}
	return gpus > 0;
}

/* The number of registers with which the compiler keeps the sums of a lane and its loads in flight in registers. */
static inline uint32_t workload_product_registers(const struct loom_layout *layout)
{
	return workload_products(layout) ? 255 : 0;
}

#endif
