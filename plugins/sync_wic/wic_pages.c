/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupter: pages of PCM for the requests of up to 16 workers at a time; and their recycling through
 * companion pages (WIC, sections 5.3 and 5.5). */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "wic.h"

static uint32_t side_pages(const struct wic_group *g, const struct sync_channel *k)
{
	return g->slots * k->pages;
}

/* Under the lock of the device's tree. */
static uint32_t allocate(const struct wic *w, struct sync_head *h, const struct sync_channel *k,
			 uint32_t group)
{
	struct wic_group *g = wic_group(w, h, group);
	uint32_t n = w->sides * side_pages(g, k), parts = w->shards[k->to], page = PCM_NONE;
	/* Groups take turns with the shards, so that few waiters meet in one. */
	for (uint32_t i = 0; i < parts && page == PCM_NONE; i++)
		page = pcm_take(wic_tree(w, h, k->to), w->pages, parts, (group + i) % parts, n);
	if (page == PCM_NONE)
		return PCM_NONE;
	for (uint32_t i = 0; i < n; i++)
		/* Relaxed: the Monitor reads it after a fault on a page that came from here. */
		__atomic_store_n(wic_owner(w, h, k->to, page + i), group + 1, __ATOMIC_RELAXED);
	/* A minor fault is one on a page that the file has. */
	if (w->o->mode == WIC_IN_PLACE &&
	    fallocate(w->file, 0, (off_t)(((uint64_t)k->to * w->pages + page) * UFFD_PAGE),
		      (off_t)((uint64_t)n * UFFD_PAGE)) != 0) {
		pcm_give(wic_tree(w, h, k->to), w->pages, page, n);
		return PCM_NONE;
	}
	return page;
}

uint32_t wic_pages(struct wic_space *sp, const struct sync_channel *k, uint32_t tag)
{
	const struct wic *w = sp->wic;
	struct sync_head *h = sp->head;
	uint32_t slot = tag % k->slots, group = k->group_at + slot / WIC_BATCH;
	struct wic_group *g = wic_group(w, h, group);
	/* Acquire: pairs with the release below, which comes after `owner`. */
	uint32_t page = __atomic_load_n(&g->page, __ATOMIC_ACQUIRE);
	if (!page) {
		struct wic_device *d = wic_device(w, h, k->to);
		wic_lock(sp->ctl, &d->lock);
		page = __atomic_load_n(&g->page, __ATOMIC_RELAXED);
		if (!page) {
			page = allocate(w, h, k, group) + 1; /* PCM_NONE + 1 is 0 */
			__atomic_store_n(&g->page, page, __ATOMIC_RELEASE);
		}
		wic_unlock(&d->lock);
		if (!page)
			return PCM_NONE;
	}
	return page - 1 + wic_side(w, sync_round(k, tag)) * side_pages(g, k) + slot % WIC_BATCH * k->pages;
}

/* All pages that wait, neighbours in one call: each costs a flush of the other cores' address caches. The
 * pages of a group follow each other by side and slot. */
static uint64_t invalidate(struct wic_space *sp, struct wic_group *g, const struct sync_channel *k)
{
	uint32_t all = sp->wic->sides * g->slots, from = 0;
	char *base = sp->pcm + (uint64_t)(g->page - 1) * UFFD_PAGE;
	uint64_t bytes = (uint64_t)k->pages * UFFD_PAGE, pages = 0;
	for (uint32_t i = 0; i <= all; i++) {
		if (i < all && (g->dirty[i / g->slots] >> i % g->slots & 1))
			continue;
		if (i > from)
			madvise(base + from * bytes, (i - from) * bytes, MADV_DONTNEED);
		pages += (uint64_t)(i - from) * k->pages;
		from = i + 1;
	}
	memset(g->dirty, 0, sizeof(g->dirty));
	return pages;
}

uint64_t wic_recycle(struct wic_space *sp, const struct sync_channel *k, uint32_t tag)
{
	uint32_t slot = tag % k->slots, round = sync_round(k, tag);
	uint16_t bit = (uint16_t)(1u << slot % WIC_BATCH);
	struct wic_group *g = wic_group(sp->wic, sp->head, k->group_at + slot / WIC_BATCH);
	uint64_t pages = 0;
	/* The lock is held to the end of the invalidation: a neighbour whose next page is in it must not
	 * tell its producer that the page is free before every core has forgotten it. */
	wic_lock(sp->ctl, &g->lock);
	g->dirty[wic_side(sp->wic, round)] |= bit;
	if (g->dirty[wic_side(sp->wic, round + 1)] & bit)
		pages = invalidate(sp, g, k);
	wic_unlock(&g->lock);
	return pages;
}
