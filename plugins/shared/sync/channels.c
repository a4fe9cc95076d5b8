/* SPDX-License-Identifier: Apache-2.0 */
#include "channels.h"

#include <stdio.h>
#include <string.h>

#include "sleep.h"
#include "gpu_wait.dev.h"
#include "lib/align.h"

void sync_init_instance(struct sync *s, const struct loom_host *host, const char *name)
{
	s->host = host;
	s->name = name;
}

void sync_finish(struct sync *s)
{
	if (s)
		s->host->free(s->host, s->channel);
}

int sync_create(const struct loom_host *host, const char *name, struct sync **out, struct loom_error *err)
{
	struct sync *s = host->alloc(host, sizeof(*s));
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", name);
	sync_init_instance(s, host, name);
	*out = s;
	return 0;
}

void sync_destroy(void *self)
{
	struct sync *s = self;
	sync_finish(s);
	if (s)
		s->host->free(s->host, s);
}

int sync_channels(void *self, const struct loom_layout *layout, const struct loom_channel *channel, uint32_t n,
		  struct loom_error *err)
{
	struct sync *s = self;
	(void)layout;
	s->host->free(s->host, s->channel);
	s->channels = 0;
	s->channel = s->host->alloc(s->host, (n + 1) * sizeof(*channel));
	if (!s->channel)
		return LOOM_FAIL(s->host, err, LOOM_ENOMEM, "%s: out of memory", s->name);
	memcpy(s->channel, channel, n * sizeof(*channel));
	s->channels = n;
	return 0;
}

uint64_t sync_lay_out(const struct sync *s, struct sync_head *head)
{
	uint64_t at = sizeof(*head) + s->channels * sizeof(struct sync_channel);
	at = loom__align(at, 64);
	for (uint32_t i = 0; i < s->channels; i++) {
		const struct loom_channel *from = &s->channel[i];
		if (head)
			*sync_channel(head, i) = (struct sync_channel){.slots = from->slots,
								       .readers = from->readers,
								       .from = from->from,
								       .to = from->to,
								       .bytes = from->item_bytes,
								       .slot_at = at};
		at += from->slots * sizeof(struct sync_slot);
	}
	return at;
}

static uint64_t line(uint64_t at)
{
	return loom__align(at, 64);
}

/* Assigns places to items, from offset `at` on. No two items share a cache line. Returns the end. */
static uint64_t lay_out_items(const struct sync *s, struct sync_head *head, uint64_t at)
{
	for (uint32_t i = 0; i < s->channels; i++) {
		uint64_t stride = line(s->channel[i].item_bytes) * (s->copies ? 2 : 1);
		if (head) {
			sync_channel(head, i)->stride = stride;
			sync_channel(head, i)->data_at = at;
		}
		at += s->channel[i].slots * stride;
	}
	return at;
}

int sync_has_gpu(const struct loom_layout *layout)
{
	uint32_t n = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		n += layout->device[d].kind == LOOM_ON_GPU;
	return n > 0;
}

/* Returns how items of a channel reach its consumers: enum sync_delivery, or 0 if consumers read items in place.
 * Several readers of an item read it in place. */
static uint32_t delivery(const struct loom_layout *layout, const struct loom_channel *k)
{
	if (layout->device[k->to].kind != LOOM_ON_GPU || k->readers != 1 || !k->item_bytes)
		return 0;
	return k->item_bytes > 8 ? SYNC_BY_COPY : SYNC_IN_FLAG;
}

void sync_lay_out_noncoherent(const struct sync *s, const struct loom_layout *layout, struct sync_head *head,
			      struct loom_need *need_)
{
	uint64_t at = lay_out_items(s, head, line(need_->global)), block[LOOM_MAX_DEVICES];
	for (uint32_t d = 0; d < layout->devices; d++)
		block[d] = SYNC_RAISED_BYTES + line(sizeof(*head) + s->channels * sizeof(struct sync_channel));
	need_->device = need_->local = 0;
	for (uint32_t i = 0; i < s->channels; i++) {
		const struct loom_channel *from = &s->channel[i];
		uint32_t how = delivery(layout, from);
		uint64_t *end = &block[from->to], copies = how ? from->slots * line(from->item_bytes) : 0;
		if (head) {
			struct sync_channel *k = sync_channel(head, i);
			k->word_at = at;
			k->delivery = how;
			k->copy_at = *end;
			k->done_at = *end + copies;
		}
		at += from->slots * sizeof(struct sync_flag_word);
		*end += copies + line(from->slots * sizeof(uint32_t));
		if (how == SYNC_BY_COPY && from->item_bytes > need_->local)
			need_->local = line(from->item_bytes);
	}
	need_->global = line(at);
	need_->device_place = LOOM_PLACE_DEVICE;
	need_->global_place = LOOM_PLACE_HOST;
	for (uint32_t d = 0; d < layout->devices; d++) {
		need_->device = block[d] > need_->device ? block[d] : need_->device;
		/* An item must fit into the worker's private memory, together with the requests of gpu_wait.dev.h. If
		 * an item does not fit, items are copied into the device's memory. */
		if (layout->device[d].kind == LOOM_ON_GPU && need_->local + 256 > layout->device[d].local_bytes)
			need_->local = 0;
	}
}

