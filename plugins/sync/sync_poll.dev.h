/* SPDX-License-Identifier: Apache-2.0 */
/* sync_poll: the paper's baseline (WIC, algorithm 1): lane 0 polls the flag, and the other lanes wait. Device code. */
#ifndef SYNC_POLL_DEV_H
#define SYNC_POLL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sync/slot.dev.h"
#endif

#define SYNC_OP(op) sync_poll_##op

/* Settings. PROBE is 0 for a load, and 1 for atomicAdd(flag, 0) as in the paper. */
enum { SYNC_POLL_PROBE = 0, SYNC_POLL_TRANSFER };
enum sync_poll_transfer { SYNC_POLL_IN_PLACE = 0, SYNC_POLL_DEMAND, SYNC_POLL_PUSH };

#define SYNC_POLL_CLOCK_EVERY 64u /* polls for each read of the clock, which takes longer than a poll */

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
		loom_relax(); /* not loom_pause(), which may yield, as sync_backoff does */
#endif
	}
	sync_add(c, polls, polls);
	return rc;
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	(void)c, (void)word, (void)sleepers; /* waiters poll */
}

/* The copy of an item, at which its only reader reads it; NULL: it reads the item itself. Several readers would each
 * need a copy. */
LOOM_FN char *sync_poll_copy(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	uint32_t how = sync_local_head(c)->setting[SYNC_POLL_TRANSFER];
	return how == SYNC_POLL_IN_PLACE || k->readers != 1 ? NULL : sync_item(h, k, tag) + k->stride / 2;
}

/* Collective, as its two callers; ends with a barrier of the lanes. */
LOOM_FN void sync_poll_transfer_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	uint64_t begin = c->lane == 0 ? loom_clock_ns(c) : 0;
	sync_copy(c, sync_poll_copy(c, h, k, tag), sync_item(h, k, tag), k->bytes);
	loom_barrier_lanes(c);
	if (c->lane == 0)
		sync_add(c, transfer_ns, loom_clock_ns(c) - begin);
}

#define SYNC_OWN_COPIES

/* By the producer, between the item's last byte and its publication. */
LOOM_FN void sync_push_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	if (sync_local_head(c)->setting[SYNC_POLL_TRANSFER] == SYNC_POLL_PUSH && sync_poll_copy(c, h, k, tag))
		sync_poll_transfer_item(c, h, k, tag);
}

/* By the consumer, after its wait. */
LOOM_FN const void *sync_read_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	char *copy = sync_poll_copy(c, h, k, tag);
	if (copy && sync_local_head(c)->setting[SYNC_POLL_TRANSFER] == SYNC_POLL_DEMAND)
		sync_poll_transfer_item(c, h, k, tag);
	return copy ? copy : sync_item(h, k, tag);
}

#endif
