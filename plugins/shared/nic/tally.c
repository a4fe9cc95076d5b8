/* SPDX-License-Identifier: Apache-2.0 */
/* Thresholds on the device: fires are counted there, and the NIC is told of multiples of what all operations of the tag
 * can wait for. That is known before workers start, since the host does not reach the device's memory while they run. What is
 * posted later must fit. */
#include "nic.h"

#define MOST (1u << 30) /* more at once do not fit a fire */

static uint64_t common(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* The NIC shall know the tag's counter to `step` fires; 0: nothing waits for any. */
static int know(struct nic *nic, uint64_t tag, uint64_t step, struct loom_error *err)
{
	if (tag > LOOM_TAG_MAX) /* arrivals, which the NIC counts */
		return 0;
	int early = pthread_equal(nic->preparer, pthread_self());
	if (tag >= nic->shape.tallies)
		return step <= 1 ? 0 :
				   LOOM_FAIL(nic->host, err, LOOM_EINVAL,
					     "%s: counting = device: tag %llu, but a device counts tags below %llu; %s",
					     nic->way->name, (unsigned long long)tag, (unsigned long long)nic->shape.tallies,
					     nic_raise("tags", tag + 1));
	struct nic_tally *t = &nic->tally[tag];
	uint64_t every = common(t->every, step);
	if (early)
		t->every = every < MOST ? every : 1;
	return early || t->every <= 1 || every == t->every ? 0 :
		       LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "%s: counting = device: workers run already, and the NIC hears of every %lluth fire of tag %llu: post "
				 "before, or say counting = nic",
				 nic->way->name, (unsigned long long)t->every, (unsigned long long)tag);
}

int nic_tally_count(struct nic *nic, uint64_t tag, struct loom_error *err)
{
	return know(nic, tag, 1, err);
}

int nic_tally_post(struct nic *nic, const struct loom_trigger_post *what, struct loom_error *err)
{
	/* An argument belongs to one fire. */
	int rc = know(nic, what->tag, what->flags ? 1 : common(what->threshold, what->rearm), err);
	/* A chain counts at the NIC, in between. */
	return rc || !what->chain ? rc : know(nic, what->chain, 1, err);
}
