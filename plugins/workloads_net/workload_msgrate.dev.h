/* SPDX-License-Identifier: Apache-2.0 */
/* msgrate: each worker fires as fast as it can; every `per` fires are an operation. Device code. */
#ifndef WORKLOAD_MSGRATE_DEV_H
#define WORKLOAD_MSGRATE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "net.dev.h"
#endif

/* Head of the global block; then per worker a line to send from and, at the target, one to arrive. */
struct msgrate {
	uint64_t fires; /* of each worker */
	uint64_t per;
	uint64_t begin_ns, end_ns; /* of worker 0: its fires alone */
	uint64_t boundary;         /* fires between two deliveries */
	uint64_t pad[3];
};
struct msgrate_line {
	uint64_t word[8];
};

/* Worker w's tag and completion slot. */
#define MSGRATE_TAG(w) (1u + (w))
#define MSGRATE_SLOT(w) (1u + (w))

LOOM_FN void workload_msgrate_kernel(struct loom_ctx *c)
{
	struct msgrate *m = (struct msgrate *)c->global[LOOM_WORKLOAD];
	struct msgrate_line *from = (struct msgrate_line *)(m + 1) + c->worker;
	uint64_t tag = MSGRATE_TAG(c->worker);
	int rc = 0;
	uint64_t begin = loom_clock_ns(c);
	for (uint64_t i = 0; i < m->fires && !rc; i++) {
		if (c->lane == 0) {
			loom_store_relaxed_dev(&from->word[0], i + 1);
			rc = LOOM_CALL(trigger, fire, c, tag, 1);
		}
		if ((i + 1) % m->boundary == 0 || i + 1 == m->fires)
			rc = !net_deliver(c);
	}
	uint64_t end = loom_clock_ns(c);
	if (c->lane != 0)
		return;
	if (rc && rc != LOOM_EINTR)
		loom_worker_fail(c, rc, tag);
	int64_t want = (int64_t)(m->fires / m->per), done = 0;
	while ((done = LOOM_CALL(trigger, completed, c, MSGRATE_SLOT(c->worker))) < want) {
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
