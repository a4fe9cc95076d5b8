/* SPDX-License-Identifier: Apache-2.0 */
/* The check of this workload runs until its time limit. */
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>
#include <time.h>

struct options {
	uint32_t seconds;
};
static const struct loom_opt rows[] = {
	LOOM_OPT(struct options, seconds, LOOM_OPT_U32, "60", "How long at most."),
	{.name = NULL},
};

#include "instance.h"

static int need(void *self, const struct loom_layout *layout, struct loom_need *n, struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	n->global = sizeof(uint64_t);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)err;
	return 0;
}

static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	const struct instance *x = self;
	struct timespec nap = {.tv_nsec = 10000000};
	int rc = 0;
	(void)layout, (void)view, (void)report;
	for (uint32_t i = 0; i < 100 * x->options->seconds && !rc; i++) {
		rc = x->host->progress(x->host, i / (100.0 * x->options->seconds), err);
		nanosleep(&nap, NULL);
	}
	return rc;
}

static void kernel(struct loom_ctx *c)
{
	(void)c;
}

ODD_PLUGIN("workload_checks", "A check that takes long", kernel, .needs = 0)
