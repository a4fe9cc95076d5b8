/* SPDX-License-Identifier: Apache-2.0 */
/* primitives: chains of one operation of the hardware, checked and timed, as in the study of GPU barriers (3.1, 4.1,
 * 4.2). Device code.
 *
 * In checked rounds each lane records the round, synchronises with its group, and checks the record of another lane of
 * the group. Then all lanes do a chain of operations, of which each one waits for the one before. */
#ifndef WORKLOAD_PRIMITIVES_DEV_H
#define WORKLOAD_PRIMITIVES_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>
#endif

enum primitive { PRIMITIVE_ADD, PRIMITIVE_TILE, PRIMITIVE_COALESCED, PRIMITIVE_WORKER, PRIMITIVE_GRID };

/* The global block: constant while workers run. */
struct primitives_head {
	uint64_t repeats, checked, parts;
	uint32_t operation, group;
	uint32_t lanes; /* places for lanes in the device's block, for each worker */
	float one;      /* 1, which the compiler must not know */
	uint64_t pad[3];
};

/* The device's block. Behind it for each worker and lane a record of the checked round. */
struct primitives_device {
	uint32_t arrived; /* grid */
	uint32_t pad[31];
};

/* A worker's block; behind it [parts] of these: how long a chain took, by the slowest wave and by lane 0's clock. */
struct primitives_record {
	uint64_t wrong, wrong_round, wrong_lane; /* lanes that passed before another one arrived, or with a wrong sum */
	uint64_t slowest;                        /* wave of the chain */
	uint64_t rounds, chains;
	uint64_t pad[10];
};
struct primitives_time {
	uint64_t cycles, ns;
};

enum { PRIMITIVE_UNROLL = 8, PRIMITIVE_WAVE = 32 }; /* lanes in which groups are counted: a warp */

/* Cycles of the multiprocessor; on a CPU, which tells none, nanoseconds. */
LOOM_FN uint64_t primitives_cycles(const struct loom_ctx *c)
{
#if defined(__CUDA_ARCH__)
	uint64_t now;
	(void)c;
	asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
	return now;
#elif defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SIM)
	(void)c;
	return __builtin_readcyclecounter();
#else
	return loom_clock_ns(c);
#endif
}

/* The value is computed here, not earlier or later. */
LOOM_FN void primitives_keep(float *x)
{
#if defined(__CUDA_ARCH__)
	asm volatile("" : "+f"(*x)::"memory");
#elif defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SIM)
	asm volatile("" : "+v"(*x)::"memory");
#else
	asm volatile("" : "+m"(*x)::"memory");
#endif
}

/* The lanes of `mask` of this warp, as cooperative groups' sync() of a tile or of coalesced threads. Elsewhere the lanes
 * of a wave run in step, or there is one. */
LOOM_FN void primitives_sync_mask(struct loom_ctx *c, uint32_t mask)
{
#if defined(__CUDA_ARCH__)
	(void)c;
	__syncwarp(mask);
#elif defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SIM)
	(void)c, (void)mask;
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
	__builtin_amdgcn_wave_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#else
	(void)mask;
	loom_barrier_lanes(c);
#endif
}

/* All lanes of the worker. A block of one warp, too, synchronises by the barrier of a block here. */
LOOM_FN void primitives_sync_worker(struct loom_ctx *c)
{
#if defined(__CUDA_ARCH__) && LOOM_WORKERS_PER_BLOCK == 1
	(void)c;
	__syncthreads();
#else
	loom_barrier_lanes(c);
#endif
}

/* Grid synchronisation as in CUDA 13's cooperative groups: all workers add to one word, the first of them so much that its
 * first bit changes when all have arrived; lane 0 polls. *over: lane 0 has seen that the run is over, and waits no
 * more. */
LOOM_FN void primitives_sync_grid(struct loom_ctx *c, uint32_t *over)
{
	struct primitives_device *d = (struct primitives_device *)c->on_device[LOOM_WORKLOAD];
	primitives_sync_worker(c);
	if (c->lane == 0 && !*over) {
		uint32_t mine = c->worker == c->first ? 0x80000000u - (c->count - 1) : 1u, polls = 0;
		/* Release, and the acquire of each poll: what all wrote before the barrier is visible behind it. */
		uint32_t before = loom_fetch_add_release_dev(&d->arrived, mine);
		while (!((before ^ loom_load_acquire_dev(&d->arrived)) & 0x80000000u)) {
			polls++;
			if (polls % 4096 == 0 && loom_stopped(c)) {
				*over = 1;
				break;
			}
#ifndef LOOM_DEVICE_COMPILE
			if (polls % 64 == 0)
				loom_yield(c);
#endif
		}
	}
	primitives_sync_worker(c);
}

/* The lanes that this one synchronises with: `n` of them from `first`; 0: it takes no part. */
LOOM_FN uint32_t primitives_group(const struct loom_ctx *c, const struct primitives_head *h, uint32_t *first)
{
	uint32_t wave = c->lane / PRIMITIVE_WAVE * PRIMITIVE_WAVE, in_wave = c->lane - wave, n = h->group;
	*first = wave;
	if (h->operation == PRIMITIVE_TILE)
		*first = wave + in_wave / n * n;
	else if (h->operation == PRIMITIVE_COALESCED)
		n = in_wave < n ? n : 0;
	else {
		*first = 0;
		n = c->lanes;
	}
	return n > c->lanes - *first ? c->lanes - *first : n;
}

LOOM_FN uint32_t primitives_mask(uint32_t first, uint32_t n)
{
	return (n >= 32 ? 0xffffffffu : (1u << n) - 1) << first % PRIMITIVE_WAVE;
}

