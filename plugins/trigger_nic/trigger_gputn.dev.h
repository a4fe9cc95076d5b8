/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_gputn: a fire is one store into the NIC's trigger FIFO (GPU-TN, 3.1). Device code. */
#ifndef TRIGGER_GPUTN_DEV_H
#define TRIGGER_GPUTN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "nic.dev.h"
#endif

LOOM_FN int trigger_gputn_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (tag - 1 >= LOOM_TAG_MAX || count - 1 >= NIC_COUNT_MAX)
		return LOOM_EINVAL;
	return nic_push(c, nic_word(tag, count), 0);
}

LOOM_FN int trigger_gputn_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)
{
	if (tag - 1 >= LOOM_TAG_MAX)
		return LOOM_EINVAL;
	return nic_push(c, nic_word(tag, 1) | 2, argument);
}

LOOM_FN int64_t trigger_gputn_completed(struct loom_ctx *c, uint32_t slot)
{
	return nic_completed(c, slot);
}

LOOM_FN int64_t trigger_gputn_arrived(struct loom_ctx *c, uint32_t index)
{
	return nic_arrived(c, index);
}

LOOM_FN int trigger_gputn_boundary(struct loom_ctx *c)
{
	return nic_boundary(c);
}

LOOM_FN int trigger_gputn_deliver(struct loom_ctx *c)
{
	(void)c; /* what was fired is on its way */
	return 0;
}

LOOM_FN uint64_t trigger_gputn_arrived_at(struct loom_ctx *c, uint32_t index)
{
	return nic_arrived_at(c, index);
}

#endif
