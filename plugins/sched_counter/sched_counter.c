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

struct sched_counter {
	const struct loom_host *host;
	struct sched_config cfg;
};

static int sched_counter_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct sched_config *o = opts;
	return sched_check_ring(host, "local_queue", o->local_queue, 2, 4096, err);
}

static int sched_counter_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct sched_config *o = opts;
	struct sched_counter *s = host->alloc(host, sizeof(*s));
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sched_counter: out of memory");
	s->host = host;
	s->cfg = *o;
	*self = s;
	return 0;
}

static void sched_counter_destroy(void *self)
{
	struct sched_counter *s = self;
	if (s)
		s->host->free(s->host, s);
}

static int sched_counter_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			      struct loom_error *err)
{
	const struct sched_counter *s = self;
	if (sched_noncoherent(layout))
		return LOOM_FAIL(s->host, err, LOOM_ENOTSUP,
				 "sched_counter: these devices cannot add to the same word: use one device, or the "
				 "scheduler mgws, host or plan");
	need->global = sched_pool_global_bytes(&s->cfg, layout);
	need->device = sched_pool_device_bytes(&s->cfg, layout);
	sched_own_need(&s->cfg, layout, sizeof(struct sched_own_list), need);
	need->flags |= LOOM_NEED_RESET;
	need->reset_global.head = sizeof(struct sched_common) + sched_pool_head_bytes(&s->cfg, layout, 0);
	need->reset_device.head = sizeof(struct sched_site) + sched_pool_head_bytes(&s->cfg, layout, 1);
	return 0;
}

static int sched_counter_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
				   struct loom_error *err)
{
	const struct sched_counter *s = self;
	return sched_own_constants(s->host, &s->cfg, layout, text, room, err);
}

static int sched_counter_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      struct loom_error *err)
{
	const struct sched_counter *s = self;
	struct sched_common *common = view->global;
	(void)err;
	*common = (struct sched_common){.cfg = sched_own_config(&s->cfg, layout)};
	sched_own_init(&common->cfg, layout, view, sizeof(struct sched_own_list));
	sched_pool_init(&s->cfg, layout, view, 0);
	return 0;
}

static int sched_counter_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
				 struct loom_report *report, struct loom_error *err)
{
	const struct sched_counter *s = self;
	(void)report;
	return sched_pool_collect(s->host, "sched_counter", layout, view, err);
}

static int sched_counter_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct sched_counter *s = self;
	return sched_own_explain(s->host, "sched_counter", &s->cfg, worker, code, info, err);
}

static const struct loom_sched_ops sched_counter_ops = {
    .size = sizeof(struct loom_sched_ops),
    .create = sched_counter_create,
    .destroy = sched_counter_destroy,
    .need = sched_counter_need,
    .init = sched_counter_init,
    .collect = sched_counter_collect,
    .explain = sched_counter_explain,
    .constants = sched_counter_constants,
};

static const struct loom_sched_dev sched_counter_cpu = {
    .size = sizeof(struct loom_sched_dev),
    .run = sched_counter_run,
    .spawn = sched_counter_spawn,
    .wanted = sched_counter_wanted,
};

LOOM_DEVICE_CODE(sched_counter_code, sched_counter_cpu, "sched_counter.dev.h",
		 LOOM_CODE_FILE("options.dev.h") LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		     LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("own.dev.h") LOOM_CODE_FILE("pool.dev.h")
			 LOOM_CODE_FILE("sched_counter.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_counter", "0.1.0", "Apache-2.0",
		   "One counter over the initial tasks: each worker takes the next one", .opts = sched_counter_rows,
		   .opts_size = sizeof(struct sched_config), .check = sched_counter_check, .ops = &sched_counter_ops,
		   .dev = &sched_counter_code)
