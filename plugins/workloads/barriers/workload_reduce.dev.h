/* SPDX-License-Identifier: Apache-2.0 */
/* reduce: the sum of n floats. The ways to sum differ in the lanes that take part and in the barriers. Device code.
 *
 *   warp     the first 32 lanes of worker 0
 *   worker   all lanes of worker 0
 *   device   the workers of the first device: each stores its sum in the device's memory, and worker 0 adds these sums
 *   stack    the workers of all devices: the first worker of each device adds the sums of its device, and worker 0 adds
 *            the sums of the devices
 *
 * Each device has all floats in its own memory, so it may sum any part of them. A lane adds the floats of a tile as
 * floats, and the sums of tiles as doubles. The floats are small integers, so the sum is exact in any order. The
 * input of each round starts later than that of the previous round. So a sum with values of another round is wrong. */
#ifndef WORKLOAD_REDUCE_DEV_H
#define WORKLOAD_REDUCE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>
#endif

/* Phases that worker 0 times: first those whose times the model needs, then the ways. */
enum {
	REDUCE_LANES_WARP = 0, /* the lanes of a warp add their sums */
	REDUCE_LANES_WORKER,   /* the lanes of a worker add their sums */
	REDUCE_ALONE_WARP,     /* a warp reads and sums at most REDUCE_ALONE quads */
	REDUCE_ALONE_WORKER,   /* a worker reads and sums at most REDUCE_ALONE quads */
	REDUCE_ALL,            /* the workers of the first device read all quads, and each sums what it has read */
	REDUCE_GATHER,         /* a barrier of the device, then worker 0 adds one sum of each worker */
	REDUCE_BARRIER,           /* a barrier of the stack */
	REDUCE_WARP,
	REDUCE_WORKER,
	REDUCE_DEVICE,
	REDUCE_STACK,
	REDUCE_PHASES
};
enum {
	REDUCE_OFFSETS = 8,       /* number of rounds after which the input repeats */
	REDUCE_OFFSET = 32,       /* quads by which the input of a round starts later; whole cache lines of a GPU */
	REDUCE_BATCH = 8,       /* number of quads that a lane loads at once */
	REDUCE_WARP_LANES = 32, /* number of lanes that sum with way = warp */
	REDUCE_TIMES = 64,      /* rounds of most phases for the model; loads of reduce_chase() */
	REDUCE_ALONE = 1 << 14, /* upper limit on the quads that one warp or worker reads for the model */
};
/* Number of batches of a tile. A lane's sum of a tile is exact, because it is below 2^24: each float is at most 256.
 * A tile of a CPU is larger, because a CPU prefetches contiguous data. */
#ifdef LOOM_DEVICE_COMPILE
#define REDUCE_BATCHES 1u
#else
#define REDUCE_BATCHES 64u
#endif

/* The data of one access of a lane. */
struct __attribute__((aligned(16))) reduce_quad {
	float at[4];
};

/* The global block: constant while workers run. */
struct reduce_head {
	uint64_t quads;  /* quads of a round */
	uint64_t rounds; /* rounds of each way */
	uint32_t phases; /* set of phases to run: bit 1 << phase is set */
	uint32_t seed;   /* seed of the floats */
};
struct reduce_all {
	struct reduce_head head;
	double sum[REDUCE_OFFSETS]; /* sum of each round's input */
};

/* A worker's block. Only worker 0 uses the last lines. */
struct reduce_record {
	double sum; /* in worker d's block: the sum of device d, written by the device's first worker */
	uint64_t pad[15];
	double unused; /* receives results that are not needed, so that the compiler keeps their computation */
	uint64_t load[2]; /* ns of REDUCE_TIMES dependent loads: [0] of data just read, [1] after a barrier */
	uint64_t ns[REDUCE_PHASES], rounds[REDUCE_PHASES];            /* ns and rounds of each phase */
	uint64_t wrong[REDUCE_PHASES], wrong_round[REDUCE_PHASES]; /* number of wrong sums; round of the first */
	double wrong_sum[REDUCE_PHASES];
	uint64_t pad1[6];
};

/* A device's block. A sum of each of its workers follows, then the floats of all rounds. */
struct reduce_device {
	uint64_t claimed[2][16]; /* number of tiles that workers have claimed, in even and in odd rounds */
};

/* Returns float i, an integer from 1 to 256. */
LOOM_FN float reduce_value(uint64_t i, uint32_t seed)
{
	uint32_t x = ((uint32_t)i ^ seed) * 0x9e3779b1u;
	x = (x ^ x >> 15) * 0x85ebca6bu;
	return (float)((x >> 24) + 1);
}

