/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the plug-ins that say how the path is built. */
#ifndef QOS_ARRANGE_H
#define QOS_ARRANGE_H

#include "service.h"

struct arrange_opts {
	uint32_t notify, sched_class, files, batch, order;
};

static const char *const arrange_notify[] = {"eventfd", "futex", "poll", "interrupt", "hybrid", NULL};
static const char *const arrange_class[] = {"nice", "fifo", "other", "idle", NULL};
static const char *const arrange_order[] = {"arrival", "place", NULL};
static const char *const arrange_files[] = {"uring", "pread", NULL};

#define ARRANGE_ROW(S, field, option, opt_type, default_, help_, ...)                              \
	{                                                                                          \
		.name = option, .dflt = default_, .help = help_,                                   \
		.offset = offsetof(S, common) + offsetof(struct arrange_opts, field),              \
		.size = sizeof(uint32_t), .type = opt_type, __VA_ARGS__                            \
	}
#define ARRANGE_ROWS(S)                                                                            \
	ARRANGE_ROW(S, notify, "notify", LOOM_OPT_ENUM, "eventfd",                                 \
		    "How workers interrupt the host: by an eventfd, by a futex, or not at all, so that " \
		    "the host polls. Workers on GPUs know neither of the first two: there they mean poll. GPUs alone have " \
		    "interrupt, and hybrid: it polls while requests come, and is interrupted when they come again.", \
		    .choices = arrange_notify),                                                    \
	ARRANGE_ROW(S, sched_class, "class", LOOM_OPT_ENUM, "nice",                                \
		    "Scheduling class of the path's threads: nice (-20), fifo (real time), other, or " \
		    "idle. Refused ones are a warning.",                                           \
		    .choices = arrange_class),                                                     \
	ARRANGE_ROW(S, files, "files", LOOM_OPT_ENUM, SSR_FILES_NAME,                              \
		    "How files are read: through io_uring, the reads of a turn together, or by one system " \
		    "call each. Writes are system calls.",                                         \
		    .choices = arrange_files),                                                     \
	ARRANGE_ROW(S, batch, "batch", LOOM_OPT_U32, "64",                                         \
		    "Requests of one turn at most: between two decisions of the policies.",        \
		    .min = 1, .max = SSR_BATCH_MOST),                                              \
	ARRANGE_ROW(S, order, "order", LOOM_OPT_ENUM, "place",                                     \
		    "In what order a tenant's reads of files are served that wait together: as they came, " \
		    "or by their places in the file, from its begin to its end and again. Whatever is no read " \
		    "stays where it is: it waits for the reads before it, and those behind it wait for it.", \
		    .choices = arrange_order)

static inline void arrange_common(const struct arrange_opts *o, struct loom_qos_path *path)
{
	path->notify = o->notify;
	path->sched_class = o->sched_class;
	path->files = o->files;
	path->batch = o->batch;
	path->order = o->order;
}

#endif
