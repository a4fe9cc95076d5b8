/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of term_hcounter: a counter of idle workers per device, and a word per device that tells other devices
 * whether all of its workers are idle. */
#include "term_hcounter.dev.h"
#include "detector.h"

static int term_hcounter_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			      struct loom_error *err)
{
	int shared = LOOM_HAS(layout, ranks) && layout->ranks > 1;
	(void)self, (void)err;
	need->flags |= shared ? 0 : LOOM_NEED_LATE | LOOM_NEED_RESET;
	need->global = layout->devices * sizeof(struct term_hcounter_device) +
		       (shared ? layout->remote_devices * sizeof(struct term_hcounter_remote) : 0);
	need->device_place = LOOM_PLACE_DEVICE; /* all idle workers poll it, over no link */
	need->reset_global.head = need->global;
	need->reset_device.head = need->device = sizeof(struct term_hcounter);
	return 0;
}

static int term_hcounter_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      struct loom_error *err)
{
	const struct term_ranks *h = self;
	struct term_hcounter_device *device = view->global;
	struct term_hcounter_remote *line = (struct term_hcounter_remote *)&device[layout->devices];
	(void)err;
	for (uint32_t i = 1; i < h->ranks; i++) {
		uint32_t rank = (h->rank + i) % h->ranks;
		const struct loom_remote_blocks *remote = &h->remote[rank];
		for (uint32_t d = 0; d < remote->devices; d++)
			*line++ = (struct term_hcounter_remote){
			    .at = (uintptr_t)remote->global + d * sizeof(*device), .rank = rank, .rma = layout->rma};
	}
	for (uint32_t d = 0; d < layout->devices; d++) {
		device[d] = (struct term_hcounter_device){.workers = layout->device[d].workers,
							  .remote = h->remote ? layout->remote_devices : 0};
		*(struct term_hcounter *)view->device[d] = (struct term_hcounter){0};
	}
	return 0;
}

static int term_hcounter_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
				 struct loom_report *report, struct loom_error *err)
{
	const struct term_ranks *h = self;
	const struct loom_host *host = h->host;
	(void)report;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct term_hcounter_device *device = view->global;
		uint64_t idle = ((const struct term_hcounter *)view->device[d])->idle & ~TERM_HCOUNTER_FULL;
		if ((uint32_t)idle != layout->device[d].workers)
			return LOOM_FAIL(host, err, LOOM_EWRONG,
					 "term_hcounter: %lld of %u workers of %s idle at the end",
					 (long long)(uint32_t)idle, layout->device[d].workers, layout->device[d].name);
		if ((layout->devices > 1 || h->remote) && device[d].reported != idle)
			return LOOM_FAIL(host, err, LOOM_EWRONG,
					 "term_hcounter: %s never reported that all of its workers are idle",
					 layout->device[d].name);
	}
	return 0;
}

TERM_PLUGIN_WITH(term_hcounter, LOOM_TERM_MAY_SLEEP,
		 "Termination by a counter of idle workers per device, and a word per device that says it is full",
		 .create = term_ranks_create, .destroy = term_ranks_destroy, .connect = term_ranks_connect)
