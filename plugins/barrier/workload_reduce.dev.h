/* SPDX-License-Identifier: Apache-2.0 */
/* reduce: the sum of n floats, in ways that differ in who takes part and where they meet. Device code.
 *
 *   warp     the first 32 lanes of worker 0
 *   worker   all lanes of worker 0
 *   device   the workers of the first device: each leaves its sum in that device's memory, and worker 0 adds these up
 *   stack    the workers of all devices: the first of each device adds up its device's sums, and worker 0 those
 *
 * Each device has all floats in its own memory, so it may sum any part of them. A lane adds floats up, and the sums of tiles as
 * doubles: the floats are small whole numbers, so the sum is exact in any order. Each round begins one quad further than the
 * one before, so what is left over from another round is a wrong sum.
 *
 * Before that the parts of which the model is made are timed. */
#ifndef WORKLOAD_REDUCE_DEV_H
#define WORKLOAD_REDUCE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>
#endif

enum { REDUCE_WARP = 0, REDUCE_WORKER, REDUCE_DEVICE, REDUCE_STACK, REDUCE_WAYS };
enum {
	REDUCE_TURNS = 8,       /* rounds after which the input is the same again */
	REDUCE_BATCH = 8,       /* quads that a lane asks for at once */
	REDUCE_WARP_LANES = 32, /* of the way of that name */
	REDUCE_TIMES = 64,      /* how often each of the model's parts is done */
	REDUCE_ALONE = 1 << 14, /* quads, at most, that worker 0 reads to find its rate */
};
/* Batches of a tile: its floats, at most 256 each, add up to less than 2^24. A CPU fetches ahead what lies in a row. */
#ifdef LOOM_DEVICE_COMPILE
#define REDUCE_BATCHES 1u
#else
#define REDUCE_BATCHES 64u
#endif

/* One access of a lane. */
struct __attribute__((aligned(16))) reduce_quad {
	float at[4];
};

/* In ns, by worker 0: REDUCE_TIMES of each, but of the last. */
struct reduce_parts {
	uint64_t load[2];    /* loads that wait for each other: where the worker has read before; behind a barrier */
	uint64_t combine[2]; /* the lanes of a warp, and of a worker, add up */
	uint64_t alone;      /* worker 0 reads REDUCE_ALONE quads, or all there are */
	uint64_t gather;     /* a barrier of the device, behind which worker 0 adds up its workers' sums */
	uint64_t meet;       /* a barrier of the stack; 0: nobody needs it */
	uint64_t all;        /* as many as a way has rounds: the workers of the first device read all quads */
};

/* The global block: constant while workers run. */
struct reduce_head {
	uint64_t quads;  /* of a round */
	uint64_t rounds; /* of each way */
	uint32_t ways;   /* that are run: bits 1 << REDUCE_WARP ... */
	uint32_t seed;   /* of the floats */
};
struct reduce_all {
	struct reduce_head head;
	double sum[REDUCE_TURNS]; /* of each round's input */
};

/* A worker's block: what is in the last lines is worker 0's. */
struct reduce_note {
	double sum; /* in that of worker d: of device d, whose first worker alone writes it */
	uint64_t pad[15];
	double unused; /* where sums go that nobody needs, so that they are computed */
	uint64_t pad1[15];
	uint64_t ns[REDUCE_WAYS], rounds[REDUCE_WAYS]; /* how long, and how many were done */
	uint64_t wrong[REDUCE_WAYS], wrong_round[REDUCE_WAYS]; /* how many were wrong, and the first of them */
	double wrong_sum[REDUCE_WAYS];
	struct reduce_parts part;
	uint64_t pad2[4];
};

/* Float i: a whole number from 1 to 256. */
LOOM_FN float reduce_value(uint64_t i, uint32_t seed)
{
	uint32_t x = ((uint32_t)i ^ seed) * 0x9e3779b1u;
	x = (x ^ x >> 15) * 0x85ebca6bu;
	return (float)((x >> 24) + 1);
}

/* A device's block: a sum of each of its workers, then the floats of a round and of the turns. */
LOOM_FN uint64_t reduce_input_at(uint64_t workers)
{
	return (workers * sizeof(double) + 127) / 128 * 128;
}

