/* SPDX-License-Identifier: Apache-2.0 */
/* term_counter: all work is done when a counter of idle workers reaches their number. Host half. */
#include "term_counter.dev.h"

static int term_counter_create(const struct loom_host *host, const void *opts, void **self,
			       struct loom_error *err)
{
	(void)opts, (void)err;
	*self = (void *)host; /* no state but the table that words errors */
	return 0;
}

static void term_counter_destroy(void *self)
{
	(void)self;
}

static int term_counter_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			     struct loom_error *err)
{
	const struct loom_host *host = self;
	if (LOOM_HAS(layout, apart) && layout->apart)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "term_counter: devices that cannot change the same word have no common "
				 "counter: say use = hcounter or tree in [termination]");
	need->global = sizeof(struct term_counter);
	return 0;
}

static int term_counter_init(void *self, const struct loom_layout *layout,
			     const struct loom_view *view, struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	((struct term_counter *)view->global)->idle = 0;
	return 0;
}

static int term_counter_collect(void *self, const struct loom_layout *layout,
				const struct loom_view *view, struct loom_report *report,
				struct loom_error *err)
{
	const struct loom_host *host = self;
	uint64_t idle = ((const struct term_counter *)view->global)->idle;
	(void)report;
	if (idle == layout->workers)
		return 0;
	return LOOM_FAIL(host, err, LOOM_EWRONG, "term_counter: %lld of %u workers idle at the end",
			 (long long)idle, layout->workers);
}

static const struct loom_term_ops term_counter_ops = {
	.size = sizeof(struct loom_term_ops),
	.create = term_counter_create,
	.destroy = term_counter_destroy,
	.need = term_counter_need,
	.init = term_counter_init,
	.collect = term_counter_collect,
};

static const struct loom_term_dev term_counter_cpu = {
	.size = sizeof(struct loom_term_dev),
	.idle = term_counter_idle,
	.busy = term_counter_busy,
	.done = term_counter_done,
	.flags = LOOM_TERM_RESTS,
};

LOOM_EMBED_CODE(term_counter_text, LOOM_CODE_FILE("term_counter.dev.h"));

static const struct loom_device_code term_counter_code = {
	.size = sizeof(struct loom_device_code),
	.cpu = &term_counter_cpu,
	.source_name = "term_counter.dev.h",
	.source = term_counter_text,
	.source_end = term_counter_text_end,
};

LOOM_PLUGIN_DEFINE(TERM, "term_counter", "0.1.0", "Apache-2.0",
		   "Termination by one counter of idle workers", .ops = &term_counter_ops,
		   .dev = &term_counter_code)
