/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sync_warp. The flags follow the counters in the workers' blocks. With non-coherent devices, the layout is
 * that of channels.c instead. */
#include "sync_warp.dev.h"
/* channel.dev.h needs SYNC_OP and sync_await(), which the file above defines */
#include "../shared/sync/channel.dev.h"
#include "../shared/sync/channels.h"

#include <string.h>

#include "lib/align.h"

struct warp_opts {
	uint64_t pause;
};

static const struct loom_opt rows[] = {
    LOOM_OPT(struct warp_opts, pause, LOOM_OPT_TIME, "0",
	     "Sleep of a monitor between two polls for waiting workers. 0: none, the monitor is the only warp of its "
	     "block that polls; over a link to host memory 200 ns, because the polls of all blocks delay each other "
	     "there.",
	     .max = 1e6),
    {.name = NULL},
};

SYNC_CREATE("sync_warp", warp_opts, s->setting[SYNC_PAUSE_NS] = (uint32_t)o->pause)

/* Returns the size of a worker's block. If `head` is not NULL, fills in the offsets of flags in its channels. Each worker of
 * the consumers' device has the same number of cache lines with flags of a channel. */
static uint64_t lay_out_flags(const struct sync *s, const struct loom_layout *layout, struct sync_head *head)
{
	uint64_t at = loom__align(sizeof(struct sync_counters), SYNC_LINE_BYTES);
	for (uint32_t i = 0; i < s->channels; i++) {
		const struct loom_device_shape *to = &layout->device[s->channel[i].to];
		uint32_t lines = (s->channel[i].slots + SYNC_FLAGS_PER_LINE - 1) / SYNC_FLAGS_PER_LINE;
		if (head) {
			struct sync_channel *k = sync_channel(head, i);
			k->flag_at = (uint32_t)at;
			k->first = to->first_worker;
			k->count = to->workers;
		}
		at += (uint64_t)((lines + to->workers - 1) / to->workers) * SYNC_LINE_BYTES;
	}
	return at;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need_, struct loom_error *err)
{
	struct sync *s = self;
	s->crosses_link = layout->noncoherent != 0;
	int rc = sync_need(self, layout, need_, err);
	if (rc || s->crosses_link)
		return rc;
	need_->worker = lay_out_flags(s, layout, NULL);
	if (need_->worker > UINT32_MAX)
		return LOOM_FAIL(s->host, err, LOOM_ENOTSUP, "sync_warp: the channels have too many slots");
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	const struct sync *s = self;
	int rc = sync_init(self, layout, view, err);
	if (s->crosses_link)
		return rc;
	uint64_t bytes = lay_out_flags(s, layout, view->global) - sizeof(struct sync_counters);
	for (uint32_t w = 0; w < layout->workers; w++)
		memset((struct sync_counters *)view->worker[w] + 1, 0, bytes);
	return rc;
}

/* Ends waits by a bit in `released` and in the flags; `died` of the channel has the reason. With non-coherent devices the
 * host must not write these words, because each word has one writer. There the stop word ends waits. */
static void interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view, int code,
		      uint32_t device)
{
	const struct sync *s = self;
	const struct sync_head *head = view->global;
	if (s->crosses_link)
		return;
	sync_poison_all(layout, view->global, code, device);
	for (uint32_t i = 0; i < s->channels; i++) {
		const struct sync_channel *k = sync_channel((struct sync_head *)head, i);
		for (uint32_t slot = 0; slot < k->slots; slot++) {
			char *block = view->worker[sync_flag_home(k, slot)];
			/* Release: `died` is visible before this bit. */
			__atomic_fetch_or(sync_flag(block, k, slot), SYNC_POISON, __ATOMIC_RELEASE);
		}
	}
}

SYNC_TABLE(sync_warp, .destroy = sync_destroy, .need = need, .init = init, .collect = sync_collect,
	   .interrupt = interrupt);
SYNC_GPU_WAIT_CODE(sync_warp);

LOOM_PLUGIN_DEFINE(SYNC, "sync_warp", "0.1.0", "Apache-2.0",
		   "On a GPU: waiting warps are parked in hardware, and a monitor warp per block resumes them",
		   .opts = rows, .opts_size = sizeof(struct warp_opts), .ops = &sync_warp_ops, .dev = &code)