LOOM_FN double *reduce_sums(const struct loom_ctx *c)
{
	return (double *)c->on_device[LOOM_WORKLOAD];
}

LOOM_FN struct reduce_quad *reduce_input(const struct loom_ctx *c, uint64_t round)
{
	char *block = (char *)c->on_device[LOOM_WORKLOAD] + reduce_input_at(c->workers);
	return (struct reduce_quad *)block + round % REDUCE_TURNS;
}

LOOM_FN struct reduce_note *reduce_note(const struct loom_ctx *c, uint32_t worker)
{
	return (struct reduce_note *)loom_public(c, LOOM_WORKLOAD, worker);
}

/* ---- sums ------------------------------------------------------------------------------------------ */

/* A lane's part of quads `from` to `to`, which `teams` of `n` lanes read, each a tile in turn. */
LOOM_FN double reduce_read(struct loom_ctx *c, const struct reduce_quad *in, uint64_t from, uint64_t to, uint32_t n,
			   uint32_t team, uint32_t teams)
{
	const uint64_t batch = (uint64_t)n * REDUCE_BATCH, tile = batch * REDUCE_BATCHES;
	double sum = 0;
	for (uint64_t at = from + team * tile; at < to; at += teams * tile) {
		uint64_t end = at + tile < to ? at + tile : to, q = at;
		float part[4] = {0, 0, 0, 0};
		loom_stream(c, (end - at) * sizeof(*in) / n);
		for (; q + batch <= end; q += batch) {
			struct reduce_quad got[REDUCE_BATCH];
			for (uint32_t k = 0; k < REDUCE_BATCH; k++)
				got[k] = in[q + k * n + c->lane];
			for (uint32_t k = 0; k < REDUCE_BATCH; k++)
				for (uint32_t j = 0; j < 4; j++)
					part[j] += got[k].at[j];
		}
		for (q += c->lane; q < end; q += n)
			for (uint32_t j = 0; j < 4; j++)
				part[j] += in[q].at[j];
		sum += (double)((part[0] + part[1]) + (part[2] + part[3]));
	}
	return sum;
}

/* The sums of the first `n` lanes added up, on lane 0. */
LOOM_FN double reduce_combine(struct loom_ctx *c, uint32_t n, double sum)
{
	double *of = (double *)c->local[LOOM_WORKLOAD];
	if (c->lane < n)
		of[c->lane] = sum;
	loom_barrier_lanes(c);
	if (n > REDUCE_WARP_LANES) {
		for (uint32_t i = c->lane + REDUCE_WARP_LANES; c->lane < REDUCE_WARP_LANES && i < n; i += REDUCE_WARP_LANES)
			sum += of[i];
		if (c->lane < REDUCE_WARP_LANES)
			of[c->lane] = sum;
		n = REDUCE_WARP_LANES;
		loom_barrier_lanes(c);
	}
	if (c->lane == 0) {
		double part[4] = {sum, 0, 0, 0}; /* additions that need not wait for each other */
		for (uint32_t i = 1; i < n; i++)
			part[i % 4] += of[i];
		sum = (part[0] + part[1]) + (part[2] + part[3]);
	}
	loom_barrier_lanes(c); /* before the words are used again */
	return sum;
}

/* Behind a barrier, by one worker: the sums of its device's workers, on lane 0. */
LOOM_FN double reduce_gather(struct loom_ctx *c)
{
	double sum = 0;
	for (uint32_t i = c->lane; i < c->count; i += c->lanes)
		sum += reduce_sums(c)[i];
	return reduce_combine(c, c->lanes, sum);
}

/* Lanes of a worker that take part. */
LOOM_FN uint32_t reduce_lanes(const struct loom_ctx *c, uint32_t way)
{
	return way == REDUCE_WARP && c->lanes > REDUCE_WARP_LANES ? (uint32_t)REDUCE_WARP_LANES : c->lanes;
}

LOOM_FN double reduce_own(struct loom_ctx *c, uint32_t way, uint64_t round, uint64_t from, uint64_t to)
{
	uint32_t n = reduce_lanes(c, way), many = way >= REDUCE_DEVICE;
	double sum = c->lane < n ? reduce_read(c, reduce_input(c, round), from, to, n, many ? c->worker - c->first : 0,
					       many ? c->count : 1)
				 : 0;
	return reduce_combine(c, n, sum);
}

