/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the device whose memory holds a segment. */
#ifndef GPULOOM_PLACEMENT_H
#define GPULOOM_PLACEMENT_H

#include <gpuloom/transport.h>

enum placement_kind { PLACE_OWNER, PLACE_REMOTE, PLACE_HOST, PLACE_DEVICE };

struct placement {
	enum placement_kind kind;
	uint32_t device; /* with PLACE_DEVICE: index of the device */
};

/* Parses "owner", "remote", "host" or "device:N". Returns 0 or an error. */
int placement_parse(const struct loom_host *host, const char *text, struct placement *placement,
		    struct loom_error *err);
/* Returns an error if the placement is impossible with `devices` devices. */
int placement_check(const struct loom_host *host, const struct placement *placement, uint32_t devices,
		    struct loom_error *err);
/* Returns the index of the device whose memory holds the segment, or `devices` for host memory. */
uint32_t placement_home(const struct placement *placement, const struct loom_segment_want *want, uint32_t devices);

#endif
