/* SPDX-License-Identifier: Apache-2.0 */
/* qos_monolithic: a request passes fewer threads (HISS paper, section V-C). */
#include "path_options.h"

struct monolithic_opts {
	struct arrange_opts common;
	uint8_t worker;
};

struct monolithic {
	struct qos base;
	const struct monolithic_opts *opts;
};

static const struct loom_opt rows[] = {
	ARRANGE_ROWS(struct monolithic_opts),
	LOOM_OPT(struct monolithic_opts, worker, LOOM_OPT_BOOL, "no",
			 "Whether a worker thread serves the requests, as in the paper, where the top half only takes "
			 "over the work of the bottom half. no: the top half serves the requests, too."),
	{.name = NULL},
};

QOS_CREATE(monolithic)

static void arrange(void *self, struct loom_qos_path *path)
{
	const struct monolithic *p = self;
	path->halves = p->opts->worker ? LOOM_QOS_JOINED : LOOM_QOS_MONOLITHIC;
	arrange_common(&p->opts->common, path);
}

static const struct loom_qos_ops ops = {QOS_OPS_COMMON, .arrange = arrange};

QOS_PLUGIN(qos_monolithic, "One handler instead of a chain of threads", rows, struct monolithic_opts,
	   ops)
