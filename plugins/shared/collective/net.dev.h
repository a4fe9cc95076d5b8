/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of the network workloads share. Device code. */
#ifndef LOOM_COLLECTIVE_NET_DEV_H
#define LOOM_COLLECTIVE_NET_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>
#endif

/* The head of a workload's block, for a copy of each lane's own: on a GPU the original is across the link, and what was
 * read of it is forgotten with each acquire. */
#define LOOM_NET_HEAD(c, type) (*(const type *)(c)->global[LOOM_WORKLOAD])

/* One worker's turn with the host, where posts come late (poster.h). */
struct loom_net_turn {
	uint64_t fired;  /* by the worker: how often */
	uint64_t failed; /* by the host: an enum loom_err of a post that it could not make */
	uint64_t pad[6];
};

/* Until `index` was notified `n` times. 1 when it was; 0 when the run has stopped or the network failed,
 * which fails the run. Collective. */
LOOM_FN int loom_net_await_turn(struct loom_ctx *c, const struct loom_net_turn *turn, uint32_t index, uint64_t n)
{
	enum { LOOK_AGAIN, CAME, STOPPED };
	uint32_t over = LOOK_AGAIN;
	loom_set_state(c, LOOM_STATE_MESSAGE);
	if (c->lane < LOOM_WAVE)
		for (uint32_t looks = 1;; looks++) {
			int64_t seen = LOOM_CALL(trigger, arrived, c, index);
			/* Seldom: on a GPU what stands between two looks comes on top of the round trip that each takes. */
			int seldom = looks % 16 == 0;
			int64_t failed = seldom && turn ? (int64_t)loom_load_relaxed_sys(&turn->failed) : 0;
			if (c->lane == 0 && (seen < 0 || failed))
				loom_worker_fail(c, (int)(failed ? failed : seen), index);
			over = loom_wave_word(c, seen >= (int64_t)n ? CAME : seen < 0 || failed || (seldom && loom_stopped(c)) ? STOPPED : LOOK_AGAIN);
			if (over)
				break;
			loom_pause(c);
		}
	loom_set_state(c, LOOM_STATE_TASKS);
	/* Also the barrier that lets all lanes read what arrived. A wave has agreed. */
	return (LOOM_WAVE > 1 ? over : loom_word_from_lane0(c, over)) == CAME;
}

/* 1: `index` was notified `n` times. 0: not yet; a network that failed fails the run. Collective, also a barrier. */
LOOM_FN int loom_net_has(struct loom_ctx *c, uint32_t index, uint64_t n)
{
	int64_t seen = 0;
	if (c->lane == 0)
		seen = LOOM_CALL(trigger, arrived, c, index);
	if (seen < 0)
		loom_worker_fail(c, (int)seen, index);
	return loom_flag_from_lane0(c, seen >= (int64_t)n);
}

LOOM_FN int loom_net_await(struct loom_ctx *c, uint32_t index, uint64_t n)
{
	return loom_net_await_turn(c, (const struct loom_net_turn *)0, index, n);
}

/* Fires for the whole worker: a work-group. 1, or 0 when the run is over. Collective. */
LOOM_FN int loom_net_fire(struct loom_ctx *c, uint64_t tag)
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

/* The same, and says so to a host that posts late, if there is one. */
LOOM_FN int loom_net_fire_turn(struct loom_ctx *c, struct loom_net_turn *turn, uint64_t tag)
{
	if (!loom_net_fire(c, tag))
		return 0;
	if (turn && c->lane == 0)
		loom_store_relaxed_sys(&turn->fired, loom_load_relaxed_sys(&turn->fired) + 1);
	return 1;
}

/* 1, or 0 when the run is over. */
LOOM_FN int loom_net_deliver(struct loom_ctx *c)
{
	return LOOM_CALL(trigger, deliver, c) == 0;
}

#endif
