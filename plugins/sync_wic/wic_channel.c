/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of sync_wic for channels between CPUs. Lane 0 acts for its worker. */
#include <string.h>

#include "sync_wic.dev.h"
/* channel.dev.h needs SYNC_OP and sync_await(), which the file above defines */
#include "../sync_common/channel.dev.h"
#include "wic.h"

/* Returns whether a GPU is at one end of the channel. */
static int has_gpu(const struct loom_ctx *c, uint32_t channel)
{
	if (!c->on_device[LOOM_SYNC])
		return 0;
	struct sync_head *known = sync_local_head(c);
	return sync_is_gpu(known, c->device) || sync_is_gpu(known, sync_channel(known, channel)->to);
}

enum { WIC_DEVICES_AT = 0 }; /* index in sync_head.setting: offset of the devices' records, in units of 64 bytes */

static struct wic_space *space_of(const struct loom_ctx *c, struct sync_head *h)
{
	const struct wic_device *d = (const struct wic_device *)((char *)h + 64ull * h->setting[WIC_DEVICES_AT]);
	return (struct wic_space *)(uintptr_t)d[c->device].space;
}

/* ---- producers */

static int await_free(struct loom_ctx *c, const struct sync_channel *k, struct sync_slot *s, uint32_t round,
		      uint64_t timeout_ns)
{
	/* Acquire: pairs with the increment of `released` in wic_free_slot(). */
	uint32_t word = __atomic_load_n(&s->released, __ATOMIC_ACQUIRE);
	if (sync_reached(word, round) && !(word & SYNC_POISON))
		return 0;
	uint64_t begin = loom_clock_ns(c);
	loom_set_state(c, LOOM_STATE_DATA);
	int rc = sync_sleep_until(c, &s->released, &s->blocked, round, timeout_ns ? begin + timeout_ns : 0);
	loom_set_state(c, LOOM_STATE_TASKS);
	sync_counters(c)->blocked_ns += loom_clock_ns(c) - begin;
	return rc == LOOM_EDIED ? sync_poisoned(c, k) : rc;
}

static int reserve(struct loom_ctx *c, struct wic_space *sp, const struct sync_channel *k, uint32_t tag,
		   uint64_t timeout_ns, uint32_t *first)
{
	int rc = await_free(c, k, sync_slot(sp->head, k, tag), sync_round(k, tag), timeout_ns);
	if (rc)
		return rc;
	*first = wic_pages(sp, k, tag);
	return *first != PCM_NONE ? 0 : loom_stopped(c) ? LOOM_EINTR : LOOM_EFULL;
}

int wic_reserve(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, void **at)
{
	int rc = 0;
	void *found = NULL;
	if (has_gpu(c, channel))
		return sync_wic_reserve(c, channel, tag, timeout_ns, at);
	if (c->lane == 0) {
		struct sync_head *h = sync_head(c);
		struct sync_channel *k = sync_channel(h, channel);
		struct wic_space *sp = space_of(c, h);
		uint32_t first;
		rc = reserve(c, sp, k, tag, timeout_ns, &first);
		if (!rc)
			found = wic_staging(sp, k, sync_slot(h, k, tag), first, tag);
	}
	*at = (void *)(uintptr_t)loom_from_lane0(c, (uintptr_t)found);
	return (int)loom_from_lane0(c, (uint64_t)(int64_t)rc);
}

static int publish(struct loom_ctx *c, struct sync_head *h, uint32_t channel, uint32_t tag, const void *from,
		   uint64_t bytes, uint64_t timeout_ns)
{
	struct sync_channel *k = sync_channel(h, channel);
	struct sync_slot *s = sync_slot(h, k, tag);
	struct wic_space *sp = space_of(c, h);
	struct sync_counters *t = sync_counters(c);
	uint32_t first;
	int rc = reserve(c, sp, k, tag, timeout_ns, &first);
	if (rc)
		return rc;
	uint64_t begin = loom_clock_ns(c);
	if (from)
		memcpy(wic_staging(sp, k, s, first, tag), from, bytes);
	rc = wic_announce(sp, k, s, first, tag, bytes);
	t->publishes++;
	t->activations += rc > 0 && sp->wic->o->activate == WIC_BY_PRODUCER;
	t->eager += rc == 0 && sp->wic->o->eager;
	t->transfer_ns += loom_clock_ns(c) - begin;
	return rc < 0 ? rc : 0;
}

