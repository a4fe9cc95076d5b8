/* SPDX-License-Identifier: Apache-2.0 */
/* Puts segments one after the other into a memory that is yet to be made; for both transports. */
#ifndef GPULOOM_LAYOUT_H
#define GPULOOM_LAYOUT_H

#include <gpuloom/transport.h>

struct layout {
	uint64_t bytes; /* so far */
	int32_t owner;  /* of the last segment */
};

/* Segments of different owners share no page: no false sharing, and a device's pages lie on its
 * node whoever comes before it. */
void layout_add(struct layout *layout, const struct loom_segment_want *want,
		const struct loom_memory *memory, struct loom_segment *out);

#endif
