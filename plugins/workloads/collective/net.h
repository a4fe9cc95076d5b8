/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the host halves of workloads with a trigger. */
#ifndef LOOM_COLLECTIVE_NET_H
#define LOOM_COLLECTIVE_NET_H

#include <gpuloom/plugin.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>

static inline int loom_net_post(const struct loom_trigger *t, struct loom_trigger_post *post, struct loom_error *err)
{
	uint64_t id;
	post->size = sizeof(*post);
	return t->ops->post(t->self, post, &id, err);
}

static inline uint64_t loom_net_line(uint64_t bytes) /* rounds up to whole cache lines */
{
	return (bytes + 63) & ~63ull;
}

static inline uint32_t loom_net_ranks(const struct loom_host *host)
{
	return LOOM_HAS(host, allgather) ? host->ranks : 1;
}
static inline uint32_t loom_net_rank(const struct loom_host *host)
{
	return LOOM_HAS(host, allgather) ? host->rank : 0;
}

#endif
