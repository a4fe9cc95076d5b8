/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sched_counter: workers take the initial tasks by one counter. */
#include "sched_counter.dev.h"
#include "../sched_common/pool.h"

static const struct loom_opt sched_counter_rows[] = {
    SCHED_ROW_AS(claim_size, "chunk", LOOM_OPT_U32, "1",
		 "Initial tasks that a worker takes at a time. Few balance better, many cost fewer additions.", .min = 1,
		 .max = 1 << 20),
    SCHED_POOL_ROW,
    SCHED_OWN_ROWS,
    {.name = NULL},
};

static int sched_counter_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			      struct loom_error *err)
{
	const struct sched_own *s = self;
	if (sched_noncoherent(layout))
		return LOOM_FAIL(s->host, err, LOOM_ENOTSUP,
				 "sched_counter: these devices cannot add to the same word: use one device, or the "
				 "scheduler mgws, host or plan");
	need->global = sched_pool_global_bytes(s->o, layout);
	need->device = sched_pool_device_bytes(s->o, layout);
	sched_own_need(s->o, layout, sizeof(struct sched_own_list), need);
	need->flags |= LOOM_NEED_RESET;
	need->reset_global.head = sizeof(struct sched_common) + sched_pool_head_bytes(s->o, layout, 0);
	need->reset_device.head = sizeof(struct sched_site) + sched_pool_head_bytes(s->o, layout, 1);
	return 0;
}

static int sched_counter_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      struct loom_error *err)
{
	const struct sched_own *s = self;
	struct sched_common *common = view->global;
	(void)err;
	*common = (struct sched_common){.cfg = sched_own_config(s->o, layout)};
	sched_own_init(&common->cfg, layout, view, sizeof(struct sched_own_list));
	sched_pool_init(s->o, layout, view, 0);
	return 0;
}

static int sched_counter_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
				struct loom_report *report, struct loom_error *err)
{
	(void)report;
	return sched_pool_collect(self, layout, view, err);
}

SCHED_OWN_TABLES(sched_counter, struct sched_own, sched_own_destroy);

LOOM_DEVICE_CODE(sched_counter_code, sched_counter_cpu, "sched_counter.dev.h",
		 LOOM_CODE_FILE("options.dev.h") LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		     LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("own.dev.h") LOOM_CODE_FILE("pool.dev.h")
			 LOOM_CODE_FILE("sched_counter.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_counter", "0.1.0", "Apache-2.0",
		   "One counter over the initial tasks: each worker takes the next one", .opts = sched_counter_rows,
		   .opts_size = sizeof(struct sched_config), .check = sched_own_check, .ops = &sched_counter_ops,
		   .dev = &sched_counter_code)
