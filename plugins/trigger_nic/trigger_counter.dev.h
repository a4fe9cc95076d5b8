/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_counter, device code. A page of counters models hardware counter doorbells: the address of a store selects
 * the counter, and the stored value is the increment. Such hardware adds each stored value to the counter. In this
 * plug-in the page is host memory, which would only keep the last value. So a fire is an atomic add, and the device
 * needs atomics on host memory. */
#ifndef TRIGGER_COUNTER_DEV_H
#define TRIGGER_COUNTER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../trigger_common/nic/nic.dev.h"
#endif

/* Each counter has a cache line of its own, so that fires of different tags do not contend. */
struct trigger_counter {
	uint64_t value;
	uint64_t pad[7];
};

LOOM_FN int trigger_counter_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	const struct nic_shape *s = nic_shape(c);
	if (tag - 1 >= s->extra - 1 || count - 1 >= NIC_COUNT_MAX)
		return LOOM_EINVAL;
	struct trigger_counter *page = (struct trigger_counter *)nic_at(c, s->extra_at);
	struct loom_match peers = loom_match(tag);
	uint64_t sum = loom_match_sum(peers, count);
	/* Release: pairs with the acquire in read_counter(), so that the NIC sees the payload. An add by another worker
	 * in between continues the release sequence. */
	if (loom_match_leader(peers))
		loom_fetch_add_release_sys(&page[tag].value, sum);
	return 0;
}

NIC_FIRE_ALONE(trigger_counter)
NIC_AT_ONCE(trigger_counter)

#endif
