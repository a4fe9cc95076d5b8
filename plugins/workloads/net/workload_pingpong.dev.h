/* SPDX-License-Identifier: Apache-2.0 */
/* pingpong: messages go back and forth between ranks 0 and 1, or from rank 0 to itself. With kernel = yes each
 * message is a kernel of its own: launch, copy of the payload, fire, teardown (GPU-TN, 5.2). Device code. */
#ifndef WORKLOAD_PINGPONG_DEV_H
#define WORKLOAD_PINGPONG_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../collective/net.dev.h"
#endif

#define PINGPONG_TAG 1u
#define PINGPONG_ARRIVAL 1u
#define PINGPONG_SLOT 1u
#define PINGPONG_RECEIVE_TAG 2u /* the tag by which a receive that has ended starts the next one */

/* Times of one message, by this rank's clock. */
struct pingpong_times {
	uint64_t begin;   /* start of the modelled kernel, after its launch; 0: no kernel is modelled */
	uint64_t fire;    /* time just before the fire */
	uint64_t fired;   /* time when the fire has returned */
	uint64_t ended;   /* time when the modelled kernel has ended, and the next one runs */
	uint64_t back;    /* time when this rank saw the received message with this number */
	uint64_t visible; /* time when the NIC notified the arrival of that message, with stamp = yes */
	uint64_t launched; /* `begin` minus the duration of a launch */
	uint64_t pad[1];
};

/* Head of the global block. The payloads follow, then the times. */
struct pingpong {
	uint64_t rounds, words; /* `words`: words of 8 bytes in a message */
	uint32_t rank, ranks;
	uint32_t kernel;
	uint32_t late; /* 1: posts come late, so workers count their fires in `fires` */
	uint64_t wrong; /* number of wrong words received */
	uint64_t from_at, to_at, times_at;
	uint64_t launch_ns;
	uint64_t compute_ns; /* time that a kernel takes before it writes its message */
	uint64_t sent; /* if `counted`: number of messages that worker 0 has fired */
	uint32_t counted, pad0; /* `counted`: 1 if all workers fire each message */
	uint64_t pad[4];
	struct loom_net_late fires;
};

LOOM_FN uint64_t pingpong_value(uint64_t round, uint64_t word)
{
	return (round + 1) * 0x9e3779b97f4a7c15ull + word;
}

/* Writes message `round` into the send buffer. The lanes share the words. */
LOOM_FN void pingpong_fill(struct loom_ctx *c, const struct pingpong *p, uint64_t round)
{
	uint64_t *from = (uint64_t *)((char *)c->global[LOOM_WORKLOAD] + p->from_at);
	for (uint64_t i = c->lane; i < p->words; i += c->lanes)
		from[i] = pingpong_value(round, i);
}

/* Compares the received message. The next fire begins with a barrier, before which all lanes have compared. */
LOOM_FN void pingpong_compare(struct loom_ctx *c, const struct pingpong *p, uint64_t round)
{
	struct pingpong *all = (struct pingpong *)c->global[LOOM_WORKLOAD];
	const uint64_t *to = (const uint64_t *)((char *)all + p->to_at);
	uint64_t wrong = 0;
	for (uint64_t i = c->lane; i < p->words; i += c->lanes)
		wrong += to[i] != pingpong_value(round, i);
	if (wrong)
		loom_fetch_add_relaxed_dev(&all->wrong, wrong);
}

/* Ends a kernel: the modelled one with kernel = yes, otherwise by loom_net_deliver(). All workers of the device call
 * it. */
LOOM_FN int pingpong_end(struct loom_ctx *c, const struct pingpong *p)
{
	return p->kernel ? LOOM_CALL(trigger, boundary, c) == 0 : loom_net_deliver(c);
}

LOOM_FN struct loom_net_late *pingpong_late(struct loom_ctx *c, const struct pingpong *p)
{
	return p->late ? &((struct pingpong *)c->global[LOOM_WORKLOAD])->fires : (struct loom_net_late *)0;
}

/* Returns the time in lane 0, which alone stores it. */
LOOM_FN uint64_t pingpong_now(struct loom_ctx *c)
{
	return c->lane == 0 ? loom_clock_ns(c) : 0;
}

LOOM_FN struct pingpong_times *pingpong_times(struct loom_ctx *c, const struct pingpong *p)
{
	return (struct pingpong_times *)((char *)c->global[LOOM_WORKLOAD] + p->times_at);
}

