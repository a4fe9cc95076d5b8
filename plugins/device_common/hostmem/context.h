/* SPDX-License-Identifier: Apache-2.0 */
/* Makes contexts of workers, for devices whose workers run on the host. */
#ifndef GPULOOM_CONTEXT_H
#define GPULOOM_CONTEXT_H

#include <gpuloom/dev/ctx.h>
#include <gpuloom/device.h>

#include "lib/align.h"

/* Returns the address of a reference, or NULL for reference 0, which refers to nothing. view: addresses of the
 * segments. */
static inline void *context_at(char *const *view, loom_ref ref)
{
	return ref ? view[LOOM_REF_SEGMENT(ref)] + LOOM_REF_OFFSET(ref) : NULL;
}

/* Sets view[i] to the host's address of segment i, or to NULL if the device or the host cannot access the segment. */
static inline void context_views(const struct loom_launch *what, char **view)
{
	for (uint32_t i = 1; i < what->segments; i++) {
		const struct loom_segment *s = &what->segment[i];
		int reaches = LOOM_SEGMENT_REACHES(s, what->device);
		view[i] = reaches && s->memory->host ? (char *)s->memory->host + s->offset : NULL;
	}
}

/* Fills in the context of a worker with one lane. index: its number in the device. local: memory for its private
 * blocks. */
static inline void context_fill(const struct loom_launch *what, char **view, uint32_t index, char *local,
				struct loom_ctx *c)
{
	const struct loom_device_shape *shape = &what->layout->device[what->device];
	struct loom_counters *counters = (struct loom_counters *)context_at(view, what->counters);
	char *trace = LOOM_HAS(what, trace) ? (char *)context_at(view, what->trace) : NULL;
	uint32_t id = shape->first_worker + index;
	*c = (struct loom_ctx){.worker = id,
			       .workers = what->layout->workers,
			       .device = what->device,
			       .devices = what->layout->devices,
			       .first = shape->first_worker,
			       .count = shape->workers,
			       .lanes = 1,
			       .counters = counters ? &counters[id] : NULL,
			       .segment = view,
			       .initial = context_at(view, what->initial),
			       .trace = trace ? (struct loom_trace *)(trace + id * what->trace_bytes) : NULL};
	for (int kind = 0; kind < LOOM_KINDS_MAX; kind++) {
		c->global[kind] = what->global ? context_at(view, what->global[kind]) : NULL;
		c->on_device[kind] = what->on_device ? context_at(view, what->on_device[kind]) : NULL;
		c->registry[kind] = what->registry ? context_at(view, what->registry[kind]) : NULL;
		c->own[kind] = c->registry[kind] ? context_at(view, c->registry[kind][id]) : NULL;
		if (what->local_bytes && what->local_bytes[kind]) {
			c->local[kind] = local;
			local += loom__align(what->local_bytes[kind], 64);
		}
	}
}

#endif
