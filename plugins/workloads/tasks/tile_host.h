/* SPDX-License-Identifier: Apache-2.0 */
/* What the hosts of workloads with tiles ask about devices. */
#ifndef TASKS_TILE_HOST_H
#define TASKS_TILE_HOST_H

#include <gpuloom/plugin.h>

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

/* Returns 1 if there are GPUs, and the warps of all of them multiply matrices. */
static inline uint32_t tile_products(const struct loom_layout *layout)
{
	uint32_t gpus = 0;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *shape = &layout->device[d];
		if (shape->kind != LOOM_ON_GPU)
			continue;
		if (!(shape->flags & LOOM_SHAPE_PRODUCTS) || !shape->lanes || shape->lanes % TILE_WARP)
			return 0;
		gpus++;
	}
	return gpus > 0;
}

/* The op registers(): with so many, the compiler keeps the sums of a lane and its loads in flight in registers. */
static inline uint32_t tile_registers(void *self, const struct loom_layout *layout)
{
	(void)self;
	return tile_products(layout) ? 255 : 0;
}

#endif
