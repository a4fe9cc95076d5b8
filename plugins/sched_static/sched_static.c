/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sched_static: each worker has an equal share of the initial set, and no worker steals. */
#include <string.h>

#include "sched_static.dev.h"
#include "../sched_common/own.h"

static const struct loom_opt sched_static_rows[] = {
    SCHED_OWN_ROWS,
    {.name = NULL},
};

static int sched_static_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			     struct loom_error *err)
{
	const struct sched_own *s = self;
	(void)err;
	need->global = sizeof(struct sched_common);
	need->device = sizeof(struct sched_site);
	sched_own_need(s->o, layout, sizeof(struct sched_own_list), need);
	if (sched_has(layout, 1))
		need->local += SCHED_STATIC_WINDOW * sizeof(struct loom_task); /* behind the local queue */
	need->flags |= LOOM_NEED_RESET;
	need->reset_global.head = need->global;
	return 0;
}

static int sched_static_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			     struct loom_error *err)
{
	const struct sched_own *s = self;
	struct sched_common *common = view->global;
	(void)err;
	*common = (struct sched_common){.cfg = sched_own_config(s->o, layout)};
	sched_own_init(&common->cfg, layout, view, sizeof(struct sched_own_list));
	return 0;
}

static int sched_static_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
				struct loom_report *report, struct loom_error *err)
{
	(void)report;
	return sched_own_collect(self, layout, view, err);
}

SCHED_OWN_TABLES(sched_static, struct sched_own, sched_own_destroy);

LOOM_DEVICE_CODE(sched_static_code, sched_static_cpu, "sched_static.dev.h",
		 LOOM_CODE_FILE("options.dev.h") LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		     LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("own.dev.h") LOOM_CODE_FILE("sched_static.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_static", "0.1.0", "Apache-2.0",
		   "An equal share of the initial tasks per worker, no stealing", .opts = sched_static_rows,
		   .opts_size = sizeof(struct sched_config), .check = sched_own_check, .ops = &sched_static_ops,
		   .dev = &sched_static_code)
