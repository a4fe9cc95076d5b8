/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_hdn: host-driven networking: the kernel ends, then the host sends (GPU-TN, section 1). Device
 * code: a fire is noted, and the boundary waits for the host. */
#ifndef TRIGGER_HDN_DEV_H
#define TRIGGER_HDN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "nic.dev.h"
#endif

LOOM_FN int trigger_hdn_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (tag - 1 >= LOOM_TAG_MAX || count - 1 >= NIC_COUNT_MAX)
		return LOOM_EINVAL;
	return nic_record(c, nic_word(tag, count));
}

LOOM_FN int trigger_hdn_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)
{
	(void)c, (void)tag, (void)argument; /* the host knows nothing of it */
	return LOOM_ENOTSUP;
}

LOOM_FN int trigger_hdn_boundary(struct loom_ctx *c)
{
	uint64_t kernel = 0;
	if (nic_kernel_end(c, &kernel)) {
		const struct nic_board *b = nic_board(c);
		struct nic_gate *g = (struct nic_gate *)nic_at(b, b->gate_at) + c->device;
		/* Release: pairs with the host's acquire in hdn_poll. */
		loom_store_release_sys(&g->ended, kernel + 1);
		/* Acquire: pairs with the host's release; it has taken the records. */
		while (loom_load_acquire_sys(&g->begun) != kernel + 1 && !loom_stopped(c))
			loom_pause(c);
		nic_kernel_begin(c, kernel);
	}
	return nic_kernel_await(c, kernel);
}

LOOM_FN int trigger_hdn_deliver(struct loom_ctx *c)
{
	return trigger_hdn_boundary(c);
}

NIC_READS(trigger_hdn)

#endif
