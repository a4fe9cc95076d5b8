/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of sync_wic on the CPU. Lane 0 acts for its worker. */
#include <string.h>

#include "wic.h"

enum { WIC_DEVICES_AT = 0 }; /* setting of the head: records of devices, in lines of 64 bytes */

static struct wic_space *space_of(const struct loom_ctx *c, struct sync_head *h)
{
	const struct wic_device *d =
		(const struct wic_device *)((char *)h + 64ull * h->setting[WIC_DEVICES_AT]);
	return (struct wic_space *)(uintptr_t)d[c->device].space;
}

static char *bounce_of(const struct loom_ctx *c, const struct wic_space *sp)
{
	return sp->bounce + (uint64_t)(c->worker - sp->first) * UFFD_PAGE;
}

/* ---- producers */

static int await_free(struct loom_ctx *c, const struct sync_channel *k, struct sync_slot *s,
		      uint32_t round, uint64_t timeout_ns)
{
	/* Acquire: pairs with the last reader's release in wic_release. */
	uint32_t word = __atomic_load_n(&s->released, __ATOMIC_ACQUIRE);
	if (sync_reached(word, round) && !(word & SYNC_POISON))
		return 0;
	uint64_t begin = loom_clock_ns(c);
	int rc = park_await(c, &s->released, &s->blocked, round, timeout_ns ? begin + timeout_ns : 0);
	sync_tally(c)->blocked_ns += loom_clock_ns(c) - begin;
	return rc == LOOM_EDIED ? sync_poisoned(k) : rc;
}

static int reserve(struct loom_ctx *c, struct sync_head *h, uint32_t channel, uint32_t tag,
		   uint64_t timeout_ns, void **at)
{
	struct sync_channel *k = sync_channel(h, channel);
	struct wic_space *sp = space_of(c, h);
	int rc = await_free(c, k, sync_slot(h, k, tag), sync_round(k, tag), timeout_ns);
	if (rc)
		return rc;
	uint32_t page = 0;
	if (sp->wic->o->mode == WIC_IN_PLACE) {
		page = wic_pages(sp, k, tag);
		if (page == PCM_NONE)
			return LOOM_EFULL;
	}
	*at = wic_staging(sp, k, page, tag);
	return 0;
}

int wic_reserve(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, void **at)
{
	int rc = 0;
	void *found = NULL;
	if (c->lane == 0)
		rc = reserve(c, sync_head(c), channel, tag, timeout_ns, &found);
	*at = (void *)(uintptr_t)loom_from_lane0(c, (uintptr_t)found);
	return (int)loom_from_lane0(c, (uint64_t)(int64_t)rc);
}

static int publish(struct loom_ctx *c, struct sync_head *h, uint32_t channel, uint32_t tag,
		   const void *from, uint64_t bytes, uint64_t timeout_ns)
{
	struct sync_channel *k = sync_channel(h, channel);
	struct sync_slot *s = sync_slot(h, k, tag);
	struct wic_space *sp = space_of(c, h);
	const struct wic *w = sp->wic;
	struct sync_tally *t = sync_tally(c);
	int by_producer = w->o->activate == WIC_BY_PRODUCER, rc = 0, resumed = 0;
	int stage = from && (w->o->mode == WIC_IN_PLACE || !by_producer || !w->o->eager);
	void *at = NULL;
	if (from && !stage)
		rc = await_free(c, k, s, sync_round(k, tag), timeout_ns);
	else
		rc = reserve(c, h, channel, tag, timeout_ns, &at);
	if (rc)
		return rc;
	uint64_t begin = loom_clock_ns(c);
	if (stage)
		memcpy(at, from, bytes);
	__atomic_store_n(&s->length, (uint32_t)bytes, __ATOMIC_RELAXED);
	if (w->needs_messages) {
		uint64_t bit = wic_bit(w, k, tag);
		/* Announced first: the Monitor takes the round from `full`. */
		__atomic_fetch_add(&s->full, 1u, __ATOMIC_SEQ_CST);
		__atomic_fetch_or(wic_dab(w, h, bit), 1ull << bit % 64, __ATOMIC_SEQ_CST);
	} else {
		/* Release, for the consumer's acquire after its load; sequentially consistent for
		 * wic_poison. */
		__atomic_fetch_add(&s->full, 1u, __ATOMIC_SEQ_CST);
	}
	t->publishes++;
	if (!by_producer) {
		wic_ring(w, k->to);
	} else if (w->o->eager) {
		rc = wic_activate(sp, k, tag, at ? at : from, bytes, at != NULL, bounce_of(c, sp),
				  &resumed);
		t->eager += !resumed;
	} else if (__atomic_load_n(&s->sleepers, __ATOMIC_SEQ_CST)) {
		rc = wic_activate_once(sp, k, tag, at, bytes, &resumed);
	}
	t->activations += (uint64_t)resumed;
	t->transfer_ns += loom_clock_ns(c) - begin;
	return rc;
}

