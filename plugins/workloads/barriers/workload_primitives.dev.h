/* SPDX-License-Identifier: Apache-2.0 */
/* primitives: chains of one operation of the hardware, checked and timed, as in the study of GPU barriers (3.1, 4.1,
 * 4.2). Device code.
 *
 * In checked rounds each lane records the round, synchronises with its group, and checks the record of another lane
 * of the group. Then all lanes execute a chain of operations, each of which waits for the previous one. */
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
	uint32_t lanes; /* number of lanes of each worker */
	float one;      /* the value 1, in memory so that the compiler does not know it */
	uint64_t pad[3];
};

/* The device's block. A word for each lane of each worker follows: the checked round that the lane has reached. */
struct primitives_device {
	uint32_t arrived; /* word to which all workers add in primitives_sync_grid() */
	uint32_t pad[31];
};

/* A worker's block. [parts] of struct primitives_time follow: the time of each chain, in cycles of the slowest wave,
 * and its begin and end by lane 0's clock, which all workers of a device share. */
struct primitives_record {
	/* How often a lane passed before another lane had arrived, or had a wrong sum; round and lane of the first
	 * time. The round of a wrong sum is 0. */
	uint64_t wrong, wrong_round, wrong_lane;
	uint64_t slowest;                        /* cycles of the slowest wave in the current chain */
	uint64_t rounds, chains;
	uint64_t pad[10];
};
struct primitives_time {
	uint64_t cycles, begin_ns, end_ns;
};

enum { PRIMITIVE_UNROLL = 8, PRIMITIVE_WAVE = 32 }; /* PRIMITIVE_WAVE: lanes of a warp; groups are parts of a warp */

/* Returns the cycle counter of the multiprocessor. On a CPU or a simulated device, returns nanoseconds. */
LOOM_FN uint64_t primitives_cycles(const struct loom_ctx *c)
{
#if defined(__CUDA_ARCH__)
	uint64_t now;
	(void)c;
	asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
	return now;
#elif defined(LOOM_REAL_GPU)
	(void)c;
	return __builtin_readcyclecounter();
#else
	return loom_clock_ns(c);
#endif
}

/* Keeps the compiler from computing *x earlier or later. */
LOOM_FN void primitives_keep(float *x)
{
#if defined(__CUDA_ARCH__)
	asm volatile("" : "+f"(*x)::"memory");
#elif defined(LOOM_REAL_GPU)
	asm volatile("" : "+v"(*x)::"memory");
#else
	asm volatile("" : "+m"(*x)::"memory");
#endif
}

/* Synchronises the lanes of `mask` in this warp, as sync() of cooperative groups does for a tile or for coalesced
 * threads. On an AMD GPU the lanes of a wave run in step, so fences are enough. On other devices all lanes of the
 * worker synchronise. */
LOOM_FN void primitives_sync_mask(struct loom_ctx *c, uint32_t mask)
{
#if defined(__CUDA_ARCH__)
	(void)c;
	__syncwarp(mask);
#elif defined(LOOM_REAL_GPU)
	(void)c, (void)mask;
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
	__builtin_amdgcn_wave_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#else
	(void)mask;
	loom_barrier_lanes(c);
#endif
}

/* Synchronises all lanes of the worker. On a GPU this is the barrier of a block, even if the block has only one
 * warp. */
LOOM_FN void primitives_sync_worker(struct loom_ctx *c)
{
#if defined(__CUDA_ARCH__) && LOOM_WORKERS_PER_BLOCK == 1
	(void)c;
	__syncthreads();
#else
	loom_barrier_lanes(c);
#endif
}

/* Synchronises the grid as CUDA 13's cooperative groups do: all workers add to one word. The first worker adds so
 * much that the highest bit changes when all workers have arrived. Lane 0 of each worker polls this bit. If lane 0
 * sees that the run is over, it sets *over to 1, and does not wait in later calls. */
LOOM_FN void primitives_sync_grid(struct loom_ctx *c, uint32_t *over)
{
	struct primitives_device *d = (struct primitives_device *)c->on_device[LOOM_WORKLOAD];
	primitives_sync_worker(c);
	if (c->lane == 0 && !*over) {
		uint32_t mine = c->worker == c->first ? 0x80000000u - (c->count - 1) : 1u, polls = 0;
		/* Release: pairs with the acquire of each poll. All stores before the barrier are visible after it. */
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

/* Returns the size of this lane's group, and stores the first lane of the group in *first. Returns 0 if this lane
 * takes no part. */
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

/* Does one operation of any kind except PRIMITIVE_ADD. */
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

/* Records the round, synchronises, and checks the record of another lane. For a grid, this is a lane of another
 * worker. */
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

/* Returns the cycles that the chain took, or 0 if this lane takes no part. */
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
	primitives_sync_grid(c, over); /* so that the chains of all workers run at the same time */
	uint64_t begin = loom_clock_ns(c), cycles = primitives_chain(c, h, over);
	if (c->lane % PRIMITIVE_WAVE == 0) { /* the first lane of a warp takes part in all operations */
		uint64_t seen = loom_load_relaxed_dev(&own->slowest);
		while (seen < cycles && !loom_cas_acq_rel_dev(&own->slowest, &seen, cycles))
			;
	}
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		time->begin_ns = begin;
		time->end_ns = loom_clock_ns(c);
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