void sync_init_noncoherent(const struct sync *s, const struct loom_layout *layout, const struct loom_view *view,
			   uint64_t begin)
{
	struct sync_head *head = view->global;
	struct loom_need want = {.global = begin};
	sync_lay_out_noncoherent(s, layout, head, &want);
	memset((char *)head + begin, 0, want.global - begin);
	head->setting[SYNC_LOCAL_BYTES] = (uint32_t)want.local;
	if (!head->setting[SYNC_PAUSE_NS])
		head->setting[SYNC_PAUSE_NS] = SYNC_LINK_PAUSE_NS;
	head->setting[SYNC_GPUS] = head->setting[SYNC_GPUS_MORE] = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		head->setting[SYNC_GPUS + d / 32] |= (uint32_t)(layout->device[d].kind == LOOM_ON_GPU) << d % 32;
	for (uint32_t d = 0; d < layout->devices; d++) {
		/* skips the counter of changed words at the start of the block */
		char *block = (char *)view->device[d] + SYNC_RAISED_BYTES;
		memset(block, 0, want.device - SYNC_RAISED_BYTES);
		memcpy(block, head, sizeof(*head) + s->channels * sizeof(struct sync_channel));
	}
}

int sync_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct sync *s = self;
	(void)err;
	need->worker = sizeof(struct sync_counters);
	need->global = sync_lay_out(s, NULL);
	if (s->crosses_link)
		sync_lay_out_noncoherent(s, layout, NULL, need);
	else
		need->global = lay_out_items(s, NULL, need->global);
	return 0;
}

static void init_slots(struct sync_head *head)
{
	for (uint32_t i = 0; i < head->channels; i++) {
		struct sync_channel *k = sync_channel(head, i);
		memset(sync_slot(head, k, 0), 0, k->slots * sizeof(struct sync_slot));
	}
}

int sync_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	const struct sync *s = self;
	struct sync_head *head = view->global;
	(void)err;
	head->channels = s->channels;
	memcpy(head->setting, s->setting, sizeof(head->setting));
	uint64_t end = sync_lay_out(s, head);
	init_slots(head);
	if (s->crosses_link)
		sync_init_noncoherent(s, layout, view, end);
	else
		lay_out_items(s, head, end);
	for (uint32_t w = 0; w < layout->workers; w++)
		memset(view->worker[w], 0, sizeof(struct sync_counters));
	return 0;
}

int sync_collect(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_report *report,
		 struct loom_error *err)
{
	const struct sync *s = self;
	struct sync_counters sum = {0};
	(void)err;
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct sync_counters *t = view->worker[w];
#define SYNC_SUM(name, unit, text) sum.name += t->name;
		SYNC_COUNTERS(SYNC_SUM)
#undef SYNC_SUM
	}
	char metric[40];
#define SYNC_METRIC(name, unit, text)                                                                                  \
	snprintf(metric, sizeof(metric), "sync_%s", #name);                                                            \
	if (strncmp(text, "wic", 3) || s->wic)                                                                         \
		s->host->metric(s->host, report, metric, unit, LOOM_BETTER_NONE, (double)sum.name);
	SYNC_COUNTERS(SYNC_METRIC)
#undef SYNC_METRIC
	return 0;
}

void sync_poison_all(const struct loom_layout *layout, struct sync_head *head, int code, uint32_t device)
{
	for (uint32_t i = 0; i < head->channels; i++) {
		struct sync_channel *k = sync_channel(head, i);
		/* If `from` is LOOM_ANY_DEVICE, the only producer that had not finished may have been on the dead
		 * device. */
		int lost = code == LOOM_EDIED && (k->from == device || k->from == LOOM_ANY_DEVICE || k->to == device);
		(void)layout;
		if (lost)
			__atomic_store_n(&k->died, 1u, __ATOMIC_RELAXED);
		for (uint32_t t = 0; t < k->slots; t++) {
			struct sync_slot *slot = sync_slot(head, k, t);
			/* Sequentially consistent: pairs with eventcount_enter(), so that no sleeper misses the
			 * poison. */
			__atomic_fetch_or(&slot->full, SYNC_POISON, __ATOMIC_SEQ_CST);
			__atomic_fetch_or(&slot->released, SYNC_POISON, __ATOMIC_SEQ_CST);
			loom_wake(NULL, &slot->full, EVENTCOUNT_ALL);
			loom_wake(NULL, &slot->released, EVENTCOUNT_ALL);
		}
	}
}

void sync_interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view, int code,
		    uint32_t device)
{
	(void)self;
	sync_poison_all(layout, view->global, code, device);
}
