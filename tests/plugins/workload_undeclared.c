/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of this workload calls a kind that its ops do not declare. */

#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#include <gpuloom/sched.h>
#include <gpuloom/sync.h>
#include <gpuloom/term.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>

static const char *const kinds[] = {"sched", "term", "sync", "barrier", "trigger", "qos", NULL};

struct options {
	uint32_t calls;
};
static const struct loom_opt rows[] = {
	LOOM_OPT(struct options, calls, LOOM_OPT_ENUM, "barrier", "What is called.", .choices = kinds),
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
	const struct instance *x = self;
	(void)layout, (void)err;
	*(uint64_t *)view->global = x->options->calls;
	return 0;
}

static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	const struct instance *x = self;
	(void)layout, (void)view, (void)report;
	return LOOM_FAIL(x->host, err, LOOM_EWRONG, "nothing failed");
}

static void kernel(struct loom_ctx *c)
{
	struct loom_task task = {.tag = 0};
	uint64_t id;
	switch (*(const uint64_t *)c->global[LOOM_WORKLOAD]) {
	case 0:
		LOOM_CALL(sched, spawn, c, &task);
		break;
	case 1:
		LOOM_CALL(term, idle, c);
		break;
	case 2:
		LOOM_CALL(sync, release, c, 0, 0);
		break;
	case 3:
		LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK);
		break;
	case 4:
		LOOM_CALL(trigger, arrived_at, c, 1);
		break;
	default:
		LOOM_CALL(qos, request, c, NULL, &id);
	}
}

ODD_PLUGIN("workload_undeclared", "Calls what it does not say it needs", kernel, .needs = 0)
