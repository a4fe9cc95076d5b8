/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_ofi: counters and operations are the provider's. Hardware would give an address to store increments
 * to; the sockets provider has none, so fires take the NIC's FIFO to its counters. Device code. */
#ifndef TRIGGER_OFI_DEV_H
#define TRIGGER_OFI_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/nic/nic.dev.h"
#endif

LOOM_FN int trigger_ofi_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (!nic_may_fire(tag, count))
		return LOOM_EINVAL;
	return nic_fire(c, tag, count, 1);
}

/* The provider's work is fixed when it is posted. */
NIC_NO_ARGUMENT(trigger_ofi)

NIC_RELAXED_IS_ORDERED(trigger_ofi)
NIC_READS(trigger_ofi)
NIC_AT_ONCE(trigger_ofi)

#endif
