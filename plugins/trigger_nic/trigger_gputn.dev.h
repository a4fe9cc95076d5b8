/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_gputn, device code. A fire is one store into the NIC's trigger FIFO (GPU-TN, 3.1). */
#ifndef TRIGGER_GPUTN_DEV_H
#define TRIGGER_GPUTN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../trigger_common/nic/nic.dev.h"
#endif

LOOM_FN int trigger_gputn_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (!nic_may_fire(tag, count))
		return LOOM_EINVAL;
	return nic_fire(c, tag, count, 1);
}

LOOM_FN int trigger_gputn_fire_relaxed(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (!nic_may_fire(tag, count))
		return LOOM_EINVAL;
	return nic_fire(c, tag, count, 0);
}

LOOM_FN int trigger_gputn_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)
{
	if (tag - 1 >= LOOM_TAG_MAX)
		return LOOM_EINVAL;
	return nic_push(c, nic_word(tag, 1) | 2, argument, 1);
}

NIC_AT_ONCE(trigger_gputn)

#endif
