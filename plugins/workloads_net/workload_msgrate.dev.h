/* SPDX-License-Identifier: Apache-2.0 */
/* msgrate: fires as fast as they go, by work-items, work-groups, the kernel, or a mix of them (GPU-TN, 4.2);
 * every `per` fires of all who share a tag are an operation. Device code. */
#ifndef WORKLOAD_MSGRATE_DEV_H
#define WORKLOAD_MSGRATE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "net.dev.h"
#endif

/* Head of the global block; then a line for each who fires, to send from, and as many to arrive. Who shares
 * a tag has lines side by side, which go as one message. */
struct msgrate {
	uint64_t fires; /* of each */
	uint64_t per;
	uint64_t begin_ns, end_ns; /* of worker 0: its fires alone */
	uint64_t boundary;         /* fires between two deliveries */
	uint32_t items;            /* lanes that fire, of each worker: all or 1 */
	uint32_t share;            /* who shares a tag: so many of them, in order */
	uint64_t pad[2];
};
struct msgrate_line {
	uint64_t word[8];
};

/* The tag and the completion slot of who is number i. */
LOOM_FN uint32_t msgrate_tag(const struct msgrate *m, uint64_t i)
{
	return (uint32_t)(1 + i / m->share);
}

LOOM_FN void workload_msgrate_kernel(struct loom_ctx *c)
{
	struct msgrate *m = (struct msgrate *)c->global[LOOM_WORKLOAD];
	uint64_t who = (uint64_t)c->worker * m->items + (m->items > 1 ? c->lane : 0);
	struct msgrate_line *from = (struct msgrate_line *)(m + 1) + who;
	uint32_t tag = msgrate_tag(m, who);
	int rc = 0;
	uint64_t begin = loom_clock_ns(c);
	for (uint64_t i = 0; i < m->fires && !rc; i++) {
		if (c->lane < m->items) {
			loom_store_relaxed_dev(&from->word[0], i + 1);
			rc = LOOM_CALL(trigger, fire, c, tag, 1);
		}
		if ((i + 1) % m->boundary == 0 || i + 1 == m->fires)
			rc = !net_deliver(c) && !rc ? LOOM_EINTR : rc;
	}
	uint64_t end = loom_clock_ns(c);
	if (rc && rc != LOOM_EINTR)
		loom_worker_fail(c, rc, tag);
	if (c->lane != 0)
		return;
	int64_t want = (int64_t)(m->fires / m->per), done = 0;
	while ((done = LOOM_CALL(trigger, completed, c, tag)) < want) {
		if (done < 0)
			loom_worker_fail(c, (int)done, tag);
		if (loom_stopped(c))
			return;
		loom_pause(c);
	}
	if (c->worker == 0) {
		m->begin_ns = begin;
		m->end_ns = end;
	}
}

#endif
