/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the kernels of network workloads. Device code. */
#ifndef LOOM_COLLECTIVE_NET_DEV_H
#define LOOM_COLLECTIVE_NET_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>
#endif

/* A copy of the head of a workload's block, for each lane. On a GPU the original is across the link, and each acquire
 * invalidates cached parts of it. */
#define LOOM_NET_HEAD(c, type) (*(const type *)(c)->global[LOOM_WORKLOAD])

/* Whether the trigger has an op for all lanes, and its call. Decided when a program for GPUs is compiled. */
#if !defined(LOOM_DEVICE_COMPILE)
#define LOOM_NET_TOGETHER(c, op) LOOM_HAS((c)->trigger, op)
#define LOOM_NET_CALL_TOGETHER(op, ...) LOOM_CALL(trigger, op, __VA_ARGS__)
#elif defined(LOOM_TRIGGER_TOGETHER)
#define LOOM_NET_TOGETHER(c, op) 1
#define LOOM_NET_CALL_TOGETHER(op, ...) LOOM_CALL(trigger, op, __VA_ARGS__)
#else
#define LOOM_NET_TOGETHER(c, op) 0
#define LOOM_NET_CALL_TOGETHER(op, ...) 0
#endif

/* Handshake of one worker with the host thread that posts late (late_posts.h). */
struct loom_net_late {
	uint64_t fired;  /* written by the worker: number of its fires */
	uint64_t failed; /* written by the host: an enum loom_err of a post that failed */
	uint64_t pad[6];
};

LOOM_FN int loom_net_await_word(struct loom_ctx *c, const struct loom_net_late *late, uint32_t index, uint64_t n,
				int completed)
{
	enum { NOT_YET, ARRIVED, STOPPED };
	uint32_t over = NOT_YET;
	loom_set_state(c, LOOM_STATE_MESSAGE);
	if (LOOM_NET_TOGETHER(c, await_together)) {
		int rc = late || completed ? 0 : LOOM_NET_CALL_TOGETHER(await_together, c, index, n);
		if (rc < 0 && rc != LOOM_EINTR && c->lane == 0)
			loom_worker_fail(c, rc, index);
		if (rc)
			loom_set_state(c, LOOM_STATE_TASKS);
		if (rc)
			return rc > 0;
	}
	if (c->lane < LOOM_WAVE)
		for (uint32_t polls = 1;; polls++) {
			int64_t seen = completed ? LOOM_CALL(trigger, completed, c, index)
						 : LOOM_CALL(trigger, arrived, c, index);
			/* Rarely: on a GPU, work between two polls adds to their round trip. */
			int check = polls % 16 == 0;
			int64_t failed = check && late ? (int64_t)loom_load_relaxed_sys(&late->failed) : 0;
			if (c->lane == 0 && (seen < 0 || failed))
				loom_worker_fail(c, (int)(failed ? failed : seen), index);
			over = loom_wave_word(c, seen >= (int64_t)n                                 ? ARRIVED
						 : seen < 0 || failed || (check && loom_stopped(c)) ? STOPPED
												    : NOT_YET);
			if (over)
				break;
			loom_pause(c);
		}
	loom_set_state(c, LOOM_STATE_TASKS);
	/* This is also the barrier that lets all lanes read the data that arrived. The lanes of a wave have agreed. */
	return (LOOM_WAVE > 1 ? over : loom_word_from_lane0(c, over)) == ARRIVED;
}

/* Waits until `index` was notified `n` times: 1; 0 when the run was stopped or the network failed, which fails the
 * run. Collective. */
LOOM_FN int loom_net_await_late(struct loom_ctx *c, const struct loom_net_late *late, uint32_t index, uint64_t n)
{
	return loom_net_await_word(c, late, index, n, 0);
}

/* Waits in the same way until n operations (receives) have completed in slot `index`. */
LOOM_FN int loom_net_await_completed(struct loom_ctx *c, uint32_t index, uint64_t n)
{
	return loom_net_await_word(c, (const struct loom_net_late *)0, index, n, 1);
}

/* Returns 1 if `index` was notified `n` times, else 0. A failed network fails the run. Collective, also a barrier. */
LOOM_FN int loom_net_arrived(struct loom_ctx *c, uint32_t index, uint64_t n)
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
	return loom_net_await_late(c, (const struct loom_net_late *)0, index, n);
}

/* Collective. Fires for the whole worker, as a work-group. Returns 1, or 0 when the run is over. */
LOOM_FN int loom_net_fire(struct loom_ctx *c, uint64_t tag)
{
	int rc = 0;
	if (LOOM_NET_TOGETHER(c, fire_together)) {
		rc = LOOM_NET_CALL_TOGETHER(fire_together, c, tag);
		if (rc && rc != LOOM_EINTR && c->lane == 0)
			loom_worker_fail(c, rc, tag);
		return rc == 0;
	}
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		rc = LOOM_CALL(trigger, fire, c, tag, 1);
		if (rc && rc != LOOM_EINTR)
			loom_worker_fail(c, rc, tag);
	}
	return loom_from_lane0(c, rc == 0) != 0;
}

/* Also counts the fire for a host thread that posts late, if there is one. */
LOOM_FN int loom_net_fire_late(struct loom_ctx *c, struct loom_net_late *late, uint64_t tag)
{
	if (!loom_net_fire(c, tag))
		return 0;
	if (late && c->lane == 0)
		loom_store_relaxed_sys(&late->fired, loom_load_relaxed_sys(&late->fired) + 1);
	return 1;
}

/* Returns 1, or 0 when the run is over. */
LOOM_FN int loom_net_deliver(struct loom_ctx *c)
{
	return LOOM_CALL(trigger, deliver, c) == 0;
}

#endif
