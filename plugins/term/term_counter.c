/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of term_counter: no task is left when a counter of idle workers reaches the number of all workers. */
#include "term_counter.dev.h"
#include "detector.h"

static int term_counter_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			     struct loom_error *err)
{
	const struct loom_host *host = self;
	if (LOOM_HAS(layout, noncoherent) && layout->noncoherent)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "term_counter: devices that cannot change the same word have no common counter: set "
				 "use = hcounter or tree in [termination]");
	need->flags |= LOOM_NEED_LATE | LOOM_NEED_RESET;
	need->reset_global.head = need->global = sizeof(struct term_counter);
	need->global_place = layout->devices == 1 ? LOOM_PLACE_DEVICE : LOOM_PLACE_ANY; /* all idle workers poll it */
	return 0;
}

static int term_counter_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			     struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	((struct term_counter *)view->global)->idle = 0;
	return 0;
}

static int term_counter_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
				struct loom_report *report, struct loom_error *err)
{
	const struct loom_host *host = self;
	uint64_t idle = ((const struct term_counter *)view->global)->idle;
	(void)report;
	if (idle == layout->workers)
		return 0;
	return LOOM_FAIL(host, err, LOOM_EWRONG, "term_counter: %lld of %u workers idle at the end", (long long)idle,
			 layout->workers);
}

TERM_PLUGIN(term_counter, LOOM_TERM_MAY_SLEEP, "Termination by one counter of idle workers")
