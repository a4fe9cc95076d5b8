/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_hdn, device code. Host-driven networking: after the kernel has ended, the host sends (GPU-TN, section 1). A
 * fire is recorded, and the boundary waits until the host has taken the records. */
#ifndef TRIGGER_HDN_DEV_H
#define TRIGGER_HDN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../trigger_common/nic/nic.dev.h"
#endif

LOOM_FN int trigger_hdn_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (!nic_may_fire(tag, count))
		return LOOM_EINVAL;
	return nic_record(c, nic_word(tag, count));
}

NIC_FIRE_ALONE(trigger_hdn)

LOOM_FN int trigger_hdn_boundary(struct loom_ctx *c)
{
	uint64_t kernel = 0;
	if (nic_kernel_end(c, &kernel)) {
		struct nic_kernel_ends *g = (struct nic_kernel_ends *)nic_at(c, nic_shape(c)->ends_at) + c->device;
		/* Release: pairs with the host's acquire in nic_poll_kernel_ends(). */
		loom_store_release_sys(&g->ended, kernel + 1);
		/* Acquire: pairs with the release in nic_poll_kernel_ends(), which follows the host's use of the
		 * records. */
		while (loom_load_acquire_sys(&g->begun) != kernel + 1 && !loom_stopped(c))
			loom_pause(c);
		nic_kernel_begin(c, kernel);
	}
	return nic_kernel_await(c, kernel);
}

NIC_AT_END(trigger_hdn)

#endif
