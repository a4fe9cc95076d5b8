/* SPDX-License-Identifier: Apache-2.0 */
/* The options that qos_split and qos_monolithic have in common, the plug-ins that arrange the path. */
#ifndef QOS_PATH_OPTIONS_H
#define QOS_PATH_OPTIONS_H

#include "service.h"

struct arrange_opts {
	uint32_t notify, sched_class, batch, order;
};

static const char *const arrange_notify[] = {"eventfd", "poll", "interrupt", "hybrid", NULL};
static const char *const arrange_class[] = {"nice", "fifo", "other", "idle", NULL};
static const char *const arrange_order[] = {"arrival", "scan", NULL};

#define ARRANGE_ROW(S, field, option, opt_type, default_, help_, ...)                              \
	{                                                                                          \
		.name = option, .dflt = default_, .help = help_,                                   \
		.offset = offsetof(S, common) + offsetof(struct arrange_opts, field),              \
		.size = sizeof(uint32_t), .type = opt_type, __VA_ARGS__                            \
	}
#define ARRANGE_ROWS(S)                                                                            \
	ARRANGE_ROW(S, notify, "notify", LOOM_OPT_ENUM, "eventfd", \
			 "How workers notify the host. eventfd: they wake its thread. poll: the host polls. interrupt " \
			 "(GPUs): they interrupt it. hybrid (GPUs): the host polls while requests come, and is " \
			 "interrupted otherwise. Workers on GPUs have no eventfd; it means poll.", \
			 .choices = arrange_notify, .section = "qos"), \
	ARRANGE_ROW(S, sched_class, "class", LOOM_OPT_ENUM, "nice", \
			 "Scheduling class of the path's threads: nice (-20), fifo (real time), other, or idle. A " \
			 "class that is not permitted is a warning.", .choices = arrange_class, .section = "qos"), \
	ARRANGE_ROW(S, batch, "batch", LOOM_OPT_U32, "64", \
			 "Most requests that are served between two decisions of the policies.", \
			 .min = 1, .max = QOS_BATCH_MAX, .section = "qos"), \
	ARRANGE_ROW(S, order, "order", LOOM_OPT_ENUM, "scan", \
			 "Order in which the waiting reads of a tenant are served. arrival: as they came. scan: by " \
			 "increasing offset in the file, then again from its start. Other requests keep their " \
			 "position: reads before one are served before it, reads after it later.", \
			 .choices = arrange_order, .section = "qos")

static inline void arrange_common(const struct arrange_opts *o, struct loom_qos_path *path)
{
	path->notify = o->notify;
	path->sched_class = o->sched_class;
	path->batch = o->batch;
	path->order = o->order;
}

#endif
