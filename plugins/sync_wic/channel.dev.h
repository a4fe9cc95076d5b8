/* SPDX-License-Identifier: Apache-2.0 */
/* Channels over words in shared memory: all but the waiting itself, for sync_poll, sync_backoff and
 * sync_futex. Device code.
 *
 * Who includes it says in SYNC_OP how its functions are called, and brings
 *   int sync_await(c, word, sleepers, want, until_ns)  lane 0: until *word reaches `want` (acquire), is
 *        poisoned (LOOM_EDIED), the run is stopped (LOOM_EINTR) or the clock shows until_ns (0: never)
 *   void sync_wake(c, word, sleepers)                  *word has changed
 * and may define SYNC_TOGETHER: sync_await is called by all lanes, with the same answer for all; and
 * SYNC_FULL: uint32_t *sync_full(c, h, k, tag) says where a slot's `full` word is. */
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
#define SYNC_WAITS(c) 1
#else
#define SYNC_WAITS(c) ((c)->lane == 0)
#endif

/* What the lanes that wait see in *word. */
LOOM_FN uint32_t sync_look(struct loom_ctx *c, uint32_t *word)
{
#ifdef SYNC_TOGETHER
	return (uint32_t)loom_from_lane0(c, c->lane == 0 ? loom_load_acquire_sys(word) : 0);
#else
	(void)c;
	return loom_load_acquire_sys(word);
#endif
}

#ifndef SYNC_FULL
LOOM_FN uint32_t *sync_full(const struct loom_ctx *c, struct sync_head *h, const struct sync_channel *k,
			    uint32_t tag)
{
	(void)c;
	return &sync_slot(h, k, tag)->full;
}
#endif

LOOM_FN uint64_t sync_until(const struct loom_ctx *c, uint64_t timeout_ns)
{
	return timeout_ns ? loom_clock_ns(c) + timeout_ns : 0;
}

LOOM_FN int sync_free(struct loom_ctx *c, struct sync_channel *k, struct sync_slot *s, uint32_t round,
		      uint64_t timeout_ns)
{
	uint32_t word = sync_look(c, &s->released);
	if (sync_reached(word, round) && !(word & SYNC_POISON))
		return 0;
	uint64_t begin = loom_clock_ns(c);
	loom_doing(c, LOOM_DOING_DATA);
	int rc = sync_await(c, &s->released, &s->blocked, round, sync_until(c, timeout_ns));
	loom_doing(c, LOOM_DOING_TASKS);
	if (c->lane == 0)
		sync_tally(c)->blocked_ns += loom_clock_ns(c) - begin;
	return rc == LOOM_EDIED ? sync_poisoned(k) : rc;
}

LOOM_FN int SYNC_OP(reserve)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns,
			     void **at)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(h, channel);
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
	struct sync_channel *k = sync_channel(h, channel);
	struct sync_slot *s = sync_slot(h, k, tag);
	if (from) {
		void *at;
		int rc = SYNC_OP(reserve)(c, channel, tag, timeout_ns, &at);
		if (rc)
			return rc;
		uint64_t begin = c->lane == 0 ? loom_clock_ns(c) : 0;
		sync_copy(c, at, from, bytes);
		if (c->lane == 0)
			sync_tally(c)->transfer_ns += loom_clock_ns(c) - begin;
	}
	loom_barrier_lanes(c); /* what all lanes wrote */
	if (c->lane == 0) {
		/* Release: pairs with the acquire of the word in sync_await. */
		uint32_t *full = sync_full(c, h, k, tag);
		loom_fetch_add_acq_rel_sys(full, 1u);
		sync_wake(c, full, &s->sleepers);
		sync_tally(c)->publishes++;
	}
	return 0;
}

/* Who waits: until all `n` tags are there. */
LOOM_FN int sync_take(struct loom_ctx *c, struct sync_head *h, struct sync_channel *k,
		      const uint32_t *tag, uint32_t n, uint64_t timeout_ns)
{
	uint64_t begin = 0, until = 0;
	uint32_t early = 0;
	int rc = 0;
	for (uint32_t i = 0; i < n && !rc; i++) {
		uint32_t *full = sync_full(c, h, k, tag[i]);
		uint32_t want = sync_round(k, tag[i]) + 1;
		if (sync_reached(sync_look(c, full), want)) {
			early++;
			continue;
		}
		if (!begin) {
			begin = loom_clock_ns(c);
			until = timeout_ns ? begin + timeout_ns : 0;
			loom_doing(c, LOOM_DOING_DATA);
		}
		rc = sync_await(c, full, &sync_slot(h, k, tag[i])->sleepers, want, until);
	}
	if (c->lane == 0) {
		struct sync_tally *t = sync_tally(c);
		t->waits += n;
		t->early += early;
		if (begin) {
			t->wait_ns += loom_clock_ns(c) - begin;
			loom_doing(c, LOOM_DOING_TASKS);
		}
	}
	return rc == LOOM_EDIED ? sync_poisoned(k) : rc;
}

LOOM_FN int SYNC_OP(wait_all)(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
			      uint64_t timeout_ns, const void **data)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(h, channel);
	int rc = 0;
	if (SYNC_WAITS(c))
		rc = sync_take(c, h, k, tag, n, timeout_ns);
	rc = (int)loom_from_lane0(c, (uint64_t)(int64_t)rc); /* and what lane 0 has acquired */
	for (uint32_t i = 0; i < n; i++)
		data[i] = sync_item(h, k, tag[i]);
	return rc;
}

LOOM_FN int SYNC_OP(wait)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns,
			  const void **data)
{
	return SYNC_OP(wait_all)(c, channel, &tag, 1, timeout_ns, data);
}

LOOM_FN int SYNC_OP(release)(struct loom_ctx *c, uint32_t channel, uint32_t tag)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(h, channel);
	struct sync_slot *s = sync_slot(h, k, tag);
	loom_barrier_lanes(c); /* all lanes have read */
	if (c->lane != 0)
		return 0;
	/* Each reader releases its reads; the last acquires them all and passes them on. */
	uint32_t done = loom_fetch_add_acq_rel_sys(&s->done, 1u) + 1;
	if (done != k->readers * (sync_round(k, tag) + 1)) /* both modulo 2^32 */
		return 0;
	/* Release: pairs with the acquire in sync_free. */
	loom_fetch_add_acq_rel_sys(&s->released, 1u);
	sync_wake(c, &s->released, &s->blocked);
	return 0;
}

#endif
