/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_ofi, device code. Counters and operations belong to the provider. Hardware would have an address to which a
 * worker stores increments. The sockets provider has none, so fires reach its counters through the NIC's FIFO. */
#ifndef TRIGGER_OFI_DEV_H
#define TRIGGER_OFI_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../trigger_common/nic/nic.dev.h"
#endif

LOOM_FN int trigger_ofi_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (!nic_may_fire(tag, count))
		return LOOM_EINVAL;
	return nic_fire(c, tag, count, 1);
}

NIC_FIRE_ALONE(trigger_ofi)
NIC_AT_ONCE(trigger_ofi)

#endif