/* By all who take part: a round. Lane 0 of worker 0 has the sum. */
LOOM_FN int reduce_round(struct loom_ctx *c, const struct reduce_head *h, uint32_t way, uint64_t round, double *sum)
{
	uint64_t from = 0, to = h->quads;
	if (way == REDUCE_STACK) {
		from = h->quads * c->device / c->devices;
		to = h->quads * (c->device + 1) / c->devices;
	}
	*sum = reduce_own(c, way, round, from, to);
	if (way < REDUCE_DEVICE)
		return 0;
	if (c->lane == 0)
		reduce_sums(c)[c->worker - c->first] = *sum;
	int rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_DEVICE);
	if (!rc && c->worker == c->first)
		*sum = reduce_gather(c);
	if (rc || way == REDUCE_DEVICE)
		return rc;
	if (c->worker == c->first && c->lane == 0)
		reduce_note(c, c->device)->sum = *sum;
	rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK);
	for (uint32_t d = 1; d < c->devices && c->worker == 0 && c->lane == 0 && !rc; d++)
		*sum += reduce_note(c, d)->sum;
	return rc;
}

/* ---- the model's parts ------------------------------------------------------------------------------ */

/* By lane 0: loads at places that nobody guesses, each of which needs the answer of the one before. */
LOOM_FN uint64_t reduce_chase(struct loom_ctx *c, const struct reduce_head *h)
{
	const struct reduce_quad *in = reduce_input(c, 0);
	uint64_t begin = loom_clock_ns(c), at = 0;
	uint32_t x = (uint32_t)begin | 1u;
	for (uint32_t i = 0; i < REDUCE_TIMES; i++) {
		x = x * 1664525u + 1013904223u + (in[at].at[0] < 1); /* no float is */
		at = (uint64_t)x * h->quads >> 32;
	}
	reduce_note(c, c->worker)->unused = (double)at;
	return loom_clock_ns(c) - begin;
}

LOOM_FN uint64_t reduce_time_combine(struct loom_ctx *c, uint32_t way)
{
	double sum = c->lane;
	uint64_t begin = loom_clock_ns(c);
	for (uint32_t i = 0; i < REDUCE_TIMES; i++)
		sum = reduce_combine(c, reduce_lanes(c, way), sum);
	if (c->lane == 0)
		reduce_note(c, c->worker)->unused = sum;
	return loom_clock_ns(c) - begin;
}

/* By worker 0. */
LOOM_FN void reduce_time_alone(struct loom_ctx *c, const struct reduce_head *h, struct reduce_parts *p)
{
	uint64_t quads = h->quads < REDUCE_ALONE ? h->quads : REDUCE_ALONE;
	p->combine[0] = reduce_time_combine(c, REDUCE_WARP);
	p->combine[1] = reduce_time_combine(c, REDUCE_WORKER);
	double sum = reduce_own(c, REDUCE_WORKER, 0, 0, quads);
	uint64_t begin = loom_clock_ns(c);
	for (uint32_t i = 0; i < REDUCE_TIMES; i++)
		sum += reduce_own(c, REDUCE_WORKER, 0, 0, quads);
	p->alone = loom_clock_ns(c) - begin;
	if (c->lane == 0) {
		reduce_note(c, c->worker)->unused = sum;
		p->load[0] = reduce_chase(c, h);
	}
}