int wic_publish(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from, uint64_t bytes,
		uint64_t timeout_ns)
{
	int rc = 0;
	loom_barrier_lanes(c); /* what all lanes wrote */
	if (c->lane == 0)
		rc = publish(c, sync_head(c), channel, tag, from, bytes, timeout_ns);
	return (int)loom_from_lane0(c, (uint64_t)(int64_t)rc);
}

/* ---- consumers */

static int is_placed(const struct sync_slot *s, uint32_t round)
{
	/* Acquire: pairs with the store in wic_activate, which follows the producer's announcement. */
	return sync_reached(__atomic_load_n(&s->placed, __ATOMIC_ACQUIRE), round + 1);
}

static void enter_stall(struct wic_space *sp, struct wic_stall *t, const struct sync_channel *k,
			uint32_t tag, uint32_t page, uint64_t until_ns)
{
	wic_lock(sp->ctl, &t->lock);
	t->k = k;
	t->tag = tag;
	t->page = page;
	t->until_ns = until_ns;
	t->expired = 0;
	/* Sequentially consistent: the Monitor sees it, or has not yet begun the round of looks after
	 * which it tells its next deadline. */
	__atomic_store_n(&t->active, 1u, __ATOMIC_SEQ_CST);
	wic_unlock(&t->lock);
	if (until_ns && until_ns < __atomic_load_n(&sp->next_ns, __ATOMIC_SEQ_CST))
		wic_ring(sp->wic, sp->device);
}

static int leave_stall(struct wic_space *sp, struct wic_stall *t)
{
	wic_lock(sp->ctl, &t->lock);
	int expired = (int)t->expired;
	__atomic_store_n(&t->active, 0u, __ATOMIC_RELAXED);
	wic_unlock(&t->lock);
	return expired;
}

/* The interruption: a plain load of the first byte of the item's pages. */
static void stall(struct loom_ctx *c, const char *page)
{
	uint64_t begin = loom_clock_ns(c);
	(void)*(const volatile char *)page;
	struct sync_tally *t = sync_tally(c);
	t->fault_ns += loom_clock_ns(c) - begin;
	t->faults++;
}

/* After a load: whether it may be believed. `full` first: whoever poisons afterwards sees it too and lets
 * the page be, so a `poison` of 0 then holds. */
static int has_data(const struct sync_slot *s, uint32_t round)
{
	uint32_t full = __atomic_load_n(&s->full, __ATOMIC_SEQ_CST);
	return sync_reached(full, round + 1) && !(full & SYNC_POISON) &&
	       !__atomic_load_n(&s->poison, __ATOMIC_SEQ_CST);
}

