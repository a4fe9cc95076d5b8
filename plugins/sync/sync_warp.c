/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sync_warp. channels.c has the layout of flags and items. */
#include "sync_warp.dev.h"
/* channel.dev.h needs SYNC_OP and sync_await(), which the file above defines */
#include "../sync_common/channel.dev.h"
#include "../sync_common/channels.h"

#include <stdio.h>

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

static int constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err)
{
	(void)self, (void)err;
	snprintf(text, room, "#define SYNC_NEAR %d\n", !layout->noncoherent);
	return 0;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need_, struct loom_error *err)
{
	struct sync *s = self;
	s->crosses_link = layout->noncoherent != 0;
	s->near = !s->crosses_link;
	return sync_need(self, layout, need_, err);
}

/* Ends waits of CPUs by the word `ended`; `died` of a channel has the reason. GPUs, and non-coherent devices, end their
 * waits by the stop word. */
static void interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view, int code,
		      uint32_t device)
{
	const struct sync *s = self;
	struct sync_head *head = view->global;
	(void)layout;
	if (s->crosses_link)
		return;
	if (code == LOOM_EDIED)
		sync_mark_lost(head, device);
	/* Release: pairs with the fence in sync_poisoned(), so that `died` is visible to a worker that has seen this
	 * word. */
	__atomic_store_n(&head->ended, 1u, __ATOMIC_RELEASE);
}

SYNC_TABLE(sync_warp, .destroy = sync_destroy, .need = need, .init = sync_init, .collect = sync_collect,
	   .constants = constants, .interrupt = interrupt);
SYNC_GPU_WAIT_CODE(sync_warp);

LOOM_PLUGIN_DEFINE(SYNC, "sync_warp", "0.1.0", "Apache-2.0",
		   "On a GPU: waiting warps are parked in hardware, and a monitor warp per block resumes them",
		   .opts = rows, .opts_size = sizeof(struct warp_opts), .ops = &sync_warp_ops, .dev = &code)
