/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sched_static: each worker has an equal share of the initial set, and no worker steals. */
#include <string.h>

#include "sched_static.dev.h"
#include "../sched_common/own.h"

static const char *const splits[] = {"contiguous", "strided", NULL};

static const struct loom_opt sched_static_rows[] = {
    SCHED_ROW_AS(claim, "split", LOOM_OPT_ENUM, "contiguous",
		 "Share of a worker. contiguous: consecutive tasks. strided: of n workers worker w has the tasks w, w + n, ...",
		 .choices = splits),
    SCHED_OWN_ROWS,
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

static int sched_static_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			     struct loom_error *err)
{
	const struct sched_static *s = self;
	(void)err;
	need->global = sizeof(struct sched_common);
	need->device = sizeof(struct sched_site);
	sched_own_need(&s->cfg, layout, sizeof(struct sched_own_list), need);
	need->flags |= LOOM_NEED_RESET;
	need->reset_global.head = need->global;
	return 0;
}

static int sched_static_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
				  struct loom_error *err)
{
	const struct sched_static *s = self;
	return sched_own_constants(s->host, &s->cfg, layout, text, room, err);
}

static int sched_static_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			     struct loom_error *err)
{
	const struct sched_static *s = self;
	struct sched_common *common = view->global;
	(void)err;
	*common = (struct sched_common){.cfg = sched_own_config(&s->cfg, layout)};
	sched_own_init(&common->cfg, layout, view, sizeof(struct sched_own_list));
	return 0;
}

static int sched_static_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
				struct loom_report *report, struct loom_error *err)
{
	const struct sched_static *s = self;
	(void)report;
	return sched_own_collect(s->host, "sched_static", layout, view, err);
}

static int sched_static_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct sched_static *s = self;
	return sched_own_explain(s->host, "sched_static", &s->cfg, worker, code, info, err);
}

SCHED_TABLES(sched_static, NULL, );

LOOM_DEVICE_CODE(sched_static_code, sched_static_cpu, "sched_static.dev.h",
		 LOOM_CODE_FILE("options.dev.h") LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		     LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("own.dev.h") LOOM_CODE_FILE("sched_static.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_static", "0.1.0", "Apache-2.0",
		   "An equal share of the initial tasks per worker, no stealing", .opts = sched_static_rows,
		   .opts_size = sizeof(struct sched_config), .check = sched_static_check, .ops = &sched_static_ops,
		   .dev = &sched_static_code)