/* Until the tag's page is in place. The caller counts as a sleeper. */
static int await_page(struct loom_ctx *c, struct wic_space *sp, struct sync_channel *k, uint32_t tag,
		      uint64_t until_ns)
{
	struct sync_slot *s = sync_slot(sp->head, k, tag);
	struct wic_stall *t = &sp->stall[c->worker - sp->first];
	uint32_t round = sync_round(k, tag), page = PCM_NONE;
	for (;;) {
		uint32_t full = __atomic_load_n(&s->full, __ATOMIC_SEQ_CST);
		if (is_placed(s, round))
			return 0;
		if (full & SYNC_POISON)
			return sync_poisoned(k);
		if (loom_stopped(c))
			return LOOM_EINTR;
		/* The other readers of the round before may still be there: the page is armed when the
		 * last of them has gone. */
		if (!sync_reached(full, round + 1) &&
		    !sync_reached(__atomic_load_n(&s->released, __ATOMIC_ACQUIRE), round)) {
			int rc = park_await(c, &s->released, &s->blocked, round, until_ns);
			if (rc)
				return rc == LOOM_EDIED ? sync_poisoned(k) : rc;
			continue;
		}
		if (page == PCM_NONE) {
			uint64_t begin = loom_clock_ns(c);
			page = wic_pages(sp, k, tag);
			sync_tally(c)->alloc_ns += loom_clock_ns(c) - begin;
			if (page == PCM_NONE)
				return LOOM_EFULL;
		}
		enter_stall(sp, t, k, tag, page, until_ns);
		/* Poisoned after the look above and before the Monitor could see this stall? */
		const char *at = sp->pcm + (uint64_t)page * UFFD_PAGE;
		if (!(__atomic_load_n(&s->full, __ATOMIC_SEQ_CST) & SYNC_POISON))
			stall(c, at);
		int there = has_data(s, round);
		if (there) {
			/* The first load may have ended on a poisoned page that another reader has thrown
			 * away since. No new one can come once the item is announced: this load ends with
			 * the data, or with a stop. */
			(void)*(const volatile char *)at;
			there = has_data(s, round);
		}
		int expired = leave_stall(sp, t);
		if (there)
			return 0;
		wic_arm_again(sp, k, tag, page);
		if (expired && !is_placed(s, round))
			return LOOM_ETIMEDOUT;
	}
}

static int take(struct loom_ctx *c, struct sync_head *h, uint32_t channel, const uint32_t *tag, uint32_t n,
		uint64_t timeout_ns, const void **data)
{
	struct sync_channel *k = sync_channel(h, channel);
	struct wic_space *sp = space_of(c, h);
	struct sync_tally *t = sync_tally(c);
	uint64_t begin = 0, until = 0;
	int rc = 0;
	t->waits += n;
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct sync_slot *s = sync_slot(h, k, tag[i]);
		if (is_placed(s, sync_round(k, tag[i]))) {
			t->early++;
		} else {
			if (!begin) {
				begin = loom_clock_ns(c);
				until = timeout_ns ? begin + timeout_ns : 0;
			}
			__atomic_fetch_add(&s->sleepers, 1u, __ATOMIC_SEQ_CST);
			rc = await_page(c, sp, k, tag[i], until);
			__atomic_fetch_sub(&s->sleepers, 1u, __ATOMIC_RELAXED);
		}
		if (!rc)
			data[i] = sp->pcm + (uint64_t)wic_pages(sp, k, tag[i]) * UFFD_PAGE;
	}
	if (begin)
		t->wait_ns += loom_clock_ns(c) - begin;
	return rc;
}

int wic_wait_all(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
		 uint64_t timeout_ns, const void **data)
{
	int rc = 0;
	if (c->lane == 0)
		rc = take(c, sync_head(c), channel, tag, n, timeout_ns, data);
	rc = (int)loom_from_lane0(c, (uint64_t)(int64_t)rc);
	for (uint32_t i = 0; i < n && !rc && c->lanes > 1; i++)
		data[i] = (const void *)(uintptr_t)loom_from_lane0(c, (uintptr_t)data[i]);
	return rc;
}

int wic_wait(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, const void **data)
{
	return wic_wait_all(c, channel, &tag, 1, timeout_ns, data);
}

int wic_release(struct loom_ctx *c, uint32_t channel, uint32_t tag)
{
	struct sync_head *h = sync_head(c);
	struct sync_channel *k = sync_channel(h, channel);
	struct sync_slot *s = sync_slot(h, k, tag);
	struct sync_tally *t = sync_tally(c);
	loom_barrier_lanes(c); /* all lanes have read */
	if (c->lane != 0)
		return 0;
	/* Each reader releases its reads; the last acquires them all and passes them on. */
	uint32_t done = __atomic_add_fetch(&s->done, 1u, __ATOMIC_ACQ_REL);
	if (done != k->readers * (sync_round(k, tag) + 1))
		return 0;
	uint64_t begin = loom_clock_ns(c);
	struct wic_space *sp = space_of(c, h);
	t->recycles += wic_recycle(sp, k, tag);
	t->recycle_ns += loom_clock_ns(c) - begin;
	if (sp->wic->needs_messages)
		wic_lock(sp->ctl, &s->serve);
	__atomic_fetch_add(&s->released, 1u, __ATOMIC_SEQ_CST);
	if (sp->wic->needs_messages)
		wic_unlock(&s->serve);
	park_wake_sleepers(&s->released, &s->blocked);
	return 0;
}
