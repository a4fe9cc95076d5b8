/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_ofi: counters and operations are the provider's. Hardware would give an address to store increments
 * to; the sockets provider has none, so fires take the NIC's FIFO to its counters. Device code. */
#ifndef TRIGGER_OFI_DEV_H
#define TRIGGER_OFI_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "nic.dev.h"
#endif

LOOM_FN int trigger_ofi_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (tag - 1 >= LOOM_TAG_MAX || count - 1 >= NIC_COUNT_MAX)
		return LOOM_EINVAL;
	return nic_push(c, nic_word(tag, count), 0);
}

LOOM_FN int trigger_ofi_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)
{
	(void)c, (void)tag, (void)argument; /* the provider's work is fixed when it is posted */
	return LOOM_ENOTSUP;
}

NIC_READS(trigger_ofi)
NIC_AT_ONCE(trigger_ofi)

#endif
