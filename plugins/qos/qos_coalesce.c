/* SPDX-License-Identifier: Apache-2.0 */
/* qos_coalesce: one interrupt for several requests (HISS paper, section V-B). The interrupt comes when `count` requests wait,
 * or `window` after the first of them. */
#include "service.h"

struct coalesce_opts {
	uint64_t window;
	uint32_t count;
};

struct coalesce {
	struct qos base;
	const struct coalesce_opts *opts;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct coalesce_opts, window, LOOM_OPT_TIME, "13us",
			 "Longest time from the first waiting request to the interrupt.", .min = 1, .max = 1e9),
	LOOM_OPT(struct coalesce_opts, count, LOOM_OPT_U32, "64",
			 "Waiting requests that cause an interrupt at once.", .min = 1, .max = 1e6),
	{.name = NULL},
};

QOS_CREATE(coalesce)

static void interrupt(void *self, const struct loom_qos_load *load, struct loom_qos_moderation *m)
{
	const struct coalesce_opts *o = ((struct coalesce *)self)->opts;
	(void)load;
	if (o->window > m->window_ns) {
		m->window_ns = o->window;
		m->count = o->count;
	}
}

static const struct loom_qos_ops ops = {QOS_OPS_COMMON, .interrupt = interrupt};

QOS_PLUGIN(qos_coalesce, "One interrupt for several requests", rows, struct coalesce_opts, ops)
