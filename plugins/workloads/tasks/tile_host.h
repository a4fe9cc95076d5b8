/* SPDX-License-Identifier: Apache-2.0 */
/* What the hosts of workloads with tiles ask about devices. */
#ifndef TASKS_TILE_HOST_H
#define TASKS_TILE_HOST_H

#include "../common/products.h"
#include "tile.dev.h"

/* Returns the largest number of warps of a worker on a GPU. */
static inline uint32_t tile_warps(const struct loom_layout *layout)
{
	uint32_t most = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		if (layout->device[d].kind == LOOM_ON_GPU && layout->device[d].lanes / TILE_WARP > most)
			most = layout->device[d].lanes / TILE_WARP;
	return most;
}

/* The op registers(). */
static inline uint32_t tile_registers(void *self, const struct loom_layout *layout)
{
	(void)self;
	return workload_product_registers(layout);
}

#endif
