/* SPDX-License-Identifier: Apache-2.0 */
/* Channels over words in shared memory: all but the waiting itself, for sync_poll, sync_backoff and
 * sync_futex. Device code.
 *
 * Who includes it says in SYNC_OP how its functions are called, and brings
 *   int sync_await(c, word, sleepers, want, until_ns)  lane 0: until *word reaches `want` (acquire), is
 *        poisoned (LOOM_EDIED), the run is stopped (LOOM_EINTR) or the clock shows until_ns (0: never)
 *   void sync_wake(c, word, sleepers)                  *word has changed
 * and may define SYNC_TOGETHER: sync_await is called by all lanes, with the same answer for all; and
 * SYNC_ELSEWHERE, with
 *   uint32_t *sync_full(c, h, k, tag)               where a slot's `full` word is
 *   uint32_t *sync_done(c, h, k, tag)               where its readers are counted
 *   void sync_raise(c, h, k, word, rounds, item)    makes it `rounds`; item: what is published, or NULL
 *   void sync_fetch(c, h, k, tag)                   lane 0: the wait for that item begins
 *   const void *sync_bring(c, h, k, tag)            all lanes: the item has come; where it is to be read
 *   void sync_drop(c, k, tag)                       lane 0: it has been read, or is another's
 *   const void *sync_got(c)                         all lanes, behind a sync_await: where the item lies that came with the answer, or NULL
 *   void sync_begin(c, ns), sync_end(c, ns)         lane 0, around sync_await: a wait that began at `ns`. The books are kept then,
 *   void sync_settle(c)                             or here, when the worker has time */
#ifndef SYNC_CHANNEL_DEV_H
#define SYNC_CHANNEL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "slot.dev.h"
#endif

LOOM_FN char *sync_item(struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	return (char *)h + k->data_at + tag % k->slots * k->stride;
}

#ifdef SYNC_TOGETHER
enum { SYNC_TOLD = 1 }; /* all lanes know how the wait ended, and have acquired */
#define SYNC_WAITS(c) 1
#else
enum { SYNC_TOLD = 0 };
#define SYNC_WAITS(c) ((c)->lane == 0)
#endif

/* Whether the lanes that wait find *word at `want`, and free of poison. */
LOOM_FN int sync_there(struct loom_ctx *c, const uint32_t *word, uint32_t want)
{
	int there = 0;
	if (c->lane == 0) {
		uint32_t now = sync_glance(word);
		there = sync_reached(now, want) && !(now & SYNC_POISON);
		if (there)
			sync_saw();
	}
#ifdef SYNC_TOGETHER
	there = (int)loom_from_lane0(c, (uint64_t)there);
#endif
	return there;
}

#ifndef SYNC_ELSEWHERE
LOOM_FN uint32_t *sync_full(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			    uint32_t tag)
{
	(void)c;
	return &sync_slot(h, k, tag)->full;
}
LOOM_FN uint32_t *sync_done(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			    uint32_t tag)
{
	(void)c;
	return &sync_slot(h, k, tag)->done;
}
LOOM_FN void sync_raise(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t *word,
			uint32_t rounds, const void *item)
{
	(void)c, (void)h, (void)k, (void)rounds, (void)item;
	loom_fetch_add_acq_rel_sys(word, 1u); /* keeps poison */
}
#define sync_fetch(c, h, k, tag) ((void)0)
#define sync_bring(c, h, k, tag) sync_item(h, k, tag)
#define sync_drop(c, k, tag) ((void)0)
#define sync_got(c) NULL
#define sync_settle(c) ((void)0)
#define sync_begin(c, ns) ((void)0)
#define sync_end sync_end_now
#endif

LOOM_FN void sync_end_now(struct loom_ctx *c, uint64_t begin_ns)
{
	sync_tell(c, wait_ns, loom_clock_ns(c) - begin_ns);
	loom_set_state(c, LOOM_STATE_TASKS);
}

LOOM_FN uint64_t sync_until(const struct loom_ctx *c, uint64_t timeout_ns)
{
	return timeout_ns ? loom_clock_ns(c) + timeout_ns : 0;
}

LOOM_FN int sync_free(struct loom_ctx *c, struct sync_channel *k, struct sync_slot *s, uint32_t round,
		      uint64_t timeout_ns)
{
	if (sync_there(c, &s->released, round))
		return 0;
	if (c->lane == 0)
		sync_settle(c);
	uint64_t begin = loom_clock_ns(c);
	loom_set_state(c, LOOM_STATE_DATA);
	int rc = sync_await(c, &s->released, &s->blocked, round, sync_until(c, timeout_ns));
	loom_set_state(c, LOOM_STATE_TASKS);
	if (c->lane == 0) {
		sync_tell(c, blocked_ns, loom_clock_ns(c) - begin);
		sync_settle(c);
	}
	return rc == LOOM_EDIED ? sync_poisoned(c, k) : rc;
}