int wic_publish(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from, uint64_t bytes,
		uint64_t timeout_ns)
{
	int rc = 0;
	if (has_gpu(c, channel))
		return sync_wic_publish(c, channel, tag, from, bytes, timeout_ns);
	loom_barrier_lanes(c); /* all lanes have written their parts of the item */
	if (c->lane == 0)
		rc = publish(c, sync_head(c), channel, tag, from, bytes, timeout_ns);
	return (int)loom_from_lane0(c, (uint64_t)(int64_t)rc);
}

void wic_forward(struct wic_space *sp, const struct sync_channel *k, uint32_t tag)
{
	struct sync_slot *s = sync_slot(sp->head, k, tag);
	uint32_t first = wic_pages(sp, k, tag); /* the slot is free, because the GPU has checked this before it published */
	if (first == PCM_NONE)
		return; /* does not happen, because need() has reserved enough pages */
	memcpy(wic_staging(sp, k, s, first, tag), sync_item(sp->head, k, tag), k->bytes);
	(void)wic_announce(sp, k, s, first, tag, k->bytes);
}

/* ---- consumers */

/* Stalls this consumer by a plain load of the first byte of the item's page. The Monitor ends the stall if the deadline passes
 * or the slot is poisoned. So this function registers the stall before it checks `full`. Returns 1, or 0 without a load if the
 * slot is poisoned. */
static int stall(struct loom_ctx *c, struct wic_space *sp, struct wic_stall *t, const struct sync_slot *s,
		 const char *page)
{
	uint64_t begin = loom_clock_ns(c), until = __atomic_load_n(&t->until_ns, __ATOMIC_RELAXED);
	/* Sequentially consistent: if the Monitor's check of stalls does not see this stall, the load below sees UINT64_MAX
	 * in next_ns, or the deadline that the Monitor stored after the check. */
	__atomic_store_n(&t->active, 1u, __ATOMIC_SEQ_CST);
	if (until && until < __atomic_load_n(&sp->next_ns, __ATOMIC_SEQ_CST))
		wic_wake_monitor(sp->wic, sp->device);
	int sane = !(__atomic_load_n(&s->full, __ATOMIC_SEQ_CST) & SYNC_POISON);
	if (sane) {
		(void)*(const volatile char *)page;
		struct sync_counters *counters = sync_counters(c);
		counters->fault_ns += loom_clock_ns(c) - begin;
		counters->faults++;
	}
	__atomic_store_n(&t->active, 0u, __ATOMIC_RELAXED);
	return sane;
}

