/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_gds: operations are ready, and the device's front end rings for them at the kernel's end, without
 * the host (GPU-TN, sections 1 and 5.1: GPUDirect Async). Device code. */
#ifndef TRIGGER_GDS_DEV_H
#define TRIGGER_GDS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "nic.dev.h"
#endif

LOOM_FN int trigger_gds_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (tag - 1 >= LOOM_TAG_MAX || count - 1 >= NIC_COUNT_MAX)
		return LOOM_EINVAL;
	return nic_record(c, nic_word(tag, count));
}

LOOM_FN int trigger_gds_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)
{
	(void)c, (void)tag, (void)argument; /* the stream was written before the kernel ran */
	return LOOM_ENOTSUP;
}

/* The front end: what the workers of this device noted goes to the NIC. */
LOOM_FN int trigger_gds_ring(struct loom_ctx *c)
{
	const struct nic_board *b = nic_board(c);
	int rc = 0;
	for (uint32_t w = c->first; w < c->first + c->count; w++) {
		struct nic_record *r = (struct nic_record *)loom_public(c, LOOM_TRIGGER, w);
		uint64_t n = r->fires < b->recorded ? r->fires : b->recorded;
		for (uint64_t i = 0; i < n && !rc; i++)
			rc = nic_push(c, ((uint64_t *)(r + 1))[i], 0);
		r->fires = 0; /* the workers wait */
	}
	return rc;
}

LOOM_FN int trigger_gds_boundary(struct loom_ctx *c)
{
	uint64_t kernel = 0;
	if (nic_kernel_end(c, &kernel)) {
		trigger_gds_ring(c); /* fails only when the run is stopped, which all will see */
		nic_kernel_begin(c, kernel);
	}
	return nic_kernel_await(c, kernel);
}

LOOM_FN int trigger_gds_deliver(struct loom_ctx *c)
{
	return trigger_gds_boundary(c);
}

NIC_READS(trigger_gds)

#endif
