/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <stdio.h>
#include <string.h>

#include "park.h"

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

int sync_channels(void *self, const struct loom_layout *layout, const struct loom_channel *channel,
		  uint32_t n, struct loom_error *err)
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
	at = (at + 63) & ~63ull;
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

/* Items begin and end on lines of their own. */
static uint64_t lay_out_items(const struct sync *s, struct sync_head *head)
{
	uint64_t at = sync_lay_out(s, head);
	for (uint32_t i = 0; i < s->channels; i++) {
		uint64_t stride = (s->channel[i].item_bytes + 63) & ~63ull;
		if (head) {
			sync_channel(head, i)->stride = stride;
			sync_channel(head, i)->data_at = at;
		}
		at += s->channel[i].slots * stride;
	}
	return at;
}

int sync_need(void *self, const struct loom_layout *layout, struct loom_need *need,
	      struct loom_error *err)
{
	(void)layout, (void)err;
	need->global = lay_out_items(self, NULL);
	need->worker = sizeof(struct sync_tally);
	return 0;
}

static void init_slots(struct sync_head *head)
{
	for (uint32_t i = 0; i < head->channels; i++) {
		struct sync_channel *k = sync_channel(head, i);
		memset(sync_slot(head, k, 0), 0, k->slots * sizeof(struct sync_slot));
	}
}

int sync_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	      struct loom_error *err)
{
	const struct sync *s = self;
	struct sync_head *head = view->global;
	(void)err;
	head->channels = s->channels;
	memcpy(head->setting, s->setting, sizeof(head->setting));
	lay_out_items(s, head);
	init_slots(head);
	for (uint32_t w = 0; w < layout->workers; w++)
		memset(view->worker[w], 0, sizeof(struct sync_tally));
	return 0;
}

int sync_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		 struct loom_report *report, struct loom_error *err)
{
	const struct sync *s = self;
	struct sync_tally sum = {0};
	(void)err;
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct sync_tally *t = view->worker[w];
#define SYNC_SUM(name, unit, text) sum.name += t->name;
		SYNC_TALLY_MAP(SYNC_SUM)
#undef SYNC_SUM
	}
	char metric[40];
#define SYNC_METRIC(name, unit, text)                                                              \
	snprintf(metric, sizeof(metric), "sync_%s", #name);                                        \
	if (strncmp(text, "wic", 3) || s->wic)                                                     \
		s->host->metric(s->host, report, metric, unit, LOOM_BETTER_NONE, (double)sum.name);
	SYNC_TALLY_MAP(SYNC_METRIC)
#undef SYNC_METRIC
	return 0;
}

void sync_poison_all(const struct loom_layout *layout, struct sync_head *head, int code, uint32_t device)
{
	for (uint32_t i = 0; i < head->channels; i++) {
		struct sync_channel *k = sync_channel(head, i);
		/* With any producer allowed, the dead one may be the only one left to publish. */
		int lost = code == LOOM_EDIED &&
			   (k->from == device || k->from == LOOM_ANY_DEVICE || k->to == device);
		(void)layout;
		if (lost)
			__atomic_store_n(&k->died, 1u, __ATOMIC_RELAXED);
		for (uint32_t t = 0; t < k->slots; t++) {
			struct sync_slot *slot = sync_slot(head, k, t);
			/* Sequentially consistent: pairs with the registration of who waits. */
			__atomic_fetch_or(&slot->full, SYNC_POISON, __ATOMIC_SEQ_CST);
			__atomic_fetch_or(&slot->released, SYNC_POISON, __ATOMIC_SEQ_CST);
			park_wake(&slot->full);
			park_wake(&slot->released);
		}
	}
}

void sync_interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view,
		    int code, uint32_t device)
{
	(void)self;
	sync_poison_all(layout, view->global, code, device);
}
