/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of the network workloads share. Device code. */
#ifndef WORKLOAD_NET_DEV_H
#define WORKLOAD_NET_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>
#endif

/* One worker's turn with the host, where posts come late (poster.h). */
struct net_turn {
	uint64_t fired;  /* by the worker: how often */
	uint64_t failed; /* by the host: an enum loom_err of a post that it could not make */
	uint64_t pad[6];
};

/* Until `index` was notified `n` times. 1 when it was; 0 when the run has stopped or the network failed,
 * which fails the run. Collective. */
LOOM_FN int net_await_turn(struct loom_ctx *c, const struct net_turn *turn, uint32_t index, uint64_t n)
{
	int64_t seen = 0;
	loom_doing(c, LOOM_DOING_MESSAGE);
	if (c->lane == 0)
		while ((seen = LOOM_CALL(trigger, arrived, c, index)) < (int64_t)n) {
			int64_t failed = turn ? (int64_t)loom_load_relaxed_sys(&turn->failed) : 0;
			if (seen < 0 || failed)
				loom_worker_fail(c, (int)(failed ? failed : seen), index);
			if (loom_stopped(c))
				break;
			loom_pause(c);
		}
	loom_doing(c, LOOM_DOING_TASKS);
	/* Also the barrier that lets all lanes read what arrived. */
	return loom_from_lane0(c, seen >= (int64_t)n) != 0;
}

LOOM_FN int net_await(struct loom_ctx *c, uint32_t index, uint64_t n)
{
	return net_await_turn(c, (const struct net_turn *)0, index, n);
}

/* Fires for the whole worker: a work-group. 1, or 0 when the run is over. Collective. */
LOOM_FN int net_fire(struct loom_ctx *c, uint64_t tag)
{
	int rc = 0;
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		rc = LOOM_CALL(trigger, fire, c, tag, 1);
		if (rc && rc != LOOM_EINTR)
			loom_worker_fail(c, rc, tag);
	}
	return loom_from_lane0(c, rc == 0) != 0;
}

/* The same, and says so to a host that posts late. */
LOOM_FN int net_fire_turn(struct loom_ctx *c, struct net_turn *turn, uint64_t tag)
{
	if (!net_fire(c, tag))
		return 0;
	if (c->lane == 0)
		loom_store_relaxed_sys(&turn->fired, loom_load_relaxed_sys(&turn->fired) + 1);
	return 1;
}

/* 1, or 0 when the run is over. */
LOOM_FN int net_deliver(struct loom_ctx *c)
{
	return LOOM_CALL(trigger, deliver, c) == 0;
}

/* All workers of this rank meet, `round` counting from 1 on `meet`, which begins at 0. */
LOOM_FN int net_meet(struct loom_ctx *c, uint64_t *meet, uint64_t round)
{
	uint64_t all = round * c->workers, over = 0;
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		/* Releases what this worker wrote; the acquire below takes in what all others did. */
		loom_fetch_add_acq_rel_sys(meet, (uint64_t)1);
		loom_doing(c, LOOM_DOING_MEETING);
		while (loom_load_acquire_sys(meet) < all && !over) {
			over = (uint64_t)loom_stopped(c);
			loom_pause(c);
		}
		loom_doing(c, LOOM_DOING_TASKS);
	}
	return loom_from_lane0(c, over) == 0;
}

#endif