LOOM_FN uint64_t reduce_input_at(uint64_t workers)
{
	return sizeof(struct reduce_device) + (workers * sizeof(double) + 127) / 128 * 128;
}

LOOM_FN double *reduce_sums(const struct loom_ctx *c)
{
	return (double *)((struct reduce_device *)c->on_device[LOOM_WORKLOAD] + 1);
}

LOOM_FN struct reduce_quad *reduce_input(const struct loom_ctx *c, uint64_t round)
{
	char *block = (char *)c->on_device[LOOM_WORKLOAD] + reduce_input_at(c->workers);
	return (struct reduce_quad *)block + round % REDUCE_OFFSETS * REDUCE_OFFSET;
}

LOOM_FN struct reduce_record *reduce_record(const struct loom_ctx *c, uint32_t worker)
{
	return (struct reduce_record *)loom_public(c, LOOM_WORKLOAD, worker);
}

/* ---- sums ---- */

/* Returns the sum of this lane's floats in the tile from quad `at` to quad `end` (exclusive), which `n` lanes share. */
LOOM_FN double reduce_tile(struct loom_ctx *c, const struct reduce_quad *in, uint64_t at, uint64_t end, uint32_t n)
{
	const uint64_t batch = (uint64_t)n * REDUCE_BATCH;
	float part[4] = {0, 0, 0, 0};
	loom_stream(c, (end - at) * sizeof(*in) / n);
	for (; at + batch <= end; at += batch) {
		struct reduce_quad got[REDUCE_BATCH];
		for (uint32_t k = 0; k < REDUCE_BATCH; k++)
			got[k] = in[at + k * n + c->lane];
		for (uint32_t k = 0; k < REDUCE_BATCH; k++)
			for (uint32_t j = 0; j < 4; j++)
				part[j] += got[k].at[j];
	}
	LOOM_NO_UNROLL
	for (at += c->lane; at < end; at += n) {
		struct reduce_quad got = in[at];
		for (uint32_t j = 0; j < 4; j++)
			part[j] += got.at[j];
	}
	return (double)((part[0] + part[1]) + (part[2] + part[3]));
}

/* Returns the sum of this lane's floats in quads 0 to `quads`. `teams` workers, each with `n` lanes, take tiles in
 * turn. If there are many tiles, workers claim the last eighth dynamically, because some multiprocessors read more
 * slowly. */
LOOM_FN double reduce_read(struct loom_ctx *c, const struct reduce_quad *in, uint64_t quads, uint32_t n, uint32_t teams,
			   uint64_t *claimed)
{
	const uint64_t tile = (uint64_t)n * REDUCE_BATCH * REDUCE_BATCHES, tiles = (quads + tile - 1) / tile;
	const uint64_t fixed = teams > 1 && tiles / teams >= 16 ? tiles - tiles / 8 : tiles;
	double sum = 0;
	for (uint64_t t = teams > 1 ? c->worker - c->first : 0;; t += teams) {
		if (t >= fixed && fixed < tiles)
			t = fixed +
			    loom_from_lane0(c, c->lane == 0 ? loom_fetch_add_relaxed_dev(claimed, (uint64_t)1) : 0);
		if (t >= tiles)
			return sum;
		sum += reduce_tile(c, in, t * tile, (t + 1) * tile < quads ? (t + 1) * tile : quads, n);
	}
}

/* Returns the sum over the first `n` lanes on lane 0. */
LOOM_FN double reduce_combine(struct loom_ctx *c, uint32_t n, double sum)
{
	double *of = (double *)c->local[LOOM_WORKLOAD];
	if (c->lane < n)
		of[c->lane] = sum;
	loom_barrier_lanes(c);
	if (n > REDUCE_WARP_LANES) {
		for (uint32_t i = c->lane + REDUCE_WARP_LANES; c->lane < REDUCE_WARP_LANES && i < n;
		     i += REDUCE_WARP_LANES)
			sum += of[i];
		if (c->lane < REDUCE_WARP_LANES)
			of[c->lane] = sum;
		n = REDUCE_WARP_LANES;
		loom_barrier_lanes(c);
	}
	if (c->lane == 0) {
		double odd = 0; /* two independent chains of additions */
		for (uint32_t i = 1; i < n; i += 2)
			odd += of[i];
		for (uint32_t i = 2; i < n; i += 2)
			sum += of[i];
		sum += odd;
	}
	loom_barrier_lanes(c); /* the next call may write `of` only after all lanes have read it */
	return sum;
}

