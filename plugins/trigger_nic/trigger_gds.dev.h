/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_gds, device code. Operations are ready in the NIC. When the kernel ends, the device's front end rings their
 * doorbells, without the host (GPUDirect Async; GPU-TN, sections 1 and 5.1). */
#ifndef TRIGGER_GDS_DEV_H
#define TRIGGER_GDS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../trigger_common/nic/nic.dev.h"
#endif

LOOM_FN int trigger_gds_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (!nic_may_fire(tag, count))
		return LOOM_EINVAL;
	return nic_record(c, nic_word(tag, count));
}

NIC_FIRE_ALONE(trigger_gds)

#ifdef LOOM_SIM
/* Under virtual time the NIC does the work of the front end, and takes the time of one doorbell for it. If a worker did
 * this work, it would spend its own virtual time. The launch of the next kernel overlaps with the work of the front
 * end. */
LOOM_FN int trigger_gds_boundary(struct loom_ctx *c)
{
	uint64_t kernel = 0;
	if (nic_kernel_end(c, &kernel)) {
		struct nic_kernel_ends *g = (struct nic_kernel_ends *)nic_at(c, nic_shape(c)->ends_at) + c->device;
		loom_store_release_sys(&g->ended, kernel + 1);
		nic_wait_ns(c, nic_device(c)->launch_ns);
		while (loom_load_acquire_sys(&g->begun) != kernel + 1 && !loom_stopped(c))
			loom_pause(c);
		nic_kernel_next(c, kernel);
	}
	return nic_kernel_await(c, kernel);
}
#else
/* Does the work of the front end: pushes the records of this device's workers. Lanes share the work, because each load
 * of a record may take a round trip to host memory. */
LOOM_FN void trigger_gds_ring(struct loom_ctx *c)
{
	uint64_t most = nic_shape(c)->recorded;
	int rc = 0;
	for (uint32_t w = c->first + c->lane; w < c->first + c->count; w += c->lanes) {
		struct nic_record *r = (struct nic_record *)loom_public(c, LOOM_TRIGGER, w);
		uint64_t n = r->fires < most ? r->fires : most;
		/* A push fails only when the run is stopped. Every worker notices the stop by itself. */
		for (uint64_t i = 0; i < n && !rc; i++)
			rc = nic_push(c, ((uint64_t *)(r + 1))[i], 0, 1);
		r->fires = 0; /* no race: the workers wait in nic_kernel_await() */
	}
	loom_barrier_lanes(c);
}

LOOM_FN int trigger_gds_boundary(struct loom_ctx *c)
{
	uint64_t kernel = 0;
	if (loom_from_lane0(c, (uint64_t)nic_kernel_end(c, &kernel))) {
		trigger_gds_ring(c);
		if (c->lane == 0)
			nic_kernel_begin(c, kernel);
	}
	return nic_kernel_await(c, kernel);
}
#endif

NIC_AT_END(trigger_gds)

#endif
