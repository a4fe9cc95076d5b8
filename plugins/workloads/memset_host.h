/* SPDX-License-Identifier: Apache-2.0 */
/* The host half of memset, for the plug-in with tasks and for the one with a loop. */
#ifndef WORKLOAD_MEMSET_HOST_H
#define WORKLOAD_MEMSET_HOST_H

#include "host.h"

#define POISON (~0ull)

struct memset_opts {
	uint64_t tasks;
};

static const struct loom_opt memset_rows[] = {
	LOOM_OPT(struct memset_opts, tasks, LOOM_OPT_U64, "1048576",
		 "how many tasks: task x writes x at slot x", .min = 1, .max = 1ull << 32),
	{.name = NULL},
};

static uint64_t memset_count(void *self, const struct loom_layout *layout)
{
	(void)layout;
	return ((const struct memset_opts *)((struct workload *)self)->opts)->tasks;
}

static int memset_create(const struct loom_host *host, const void *opts, void **self,
			 struct loom_error *err)
{
	return workload_create(host, opts, sizeof(struct workload), self, err);
}

static int memset_need(void *self, const struct loom_layout *layout, struct loom_need *need,
		       struct loom_error *err)
{
	(void)err;
	need->global = memset_count(self, layout) * sizeof(uint64_t);
	return 0;
}

static int memset_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_error *err)
{
	uint64_t *slot = view->global, n = memset_count(self, layout);
	(void)err;
	for (uint64_t x = 0; x < n; x++)
		slot[x] = POISON;
	return 0;
}

static int memset_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view,
			loom_ref global, struct loom_task *tasks, struct loom_error *err)
{
	uint64_t n = memset_count(self, layout);
	(void)view, (void)err;
	for (uint64_t x = 0; x < n; x++) {
		tasks[x].param[0] = x;
		tasks[x].data.ref = global + x * sizeof(uint64_t);
		tasks[x].data.bytes = sizeof(uint64_t);
		tasks[x].data.access = LOOM_WRITE;
	}
	return 0;
}

static int memset_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const uint64_t *slot = view->global;
	uint64_t n = memset_count(self, layout), wrong = 0, first = 0;
	(void)report;
	for (uint64_t x = n; x-- > 0;)
		if (slot[x] != x) {
			wrong++;
			first = x;
		}
	if (wrong)
		return LOOM_FAIL(
			w->host, err, LOOM_EWRONG,
			"memset: %llu of %llu slots are wrong; the first is slot %llu, which "
			"holds %#llx%s",
			(unsigned long long)wrong, (unsigned long long)n, (unsigned long long)first,
			(unsigned long long)slot[first],
			slot[first] == POISON ? " (never written)" : "");
	return 0;
}

static const struct loom_workload_ops memset_ops = {
	.size = sizeof(struct loom_workload_ops),
	.create = memset_create,
	.destroy = workload_destroy,
	.need = memset_need,
	.init = memset_init,
	.task_count = memset_count,
	.tasks = memset_tasks,
	.verify = memset_verify,
};

#endif
