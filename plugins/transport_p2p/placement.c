/* SPDX-License-Identifier: Apache-2.0 */
#include "placement.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int placement_parse(const struct loom_host *host, const char *text, struct placement *placement, struct loom_error *err)
{
	static const char prefix[] = "device:";
	if (!strcmp(text, "owner")) {
		*placement = (struct placement){.kind = PLACE_OWNER};
		return 0;
	}
	if (!strcmp(text, "remote")) {
		*placement = (struct placement){.kind = PLACE_REMOTE};
		return 0;
	}
	if (!strcmp(text, "host")) {
		*placement = (struct placement){.kind = PLACE_HOST};
		return 0;
	}
	if (!strncmp(text, prefix, sizeof(prefix) - 1)) {
		const char *digits = text + sizeof(prefix) - 1;
		char *end;
		unsigned long n = strtoul(digits, &end, 10);
		if (isdigit((unsigned char)*digits) && !*end && n < LOOM_MAX_DEVICES) {
			*placement = (struct placement){.kind = PLACE_DEVICE, .device = (uint32_t)n};
			return 0;
		}
	}
	return LOOM_REFUSE(host, err, "placement",
			   "placement = '%s' is none of owner, remote, host, device:N (N from 0 "
			   "to %d, in the order of [run] devices)",
			   text, LOOM_MAX_DEVICES - 1);
}

int placement_check(const struct loom_host *host, const struct placement *placement, uint32_t devices,
		    struct loom_error *err)
{
	if (placement->kind == PLACE_DEVICE && placement->device >= devices)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "[transport.p2p] placement = device:%u, but [run] devices names %u: "
				 "the last is device:%u",
				 placement->device, devices, devices - 1);
	if (placement->kind == PLACE_REMOTE && devices < 2)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "[transport.p2p] placement = remote needs a second device: name two in [run] devices, "
				 "or set placement = owner");
	return 0;
}

uint32_t placement_home(const struct placement *placement, const struct loom_segment_want *want, uint32_t devices)
{
	if (placement->kind == PLACE_DEVICE)
		return placement->device;
	if (want->owner < 0)
		return 0; /* segments of the stack have no owner, and are in the memory of device 0 */
	if (placement->kind == PLACE_HOST)
		return devices;
	uint32_t shift = placement->kind == PLACE_REMOTE;
	return ((uint32_t)want->owner + shift) % devices;
}