/* Returns the number of steps of this rank. Rank 0 sends first, so it has one more step to receive the last answer. */
LOOM_FN uint64_t pingpong_steps(const struct pingpong *p)
{
	return p->rounds + (p->rank == 0);
}

/* Returns the number of messages that have arrived before step n. */
LOOM_FN uint64_t pingpong_arrived(const struct pingpong *p, uint64_t n)
{
	return n + p->rank;
}

/* Reads the message that arrived last, and sends the next one. Returns 1, or 0 when the run is over. */
LOOM_FN int pingpong_step(struct loom_ctx *c, const struct pingpong *p, uint64_t n)
{
	struct pingpong_times *sent = pingpong_times(c, p) + n;
	uint64_t arrived = pingpong_arrived(p, n);
	if (arrived > 0) {
		struct pingpong_times *arrival = pingpong_times(c, p) + arrived - 1;
		uint64_t back = pingpong_now(c), visible = LOOM_CALL(trigger, arrived_at, c, PINGPONG_ARRIVAL);
		pingpong_compare(c, p, arrived - 1);
		if (c->lane == 0) {
			arrival->back = back;
			arrival->visible = visible;
		}
	}
	if (n == p->rounds)
		return 1;
	uint64_t begin = p->kernel ? pingpong_now(c) : 0;
	if (p->compute_ns)
		loom_net_compute(c, loom_clock_ns(c) + p->compute_ns, 64);
	pingpong_fill(c, p, n);
	uint64_t fire = pingpong_now(c);
	if (!loom_net_fire_late(c, pingpong_late(c, p), PINGPONG_TAG))
		return 0;
	if (c->lane == 0 && p->counted)
		loom_store_release_dev(&((struct pingpong *)c->global[LOOM_WORKLOAD])->sent, n + 1);
	if (c->lane == 0) {
		sent->fired = loom_clock_ns(c);
		sent->fire = fire;
		sent->begin = begin;
		sent->launched = begin - p->launch_ns;
	}
	return 1;
}

/* Called by each worker but worker 0, if `counted` is set. Fires message n as soon as worker 0 has fired message n -
 * 1. Returns 1, or 0 when the run is over. */
LOOM_FN int pingpong_count(struct loom_ctx *c, uint64_t n)
{
	const uint64_t *sent = &((struct pingpong *)c->global[LOOM_WORKLOAD])->sent;
	uint64_t stopped = 0;
	/* Acquire: pairs with the release of `sent` in pingpong_step(). */
	if (c->lane == 0)
		while (loom_load_acquire_dev(sent) < n && !stopped) {
			stopped = (uint64_t)loom_stopped(c);
			loom_pause(c);
		}
	return loom_from_lane0(c, stopped) == 0 && loom_net_fire(c, PINGPONG_TAG);
}

/* Worker 0 sends and receives. The other workers of its device take part in the ends of kernels, and fire if
 * `counted` is set. */
LOOM_FN void workload_pingpong_kernel(struct loom_ctx *c)
{
	struct pingpong copy = LOOM_NET_HEAD(c, struct pingpong), *p = &copy;
	for (uint64_t n = 0, steps = pingpong_steps(p); c->device == 0 && n < steps; n++) {
		uint64_t arrived = pingpong_arrived(p, n);
		if (c->worker == 0 && arrived > 0 &&
		    !loom_net_await_late(c, pingpong_late(c, p), PINGPONG_ARRIVAL, arrived))
			return;
		if (c->worker == 0 && !pingpong_step(c, p, n))
			return;
		if (c->worker != 0 && p->counted && n < p->rounds && !pingpong_count(c, n))
			return;
		if (n < p->rounds && !pingpong_end(c, p))
			return;
		if (n < p->rounds && c->worker == 0 && c->lane == 0)
			pingpong_times(c, p)[n].ended = loom_clock_ns(c);
	}
}

LOOM_FN void workload_pingpong_step(struct loom_ctx *c, uint64_t n)
{
	struct pingpong copy = LOOM_NET_HEAD(c, struct pingpong);
	if (c->worker == 0)
		pingpong_step(c, &copy, n);
	else if (copy.counted && c->device == 0 && n < copy.rounds)
		pingpong_count(c, n);
}

#endif
