/* SPDX-License-Identifier: Apache-2.0 */
/* transport_host: all segments are in one region of host memory that every device maps (MGWS thesis, 4.7). */
#include <gpuloom/transport.h>

#include "../device_common/hostmem/segments.h"

struct options {
	uint32_t atomics;
};

static const struct loom_opt rows[] = {
    SEGMENTS_ATOMICS_ROW(struct options),
    {.name = NULL},
};

static uint32_t home(const struct segments *s, const struct loom_devices *devices, const struct loom_segment_want *want)
{
	(void)s, (void)want;
	return devices->count;
}

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct options *o = opts;
	struct segments *s = host->alloc(host, sizeof(*s));
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "transport_host: out of memory");
	*s = (struct segments){.host = host,
			       .label = "transport_host",
			       .atomics = o->atomics,
			       .home = home};
	*self = s;
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

LOOM_PLUGIN_DEFINE(TRANSPORT, "transport_host", "1.0.0", "Apache-2.0",
		   "One region of host memory that every device maps", .opts = rows,
		   .opts_size = sizeof(struct options), .ops = &ops)