/* By all workers: 0, or the run is over. */
LOOM_FN int reduce_time_parts(struct loom_ctx *c, const struct reduce_head *h, struct reduce_parts *p)
{
	uint32_t stack = h->ways >> REDUCE_STACK & 1;
	double sum = 0;
	int rc = 0;
	if (c->worker == 0)
		reduce_time_alone(c, h, p);
	rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK);
	uint64_t begin = loom_clock_ns(c);
	for (uint32_t i = 0; i < REDUCE_TIMES && stack && !rc; i++)
		rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK);
	p->meet = stack ? loom_clock_ns(c) - begin : 0;
	if (c->device || rc)
		return rc;
	if (c->worker == 0 && c->lane == 0)
		p->load[1] = reduce_chase(c, h);
	if (c->lane == 0)
		reduce_sums(c)[c->worker - c->first] = 1;
	rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_DEVICE);
	begin = loom_clock_ns(c);
	for (uint32_t i = 0; i < REDUCE_TIMES && !rc; i++) {
		rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_DEVICE);
		sum += c->worker == 0 ? reduce_gather(c) : 0;
	}
	p->gather = loom_clock_ns(c) - begin;
	p->all = 0;
	for (uint64_t i = 0; i < h->rounds && !rc; i++) {
		rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_DEVICE);
		begin = loom_clock_ns(c);
		sum += reduce_own(c, REDUCE_DEVICE, 0, 0, h->quads);
		p->all += loom_clock_ns(c) - begin;
	}
	if (c->lane == 0)
		reduce_note(c, c->worker)->unused = sum;
	return rc;
}

/* ---- rounds ----------------------------------------------------------------------------------------- */

LOOM_FN void reduce_fill(struct loom_ctx *c, const struct reduce_head *h)
{
	float *in = reduce_input(c, 0)->at;
	uint64_t floats = (h->quads + REDUCE_TURNS) * 4;
	uint64_t step = (uint64_t)c->count * c->lanes;
	for (uint64_t i = (uint64_t)(c->worker - c->first) * c->lanes + c->lane; i < floats; i += step)
		in[i] = reduce_value(i, h->seed);
}

LOOM_FN void reduce_judge(struct loom_ctx *c, struct reduce_note *n, uint32_t way, uint64_t round, double sum)
{
	const struct reduce_all *all = (const struct reduce_all *)c->global[LOOM_WORKLOAD];
	n->rounds[way]++;
	if (sum != all->sum[round % REDUCE_TURNS] && !n->wrong[way]++) {
		n->wrong_round[way] = round;
		n->wrong_sum[way] = sum;
	}
}

/* All rounds of a way. Each begins when all who take part have come, and lasts until worker 0 has the sum. */
LOOM_FN int reduce_rounds(struct loom_ctx *c, const struct reduce_head *h, uint32_t way, struct reduce_note *note)
{
	enum loom_scope scope = way == REDUCE_STACK    ? LOOM_SCOPE_STACK
				: way == REDUCE_DEVICE ? LOOM_SCOPE_DEVICE
						       : LOOM_SCOPE_WORKER;
	uint64_t ns = 0;
	double sum = 0;
	int rc = 0;
	if (way == REDUCE_DEVICE ? c->device != 0 : way < REDUCE_DEVICE && c->worker != 0)
		return 0;
	for (uint64_t round = 0; round < h->rounds && !rc; round++) {
		rc = LOOM_CALL(barrier, wait, c, scope);
		uint64_t begin = loom_clock_ns(c);
		rc = rc ? rc : reduce_round(c, h, way, round, &sum);
		ns += loom_clock_ns(c) - begin;
		if (c->worker == 0 && c->lane == 0 && !rc)
			reduce_judge(c, note, way, round, sum);
		if (scope == LOOM_SCOPE_WORKER && loom_word_from_lane0(c, (uint32_t)loom_stopped(c)))
			rc = LOOM_EINTR;
	}
	if (c->lane == 0)
		note->ns[way] = ns;
	return rc;
}

LOOM_FN void workload_reduce_kernel(struct loom_ctx *c)
{
	const struct reduce_head h = *(const struct reduce_head *)c->global[LOOM_WORKLOAD];
	struct reduce_note *own = reduce_note(c, c->worker);
	struct reduce_parts parts = {0};
	int rc;
	reduce_fill(c, &h);
	rc = LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK);
	rc = rc ? rc : reduce_time_parts(c, &h, &parts);
	for (uint32_t way = 0; way < REDUCE_WAYS && !rc; way++)
		if (h.ways >> way & 1) {
			rc = reduce_rounds(c, &h, way, own);
			rc = rc ? rc : LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK);
		}
	if (c->lane == 0)
		own->part = parts;
	if (rc && rc != LOOM_EINTR && c->lane == 0)
		loom_worker_fail(c, rc, c->worker);
}

#endif
