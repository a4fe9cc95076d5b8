/* SPDX-License-Identifier: Apache-2.0 */
/* For counting = device. A device counts the fires of a tag. All thresholds of the tag are multiples of a divisor, and
 * the device reports to the NIC only when the count passes a multiple of this divisor. The divisors are fixed before
 * workers start, because the host cannot write to the device's memory while they run. Thresholds of later posts must
 * also be multiples of the divisor. */
#include "nic.h"

#define COUNT_MOST (1u << 30) /* the largest count of one fire */

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t remainder = a % b;
		a = b;
		b = remainder;
	}
	return a;
}

/* Makes the device report the fires of a tag at multiples of a divisor of `step`. If `step` is 0, any divisor will
 * do. */
static int set_step(struct nic *nic, uint64_t tag, uint64_t step, struct loom_error *err)
{
	if (tag > LOOM_TAG_MAX) /* the NIC itself counts arrivals */
		return 0;
	int before_start = pthread_equal(nic->preparer, pthread_self());
	if (tag >= nic->shape.counted)
		return step <= 1
			   ? 0
			   : LOOM_FAIL(nic->host, err, LOOM_EINVAL,
				       "%s: counting = device: tag %llu, but a device counts tags below %llu; %s",
				       nic->ops->name, (unsigned long long)tag, (unsigned long long)nic->shape.counted,
				       nic_raise("tags", tag + 1));
	struct nic_dev_counter *t = &nic->dev_counter[tag];
	uint64_t every = gcd(t->every, step);
	if (before_start)
		t->every = every < COUNT_MOST ? every : 1;
	return before_start || t->every <= 1 || every == t->every
		   ? 0
		   : LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
			       "%s: counting = device: workers run already, and the NIC receives every %lluth fire of "
			       "tag %llu: post "
			       "earlier, or set counting = nic",
			       nic->ops->name, (unsigned long long)t->every, (unsigned long long)tag);
}

int nic_dev_counter_post(struct nic *nic, const struct loom_trigger_post *what, struct loom_error *err)
{
	/* An argument belongs to one fire, so the NIC must receive each fire of such a tag. */
	int rc = set_step(nic, what->tag, what->flags ? 1 : gcd(what->threshold, what->rearm), err);
	/* The NIC itself adds single counts to the chain tag, so the divisor of this tag must be 1. */
	return rc || !what->chain ? rc : set_step(nic, what->chain, 1, err);
}
