/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sched_static: each worker has an equal share of the initial set, and no worker steals. */
#include <string.h>

#include "sched_static.dev.h"
#include "../shared/sched/schedulers.h"

static const struct loom_opt sched_static_rows[] = {
    SCHED_ROW(local_queue, LOOM_OPT_U32, "32", "Tasks in a worker's queue of spawned tasks; a power of two.", .min = 2,
	      .max = 4096),
    SCHED_ROW(in_place_depth, SCHED_IN_PLACE_ROW),
    SCHED_ROW(overflow_list, LOOM_OPT_U64, "65536",
	      "Tasks in the overflow lists, used when queues are full and tasks are nested too deep; each worker has "
	      "an equal part.",
	      .max = 1 << 28),
    SCHED_ROW(wait, SCHED_WAIT_ROW),
    SCHED_ROW(spin, SCHED_SPIN_ROW),
    {.name = NULL},
};

struct sched_static {
	const struct loom_host *host;
	struct sched_config cfg;
};

static int sched_static_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct sched_config *o = opts;
	return sched_check_ring(host, "local_queue", o->local_queue, 2, 4096, err);
}

static int sched_static_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct sched_config *o = opts;
	struct sched_static *s = host->alloc(host, sizeof(*s));
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sched_static: out of memory");
	s->host = host;
	s->cfg = *o;
	*self = s;
	return 0;
}

static void sched_static_destroy(void *self)
{
	struct sched_static *s = self;
	if (s)
		s->host->free(s->host, s);
}

static uint64_t sched_static_slots(const struct sched_static *s, const struct loom_layout *layout)
{
	return s->cfg.overflow_list / layout->workers;
}

static int sched_static_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			     struct loom_error *err)
{
	const struct sched_static *s = self;
	uint32_t lanes = sched_max_lanes(layout);
	(void)err;
	need->global = sizeof(struct sched_common);
	need->device = sizeof(struct sched_static_site);
	need->worker = sizeof(struct sched_static_list) + sched_static_slots(s, layout) * sizeof(struct loom_task);
	need->local = SCHED_LOCAL_BYTES(lanes, s->cfg.local_queue) + SCHED_STATIC_EXTRA(lanes);
	return 0;
}

static struct sched_config sched_static_config(const struct sched_static *s, const struct loom_layout *layout)
{
	struct sched_config cfg = s->cfg;
	cfg.park_ns = sched_park_ns(layout);
	cfg.overflow_list = sched_static_slots(s, layout);
	cfg.noncoherent = (uint32_t)sched_noncoherent(layout);
	return cfg;
}

/* The number of workers is unknown before the program is composed, so overflow_list is no constant. */
static int sched_static_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
				  struct loom_error *err)
{
	const struct sched_static *s = self;
	struct sched_config cfg = sched_static_config(s, layout);
	cfg.overflow_list = 0;
	return sched_constants(s->host, &cfg, SCHED_STATIC_REGISTER_WORDS, text, room, err);
}

static int sched_static_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			     struct loom_error *err)
{
	const struct sched_static *s = self;
	struct sched_common *common = view->global;
	(void)err;
	*common = (struct sched_common){.cfg = sched_static_config(s, layout)};
	for (uint32_t d = 0; d < layout->devices; d++)
		*(struct sched_static_site *)view->device[d] =
		    (struct sched_static_site){.other = sched_other_kind(layout->device[d].kind)};
	for (uint32_t w = 0; w < layout->workers; w++) {
		struct sched_static_list *list = view->worker[w];
		list->slots = common->cfg.overflow_list;
		list->count = 0;
	}
	return 0;
}

static int sched_static_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
				struct loom_report *report, struct loom_error *err)
{
	const struct sched_static *s = self;
	(void)report;
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct sched_static_list *list = view->worker[w];
		if (list->count)
			return LOOM_FAIL(s->host, err, LOOM_EWRONG,
					 "sched_static: worker %u left %llu tasks on its overflow list", w,
					 (unsigned long long)list->count);
	}
	return 0;
}

static int sched_static_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct sched_static *s = self;
	if (code == LOOM_ENOTSUP)
		return LOOM_FAIL(s->host, err, code,
				 "sched_static: worker %u has a task for another kind of device, and "
				 "tasks do not move: use the scheduler mgws",
				 worker);
	if (code != LOOM_EFULL)
		return 0;
	return LOOM_FAIL(s->host, err, code,
			 "sched_static: worker %u had no room for a new task: its queue (%u) is full, "
			 "tasks are nested %u deep, and its overflow list (%llu) is full; "
			 "raise overflow_list, in_place_depth or local_queue",
			 worker, s->cfg.local_queue, s->cfg.in_place_depth, (unsigned long long)info);
}

SCHED_TABLES(sched_static);

LOOM_DEVICE_CODE(sched_static_code, sched_static_cpu, "sched_static.dev.h",
		 LOOM_CODE_FILE("options.dev.h") LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		     LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("sched_static.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_static", "0.1.0", "Apache-2.0",
		   "An equal share of the initial tasks per worker, no stealing", .opts = sched_static_rows,
		   .opts_size = sizeof(struct sched_config), .check = sched_static_check, .ops = &sched_static_ops,
		   .dev = &sched_static_code)
