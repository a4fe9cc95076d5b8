/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include "hostmem.h"

void layout_add(struct layout *layout, const struct loom_segment_want *want,
		const struct loom_memory *memory, struct loom_segment *out)
{
	uint64_t unit = layout->bytes && want->owner != layout->owner ? hostmem_page() : 64;
	*out = (struct loom_segment){.memory = memory,
				     .offset = hostmem_align(layout->bytes, unit),
				     .bytes = want->bytes,
				     .owner = want->owner,
				     .flags = want->flags};
	layout->bytes = out->offset + out->bytes;
	layout->owner = want->owner;
}
