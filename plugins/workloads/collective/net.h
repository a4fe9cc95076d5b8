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

/* Option row for a uint8_t member `two_sided` of the workload's options. */
#define LOOM_NET_TWO_SIDED_ROW(type)                                                               \
	LOOM_OPT(type, two_sided, LOOM_OPT_BOOL, "no", \
			 "Whether ranks send and receive, as with MPI, in place of puts: each message matches a receive of " \
			 "its target. With trigger hdn the host then waits for the messages of a step before it launches " \
			 "the next kernel.")

/* Makes a put into a send, which matches the receive that loom_net_receive() returns at the target. */
static inline void loom_net_send(struct loom_trigger_post *post)
{
	post->op = LOOM_NET_SEND;
	post->match = post->notify;
	post->remote = post->notify = post->paired = 0;
}

/* Returns the receive of a message that counts in arrival word `notify`. The fires of `with`, which sends a message in
 * the same step, start it, so it must be posted before `with`. */
static inline struct loom_trigger_post loom_net_receive(const struct loom_trigger_post *with, loom_ref into,
							uint64_t bytes, uint32_t notify)
{
	return (struct loom_trigger_post){.tag = with->tag,
					  .threshold = with->threshold,
					  .rearm = with->rearm,
					  .op = LOOM_NET_RECV,
					  .local = into,
					  .bytes = bytes,
					  .match = notify,
					  .notify = notify};
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
