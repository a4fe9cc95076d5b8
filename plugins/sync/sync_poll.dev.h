/* SPDX-License-Identifier: Apache-2.0 */
/* sync_poll: the baseline of the WIC paper (algorithm 1). Lane 0 polls the flag, and the other lanes wait. Device code. */
#ifndef SYNC_POLL_DEV_H
#define SYNC_POLL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../sync_common/slot.dev.h"
#endif

#define SYNC_OP(op) sync_poll_##op

/* Indices in setting[]. SYNC_POLL_PROBE has the value 0 for a load, and 1 for atomicAdd(flag, 0) as in the paper. */
enum { SYNC_POLL_PROBE = 0, SYNC_POLL_TRANSFER };
enum sync_poll_transfer { SYNC_POLL_IN_PLACE = 0, SYNC_POLL_DEMAND, SYNC_POLL_PUSH };

#define SYNC_POLL_CLOCK_EVERY 64u /* polls between two reads of the clock, because a read takes longer than a poll */

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	uint32_t rmw = sync_local_head(c)->setting[SYNC_POLL_PROBE];
	uint64_t polls = 0;
	int rc = 0;
	(void)sleepers;
	for (;;) {
		uint32_t now = rmw ? loom_fetch_add_acquire_sys(word, 0u) : sync_poll_word(word);
		rc = sync_check_wait(c, now, want);
		if (rc <= 0)
			break;
		polls++;
		if (until_ns && polls % SYNC_POLL_CLOCK_EVERY == 0 && loom_clock_ns(c) >= until_ns) {
			rc = LOOM_ETIMEDOUT;
			break;
		}
#ifndef LOOM_DEVICE_COMPILE
		loom_relax(); /* not loom_pause(), which may yield the core: sync_backoff has yields */
#endif
	}
	sync_add(c, polls, polls);
	return rc;
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* waiters poll */
}

/* Returns the address of the item's copy for its only reader, or NULL if readers read the item itself. An item with several
 * readers has no copy, because each reader would need one. */
LOOM_FN char *sync_poll_copy(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	uint32_t how = sync_local_head(c)->setting[SYNC_POLL_TRANSFER];
	return how == SYNC_POLL_IN_PLACE || k->readers != 1 ? NULL : sync_item(h, k, tag) + k->stride / 2;
}

/* Copies the item for its reader. Collective. Ends with a barrier of the lanes. */
LOOM_FN void sync_poll_transfer_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	uint64_t begin = c->lane == 0 ? loom_clock_ns(c) : 0;
	sync_copy(c, sync_poll_copy(c, h, k, tag), sync_item(h, k, tag), k->bytes);
	loom_barrier_lanes(c);
	if (c->lane == 0)
		sync_add(c, transfer_ns, loom_clock_ns(c) - begin);
}

#define SYNC_OWN_COPIES

/* Called by the producer after it has written the item, and before it publishes the item. */
LOOM_FN void sync_push_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	if (sync_local_head(c)->setting[SYNC_POLL_TRANSFER] == SYNC_POLL_PUSH && sync_poll_copy(c, h, k, tag))
		sync_poll_transfer_item(c, h, k, tag);
}

/* Called by the consumer after its wait. Returns the address at which the consumer reads the item. */
LOOM_FN const void *sync_read_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	char *copy = sync_poll_copy(c, h, k, tag);
	if (copy && sync_local_head(c)->setting[SYNC_POLL_TRANSFER] == SYNC_POLL_DEMAND)
		sync_poll_transfer_item(c, h, k, tag);
	return copy ? copy : sync_item(h, k, tag);
}

#endif
