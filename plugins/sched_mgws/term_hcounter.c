/* SPDX-License-Identifier: Apache-2.0 */
/* term_hcounter: a counter of idle workers per device, and a word in which each device says that it is full.
 * Host half. */
#include "term_hcounter.dev.h"

static int term_hcounter_create(const struct loom_host *host, const void *opts, void **self,
			       struct loom_error *err)
{
	(void)opts, (void)err;
	*self = (void *)host; /* no state but the table that words errors */
	return 0;
}

static void term_hcounter_destroy(void *self)
{
	(void)self;
}

static int term_hcounter_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			     struct loom_error *err)
{
	(void)self, (void)err;
	need->global = layout->devices * sizeof(struct term_hcounter_device);
	need->device = sizeof(struct term_hcounter);
	return 0;
}

static int term_hcounter_init(void *self, const struct loom_layout *layout,
			     const struct loom_view *view, struct loom_error *err)
{
	(void)self, (void)err;
	struct term_hcounter_device *device = view->global;
	for (uint32_t d = 0; d < layout->devices; d++) {
		device[d] = (struct term_hcounter_device){.workers = layout->device[d].workers};
		*(struct term_hcounter *)view->device[d] = (struct term_hcounter){0};
	}
	return 0;
}

static int term_hcounter_collect(void *self, const struct loom_layout *layout,
				const struct loom_view *view, struct loom_report *report,
				struct loom_error *err)
{
	const struct loom_host *host = self;
	(void)report;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct term_hcounter_device *device = view->global;
		uint64_t idle = ((const struct term_hcounter *)view->device[d])->idle;
		if ((uint32_t)idle != layout->device[d].workers)
			return LOOM_FAIL(host, err, LOOM_EWRONG,
					 "term_hcounter: %lld of %u workers of %s idle at the end",
					 (long long)(uint32_t)idle, layout->device[d].workers,
					 layout->device[d].name);
		if (device[d].said != idle)
			return LOOM_FAIL(host, err, LOOM_EWRONG,
					 "term_hcounter: %s never said that all of its workers are idle",
					 layout->device[d].name);
	}
	return 0;
}

static const struct loom_term_ops term_hcounter_ops = {
	.size = sizeof(struct loom_term_ops),
	.create = term_hcounter_create,
	.destroy = term_hcounter_destroy,
	.need = term_hcounter_need,
	.init = term_hcounter_init,
	.collect = term_hcounter_collect,
};

static const struct loom_term_dev term_hcounter_cpu = {
	.size = sizeof(struct loom_term_dev),
	.idle = term_hcounter_idle,
	.busy = term_hcounter_busy,
	.done = term_hcounter_done,
	.flags = LOOM_TERM_RESTS,
};

LOOM_EMBED_CODE(term_hcounter_text, LOOM_CODE_FILE("term_hcounter.dev.h"));

static const struct loom_device_code term_hcounter_code = {
	.size = sizeof(struct loom_device_code),
	.cpu = &term_hcounter_cpu,
	.source_name = "term_hcounter.dev.h",
	.source = term_hcounter_text,
	.source_end = term_hcounter_text_end,
};

LOOM_PLUGIN_DEFINE(TERM, "term_hcounter", "0.1.0", "Apache-2.0",
		   "Termination by a counter of idle workers per device, and a word per device that says it is full", .ops = &term_hcounter_ops,
		   .dev = &term_hcounter_code)
