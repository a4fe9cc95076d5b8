/* SPDX-License-Identifier: Apache-2.0 */
/* qos_split: a request passes a top half, the bottom half and the worker thread (HISS paper, section II-B). */
#include "path_options.h"

struct split_opts {
	struct arrange_opts common;
};

struct split {
	struct qos base;
	const struct split_opts *opts;
};

static const struct loom_opt rows[] = {
	ARRANGE_ROWS(struct split_opts),
	{.name = NULL},
};

QOS_CREATE(split)

static void arrange(void *self, struct loom_qos_path *path)
{
	const struct split *p = self;
	path->halves = LOOM_QOS_SPLIT;
	arrange_common(&p->opts->common, path);
}

static const struct loom_qos_ops ops = {QOS_OPS_COMMON, .arrange = arrange};

QOS_PLUGIN(qos_split, "Three stages: top half, bottom half, worker thread", rows, struct split_opts, ops)