/* Waits at a barrier of the device. Then the first worker of the device adds the sums of all its workers. */
LOOM_FN int reduce_gather(struct loom_ctx *c, double *sum)
{
	double *sums = reduce_sums(c);
	if (c->lane == 0)
		sums[c->worker - c->first] = *sum;
	int rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_DEVICE);
	if (rc || c->worker != c->first)
		return rc;
	*sum = 0;
	for (uint32_t i = c->lane; i < c->count; i += c->lanes)
		*sum += sums[i];
	*sum = reduce_combine(c, c->lanes, *sum);
	return 0;
}

/* Waits at a barrier of the stack. Then worker 0 adds the sums of all devices. */
LOOM_FN int reduce_devices(struct loom_ctx *c, double *sum)
{
	if (c->worker == c->first && c->lane == 0)
		reduce_record(c, c->device)->sum = *sum;
	int rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK);
	for (uint32_t d = 1; d < c->devices && c->worker == 0 && c->lane == 0 && !rc; d++)
		*sum += reduce_record(c, d)->sum;
	return rc;
}

/* Returns whether a phase is in the set `of`. */
LOOM_FN uint32_t reduce_is(uint32_t phase, uint32_t of)
{
	return of >> phase & 1;
}
#define REDUCE_IS_WARP (1u << REDUCE_LANES_WARP | 1u << REDUCE_ALONE_WARP | 1u << REDUCE_WARP)
#define REDUCE_IS_ALONE (1u << REDUCE_ALONE_WARP | 1u << REDUCE_ALONE_WORKER)
#define REDUCE_OF_STACK (1u << REDUCE_BARRIER | 1u << REDUCE_STACK)
#define REDUCE_OF_DEVICE (1u << REDUCE_ALL | 1u << REDUCE_GATHER | 1u << REDUCE_DEVICE)
#define REDUCE_READS (REDUCE_IS_ALONE | 1u << REDUCE_ALL | 15u << REDUCE_WARP)
#define REDUCE_GATHERS (1u << REDUCE_GATHER | 1u << REDUCE_DEVICE | 1u << REDUCE_STACK)

/* Runs one round. All workers that take part in the phase call it. Lane 0 of worker 0 gets the sum. */
LOOM_FN int reduce_round(struct loom_ctx *c, const struct reduce_head *h, uint32_t phase, uint64_t round, double *sum)
{
	uint32_t n =
	    reduce_is(phase, REDUCE_IS_WARP) && c->lanes > REDUCE_WARP_LANES ? (uint32_t)REDUCE_WARP_LANES : c->lanes;
	uint32_t teams = reduce_is(phase, REDUCE_OF_DEVICE | REDUCE_OF_STACK) ? c->count : 1;
	struct reduce_device *d = (struct reduce_device *)c->on_device[LOOM_WORKLOAD];
	const struct reduce_quad *in = reduce_input(c, round);
	uint64_t quads = h->quads;
	int rc = 0;
	if (reduce_is(phase, REDUCE_IS_ALONE) && quads > REDUCE_ALONE)
		quads = REDUCE_ALONE;
	if (phase == REDUCE_STACK) {
		in += quads * c->device / c->devices;
		quads = quads * (c->device + 1) / c->devices - quads * c->device / c->devices;
	}
	/* Reset the counter of the next round: all workers have ended the previous round, which used it, and none has
	 * begun the next one. */
	if (c->worker == c->first && c->lane == 0)
		loom_store_relaxed_dev(&d->claimed[(round + 1) % 2][0], (uint64_t)0);
	*sum = 0;
	if (reduce_is(phase, REDUCE_READS) && c->lane < n)
		*sum = reduce_read(c, in, quads, n, teams, d->claimed[round % 2]);
	if (phase != REDUCE_GATHER && phase != REDUCE_BARRIER)
		*sum = reduce_combine(c, n, *sum);
	if (reduce_is(phase, REDUCE_GATHERS))
		rc = reduce_gather(c, sum);
	return rc || !reduce_is(phase, REDUCE_OF_STACK) ? rc : reduce_devices(c, sum);
}

/* ---- phases ---- */

