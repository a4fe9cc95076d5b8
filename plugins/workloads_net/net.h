/* SPDX-License-Identifier: Apache-2.0 */
/* What the host halves of the network workloads share. */
#ifndef WORKLOAD_NET_H
#define WORKLOAD_NET_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../workloads/host.h"

/* Tasks are mandatory for a workload's table; those with a kernel have none. */
static inline int net_no_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view,
			       loom_ref global, struct loom_task *tasks, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)global, (void)tasks, (void)err;
	return 0;
}

static inline int net_post(const struct loom_trigger *t, struct loom_trigger_post *post,
			   struct loom_error *err)
{
	uint64_t id;
	post->size = sizeof(*post);
	return t->ops->post(t->self, post, &id, err);
}

static inline uint32_t net_ranks(const struct loom_host *host)
{
	return LOOM_HAS(host, allgather) ? host->ranks : 1;
}
static inline uint32_t net_rank(const struct loom_host *host)
{
	return LOOM_HAS(host, allgather) ? host->rank : 0;
}

static inline int net_ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* p in 0..1 of sorted values. */
static inline double net_quantile(const uint64_t *sorted, uint64_t n, double p)
{
	uint64_t i = (uint64_t)(p * (double)(n - 1) + 0.5);
	return (double)sorted[i < n ? i : n - 1];
}

/* The device half of a workload whose kernel is NAME_kernel in NAME.dev.h. */
#define NET_CODE(NAME)                                                                             \
	LOOM_EMBED_CODE(NAME##_text, LOOM_CODE_FILE("net.dev.h") LOOM_CODE_FILE(#NAME ".dev.h"));  \
	static const struct loom_workload_dev NAME##_cpu = {                                       \
		.size = sizeof(struct loom_workload_dev), .kernel = NAME##_kernel};                \
	static const struct loom_device_code NAME##_code = {                                       \
		.size = sizeof(struct loom_device_code),                                           \
		.cpu = &NAME##_cpu,                                                                \
		.source_name = #NAME ".dev.h",                                                     \
		.source = NAME##_text,                                                             \
		.source_end = NAME##_text_end,                                                     \
	}

#endif
