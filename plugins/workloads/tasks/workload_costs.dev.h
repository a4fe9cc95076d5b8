/* SPDX-License-Identifier: Apache-2.0 */
/* costs: measures what accesses to memory cost on a device. The metrics have the names of a simulated device's
 * options. Device code.
 *
 * All workers stream at the same time, because they share the memory's bandwidth. Then the first worker continues
 * alone. It measures the difference between a loop with accesses and a loop without. */
#ifndef WORKLOAD_COSTS_DEV_H
#define WORKLOAD_COSTS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

/* These constants are in the order of LOOM_SIM_COSTS in plugins/device_common/compose/sim.h, in the same groups of three:
 * local, host, peer. */
enum costs_what {
	COSTS_LOAD = 0,
	COSTS_STORE = 3,
	COSTS_ATOMIC = 6,
	COSTS_FENCE_DEV = 9,
	COSTS_FENCE_SYS,
	COSTS_STREAM,
	COSTS_COUNT
};
enum costs_where { COSTS_LOCAL, COSTS_HOST, COSTS_PEER, COSTS_PLACES };

#define COSTS_WORDS 64 /* a power of two */
#define COSTS_BURST 16

/* The words that are accessed in one place. */
struct costs_words {
	uint64_t next[COSTS_WORDS]; /* chain of loads: index of the word after each word */
	uint64_t sum, stored[COSTS_BURST], pad[7];
};

/* The global block, in host memory. */
struct costs_head {
	struct costs_words far;
	uint64_t rounds, bytes; /* constant: accesses of each type; bytes that a worker streams */
	uint32_t has_peer, pad[3];
};

/* A worker's block. As memory of a peer, worker 0 accesses `peer` in the block of the second device's first worker. */
struct costs_note {
	struct costs_words peer;
	uint64_t ns[COSTS_COUNT], rest;
	uint64_t end[COSTS_PLACES]; /* index of the word at which the loads in each place ended */
};

/* Returns the bytes that this worker streams. A device's block is in its own memory. It has struct costs_words, then
 * these bytes of each of its workers. */
LOOM_FN uint64_t *costs_stream_of(struct loom_ctx *c, const struct costs_head *h)
{
	struct costs_words *n = (struct costs_words *)c->on_device[LOOM_WORKLOAD];
	return (uint64_t *)((char *)(n + 1) + (c->worker - c->first) * h->bytes);
}

/* Called by all lanes. Reads and writes each word of the worker's bytes. */
LOOM_FN void costs_stream(struct loom_ctx *c, const struct costs_head *h, struct costs_note *own)
{
	uint64_t *word = costs_stream_of(c, h), begin = loom_clock_ns(c);
	for (uint64_t i = c->lane; i < h->bytes / sizeof(*word); i += c->lanes)
		word[i] += i;
	loom_stream(c, 2 * h->bytes);
	loom_barrier_lanes(c);
	if (c->lane == 0)
		own->ns[COSTS_STREAM] = loom_clock_ns(c) - begin;
}

/* Measures a chain of loads. Each load returns the index of the next word. */
LOOM_FN uint64_t costs_load(struct loom_ctx *c, struct costs_words *w, uint64_t rounds, uint64_t *end)
{
	uint64_t at = 0, begin = loom_clock_ns(c);
	LOOM_NO_UNROLL
	for (uint64_t i = 0; i < rounds; i++)
		at = loom_load_relaxed_sys(&w->next[at]);
	*end = at;
	return loom_clock_ns(c) - begin;
}

LOOM_FN uint64_t costs_atomic(struct loom_ctx *c, struct costs_words *w, uint64_t rounds)
{
	uint64_t add = 1, begin = loom_clock_ns(c);
	LOOM_NO_UNROLL
	/* The addend depends on the previous value, so each addition waits for its result. */
	for (uint64_t i = 0; i < rounds; i++)
		add = 1 + (loom_fetch_add_relaxed_sys(&w->sum, add) == ~(uint64_t)0);
	return loom_clock_ns(c) - begin;
}

/* Waits long enough for all earlier stores to arrive. */
LOOM_FN void costs_pause(struct loom_ctx *c)
{
	for (uint64_t until = loom_clock_ns(c) + 5000; loom_clock_ns(c) < until;)
		loom_pause(c);
}

/* Measures stores. A few stores after a pause do not wait for completion, but many in a row would wait for the link. */
LOOM_FN uint64_t costs_store(struct loom_ctx *c, struct costs_words *w, uint64_t rounds)
{
	uint64_t spent = 0;
	for (uint64_t i = 0; i < rounds; i += COSTS_BURST) {
		costs_pause(c);
		uint64_t begin = loom_clock_ns(c);
		for (uint32_t k = 0; k < COSTS_BURST; k++)
			loom_store_relaxed_sys(&w->stored[k], i + 1);
		spent += loom_clock_ns(c) - begin;
	}
	return spent;
}

/* Measures a fence after a store to the device's own memory. Such a fence follows a payload. */
LOOM_FN uint64_t costs_fence(struct loom_ctx *c, struct costs_words *w, uint64_t rounds, int sys)
{
	uint64_t begin = loom_clock_ns(c);
	LOOM_NO_UNROLL
	for (uint64_t i = 0; i < rounds; i++) {
		loom_store_relaxed_dev(&w->stored[0], rounds);
		if (sys)
			loom_fence_release_sys();
		else
			loom_fence_release_dev();
	}
	return loom_clock_ns(c) - begin;
}

/* Measures a read of the clock, which is a part of each measurement of stores. */
LOOM_FN uint64_t costs_clock(struct loom_ctx *c, uint64_t rounds)
{
	uint64_t spent = 0;
	for (uint64_t i = 0; i < rounds; i += COSTS_BURST) {
		costs_pause(c);
		uint64_t begin = loom_clock_ns(c);
		spent += loom_clock_ns(c) - begin;
	}
	return spent;
}

LOOM_FN void costs_measure(struct loom_ctx *c, const struct costs_head *h, struct costs_note *own)
{
	struct costs_words *place[COSTS_PLACES] = {
	    (struct costs_words *)c->on_device[LOOM_WORKLOAD], &((struct costs_head *)c->global[LOOM_WORKLOAD])->far,
	    h->has_peer ? &((struct costs_note *)loom_public(c, LOOM_WORKLOAD, c->count))->peer : 0};
	costs_pause(c); /* waits until the other workers have streamed */
	for (uint32_t pass = 0; pass < 2; pass++) /* the first pass warms the caches */
		for (uint32_t i = 0; i < COSTS_PLACES && place[i] && !loom_stopped(c); i++) {
			own->ns[COSTS_LOAD + i] = costs_load(c, place[i], h->rounds, &own->end[i]);
			own->ns[COSTS_STORE + i] = costs_store(c, place[i], h->rounds);
			own->ns[COSTS_ATOMIC + i] = costs_atomic(c, place[i], h->rounds);
		}
	own->rest = costs_clock(c, h->rounds);
	own->ns[COSTS_FENCE_DEV] = costs_fence(c, place[COSTS_LOCAL], h->rounds, 0);
	own->ns[COSTS_FENCE_SYS] = costs_fence(c, place[COSTS_LOCAL], h->rounds, 1);
}

LOOM_FN void workload_costs_kernel(struct loom_ctx *c)
{
	const struct costs_head *h = (const struct costs_head *)c->global[LOOM_WORKLOAD];
	struct costs_note *own = (struct costs_note *)c->own[LOOM_WORKLOAD];
	costs_stream(c, h, own);
	if (c->worker == 0 && c->lane == 0)
		costs_measure(c, h, own);
}

#endif
