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

/* Assigns a place to the items of channel i, from offset `at` on. No two items share a cache line. Returns the end. */
static uint64_t lay_out_items_of(const struct sync *s, struct sync_head *head, uint32_t i, uint64_t items, uint64_t at)
{
	uint64_t stride = line(s->channel[i].item_bytes) * (s->copies ? 2 : 1);
	if (head) {
		sync_channel(head, i)->stride = stride;
		sync_channel(head, i)->data_at = at;
	}
	return at + items * stride;
}

static uint64_t lay_out_items(const struct sync *s, struct sync_head *head, uint64_t at)
{
	for (uint32_t i = 0; i < s->channels; i++)
		at = lay_out_items_of(s, head, i, s->channel[i].slots, at);
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
static uint32_t delivery(const struct sync *s, const struct loom_layout *layout, const struct loom_channel *k)
{
	if (k->readers != 1 || !k->item_bytes)
		return 0;
	if (s->near)
		return k->item_bytes > 8 ? 0 : SYNC_IN_FLAG;
	if (layout->device[k->to].kind != LOOM_ON_GPU)
		return 0;
	return k->item_bytes > 8 ? SYNC_BY_COPY : SYNC_IN_FLAG;
}

/* With `near`, the workers' blocks have the same size on all devices. So a channel with few slots or large items, whose
 * blocks would be mostly empty, has its items in the block for the stack. */
#define NEAR_ROOM (4ull << 20)
static uint32_t items_near(const struct sync *s, const struct loom_channel *k, uint64_t slots)
{
	uint64_t bytes = line(k->item_bytes);
	return s->near && slots * bytes <= 4 * k->slots * bytes + NEAR_ROOM;
}

/* Returns the logarithm of the number of slots whose flags a worker's block has. A power of two needs no division. */
static uint32_t shift_of(uint32_t slots, uint32_t workers)
{
	uint32_t shift = 0;
	while ((uint64_t)workers << shift < slots)
		shift++;
	return shift;
}

/* Assigns places to the flags and items of channel i. *flags, *items: the ends so far in the workers' blocks. */
static void lay_out_channel(const struct sync *s, const struct loom_layout *layout, struct sync_head *head, uint32_t i,
			    struct loom_need *need_, uint64_t *flags, uint64_t *items)
{
	const struct loom_channel *from = &s->channel[i];
	const struct loom_device_shape *to = &layout->device[from->to];
	uint32_t shift = s->near ? shift_of(from->slots, to->workers) : 0, how = delivery(s, layout, from);
	uint32_t near = items_near(s, from, (uint64_t)to->workers << shift) && !(how == SYNC_IN_FLAG);
	if (head) {
		struct sync_channel *k = sync_channel(head, i);
		k->delivery = how;
		k->near = near;
		k->shift = shift;
		k->first = to->first_worker;
		k->homes = s->near ? to->workers : 0;
		k->word_at = s->near ? *flags : need_->global;
	}
	if (s->near)
		*flags += sizeof(struct sync_flag_word) << shift;
	else
		need_->global += from->slots * sizeof(struct sync_flag_word);
	/* Items that are stored with flags need no place, but a stride. */
	uint64_t slots = s->near && how == SYNC_IN_FLAG ? 0 : from->slots;
	if (near)
		*items = lay_out_items_of(s, head, i, 1ull << shift, *items);
	else
		need_->global = lay_out_items_of(s, head, i, slots, line(need_->global));
}

/* Lays out the devices' blocks. With `near`, producers also have items there that are stored with flags, so the blocks
 * of all devices have the same layout. */
static void lay_out_devices(const struct sync *s, const struct loom_layout *layout, struct sync_head *head,
			    struct loom_need *need_)
{
	uint64_t block[LOOM_MAX_DEVICES];
	for (uint32_t d = 0; d < layout->devices; d++)
		block[d] = SYNC_RAISED_BYTES + line(sizeof(*head) + s->channels * sizeof(struct sync_channel));
	for (uint32_t i = 0; i < s->channels; i++) {
		const struct loom_channel *from = &s->channel[i];
		uint32_t how = delivery(s, layout, from);
		uint64_t *end = &block[s->near ? 0 : from->to], copies = how ? from->slots * line(from->item_bytes) : 0;
		if (head) {
			sync_channel(head, i)->copy_at = *end;
			sync_channel(head, i)->done_at = *end + copies;
		}
		*end += copies + line(from->slots * sizeof(uint32_t));
		if (how == SYNC_BY_COPY && from->item_bytes > need_->local)
			need_->local = line(from->item_bytes);
	}
	for (uint32_t d = 0; d < layout->devices; d++)
		need_->device = block[d] > need_->device ? block[d] : need_->device;
}

uint64_t sync_lay_out_flags(const struct sync *s, const struct loom_layout *layout, struct sync_head *head,
			    struct loom_need *need_)
{
	uint64_t flags = line(need_->worker), items = 0;
	need_->device = need_->local = 0;
	need_->global = line(need_->global);
	/* All flags of a worker's block precede its items, because init() clears only flags. */
	for (uint32_t i = 0; s->near && i < s->channels; i++) {
		const struct loom_channel *k = &s->channel[i];
		items += sizeof(struct sync_flag_word) << shift_of(k->slots, layout->device[k->to].workers);
	}
	items = line(flags + items);
	for (uint32_t i = 0; i < s->channels; i++)
		lay_out_channel(s, layout, head, i, need_, &flags, &items);
	lay_out_devices(s, layout, head, need_);
	if (s->near)
		need_->worker = items;
	need_->global = line(need_->global);
	need_->device_place = LOOM_PLACE_DEVICE;
	need_->global_place = s->near ? LOOM_PLACE_ANY : LOOM_PLACE_HOST;
	/* An item must fit into the worker's scratchpad memory, together with the requests of gpu_wait.dev.h. If an item
	 * does not fit, items are copied into the device's memory. */
	for (uint32_t d = 0; d < layout->devices; d++)
		if (layout->device[d].kind == LOOM_ON_GPU && need_->local + 256 > layout->device[d].local_bytes)
			need_->local = 0;
	return flags;
}

void sync_init_flags(const struct sync *s, const struct loom_layout *layout, const struct loom_view *view,
		     uint64_t begin)
{
	struct sync_head *head = view->global;
	struct loom_need want = {.global = begin, .worker = sizeof(struct sync_counters)};
	uint64_t flags_end = sync_lay_out_flags(s, layout, head, &want);
	memset((char *)head + begin, 0, want.global - begin);
	head->ended = 0;
	head->setting[SYNC_LOCAL_BYTES] = (uint32_t)want.local;
	if (!head->setting[SYNC_PAUSE_NS] && s->crosses_link)
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
	for (uint32_t w = 0; s->near && w < layout->workers; w++)
		memset((struct sync_counters *)view->worker[w] + 1, 0, flags_end - sizeof(struct sync_counters));
}

int sync_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct sync *s = self;
	(void)err;
	need->worker = sizeof(struct sync_counters);
	need->global = sync_lay_out(s, NULL);
	if (s->crosses_link || s->near)
		sync_lay_out_flags(s, layout, NULL, need);
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
	if (s->crosses_link || s->near)
		sync_init_flags(s, layout, view, end);
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

void sync_mark_lost(struct sync_head *head, uint32_t device)
{
	for (uint32_t i = 0; i < head->channels; i++) {
		struct sync_channel *k = sync_channel(head, i);
		/* If `from` is LOOM_ANY_DEVICE, the only producer that had not finished may have been on the dead
		 * device. */
		if (k->from == device || k->from == LOOM_ANY_DEVICE || k->to == device)
			__atomic_store_n(&k->died, 1u, __ATOMIC_RELAXED);
	}
}

void sync_poison_all(const struct loom_layout *layout, struct sync_head *head, int code, uint32_t device)
{
	(void)layout;
	if (code == LOOM_EDIED)
		sync_mark_lost(head, device);
	for (uint32_t i = 0; i < head->channels; i++) {
		struct sync_channel *k = sync_channel(head, i);
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