LOOM_FN int SYNC_OP(reserve)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns,
			     void **at)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_known(c), channel);
	int rc = 0;
	if (SYNC_WAITS(c))
		rc = sync_free(c, k, sync_slot(h, k, tag), sync_round(k, tag), timeout_ns);
	rc = (int)loom_from_lane0(c, (uint64_t)(int64_t)rc);
	*at = sync_item(h, k, tag);
	return rc;
}

LOOM_FN int SYNC_OP(publish)(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from,
			     uint64_t bytes, uint64_t timeout_ns)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_known(c), channel);
	struct sync_slot *s = sync_slot(h, k, tag);
	if (from) {
		void *at;
		int rc = SYNC_OP(reserve)(c, channel, tag, timeout_ns, &at);
		if (rc)
			return rc;
		uint64_t begin = c->lane == 0 ? loom_clock_ns(c) : 0;
		sync_copy(c, at, from, bytes);
		if (c->lane == 0)
			sync_tell(c, transfer_ns, loom_clock_ns(c) - begin);
	}
	loom_barrier_lanes(c); /* what all lanes wrote */
	if (c->lane == 0) {
		/* Release: pairs with the acquire of the word in sync_await. */
		uint32_t *full = sync_full(c, h, k, tag);
		sync_raise(c, h, k, full, sync_round(k, tag) + 1, sync_item(h, k, tag));
		sync_wake(c, full, &s->sleepers);
		sync_tell(c, publishes, 1);
	}
	return 0;
}

/* Who waits: until the item is there. Behind sync_await stands only what cannot be done before, or later: on a GPU each
 * instruction there is one that the consumer goes on later. *until_ns: 0 before the first of several tags that waits. */
LOOM_FN int sync_take(struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k, uint32_t tag, uint64_t timeout_ns,
		      uint64_t *until_ns, const void **data)
{
	uint32_t *full = sync_full(c, h, k, tag);
	uint32_t want = sync_round(k, tag) + 1;
	*data = NULL;
	if (c->lane == 0) {
		sync_settle(c);
		sync_tell(c, waits, 1);
		sync_drop(c, k, tag); /* of a round before, when a sample ended in between */
	}
	if (sync_there(c, full, want)) {
		if (c->lane == 0)
			sync_tell(c, early, 1);
		return 0;
	}
	uint64_t begin = loom_clock_ns(c);
	if (!*until_ns && timeout_ns)
		*until_ns = begin + timeout_ns;
	loom_set_state(c, LOOM_STATE_DATA);
	if (c->lane == 0) {
		sync_begin(c, begin);
		sync_fetch(c, h, k, tag);
	}
	int rc = sync_await(c, full, &sync_slot(h, k, tag)->sleepers, want, *until_ns);
	*data = sync_got(c);
	if (c->lane == 0)
		sync_end(c, begin);
	return rc;
}

/* All lanes, behind the takes. */
LOOM_FN int sync_taken(struct loom_ctx *c, struct sync_channel *k, int rc)
{
	if (rc == LOOM_EDIED)
		rc = sync_poisoned(c, k);
	if (!SYNC_TOLD || rc)
		rc = (int)loom_from_lane0(c, (uint64_t)(int64_t)rc); /* and what lane 0 has acquired */
	return rc;
}

LOOM_FN int SYNC_OP(wait_all)(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
			      uint64_t timeout_ns, const void **data)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_known(c), channel);
	uint64_t until = 0;
	int rc = 0;
	for (uint32_t i = 0; i < n && !rc && SYNC_WAITS(c); i++)
		rc = sync_take(c, h, k, tag[i], timeout_ns, &until, &data[i]);
	rc = sync_taken(c, k, rc);
	for (uint32_t i = 0; i < n && !rc; i++)
		if (!SYNC_TOLD || !data[i])
			data[i] = sync_bring(c, h, k, tag[i]);
	return rc;
}

LOOM_FN int SYNC_OP(wait)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns,
			  const void **data)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_known(c), channel);
	uint64_t until = 0;
	const void *at = NULL;
	int rc = 0;
	if (SYNC_WAITS(c))
		rc = sync_take(c, h, k, tag, timeout_ns, &until, &at);
	rc = sync_taken(c, k, rc);
	*data = rc || (SYNC_TOLD && at) ? at : sync_bring(c, h, k, tag);
	return rc;
}

LOOM_FN int SYNC_OP(release)(struct loom_ctx *c, uint32_t channel, uint32_t tag)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(sync_known(c), channel);
	struct sync_slot *s = sync_slot(h, k, tag);
	loom_barrier_lanes(c); /* all lanes have read */
	if (c->lane != 0)
		return 0;
	uint32_t rounds = sync_round(k, tag) + 1;
	sync_settle(c);
	sync_drop(c, k, tag);
	/* Each reader releases its reads; the last acquires them all and passes them on. Both are modulo 2^32. */
	if (k->readers > 1 && loom_fetch_add_acq_rel_sys(sync_done(c, h, k, tag), 1u) + 1 != k->readers * rounds)
		return 0;
	/* Release: pairs with the acquire in sync_free. */
	sync_raise(c, h, k, &s->released, rounds, NULL);
	sync_wake(c, &s->released, &s->blocked);
	return 0;
}

#endif
