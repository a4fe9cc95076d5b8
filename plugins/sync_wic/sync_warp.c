/* SPDX-License-Identifier: Apache-2.0 */
/* sync_warp: host half. The flags lie in the workers' blocks, behind their tallies; where devices are apart, in the
 * global block, which is host memory then, and copies of items in the blocks near their consumers. */
#include "sync_warp.dev.h"
/* needs SYNC_OP and sync_await */
#include "channel.dev.h"
#include "host.h"

#include <string.h>

struct warp_opts {
	uint64_t pause;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct warp_opts, pause, LOOM_OPT_TIME, "0",
		 "What a monitor sleeps between two looks for workers that wait. 0: nothing, it is the only "
		 "warp of its block that looks.",
		 .max = 1e6),
	{.name = NULL},
};

SYNC_CREATE("sync_warp", warp_opts, s->setting[SYNC_WARP_PAUSE_NS] = (uint32_t)o->pause)

/* Bytes of a worker's block; fills `head` when it is not NULL. Each worker has as many lines of a channel as
 * any worker of its consumers' device. */
static uint64_t lay_out_flags(const struct sync *s, const struct loom_layout *layout, struct sync_head *head)
{
	uint64_t at = (sizeof(struct sync_tally) + SYNC_WARP_LINE_BYTES - 1) & ~(uint64_t)(SYNC_WARP_LINE_BYTES - 1);
	for (uint32_t i = 0; i < s->channels; i++) {
		const struct loom_device_shape *to = &layout->device[s->channel[i].to];
		uint32_t lines = (s->channel[i].slots + SYNC_WARP_LINE - 1) / SYNC_WARP_LINE;
		if (head) {
			struct sync_channel *k = sync_channel(head, i);
			k->flag_at = (uint32_t)at;
			k->first = to->first_worker;
			k->count = to->workers;
		}
		at += (uint64_t)((lines + to->workers - 1) / to->workers) * SYNC_WARP_LINE_BYTES;
	}
	return at;
}

/* Where devices are apart: the same for the global block, which begins with the slots and items. Bytes of it, of the
 * block per device, and of the largest item that is copied. */
static void lay_out_apart(const struct sync *s, const struct loom_layout *layout, struct sync_head *head,
			  struct loom_need *need_)
{
	uint64_t at = need_->global, near[LOOM_MAX_DEVICES] = {0};
	need_->device = need_->local = 0;
	for (uint32_t i = 0; i < s->channels; i++) {
		const struct loom_channel *from = &s->channel[i];
		uint64_t stride = (from->item_bytes + 63) & ~63ull, *end = &near[from->to];
		/* Readers that share an item read it where it is: who of them would copy it? */
		int brings = layout->device[from->to].kind == LOOM_ON_GPU && from->readers == 1;
		at = (at + SYNC_WARP_LINE_BYTES - 1) & ~(uint64_t)(SYNC_WARP_LINE_BYTES - 1);
		if (head) {
			struct sync_channel *k = sync_channel(head, i);
			k->count = 0;
			k->word_at = at;
			k->brings = brings;
			k->near_at = *end;
			k->done_at = *end + (brings ? from->slots * stride : 0);
		}
		at += from->slots * sizeof(uint32_t);
		*end += (brings ? from->slots * stride : 0) + ((from->slots * sizeof(uint32_t) + 63) & ~63ull);
		need_->device = *end > need_->device ? *end : need_->device;
		if (brings && from->item_bytes > need_->local)
			need_->local = (from->item_bytes + 63) & ~63ull;
	}
	need_->global = at;
	/* Beside the posts. An item that finds no room there is copied into the device's memory. */
	for (uint32_t d = 0; d < layout->devices; d++)
		if (layout->device[d].kind == LOOM_ON_GPU && need_->local + 256 > layout->device[d].local_bytes)
			need_->local = 0;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need_, struct loom_error *err)
{
	const struct sync *s = self;
	int rc = sync_need(self, layout, need_, err);
	if (layout->apart) {
		need_->device_place = LOOM_PLACE_NEAR;
		lay_out_apart(s, layout, NULL, need_);
		return rc;
	}
	need_->worker = lay_out_flags(s, layout, NULL);
	if (!rc && need_->worker > UINT32_MAX)
		rc = LOOM_FAIL(s->host, err, LOOM_ENOTSUP, "sync_warp: the channels have too many slots");
	return rc;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct sync_head *head = view->global;
	struct loom_need want = {0};
	int rc = sync_init(self, layout, view, err);
	head->setting[SYNC_WARP_LOCAL] = 0;
	if (layout->apart) {
		(void)sync_need(self, layout, &want, err);
		uint64_t words = want.global;
		lay_out_apart(self, layout, head, &want);
		memset((char *)head + words, 0, want.global - words);
		for (uint32_t d = 0; d < layout->devices; d++)
			memset(view->device[d], 0, want.device);
		head->setting[SYNC_WARP_LOCAL] = (uint32_t)want.local;
		return rc;
	}
	uint64_t bytes = lay_out_flags(self, layout, head) - sizeof(struct sync_tally);
	for (uint32_t w = 0; w < layout->workers; w++)
		memset((struct sync_tally *)view->worker[w] + 1, 0, bytes);
	return rc;
}

/* The released words, and the flags, whose channels tell why. Where devices are apart a word has one writer, and the
 * stop word ends the waits. */
static void interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view, int code,
		      uint32_t device)
{
	const struct sync *s = self;
	const struct sync_head *head = view->global;
	if (layout->apart)
		return;
	sync_poison_all(layout, view->global, code, device);
	for (uint32_t i = 0; i < s->channels; i++) {
		const struct sync_channel *k = sync_channel((struct sync_head *)head, i);
		for (uint32_t slot = 0; slot < k->slots; slot++) {
			char *block = view->worker[sync_warp_home(k, slot)];
			/* Release: `died` before the poison. */
			__atomic_fetch_or(sync_warp_flag(block, k, slot), SYNC_POISON, __ATOMIC_RELEASE);
		}
	}
}

static const struct loom_sync_ops sync_warp_ops = {
	.size = sizeof(struct loom_sync_ops),
	.create = create,
	.destroy = sync_destroy,
	.need = need,
	.init = init,
	.collect = sync_collect,
	.channels = sync_channels,
	.interrupt = interrupt,
};
SYNC_CODE(sync_warp, .flags = LOOM_CODE_WATCHES);

LOOM_PLUGIN_DEFINE(SYNC, "sync_warp", "0.1.0", "Apache-2.0",
		   "On a GPU: waiting warps are parked in hardware, and a monitor warp per block resumes them",
		   .opts = rows, .opts_size = sizeof(struct warp_opts), .ops = &sync_warp_ops, .dev = &code)