/* Waits until the tag's item is published. The caller has added itself to `sleepers`. */
static int await_item(struct loom_ctx *c, struct wic_space *sp, struct sync_channel *k, uint32_t channel, uint32_t tag,
		      uint64_t until_ns, const void **data)
{
	struct sync_slot *s = sync_slot(sp->head, k, tag);
	struct wic_stall *t = &sp->stall[c->worker - sp->first];
	uint32_t round = sync_round(k, tag), first = PCM_NONE;
	__atomic_store_n(&t->channel, channel, __ATOMIC_RELAXED);
	__atomic_store_n(&t->tag, tag, __ATOMIC_RELAXED);
	__atomic_store_n(&t->until_ns, until_ns, __ATOMIC_RELAXED);
	for (;;) {
		uint32_t full = __atomic_load_n(&s->full, __ATOMIC_SEQ_CST);
		int there = sync_reached(full, round + 1);
		if (!there && (full & SYNC_POISON))
			return sync_poisoned(c, k);
		if (!there && loom_stopped(c))
			return LOOM_EINTR;
		/* The page of round r is known when round r - 2 is released. So only a consumer that is ahead of other readers
		 * in earlier rounds waits here. */
		if (!there && !sync_reached(__atomic_load_n(&s->released, __ATOMIC_ACQUIRE), round - 1)) {
			int rc = sync_sleep_until(c, &s->released, &s->blocked, round - 1, until_ns);
			if (rc)
				return rc == LOOM_EDIED ? sync_poisoned(c, k) : rc;
			continue;
		}
		if (first == PCM_NONE) {
			uint64_t begin = loom_clock_ns(c);
			first = wic_pages(sp, k, tag);
			sync_counters(c)->alloc_ns += loom_clock_ns(c) - begin;
			if (first == PCM_NONE)
				return loom_stopped(c) ? LOOM_EINTR : LOOM_EFULL;
		}
		if (there && (sp->wic->o->eager || (full & SYNC_POISON))) {
			*data = wic_staging(sp, k, s, first, tag);
			return 0;
		}
		if (!stall(c, sp, t, s, sp->pcm + (uint64_t)wic_turn(k, s, first, tag) * UFFD_PAGE))
			continue;
		*data = wic_check_item(sp, k, s, tag, first);
		if (*data)
			return 0;
		if (until_ns && loom_clock_ns(c) >= until_ns)
			return LOOM_ETIMEDOUT;
	}
}

static int take(struct loom_ctx *c, struct sync_head *h, uint32_t channel, const uint32_t *tag, uint32_t n,
		uint64_t timeout_ns, const void **data)
{
	struct sync_channel *k = sync_channel(h, channel);
	struct wic_space *sp = space_of(c, h);
	struct sync_counters *t = sync_counters(c);
	uint64_t begin = 0, until = 0;
	int rc = 0;
	t->waits += n;
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct sync_slot *s = sync_slot(h, k, tag[i]);
		/* Acquire: pairs with the increment of `full` in wic_announce(). */
		int there = sync_reached(__atomic_load_n(&s->full, __ATOMIC_ACQUIRE), sync_round(k, tag[i]) + 1);
		t->early += (uint64_t)there;
		if (there && sp->wic->o->eager) {
			data[i] = wic_staging(sp, k, s, wic_pages(sp, k, tag[i]), tag[i]);
			continue;
		}
		if (!begin) {
			begin = loom_clock_ns(c);
			until = timeout_ns ? begin + timeout_ns : 0;
			loom_set_state(c, LOOM_STATE_DATA);
		}
		/* Sequentially consistent: the add precedes the load of `full` in await_item(). */
		__atomic_fetch_add(&s->sleepers, 1u, __ATOMIC_SEQ_CST);
		rc = await_item(c, sp, k, channel, tag[i], until, &data[i]);
		__atomic_fetch_sub(&s->sleepers, 1u, __ATOMIC_RELAXED);
	}
	if (begin) {
		t->wait_ns += loom_clock_ns(c) - begin;
		loom_set_state(c, LOOM_STATE_TASKS);
	}
	return rc;
}

int wic_wait_all(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n, uint64_t timeout_ns,
		 const void **data)
{
	int rc = 0;
	if (has_gpu(c, channel))
		return sync_wic_wait_all(c, channel, tag, n, timeout_ns, data);
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
	struct sync_counters *t = sync_counters(c);
	if (has_gpu(c, channel))
		return sync_wic_release(c, channel, tag);
	loom_barrier_lanes(c); /* all lanes have read the item */
	if (c->lane != 0)
		return 0;
	/* Each reader releases its reads. The last reader acquires the reads of all readers; wic_free_slot() releases them. */
	uint32_t done = __atomic_add_fetch(&s->done, 1u, __ATOMIC_ACQ_REL);
	if (done != k->readers * (sync_round(k, tag) + 1))
		return 0;
	uint64_t begin = loom_clock_ns(c);
	t->recycles += wic_free_slot(space_of(c, h), k, s, tag);
	t->recycle_ns += loom_clock_ns(c) - begin;
	return 0;
}
