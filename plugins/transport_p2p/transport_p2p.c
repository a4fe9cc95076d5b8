/* SPDX-License-Identifier: Apache-2.0 */
/* transport_p2p: each device owns its segments, and other devices access them directly (MGWS thesis, 4.7). */
#include <gpuloom/transport.h>

#include "../device_common/hostmem/segments.h"
#include "placement.h"

struct options {
	const char *placement;
	uint32_t tasks, huge_pages, atomics;
};

enum { TASKS_STACK, TASKS_HOST };
static const char *const tasks_choices[] = {"stack", "host", NULL};
static const char *const huge_choices[] = {"no", "try", NULL};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct options, placement, LOOM_OPT_STR, "owner",
	     "Memory of a device's segments. owner: that device's. remote: that of the next device. host: host memory, "
	     "for queues; the stack's own segments, with tasks and results, are in the memory of the first device. "
	     "device:N: that of device N for all segments, in the order of [run] devices."),
    LOOM_OPT(struct options, tasks, LOOM_OPT_ENUM, "stack",
	     "Memory of the initial tasks. stack: that of the stack's own segments. host: host memory. Non-coherent "
	     "devices have local copies in any case.",
	     .choices = tasks_choices),
    LOOM_OPT(struct options, huge_pages, LOOM_OPT_ENUM, "no",
	     "Whether to request huge pages for the part in host memory. try: requests them; the kernel may give none. "
	     "Devices have an option of their own.",
	     .choices = huge_choices),
    SEGMENTS_ATOMICS_ROW(struct options),
    {.name = NULL},
};

struct transport {
	struct segments segments;
	const struct options *options;
	struct placement placement;
};

static uint32_t home(const struct segments *s, const struct loom_devices *devices, const struct loom_segment_want *want)
{
	const struct transport *t = (const struct transport *)s;
	return want->flags & LOOM_MEMORY_TASKS && t->options->tasks == TASKS_HOST
		   ? devices->count
		   : placement_home(&t->placement, want, devices->count);
}

static int check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	struct placement placement;
	return placement_parse(host, ((const struct options *)opts)->placement, &placement, err);
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
					     .node = -1,
					     .huge = o->huge_pages != 0,
					     .home = home},
				.options = o};
	int code = placement_parse(host, o->placement, &t->placement, err);
	if (code) {
		host->free(host, t);
		return code;
	}
	*self = t;
	return 0;
}

static int segments(void *self, const struct loom_devices *devices, const struct loom_segment_want *want, uint32_t n,
		    struct loom_segment *out, struct loom_error *err)
{
	struct transport *t = self;
	const struct loom_host *host = t->segments.host;
	int code = placement_check(host, &t->placement, devices->count, err);
	if (!code && devices->layout->noncoherent && t->placement.kind != PLACE_OWNER &&
	    t->placement.kind != PLACE_HOST)
		code = LOOM_FAIL(host, err, LOOM_EINVAL,
				 "[transport.p2p] placement = %s: these devices cannot change the same word, so each "
				 "needs its own segments in local memory: set owner or host",
				 t->options->placement);
	return code ? code : segments_make(t, devices, want, n, out, err);
}

static const struct loom_transport_ops ops = {
    .size = sizeof(ops),
    .noncoherent = segments_noncoherent,
    .create = create,
    .destroy = segments_destroy,
    .segments = segments,
    .release = segments_release,
};

LOOM_PLUGIN_DEFINE(TRANSPORT, "transport_p2p", "1.0.0", "Apache-2.0",
		   "Each device owns its memory and the others reach it directly", .opts = rows,
		   .opts_size = sizeof(struct options), .check = check, .ops = &ops)
