/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of a sync plug-in, over slots in shared memory (slot.dev.h). Device code. The file that includes this one
 * defines
 *   SYNC_OP(op)       the name of an op
 *   int sync_await(c, word, sleepers, want, until_ns)
 *                     waits until *word reaches `want`, and returns 0 with acquire order. Returns LOOM_EDIED if the
 *                     word is poisoned or the run is stopped, and LOOM_ETIMEDOUT at time until_ns (0: no deadline)
 *   void sync_wake(c, word, sleepers)
 *                     wakes the threads that sleep on *word, after the word has changed
 *   SYNC_OWN_COPIES   if the file has its own sync_push_item() and sync_read_item(), because items are copied
 *   SYNC_ALL_LANES    1: all lanes call sync_await(), and get the same result; 0 (default): only lane 0 calls it
 * With SYNC_GPU_WAIT, gpu_wait.dev.h replaces the functions that find flags and items, move items to a GPU, and write
 * counters. */
#ifndef SYNC_CHANNEL_DEV_H
#define SYNC_CHANNEL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "slot.dev.h"
#endif

#ifndef SYNC_ALL_LANES
#define SYNC_ALL_LANES 0
#endif
#define SYNC_LANE_WAITS(c) (SYNC_ALL_LANES || (c)->lane == 0)

/* Returns 1, with acquire order, if *word has reached `want` and is not poisoned. Called by the lanes that wait. */
LOOM_FN int sync_ready(struct loom_ctx *c, const uint32_t *word, uint32_t want)
{
	int there = 0;
	if (c->lane == 0) {
		uint32_t now = sync_poll_word(word);
		there = sync_reached(now, want) && !(now & SYNC_POISON);
		if (there)
			sync_acquire();
	}
#if SYNC_ALL_LANES
	there = (int)loom_from_lane0(c, (uint64_t)there);
#endif
	return there;
}

#ifndef SYNC_GPU_WAIT
LOOM_FN uint32_t *sync_full(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	(void)c;
	return &sync_slot(h, k, tag)->full;
}
LOOM_FN uint32_t *sync_done(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	(void)c;
	return &sync_slot(h, k, tag)->done;
}
LOOM_FN void sync_store_rounds(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			       uint32_t *word, uint32_t rounds, const void *item)
{
	(void)c, (void)h, (void)k, (void)rounds, (void)item;
	loom_fetch_add_acq_rel_sys(word, 1u); /* an add, because a store would clear the poison bit */
}
#define sync_request_item(c, h, k, tag) ((void)0)
#define sync_place(c, h, k, tag)        sync_item(h, k, tag)
#ifndef SYNC_OWN_COPIES
#define sync_read_item(c, h, k, tag) sync_item(h, k, tag)
#endif
#define sync_drop_item(c, k, tag) ((void)0)
#define sync_delivered(c)         NULL
#define sync_flush_counters(c)    ((void)0)
#define sync_wait_begin(c, ns)    ((void)0)
#define sync_wait_end             sync_wait_end_now
#endif

#ifndef SYNC_OWN_COPIES
#define sync_push_item(c, h, k, tag) ((void)0)
#endif

LOOM_FN void sync_wait_end_now(struct loom_ctx *c, uint64_t begin_ns)
{
	sync_add(c, wait_ns, loom_clock_ns(c) - begin_ns);
	loom_set_state(c, LOOM_STATE_TASKS);
}

LOOM_FN uint64_t sync_until(const struct loom_ctx *c, uint64_t timeout_ns)
{
	return timeout_ns ? loom_clock_ns(c) + timeout_ns : 0;
}

LOOM_FN int sync_await_free(struct loom_ctx *c, struct sync_channel *k, struct sync_slot *s, uint32_t round,
			    uint64_t timeout_ns)
{
	if (sync_ready(c, &s->released, round))
		return 0;
	if (c->lane == 0)
		sync_flush_counters(c);
	uint64_t begin = loom_clock_ns(c);
	loom_set_state(c, LOOM_STATE_DATA);
	int rc = sync_await(c, &s->released, &s->blocked, round, sync_until(c, timeout_ns));
	loom_set_state(c, LOOM_STATE_TASKS);
	if (c->lane == 0) {
		sync_add(c, blocked_ns, loom_clock_ns(c) - begin);
		sync_flush_counters(c);
	}
	return rc == LOOM_EDIED ? sync_poisoned(c, sync_marked_channel(c, k)) : rc;
}

LOOM_FN int SYNC_OP(reserve)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, void **at)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_local_head(c), channel);
	int rc = 0;
	if (SYNC_LANE_WAITS(c))
		rc = sync_await_free(c, k, sync_slot(h, k, tag), sync_round(k, tag), timeout_ns);
	rc = (int)loom_from_lane0(c, (uint64_t)(int64_t)rc);
	*at = sync_place(c, h, k, tag);
	return rc;
}

