/* SPDX-License-Identifier: Apache-2.0 */
/* pingpong: messages there and back (ranks 0 and 1), or to the own rank. With kernel = yes each message is
 * a kernel of its own: launch, copy of the payload, fire, teardown (GPU-TN, 5.2). Device code. */
#ifndef WORKLOAD_PINGPONG_DEV_H
#define WORKLOAD_PINGPONG_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "net.dev.h"
#endif

#define PINGPONG_TAG 1u
#define PINGPONG_ARRIVAL 1u
#define PINGPONG_SLOT 1u

/* What one message took, on this rank's clock. */
struct pingpong_times {
	uint64_t begin;   /* the kernel's launch begins */
	uint64_t fire;    /* just before the trigger */
	uint64_t fired;   /* it is stored */
	uint64_t ended;   /* the kernel has ended, its successor runs */
	uint64_t back;    /* the answer, or the own message, is there */
	uint64_t visible; /* when the NIC saw it there, if it keeps times */
	uint64_t launched; /* `begin` less what the launch took */
	uint64_t pad[1];
};

/* Head of the global block; then the payloads, then the times. */
struct pingpong {
	uint64_t rounds, words; /* words of 8 bytes in a message */
	uint32_t rank, ranks;
	uint32_t kernel;
	uint32_t reserved;
	uint64_t wrong; /* words that were not as expected */
	uint64_t from_at, to_at, times_at;
	uint64_t launch_ns;
	uint64_t pad[7];
	struct net_turn turn;
};

LOOM_FN uint64_t pingpong_value(uint64_t round, uint64_t word)
{
	return (round + 1) * 0x9e3779b97f4a7c15ull + word;
}

/* Lanes share the copy; the last word is checked to be there as well as the first. */
LOOM_FN void pingpong_fill(struct loom_ctx *c, struct pingpong *p, uint64_t round)
{
	uint64_t *from = (uint64_t *)((char *)p + p->from_at);
	for (uint64_t i = c->lane; i < p->words; i += c->lanes)
		from[i] = pingpong_value(round, i);
}

LOOM_FN void pingpong_look(struct loom_ctx *c, struct pingpong *p, uint64_t round)
{
	const uint64_t *to = (const uint64_t *)((char *)p + p->to_at);
	uint64_t wrong = 0;
	for (uint64_t i = c->lane; i < p->words; i += c->lanes)
		wrong += to[i] != pingpong_value(round, i);
	if (wrong)
		loom_fetch_add_relaxed_dev(&p->wrong, wrong);
	loom_barrier_lanes(c);
}

/* One message of this rank. */
LOOM_FN int pingpong_send(struct loom_ctx *c, struct pingpong *p, struct pingpong_times *t, uint64_t round)
{
	pingpong_fill(c, p, round);
	t->fire = loom_clock_ns(c);
	if (!net_fire_turn(c, &p->turn, PINGPONG_TAG))
		return 0;
	t->fired = loom_clock_ns(c);
	int ok = p->kernel ? LOOM_CALL(trigger, boundary, c) == 0 : net_deliver(c);
	t->ended = loom_clock_ns(c);
	return ok;
}

LOOM_FN void workload_pingpong_kernel(struct loom_ctx *c)
{
	struct pingpong *p = (struct pingpong *)c->global[LOOM_WORKLOAD];
	struct pingpong_times *times = (struct pingpong_times *)((char *)p + p->times_at), mine = {0};
	int self = p->ranks == 1;
	if (c->worker != 0)
		return;
	for (uint64_t round = 0; round < p->rounds; round++) {
		/* With kernel = yes its launch was the end of the boundary before. */
		mine.begin = loom_clock_ns(c);
		if (p->rank == 0 && !pingpong_send(c, p, &mine, round))
			return;
		if (!net_await_turn(c, &p->turn, PINGPONG_ARRIVAL, round + 1))
			return;
		mine.back = loom_clock_ns(c);
		mine.visible = LOOM_CALL(trigger, arrived_at, c, PINGPONG_ARRIVAL);
		mine.launched = mine.begin - p->launch_ns;
		pingpong_look(c, p, round);
		if (!self && p->rank == 1 && !pingpong_send(c, p, &mine, round))
			return;
		if (c->lane == 0)
			times[round] = mine;
	}
}

#endif