/* Called by lane 0. Returns the ns of loads at unpredictable addresses, each of which depends on the previous load. */
LOOM_FN uint64_t reduce_chase(struct loom_ctx *c, const struct reduce_head *h)
{
	const struct reduce_quad *in = reduce_input(c, 0);
	uint64_t begin = loom_clock_ns(c), at = 0;
	uint32_t x = (uint32_t)begin | 1u;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < REDUCE_TIMES; i++) {
		x = x * 1664525u + 1013904223u + (in[at].at[0] < 1); /* always false, but depends on the load */
		at = (uint64_t)x * h->quads >> 32;
	}
	reduce_record(c, c->worker)->unused = (double)at;
	return loom_clock_ns(c) - begin;
}

LOOM_FN void reduce_fill(struct loom_ctx *c, const struct reduce_head *h)
{
	float *in = reduce_input(c, 0)->at;
	uint64_t floats = (h->quads + REDUCE_OFFSETS * REDUCE_OFFSET) * 4, step = (uint64_t)c->count * c->lanes;
	for (uint64_t i = (uint64_t)(c->worker - c->first) * c->lanes + c->lane; i < floats; i += step)
		in[i] = reduce_value(i, h->seed);
}

LOOM_FN void reduce_check(struct loom_ctx *c, struct reduce_record *n, uint32_t phase, uint64_t round, double sum)
{
	const struct reduce_all *all = (const struct reduce_all *)c->global[LOOM_WORKLOAD];
	n->rounds[phase] += round > 0;
	n->unused = sum;
	if (phase >= REDUCE_WARP && sum != all->sum[round % REDUCE_OFFSETS] && !n->wrong[phase]++) {
		n->wrong_round[phase] = round;
		n->wrong_sum[phase] = sum;
	}
}

/* Runs all rounds of a phase. Each round starts with a barrier of the participating workers, and lasts until worker 0
 * has the sum. The first round warms the TLBs of a GPU and is not timed. */
LOOM_FN int reduce_rounds(struct loom_ctx *c, const struct reduce_head *h, uint32_t phase, struct reduce_record *record)
{
	uint64_t rounds = phase < REDUCE_ALL || phase == REDUCE_GATHER || phase == REDUCE_BARRIER
			      ? (uint64_t)REDUCE_TIMES
			      : h->rounds;
	uint64_t ns = 0;
	double sum = 0;
	int rc = 0;
	if (c->worker == c->first && c->lane == 0)
		loom_store_relaxed_dev(&((struct reduce_device *)c->on_device[LOOM_WORKLOAD])->claimed[0][0],
				       (uint64_t)0);
	for (uint64_t round = 0; round <= rounds && !rc; round++) {
		if (reduce_is(phase, REDUCE_OF_STACK))
			rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK);
		else if (reduce_is(phase, REDUCE_OF_DEVICE))
			rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_DEVICE);
		else
			rc = loom_word_from_lane0(c, (uint32_t)loom_stopped(c)) ? LOOM_EINTR : 0;
		uint64_t begin = loom_clock_ns(c);
		rc = rc ? rc : reduce_round(c, h, phase, round, &sum);
		ns += round ? loom_clock_ns(c) - begin : 0;
		if (c->worker == 0 && c->lane == 0 && !rc)
			reduce_check(c, record, phase, round, sum);
	}
	if (c->lane == 0)
		record->ns[phase] = ns;
	return rc;
}

LOOM_FN void workload_reduce_kernel(struct loom_ctx *c)
{
	const struct reduce_head *h = &((const struct reduce_all *)c->global[LOOM_WORKLOAD])->head;
	struct reduce_record *own = reduce_record(c, c->worker);
	int rc = 0;
	reduce_fill(c, h);
	LOOM_NO_UNROLL
	for (uint32_t phase = 0; phase < REDUCE_PHASES && !rc; phase++) {
		if (!reduce_is(phase, h->phases))
			continue;
		rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK);
		if (c->worker == 0 && c->lane == 0 && phase == REDUCE_ALL)
			own->load[1] = reduce_chase(c, h);
		if (!rc && (reduce_is(phase, REDUCE_OF_STACK) ||
			    (reduce_is(phase, REDUCE_OF_DEVICE) ? c->device : c->worker) == 0))
			rc = reduce_rounds(c, h, phase, own);
		if (c->worker == 0 && c->lane == 0 && phase == REDUCE_ALONE_WORKER)
			own->load[0] = reduce_chase(c, h);
	}
	if (rc && rc != LOOM_EINTR && c->lane == 0)
		loom_worker_fail(c, rc, c->worker);
}

#endif
