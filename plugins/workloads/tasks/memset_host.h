/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of memset, for workload_memset and for workload_memset_loop. */
#ifndef WORKLOAD_MEMSET_HOST_H
#define WORKLOAD_MEMSET_HOST_H

#include "../common/host.h"
#include "memset.dev.h"

#define POISON (~0ull)
#define MEMSET_TWICE (~0ull - 1)

struct memset_opts {
	uint64_t tasks;
};

static const struct loom_opt memset_rows[] = {
	LOOM_OPT(struct memset_opts, tasks, LOOM_OPT_U64, "1048576",
			 "Number of tasks: task x writes x to slot x.", .min = 1, .max = 1ull << 32),
	{.name = NULL},
};

static uint64_t memset_count(void *self, const struct loom_layout *layout)
{
	(void)layout;
	return ((const struct memset_opts *)((struct workload *)self)->opts)->tasks;
}

/* Returns whether each device has all slots in its own memory, which avoids a write across the link for each slot. That is
 * so if devices are non-coherent, and if one of several devices is a GPU. Otherwise slots are in the stack's block. */
static int memset_is_apart(const struct loom_layout *layout)
{
	int gpus = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		gpus |= layout->device[d].kind == LOOM_ON_GPU;
	return (LOOM_HAS(layout, noncoherent) && layout->noncoherent) || (gpus && layout->devices > 1);
}

static int memset_need(void *self, const struct loom_layout *layout, struct loom_need *need,
		       struct loom_error *err)
{
	(void)err;
	*(memset_is_apart(layout) ? &need->device : &need->global) =
	    memset_count(self, layout) * sizeof(uint64_t);
	return 0;
}

static uint64_t *memset_slots(const struct loom_layout *layout, const struct loom_view *view, uint32_t device)
{
	return memset_is_apart(layout) ? view->device[device] : view->global;
}

static int memset_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_error *err)
{
	uint64_t n = memset_count(self, layout);
	(void)err;
	for (uint32_t d = 0; d < (memset_is_apart(layout) ? layout->devices : 1); d++)
		for (uint64_t x = 0; x < n; x++)
			memset_slots(layout, view, d)[x] = POISON;
	return 0;
}

static int memset_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view,
			loom_ref global, struct loom_task *tasks, struct loom_error *err)
{
	uint64_t n = memset_count(self, layout);
	(void)view, (void)err;
	for (uint64_t x = 0; x < n; x++) {
		tasks[x].param[0] = x;
		tasks[x].data.ref = memset_is_apart(layout) ? 0 : global + x * sizeof(uint64_t);
		tasks[x].data.bytes = sizeof(uint64_t);
		tasks[x].data.access = LOOM_WRITE;
	}
	return 0;
}

/* Returns the value of slot x, from the device that has written it. */
static uint64_t memset_written(const struct loom_layout *layout, const struct loom_view *view, uint64_t x)
{
	uint64_t value = memset_slots(layout, view, 0)[x];
	for (uint32_t d = 1; memset_is_apart(layout) && d < layout->devices; d++) {
		uint64_t here = memset_slots(layout, view, d)[x];
		if (here != POISON)
			value = value == POISON ? here : MEMSET_TWICE;
	}
	return value;
}

static int memset_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	uint64_t n = memset_count(self, layout), wrong = 0, first = 0;
	for (uint64_t x = n; x-- > 0;)
		if (memset_written(layout, view, x) != x) {
			wrong++;
			first = x;
		}
	if (!wrong) {
		w->host->metric(w->host, report, "bytes", "B", LOOM_BETTER_NONE, (double)n * sizeof(uint64_t));
		return 0;
	}
	uint64_t value = memset_written(layout, view, first);
	return LOOM_FAIL(w->host, err, LOOM_EWRONG,
			 "memset: %llu of %llu slots are wrong; the first is slot %llu, which holds %#llx%s",
			 (unsigned long long)wrong, (unsigned long long)n, (unsigned long long)first,
			 (unsigned long long)value,
			 value == POISON       ? " (never written)" :
			 value == MEMSET_TWICE ? " (written on two devices)" :
						 "");
}

WORKLOAD_OPS(memset, .create = workload_create_plain, .destroy = workload_destroy, .task_count = memset_count,
	     .tasks = memset_tasks, .work = "bytes");

#endif
