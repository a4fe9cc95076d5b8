/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the kernels of network workloads. Device code. */
#ifndef LOOM_COLLECTIVE_NET_DEV_H
#define LOOM_COLLECTIVE_NET_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>
#endif

/* The head of the workload's block. Each lane copies the head, because on a GPU the head is across the link, and each
 * acquire invalidates the parts of it that are in a cache. */
#define LOOM_NET_HEAD(c, type) (*(const type *)(c)->global[LOOM_WORKLOAD])

/* LOOM_NET_TOGETHER: 1 if the trigger has the variant `op` that all lanes of a worker call together.
 * LOOM_NET_CALL_TOGETHER calls it. In programs for GPUs the answer is fixed at compile time. */
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

/* Computes until a time of the clock. Under virtual time each read of the clock is an event, and between two of them the
 * worker reads `bytes` bytes. */
LOOM_FN void loom_net_compute(struct loom_ctx *c, uint64_t until, uint64_t bytes)
{
	while (loom_clock_ns(c) < until && !loom_stopped(c)) {
		loom_stream(c, bytes);
		loom_pause(c);
	}
}

/* Handshake of one worker with the host thread that makes posts late (late_posts.h). */
struct loom_net_late {
	uint64_t fired;  /* number of fires of the worker, which writes it */
	uint64_t failed; /* enum loom_err of a post that failed, or 0; written by the host */
	uint64_t pad[6];
};

/* Collective over lanes. Returns 1 when arrival word `index` has been notified `n` times. Returns 0 if the run was
 * stopped, or if the network has failed; in the second case it ends the run with an error. */
LOOM_FN int loom_net_await_late(struct loom_ctx *c, const struct loom_net_late *late, uint32_t index, uint64_t n)
{
	enum { NOT_YET, ARRIVED, STOPPED };
	uint32_t over = NOT_YET;
	loom_set_state(c, LOOM_STATE_MESSAGE);
	if (LOOM_NET_TOGETHER(c, await_together)) {
		int rc = late ? 0 : LOOM_NET_CALL_TOGETHER(await_together, c, index, n);
		if (rc < 0 && rc != LOOM_EINTR && c->lane == 0)
			loom_worker_fail(c, rc, index);
		if (rc)
			loom_set_state(c, LOOM_STATE_TASKS);
		if (rc)
			return rc > 0;
	}
	if (c->lane < LOOM_WAVE)
		for (uint32_t polls = 1;; polls++) {
			int64_t seen = LOOM_CALL(trigger, arrived, c, index);
			/* Check only rarely. On a GPU, work between two polls adds to the time from poll to poll. */
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
	/* After this call, which is also a barrier, all lanes may read the data that arrived. The lanes of a wave have
	 * already agreed. */
	return (LOOM_WAVE > 1 ? over : loom_word_from_lane0(c, over)) == ARRIVED;
}

/* Collective over lanes, and a barrier of these lanes. Returns 1 if arrival word `index` was notified `n` times, else
 * 0. If the network has failed, ends the run with an error. */
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

/* Collective over lanes. Fires the tag once for the whole worker. Returns 1, or 0 when the run is over. */
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

/* Fires like loom_net_fire(). If a host thread makes posts late, also counts the fire for that thread. late: NULL if
 * there is no such thread. */
LOOM_FN int loom_net_fire_late(struct loom_ctx *c, struct loom_net_late *late, uint64_t tag)
{
	if (!loom_net_fire(c, tag))
		return 0;
	if (late && c->lane == 0)
		loom_store_relaxed_sys(&late->fired, loom_load_relaxed_sys(&late->fired) + 1);
	return 1;
}

/* Calls deliver() of the trigger, which sends what was fired. Returns 1, or 0 when the run is over. */
LOOM_FN int loom_net_deliver(struct loom_ctx *c)
{
	return LOOM_CALL(trigger, deliver, c) == 0;
}

#endif