LOOM_FN int SYNC_OP(publish)(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from, uint64_t bytes,
			     uint64_t timeout_ns)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_local_head(c), channel);
	struct sync_slot *s = sync_slot(h, k, tag);
	if (from) {
		void *at;
		int rc = SYNC_OP(reserve)(c, channel, tag, timeout_ns, &at);
		if (rc)
			return rc;
		uint64_t begin = c->lane == 0 ? loom_clock_ns(c) : 0;
		sync_copy(c, at, from, bytes);
		if (c->lane == 0)
			sync_add(c, transfer_ns, loom_clock_ns(c) - begin);
	}
	loom_barrier_lanes(c); /* orders the writes of all lanes before the release */
	sync_push_item(c, h, k, tag);
	if (c->lane == 0) {
		/* sync_store_rounds() is a release: it pairs with the acquire in sync_await() or sync_ready(). */
		uint32_t *full = sync_full(c, h, k, tag);
		sync_store_rounds(c, h, k, full, sync_round(k, tag) + 1, sync_place(c, h, k, tag));
		sync_wake(c, full, &s->sleepers);
		sync_add(c, publishes, 1);
	}
	return 0;
}

/* Waits for the item of one tag. Called by the lanes that wait. Only steps that fit nowhere else follow sync_await(),
 * because each instruction after it delays a consumer on a GPU. *until_ns: the deadline; 0 before the first of several
 * tags, or if there is none. */
LOOM_FN int sync_take_item(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag,
			   uint64_t timeout_ns, uint64_t *until_ns, const void **data)
{
	uint32_t *full = sync_full(c, h, k, tag);
	uint32_t want = sync_round(k, tag) + 1;
	*data = NULL;
	if (c->lane == 0) {
		sync_flush_counters(c);
		sync_add(c, waits, 1);
		sync_drop_item(c, k, tag); /* drops an item that an earlier sample has not released */
	}
	if (sync_ready(c, full, want)) {
		if (c->lane == 0)
			sync_add(c, early, 1);
		return 0;
	}
	uint64_t begin = loom_clock_ns(c);
	if (!*until_ns && timeout_ns)
		*until_ns = begin + timeout_ns;
	loom_set_state(c, LOOM_STATE_DATA);
	if (c->lane == 0) {
		sync_wait_begin(c, begin);
		sync_request_item(c, h, k, tag);
	}
	int rc = sync_await(c, full, &sync_slot(h, k, tag)->sleepers, want, *until_ns);
	*data = sync_delivered(c);
	if (c->lane == 0)
		sync_wait_end(c, begin);
	return rc;
}

/* Called by all lanes after the waits. rc: the result of the lanes that waited. Returns the same result to all
 * lanes. */
LOOM_FN int sync_take_result(struct loom_ctx *c, struct sync_channel *k, int rc)
{
	if (rc == LOOM_EDIED)
		rc = sync_poisoned(c, sync_marked_channel(c, k));
	if (!SYNC_ALL_LANES || rc)
		/* Also a barrier: what lane 0 has acquired becomes visible. */
		rc = (int)loom_from_lane0(c, (uint64_t)(int64_t)rc);
	return rc;
}

LOOM_FN int SYNC_OP(wait_all)(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
			      uint64_t timeout_ns, const void **data)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_local_head(c), channel);
	uint64_t until = 0;
	int rc = 0;
	for (uint32_t i = 0; i < n && !rc && SYNC_LANE_WAITS(c); i++)
		rc = sync_take_item(c, h, k, tag[i], timeout_ns, &until, &data[i]);
	rc = sync_take_result(c, k, rc);
	for (uint32_t i = 0; i < n && !rc; i++)
		if (!SYNC_ALL_LANES || !data[i])
			data[i] = sync_read_item(c, h, k, tag[i]);
	return rc;
}

LOOM_FN int SYNC_OP(wait)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, const void **data)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_local_head(c), channel);
	uint64_t until = 0;
	const void *at = NULL;
	int rc = 0;
	if (SYNC_LANE_WAITS(c))
		rc = sync_take_item(c, h, k, tag, timeout_ns, &until, &at);
	rc = sync_take_result(c, k, rc);
	*data = rc || (SYNC_ALL_LANES && at) ? at : sync_read_item(c, h, k, tag);
	return rc;
}

LOOM_FN int SYNC_OP(release)(struct loom_ctx *c, uint32_t channel, uint32_t tag)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_local_head(c), channel);
	struct sync_slot *s = sync_slot(h, k, tag);
	loom_barrier_lanes(c); /* orders the reads of all lanes before the release */
	if (c->lane != 0)
		return 0;
	uint32_t rounds = sync_round(k, tag) + 1;
	sync_flush_counters(c);
	sync_drop_item(c, k, tag);
	/* Acquire and release: each reader releases its reads. The last reader acquires the reads of all readers, and
	 * passes them on with the release below. Both sides of the comparison wrap at 2^32. */
	if (k->readers > 1 && loom_fetch_add_acq_rel_sys(sync_done(c, h, k, tag), 1u) + 1 != k->readers * rounds)
		return 0;
	/* sync_store_rounds() is a release: it pairs with the acquire in sync_await_free(). */
	sync_store_rounds(c, h, k, &s->released, rounds, NULL);
	sync_wake(c, &s->released, &s->blocked);
	return 0;
}

#endif
