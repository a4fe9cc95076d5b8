/* SPDX-License-Identifier: Apache-2.0 */
/* msgrate: work-items, work-groups, the kernel or a mix of them fire at the highest rate (GPU-TN, 4.2). An operation
 * runs when each lane that shares its tag has fired `per` times. Device code. */
#ifndef WORKLOAD_MSGRATE_DEV_H
#define WORKLOAD_MSGRATE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../collective/net.dev.h"
#endif

/* Head of the global block. Each firing lane has a line that it sends, and a line into which it receives. The lines
 * of lanes with the same tag are adjacent, because one message carries them. */
struct msgrate {
	uint64_t fires; /* number of fires of each lane */
	uint64_t per;
	uint64_t boundary; /* number of fires of a lane between two deliveries */
	uint32_t items;    /* number of lanes of a worker that fire: all or 1 */
	uint32_t share;    /* number of consecutive lanes with the same tag */
	uint32_t sends;    /* 1: an operation sends the data that its fires wrote */
	uint32_t reserved;
	uint64_t pad[3];
};
/* A worker's own block: when its fires began and ended, by its device's clock. */
struct msgrate_times {
	uint64_t begin_ns, end_ns;
	uint64_t pad[6];
};
struct msgrate_line {
	uint64_t word[8];
};

/* Returns the tag, which is also the completion slot, of firing lane i. */
LOOM_FN uint32_t msgrate_tag(const struct msgrate *m, uint64_t i)
{
	return (uint32_t)(1 + i / m->share);
}

/* Fires once. Returns 1, or 0 if the fire failed, which fails the run. */
LOOM_FN int msgrate_fire(struct loom_ctx *c, const struct msgrate *m, struct msgrate_line *from, uint32_t tag,
			 uint64_t value)
{
	int rc;
	if (m->sends) {
		loom_store_relaxed_dev(&from->word[0], value);
		rc = LOOM_CALL(trigger, fire, c, tag, 1);
	} else {
		rc = LOOM_CALL(trigger, fire_relaxed, c, tag, 1);
	}
	if (rc && rc != LOOM_EINTR)
		loom_worker_fail(c, rc, tag);
	return rc == 0;
}

LOOM_FN void workload_msgrate_kernel(struct loom_ctx *c)
{
	struct msgrate *m = (struct msgrate *)c->global[LOOM_WORKLOAD];
	struct msgrate_times *times = (struct msgrate_times *)c->own[LOOM_WORKLOAD];
	uint64_t index = (uint64_t)c->worker * m->items + (m->items > 1 ? c->lane : 0);
	uint64_t fires = m->fires, boundary = m->boundary;
	struct msgrate_line *from = (struct msgrate_line *)(m + 1) + index;
	uint32_t tag = msgrate_tag(m, index);
	int fails = c->lane >= m->items; /* 1: this lane does not fire, but takes part in deliveries */
	int over = 0;
	uint64_t begin = loom_clock_ns(c);
	for (uint64_t i = 0; i < fires && !over;) {
		uint64_t until = fires - i < boundary ? fires : i + boundary;
		for (; i < until && !fails; i++)
			fails = !msgrate_fire(c, m, from, tag, i + 1);
		i = until;
		over = !loom_net_deliver(c);
	}
	loom_barrier_lanes(c);
	uint64_t end = loom_clock_ns(c);
	if (c->lane != 0)
		return;
	int64_t want = (int64_t)(fires / m->per), done = 0;
	loom_set_state(c, LOOM_STATE_MESSAGE);
	while (!over && (done = LOOM_CALL(trigger, completed, c, tag)) < want) {
		if (done < 0)
			loom_worker_fail(c, (int)done, tag);
		if (loom_stopped(c))
			return;
		loom_pause(c);
	}
	times->begin_ns = begin;
	times->end_ns = end;
}

#endif