/* One operation; not for PRIMITIVE_ADD. */
LOOM_FN void primitives_sync(struct loom_ctx *c, uint32_t operation, uint32_t mask, uint32_t *over)
{
	if (operation == PRIMITIVE_GRID)
		primitives_sync_grid(c, over);
	else if (operation == PRIMITIVE_WORKER)
		primitives_sync_worker(c);
	else
		primitives_sync_mask(c, mask);
}

LOOM_FN uint32_t *primitives_rounds(struct loom_ctx *c, const struct primitives_head *h, uint32_t worker)
{
	struct primitives_device *d = (struct primitives_device *)c->on_device[LOOM_WORKLOAD];
	return (uint32_t *)(d + 1) + (uint64_t)(worker - c->first) * h->lanes;
}

LOOM_FN struct primitives_record *primitives_record(const struct loom_ctx *c)
{
	return (struct primitives_record *)c->own[LOOM_WORKLOAD];
}

LOOM_FN void primitives_wrong(struct loom_ctx *c, uint64_t round)
{
	struct primitives_record *own = primitives_record(c);
	if (loom_fetch_add_relaxed_dev(&own->wrong, (uint64_t)1))
		return;
	own->wrong_round = round;
	own->wrong_lane = c->lane;
}

/* Records the round, synchronises, and checks another lane, of the next worker for a grid. */
LOOM_FN void primitives_checked(struct loom_ctx *c, const struct primitives_head *h, uint32_t round, uint32_t *over)
{
	uint32_t first, n = primitives_group(c, h, &first), worker = c->worker;
	if (!n)
		return;
	if (h->operation == PRIMITIVE_GRID)
		worker = c->first + (c->worker - c->first + round) % c->count;
	loom_store_relaxed_dev(&primitives_rounds(c, h, c->worker)[c->lane], round);
	primitives_sync(c, h->operation, primitives_mask(first, n), over);
	uint32_t other = first + (c->lane - first + round) % n;
	if (loom_load_relaxed_dev(&primitives_rounds(c, h, worker)[other]) < round)
		primitives_wrong(c, round);
}

/* Cycles of the chain; 0: this lane takes no part. */
LOOM_FN uint64_t primitives_chain(struct loom_ctx *c, const struct primitives_head *h, uint32_t *over)
{
	uint32_t first, n = primitives_group(c, h, &first), mask = primitives_mask(first, n), operation = h->operation;
	uint32_t rounds = (uint32_t)(h->repeats / PRIMITIVE_UNROLL);
	float one = h->one, x = 0;
	if (!n)
		return 0;
	primitives_keep(&x);
	uint64_t begin = primitives_cycles(c);
	if (operation == PRIMITIVE_ADD)
		for (uint32_t r = 0; r < rounds; r++)
			for (uint32_t i = 0; i < PRIMITIVE_UNROLL; i++)
				x += one;
	else if (operation == PRIMITIVE_GRID)
		for (uint32_t r = 0; r < rounds * PRIMITIVE_UNROLL; r++)
			primitives_sync_grid(c, over);
	else if (operation == PRIMITIVE_WORKER)
		for (uint32_t r = 0; r < rounds; r++)
			for (uint32_t i = 0; i < PRIMITIVE_UNROLL; i++)
				primitives_sync_worker(c);
	else
		for (uint32_t r = 0; r < rounds; r++)
			for (uint32_t i = 0; i < PRIMITIVE_UNROLL; i++)
				primitives_sync_mask(c, mask);
	primitives_keep(&x);
	uint64_t cycles = primitives_cycles(c) - begin;
	if (operation == PRIMITIVE_ADD && x != (float)h->repeats)
		primitives_wrong(c, 0);
	return cycles;
}

LOOM_FN void primitives_part(struct loom_ctx *c, const struct primitives_head *h, struct primitives_time *time,
			     uint32_t *over)
{
	struct primitives_record *own = primitives_record(c);
	if (c->lane == 0)
		loom_store_relaxed_dev(&own->slowest, (uint64_t)0);
	if (h->operation == PRIMITIVE_GRID)
		primitives_sync_grid(c, over); /* a common start */
	loom_barrier_lanes(c);
	uint64_t begin = loom_clock_ns(c), cycles = primitives_chain(c, h, over);
	if (c->lane % PRIMITIVE_WAVE == 0) { /* the first lane of each warp takes part in all operations */
		uint64_t seen = loom_load_relaxed_dev(&own->slowest);
		while (seen < cycles && !loom_cas_acq_rel_dev(&own->slowest, &seen, cycles))
			;
	}
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		time->ns = loom_clock_ns(c) - begin;
		time->cycles = loom_load_relaxed_dev(&own->slowest);
	}
}

LOOM_FN void workload_primitives_kernel(struct loom_ctx *c)
{
	const struct primitives_head *h = (const struct primitives_head *)c->global[LOOM_WORKLOAD];
	struct primitives_record *own = primitives_record(c);
	struct primitives_time *time = (struct primitives_time *)(own + 1);
	uint64_t rounds = 0, chains = 0, checked = h->operation == PRIMITIVE_ADD ? 0 : h->checked;
	uint32_t over = 0;
	for (; rounds < checked && !over; rounds++)
		primitives_checked(c, h, (uint32_t)rounds + 1, &over);
	loom_barrier_lanes(c);
	while (chains < h->parts) {
		if (c->lane == 0)
			over |= loom_stopped(c) != 0;
		if (loom_flag_from_lane0(c, over))
			break;
		primitives_part(c, h, &time[chains++], &over);
	}
	if (c->lane == 0) {
		own->rounds = rounds;
		own->chains = chains;
	}
}

#endif
