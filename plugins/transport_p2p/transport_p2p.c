/* SPDX-License-Identifier: Apache-2.0 */
/* transport_p2p: each device owns its segments, and other devices access them directly (MGWS thesis, 4.7). */
#include <gpuloom/transport.h>

#include "../device_common/hostmem/segments.h"

struct options {
	uint32_t placement, tasks, atomics;
};

enum { PLACEMENT_OWNER, PLACEMENT_HOST };
static const char *const placement_choices[] = {"owner", "host", NULL};
enum { TASKS_STACK, TASKS_HOST };
static const char *const tasks_choices[] = {"stack", "host", NULL};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct options, placement, LOOM_OPT_ENUM, "owner",
	     "Memory of a device's queues. owner: that device's. host: host memory. The stack's own segments, with "
	     "tasks and results, are in the memory of the first device.",
	     .choices = placement_choices),
    LOOM_OPT(struct options, tasks, LOOM_OPT_ENUM, "stack",
	     "Memory of the initial tasks. stack: that of the stack's own segments. host: host memory. Non-coherent "
	     "devices have local copies in any case.",
	     .choices = tasks_choices),
    SEGMENTS_ATOMICS_ROW(struct options),
    {.name = NULL},
};

struct transport {
	struct segments segments;
	const struct options *options;
};

static uint32_t home(const struct segments *s, const struct loom_devices *devices, const struct loom_segment_want *want)
{
	const struct options *o = ((const struct transport *)s)->options;
	if (want->flags & LOOM_MEMORY_TASKS && o->tasks == TASKS_HOST)
		return devices->count;
	if (want->owner < 0)
		return 0; /* segments of the stack have no owner */
	return o->placement == PLACEMENT_HOST ? devices->count : (uint32_t)want->owner;
}

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct options *o = opts;
	struct transport *t = host->alloc(host, sizeof(*t));
	if (!t)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "transport_p2p: out of memory");
	*t = (struct transport){.segments = {.host = host,
					     .label = "transport_p2p",
					     .atomics = o->atomics,
					     .home = home},
				.options = o};
	*self = t;
	return 0;
}

static const struct loom_transport_ops ops = {
    .size = sizeof(ops),
    .noncoherent = segments_noncoherent,
    .create = create,
    .destroy = segments_destroy,
    .segments = segments_make,
    .release = segments_release,
};

LOOM_PLUGIN_DEFINE(TRANSPORT, "transport_p2p", "1.0.0", "Apache-2.0",
		   "Each device owns its memory and the others reach it directly", .opts = rows,
		   .opts_size = sizeof(struct options), .ops = &ops)
