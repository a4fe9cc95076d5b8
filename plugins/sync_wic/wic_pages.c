/* SPDX-License-Identifier: Apache-2.0 */
/* The Interrupter allocates pages of PCM, for WIC_BATCH slots at a time (WIC, section 5.3). */
#include "wic.h"

/* Called with the lock of the device's tree. Returns the first page of the group, or PCM_NONE. */
static uint32_t allocate(const struct wic *w, struct sync_head *h, const struct sync_channel *k, uint32_t group)
{
	struct wic_group *g = wic_group(w, h, group);
	uint32_t n = g->slots * k->run, parts = w->shards[k->to], page = PCM_NONE;
	/* Consecutive groups use different shards, so that few consumers wait in each shard. */
	for (uint32_t i = 0; i < parts && page == PCM_NONE; i++)
		page = pcm_alloc(wic_tree(w, h, k->to), w->pages, parts, (group + i) % parts, n);
	for (uint32_t i = 0; w->needs_messages && page != PCM_NONE && i < n; i++)
		/* Relaxed: the release of g->page in wic_pages() follows, before any fault on these pages. */
		__atomic_store_n(wic_owner(w, h, k->to, page + i), group + 1, __ATOMIC_RELAXED);
	return page;
}

uint32_t wic_pages(struct wic_space *sp, const struct sync_channel *k, uint32_t tag)
{
	const struct wic *w = sp->wic;
	struct sync_head *h = sp->head;
	uint32_t slot = tag % k->slots, group = k->group_at + slot / WIC_BATCH;
	struct wic_group *g = wic_group(w, h, group);
	/* Acquire: pairs with the release below, which follows the stores of wic_owner() words. */
	uint32_t page = __atomic_load_n(&g->page, __ATOMIC_ACQUIRE);
	if (!page) {
		struct wic_device *d = wic_device(w, h, k->to);
		if (wic_lock(sp->ctl, &d->lock))
			return PCM_NONE;
		page = __atomic_load_n(&g->page, __ATOMIC_RELAXED);
		if (!page) {
			page = allocate(w, h, k, group) + 1; /* PCM_NONE + 1 is 0 */
			__atomic_store_n(&g->page, page, __ATOMIC_RELEASE);
		}
		wic_unlock(&d->lock);
		if (!page)
			return PCM_NONE;
	}
	return page - 1 + slot % WIC_BATCH * k->run;
}
