/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_experts: one layer of routed experts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "experts_routing.h"
#include "half.h"
#include "workload_experts.dev.h"
#include "../common/host.h"
#include "../common/products.h"
#include "lib/align.h"

static const char *const skews[] = {EXPERTS_SKEWS(EXPERTS_SKEW_TEXT) NULL};
static const char *const redraws[] = {"run", "sample", NULL};

struct experts_opts {
	uint32_t experts, tokens, top, dim, hidden, skew, ranks, redraw, real, rows, block, checked;
	const char *trace, *save;
};

static const struct loom_opt experts_rows[] = {
	LOOM_OPT(struct experts_opts, experts, LOOM_OPT_U32, "16", "Experts of the layer.", .min = 1, .max = EXPERTS_MOST),
	LOOM_OPT(struct experts_opts, tokens, LOOM_OPT_U32, "64", "Tokens of the batch.", .min = 1, .max = EXPERTS_TOKENS_MOST),
	LOOM_OPT(struct experts_opts, top, LOOM_OPT_U32, "2", "Experts that a token chooses.", .min = 1, .max = EXPERTS_TOP_MOST),
	LOOM_OPT(struct experts_opts, skew, LOOM_OPT_ENUM, "zipf",
			 "Which experts tokens choose, by [run] seed and the step. " EXPERTS_SKEWS(EXPERTS_SKEW_HELP), .choices = skews),
	LOOM_OPT(struct experts_opts, ranks, LOOM_OPT_U32, "4",
			 "Ranks of the skews that name ranks. Each has an equal range of the experts and sends a part of the tokens; all run "
			 "in this job.", .min = 1, .max = EXPERTS_MOST),
	LOOM_OPT(struct experts_opts, redraw, LOOM_OPT_ENUM, "run",
			 "When tokens choose. run: once; this is step 0, and tasks have their expert as a parameter. sample: each sample is the "
			 "next step. A task of the first product then knows only its number, and finds its expert and tokens by the array of the "
			 "starts of experts, as when a kernel before has written it; some tasks find none.", .choices = redraws),
	LOOM_OPT(struct experts_opts, trace, LOOM_OPT_PATH, "",
			 "skew = trace: a file of choices, as `save` writes it. After its last step comes its first."),
	LOOM_OPT(struct experts_opts, save, LOOM_OPT_PATH, "",
			 "File to write the choices to: of step 0, or of 8 steps with redraw = sample.", .flags = LOOM_OPT_TRUST),
	LOOM_OPT(struct experts_opts, dim, LOOM_OPT_U32, "256", "Numbers of a token; a multiple of 8.", .min = 8,
			 .max = 1 << 16),
	LOOM_OPT(struct experts_opts, hidden, LOOM_OPT_U32, "512", "Numbers between the two products; a multiple of 8.",
			 .min = 8, .max = 1 << 17),
	LOOM_OPT(struct experts_opts, real, LOOM_OPT_ENUM, "bfloat16", "Type of the weights; all other numbers are float.",
			 .choices = half_types),
	LOOM_OPT(struct experts_opts, rows, LOOM_OPT_U32, "64",
			 "Rows of weights of a task of the first product, a power of two; fewer in the second one, if its rows are longer. A number beyond "
			 "hidden and dim: a task per block of an expert.",
			 .min = 16, .max = 1 << 17),
	LOOM_OPT(struct experts_opts, block, LOOM_OPT_U32, "16",
			 "Tokens of an expert of a task, at most 32: an expert with more reads its weights again for each block.",
			 .min = 1, .max = EXPERTS_BLOCK_MAX),
	LOOM_OPT(struct experts_opts, checked, LOOM_OPT_U32, "auto",
			 "Tokens of a sample that are compared with a computation in double precision, drawn again for each. All "
			 "tokens are checked to have a result. auto: all, but fewer where that takes 2^30 multiplications.",
			 .max = 65536, .flags = LOOM_OPT_AUTO),
	{.name = NULL},
};

struct experts_job {
	struct workload base;
	const struct experts_opts *o;
	struct routing trace; /* of the file `trace`; else one step, in which the choices are drawn */
	const uint32_t *choice; /* [tokens][top]: the experts that the tokens of this sample choose */
	uint32_t *count;  /* [experts]: number of slots of each expert */
	double *hidden;	  /* [hidden]: memory of the check */
	uint64_t sample;
	int saved; /* 1: the choices were written to the file `save` */
};

static const struct experts_opts *opts_of(const void *self)
{
	return ((const struct experts_job *)self)->o;
}

static struct routing shape_of(const struct experts_opts *o)
{
	return (struct routing){.experts = o->experts,
				.tokens = o->tokens,
				.top = o->top,
				.ranks = o->ranks < o->experts ? o->ranks : o->experts,
				.steps = 1};
}

static int experts_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct experts_opts *o = opts;
	struct routing shape = shape_of(o);
	if (o->top > routing_some(o->skew, &shape))
		return LOOM_REFUSE(host, err, "top", "top = %u: tokens choose among %u experts", o->top, routing_some(o->skew, &shape));
	if (o->dim % 8)
		return LOOM_REFUSE(host, err, "dim", "dim = %u: must be a multiple of 8", o->dim);
	if (o->hidden % 8)
		return LOOM_REFUSE(host, err, "hidden", "hidden = %u: must be a multiple of 8", o->hidden);
	if (!loom__is_power_of_two(o->rows))
		return LOOM_REFUSE(host, err, "rows", "rows = %u: must be a power of two", o->rows);
	if (o->skew == EXPERTS_TRACE && !*o->trace)
		return LOOM_REFUSE(host, err, "trace", "skew = trace: set trace = FILE");
	return 0;
}

static void experts_destroy(void *self)
{
	struct experts_job *job = self;
	if (job) {
		routing_free(&job->trace);
		free(job->count);
		free(job->hidden);
	}
	workload_destroy(self);
}

static int experts_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	void *made = NULL;
	int rc = workload_create(host, opts, sizeof(struct experts_job), &made, err);
	if (rc)
		return rc;
	struct experts_job *job = made;
	job->o = opts;
	struct routing shape = shape_of(job->o);
	rc = routing_create(host, job->o->skew, job->o->trace, &shape, &job->trace, err);
	if (rc) {
		experts_destroy(job);
		return rc;
	}
	job->count = calloc(job->o->experts, sizeof(*job->count));
	job->hidden = calloc(job->o->hidden, sizeof(*job->hidden));
	if (!job->count || !job->hidden) {
		experts_destroy(job);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	}
	*self = job;
	return 0;
}

/* ---- memory ----------------------------------------------------------------------------------- */

static uint32_t rows_of(const struct experts_opts *o)
{
	uint32_t most = o->hidden > o->dim ? o->hidden : o->dim;
	return o->rows < most ? o->rows : (uint32_t)loom__power_of_two(most);
}

/* Returns how many bands of 16 rows a warp has in flight. *warps: the largest number of warps of a worker on a GPU. */
static uint32_t ahead_of(const struct experts_opts *o, const struct loom_layout *layout, uint32_t *warps)
{
	*warps = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		if (layout->device[d].kind == LOOM_ON_GPU && layout->device[d].lanes / TILE_WARP > *warps)
			*warps = layout->device[d].lanes / TILE_WARP;
	return *warps ? EXPERTS_AHEAD_OF(experts_tile_rows(rows_of(o), o->block), *warps) : 1;
}

static uint64_t experts_scratch(void *self, const struct loom_layout *layout)
{
	const struct experts_opts *o = opts_of(self);
	uint32_t rows = experts_tile_rows(rows_of(o), o->block), warps, ahead = ahead_of(o, layout, &warps);
	return workload_products(layout) ? warps * (uint64_t)EXPERTS_LOCAL(rows, o->block, ahead) : 0;
}

static uint32_t experts_registers(void *self, const struct loom_layout *layout)
{
	(void)self;
	return workload_product_registers(layout);
}

static int experts_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err)
{
	const struct experts_opts *o = opts_of(self);
	uint32_t warps, ahead = ahead_of(o, layout, &warps);
	(void)err;
	snprintf(text, room,
		 "#define EXPERTS_ROWS %u\n#define EXPERTS_BLOCK %u\n#define EXPERTS_BFLOAT %u\n#define EXPERTS_AHEAD %u\n"
		 "#define EXPERTS_PRODUCTS %u\n",
		 experts_tile_rows(rows_of(o), o->block), o->block, o->real, ahead, workload_products(layout));
	return 0;
}

/* Sets the choices of a step. */
static void route(struct experts_job *job, const struct loom_layout *layout, uint64_t step)
{
	const struct experts_opts *o = job->o;
	struct routing *t = &job->trace;
	if (o->skew != EXPERTS_TRACE)
		routing_draw(o->skew, layout->seed, step, t, t->choice, t->source);
	job->choice = t->choice + step % t->steps * t->tokens * t->top;
	memset(job->count, 0, o->experts * sizeof(*job->count));
	for (uint64_t i = 0; i < (uint64_t)o->tokens * o->top; i++)
		job->count[job->choice[i]]++;
}

static uint32_t blocks_of(const struct experts_job *job, uint32_t expert)
{
	return (job->count[expert] + job->o->block - 1) / job->o->block;
}

static uint32_t tiles_of(const struct experts_job *job, uint32_t rows)
{
	return (rows + rows_of(job->o) - 1) / rows_of(job->o);
}

static struct experts head_of(const struct experts_job *job, const struct loom_layout *layout, uint64_t *bytes)
{
	const struct experts_opts *o = job->o;
	struct experts r = {.experts = o->experts,
			    .tokens = o->tokens,
			    .top = o->top,
			    .dim = o->dim,
			    .hidden = o->hidden,
			    .rows = rows_of(o),
			    .rows2 = rows_of(o),
			    .block = o->block,
			    .bfloat = o->real,
			    .group = workload_products(layout) ? EXPERTS_GROUP : 16,
			    .noncoherent = LOOM_HAS(layout, noncoherent) && layout->noncoherent && layout->devices > 1};
	while (r.rows < r.hidden && r.rows2 > 16 && (uint64_t)r.rows2 * r.hidden > (uint64_t)r.rows * r.dim)
		r.rows2 /= 2;
	uint64_t at = sizeof(r) + layout->devices * sizeof(struct loom_onebit_lock), slots = (uint64_t)o->tokens * o->top,
		 blocks = pieces_room(slots, o->experts, o->block);
#define PLACE(what, size) (r.what##_at = workload_place(&at, size))
	PLACE(first_slot, (o->experts + 1) * 4ull);
	PLACE(order, slots * 4);
	PLACE(weight, slots * 4);
	PLACE(pending, blocks * 16);
	PLACE(open, o->tokens * 8ull);
	PLACE(x, (uint64_t)o->tokens * o->dim * 4);
	PLACE(first, o->experts * experts_matrix(r.group, o->hidden, o->dim) * 2);
	PLACE(second, o->experts * experts_matrix(r.group, o->dim, o->hidden) * 2);
	PLACE(hidden, slots * o->hidden * 4);
	PLACE(result, slots * o->dim * 4);
	PLACE(place, slots * 4);
	PLACE(out, (uint64_t)o->tokens * o->dim * 4);
	PLACE(sums, slots * 4);
#undef PLACE
	*bytes = at;
	return r;
}

/* Records the checksum of the choices of the first steps, and writes them to the file `save`. */
static int record(struct experts_job *job, const struct loom_layout *layout, struct loom_error *err)
{
	const struct experts_opts *o = job->o;
	struct routing all = job->trace;
	const int drawn = o->skew != EXPERTS_TRACE;
	int rc = 0;
	if (job->saved)
		return 0;
	job->saved = 1;
	if (drawn) {
		all.steps = o->redraw ? 8 : 1;
		all.choice = calloc((uint64_t)all.steps * all.tokens * all.top, sizeof(*all.choice));
		all.source = calloc((uint64_t)all.steps * all.tokens, sizeof(*all.source));
		rc = all.choice && all.source ? 0 : LOOM_FAIL(job->base.host, err, LOOM_ENOMEM, "out of memory");
	}
	for (uint64_t step = 0; drawn && !rc && step < all.steps; step++)
		routing_draw(o->skew, layout->seed, step, &all, all.choice + step * all.tokens * all.top,
			     all.source + step * all.tokens);
	if (!rc)
		LOOM_CHOICE(job->base.host, "workload.routing", "%016llx", (unsigned long long)routing_checksum(&all));
	if (!rc && *o->save)
		rc = routing_write(job->base.host, o->save, &all, err);
	if (drawn)
		routing_free(&all);
	return rc;
}

static int experts_inputs(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct experts_opts *o = opts;
	return routing_inputs(host, o->skew, o->trace, err);
}

static int experts_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct experts head = head_of(self, layout, &need->global);
	int rc = record(self, layout, err);
	if (rc)
		return rc;
	need->local = experts_scratch(self, layout);
	if (head.noncoherent) {
		need->global_place = LOOM_PLACE_HOST;
		need->device = LOOM_ONEBIT_LOCAL_BYTES;
		need->device_place = LOOM_PLACE_DEVICE;
	}
	return 0;
}

static uint64_t experts_task_count(void *self, const struct loom_layout *layout)
{
	struct experts_job *job = self;
	const struct experts_opts *o = job->o;
	uint64_t n = 0;
	if (o->redraw)
		return (uint64_t)pieces_room((uint64_t)o->tokens * o->top, o->experts, o->block) * tiles_of(job, o->hidden);
	route(job, layout, 0);
	for (uint32_t e = 0; e < o->experts; e++)
		n += (uint64_t)blocks_of(job, e) * tiles_of(job, o->hidden);
	return n;
}

static int experts_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			 struct loom_task *tasks, struct loom_error *err)
{
	struct experts_job *job = self;
	const struct experts_opts *o = job->o;
	struct experts *r = view->global;
	uint64_t bytes;
	uint32_t place = 0, tiles = tiles_of(job, o->hidden);
	(void)global;
	*r = head_of(job, layout, &bytes);
	uint64_t ones = o->experts * experts_matrix(r->group, o->hidden, o->dim),
		 twos = o->experts * experts_matrix(r->group, o->dim, o->hidden), from = ones + twos;
	int rc = half_fill(job->base.host, EXPERTS_AT(r, uint16_t, first), ones, layout->seed, 0, o->real, err);
	rc = rc ? rc : half_fill(job->base.host, EXPERTS_AT(r, uint16_t, second), twos, layout->seed, ones, o->real, err);
	if (rc)
		return rc;
	/* Divide by the root of dim, because sums of random numbers grow with the root of their number. So sums stay
	 * of the order of 1. */
	for (uint64_t i = 0; i < (uint64_t)o->tokens * o->dim; i++)
		EXPERTS_AT(r, float, x)[i] = (float)(half_value(half_random(layout->seed, from + i, 1), 1) / sqrt(o->dim));
	for (uint64_t i = 0; i < (uint64_t)o->tokens * o->top; i++)
		EXPERTS_AT(r, float, weight)[i] = (float)(1.0 / o->top);
	route(job, layout, 0);
	for (uint32_t b = 0; o->redraw && b < pieces_room((uint64_t)o->tokens * o->top, o->experts, o->block); b++)
		for (uint32_t t = 0; t < tiles; t++)
			experts_fill_tile(r, 0, 0, t, 0, 0, b, tasks++);
	/* The blocks of an expert follow each other tile by tile, so that they share the weights of a tile in a cache. */
	for (uint32_t e = 0; !o->redraw && e < o->experts; place += job->count[e++])
		for (uint32_t t = 0; t < tiles; t++)
			for (uint32_t b = 0; b < blocks_of(job, e); b++) {
				uint32_t at = b * o->block, left = job->count[e] - at;
				experts_fill_tile(r, e, 0, t, place + at, left < o->block ? left : o->block, place / o->block + e + b, tasks++);
			}
	return 0;
}

/* ---- samples ---------------------------------------------------------------------------------- */

/* Sorts slots by expert, and sets the counts of tiles that have not ended. */
static void sort_slots(const struct experts_job *job, struct experts *r)
{
	uint32_t *first = EXPERTS_AT(r, uint32_t, first_slot), *order = EXPERTS_AT(r, uint32_t, order),
		 *place = EXPERTS_AT(r, uint32_t, place);
	first[0] = 0;
	for (uint32_t e = 0; e < r->experts; e++)
		first[e + 1] = first[e] + job->count[e];
	for (uint32_t slot = 0; slot < r->tokens * r->top; slot++) {
		place[slot] = first[job->choice[slot]]++;
		order[place[slot]] = slot;
	}
	for (uint32_t e = r->experts; e > 0; e--)
		first[e] = first[e - 1];
	first[0] = 0;
	/* r->block is 0 before tasks(), where a test calls init() alone. */
	for (uint32_t b = 0; r->block && b < pieces_room((uint64_t)r->tokens * r->top, r->experts, r->block); b++) {
		EXPERTS_AT(r, uint64_t, pending)[2ull * b] = experts_tiles(r, 0);
		EXPERTS_AT(r, uint64_t, pending)[2ull * b + 1] = experts_tiles(r, 1);
	}
}

static int experts_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			struct loom_error *err)
{
	struct experts_job *job = self;
	struct experts *r = view->global;
	uint64_t slots = (uint64_t)r->tokens * r->top;
	(void)err;
	if (r->noncoherent) {
		memset(r + 1, 0, layout->devices * sizeof(struct loom_onebit_lock));
		for (uint32_t d = 0; d < layout->devices; d++)
			memset(view->device[d], 0, LOOM_ONEBIT_LOCAL_BYTES);
	}
	if (job->o->redraw)
		route(job, layout, job->sample);
	job->sample++;
	sort_slots(job, r);
	for (uint32_t t = 0; t < r->tokens; t++)
		EXPERTS_AT(r, uint64_t, open)[t] = r->top;
	/* All results start as NaN, so that the check finds a missing one. */
	memset(EXPERTS_AT(r, float, hidden), 0xff, slots * r->hidden * sizeof(float));
	memset(EXPERTS_AT(r, float, result), 0xff, slots * r->dim * sizeof(float));
	memset(EXPERTS_AT(r, float, out), 0xff, (uint64_t)r->tokens * r->dim * sizeof(float));
	return 0;
}

/* Returns the product of a row of a matrix and a vector. */
static double dot(const struct experts *r, const uint16_t *matrix, uint32_t row, const double *with, const float *with_float, uint32_t n)
{
	double sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += half_value(matrix[experts_at(r->group, n, row, i)], r->bfloat) * (with ? with[i] : (double)with_float[i]);
	return sum;
}

/* Compares the output of a token with a computation in double precision. Raises *worst to the largest difference, in
 * units of the expected rounding error. */
static void check_token(struct experts_job *job, struct experts *r, uint32_t token, double *sum, double *worst)
{
	const float *x = EXPERTS_AT(r, const float, x) + (uint64_t)token * r->dim,
		    *out = EXPERTS_AT(r, const float, out) + (uint64_t)token * r->dim;
	double size = 0;
	memset(sum, 0, r->dim * sizeof(*sum));
	for (uint32_t k = 0; k < r->top; k++) {
		uint64_t e = job->choice[(uint64_t)token * r->top + k];
		const uint16_t *first = EXPERTS_AT(r, const uint16_t, first) + e * experts_matrix(r->group, r->hidden, r->dim),
			       *second = EXPERTS_AT(r, const uint16_t, second) + e * experts_matrix(r->group, r->dim, r->hidden);
		const float *hidden = EXPERTS_AT(r, const float, hidden) +
				      (uint64_t)EXPERTS_AT(r, const uint32_t, place)[(uint64_t)token * r->top + k] * r->hidden;
		for (uint32_t i = 0; i < r->hidden; i++) {
			double a = dot(r, first, i, NULL, x, r->dim);
			job->hidden[i] = a / (1 + exp(-a));
			/* The unit is the rounding error of dim steps with numbers below 1 / sqrt(dim). */
			double off = fabs(hidden[i] - job->hidden[i]) * 0x1p23;
			*worst = off <= *worst ? *worst : off;
		}
		for (uint32_t d = 0; d < r->dim; d++)
			sum[d] += (double)EXPERTS_AT(r, const float, weight)[(uint64_t)token * r->top + k] *
				  dot(r, second, d, job->hidden, NULL, r->hidden);
	}
	for (uint32_t d = 0; d < r->dim; d++)
		size += sum[d] * sum[d];
	size = sqrt(size / r->dim) * 0x1p-24 * sqrt((double)r->dim * r->hidden);
	for (uint32_t d = 0; d < r->dim; d++) {
		double off = fabs(out[d] - sum[d]) / size;
		*worst = off <= *worst ? *worst : off; /* NaN stays in *worst */
	}
}

static int check_tokens(struct experts_job *job, const struct loom_layout *layout, struct experts *r, double *worst,
			struct loom_error *err)
{
	const struct loom_host *host = job->base.host;
	double each = 2.0 * r->top * r->dim * r->hidden, *sum = malloc(r->dim * sizeof(*sum));
	uint32_t n = half_checked(job->o->checked, r->tokens, each);
	uint64_t state = layout->seed + job->sample;
	int rc = sum ? 0 : LOOM_FAIL(host, err, LOOM_ENOMEM, "experts: out of memory");
	for (uint32_t i = 0; !rc && i < n; i++) {
		uint32_t token = n == r->tokens ? i : (uint32_t)(loom__random(&state) % r->tokens);
		check_token(job, r, token, sum, worst);
		/* The unit of *worst assumes a rounding error of random sign in each of dim * hidden steps. So *worst
		 * is about 1 for a correct result. */
		if (!(*worst <= 8))
			rc = LOOM_FAIL(host, err, LOOM_EWRONG,
				       "experts: the output of token %u differs from that in double precision by %g times the "
				       "rounding of its sums",
				       token, *worst);
		if (!rc && LOOM_HAS(host, progress))
			rc = host->progress(host, (double)(i + 1) / n, err);
	}
	free(sum);
	return rc;
}

/* Checks that each place of each expert has its results. So each expert has had exactly its tokens. Checks that each
 * output is the sum of its results, within the rounding of `top` additions. */
static int check_all(struct experts_job *job, struct experts *r, struct loom_error *err)
{
	const uint32_t *first = EXPERTS_AT(r, const uint32_t, first_slot);
	for (uint32_t e = 0; e < r->experts; e++)
		for (uint64_t at = (uint64_t)first[e] * r->dim; at < (uint64_t)first[e + 1] * r->dim; at++)
			if (!isfinite(EXPERTS_AT(r, const float, result)[at]))
				return LOOM_FAIL(job->base.host, err, LOOM_EWRONG,
						 "experts: expert %u has %u tokens, and no result for number %llu of the "
						 "%lluth",
						 e, job->count[e], (unsigned long long)(at % r->dim),
						 (unsigned long long)(at / r->dim - first[e]));
	for (uint64_t i = 0; i < (uint64_t)r->tokens * r->dim; i++) {
		double sum = 0, size = 0, out = EXPERTS_AT(r, const float, out)[i];
		for (uint64_t slot = i / r->dim * r->top; slot < (i / r->dim + 1) * r->top; slot++) {
			double part = (double)EXPERTS_AT(r, const float, weight)[slot] *
				      EXPERTS_AT(r, const float, result)[(uint64_t)EXPERTS_AT(r, const uint32_t, place)[slot] * r->dim + i % r->dim];
			sum += part;
			size += fabs(part);
		}
		if (!isfinite(out))
			return LOOM_FAIL(job->base.host, err, LOOM_EWRONG, "experts: token %llu has no output",
					 (unsigned long long)(i / r->dim));
		if (fabs(out - sum) > size * r->top * 0x1p-23)
			return LOOM_FAIL(job->base.host, err, LOOM_EWRONG,
					 "experts: number %llu of token %llu is %g, and the sum of its results is %g",
					 (unsigned long long)(i % r->dim), (unsigned long long)(i / r->dim), out, sum);
	}
	return 0;
}

static int experts_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  struct loom_report *report, struct loom_error *err)
{
	struct experts_job *job = self;
	const struct loom_host *host = job->base.host;
	struct experts *r = view->global;
	uint64_t bytes;
	struct experts head = head_of(job, layout, &bytes);
	double worst = 0, mean = (double)r->tokens * r->top / r->experts, square = 0, read = 0;
	if (memcmp(r, &head, sizeof(head)))
		return LOOM_FAIL(host, err, LOOM_EWRONG, "experts: the description of the layer was overwritten");
	int rc = check_all(job, r, err);
	rc = rc ? rc : check_tokens(job, layout, r, &worst, err);
	if (rc)
		return rc;
	uint32_t most = 0;
	for (uint32_t e = 0; e < r->experts; e++) {
		square += (job->count[e] - mean) * (job->count[e] - mean);
		most = job->count[e] > most ? job->count[e] : most;
		read += (double)blocks_of(job, e) * r->dim * r->hidden * 4;
	}
	/* If choices are redrawn, samples differ in the number of blocks. */
	enum loom_better same = job->o->redraw ? LOOM_BETTER_NONE : LOOM_BETTER_SAME;
	host->metric(host, report, "bytes", "B", same, read);
	host->metric(host, report, "most_tokens", "tokens", same, most);
	host->metric(host, report, "variation", "", same, sqrt(square / r->experts) / mean);
	host->metric(host, report, "error", "", LOOM_BETTER_NONE, worst);
	return 0;
}

static const struct loom_workload_ops experts_ops = {
	.size = sizeof(struct loom_workload_ops),
	.create = experts_create,
	.destroy = experts_destroy,
	.need = experts_need,
	.init = experts_init,
	.constants = experts_constants,
	.task_count = experts_task_count,
	.tasks = experts_tasks,
	.verify = experts_verify,
	.work = "bytes",
	.inputs = experts_inputs,
	.registers = experts_registers,
	.scratch = experts_scratch,
};

static const struct loom_task_entry experts_entries[] = {{"workload_experts_tile", workload_experts_tile}};
WORKLOAD_CODE(workload_experts, experts_entries, LOOM_CODE_FILE("task.dev.h") LOOM_CODE_FILE("pieces.dev.h")
	      LOOM_CODE_FILE("tile.dev.h") LOOM_CODE_FILE("workload_experts.dev.h"), .cost = workload_experts_cost);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_experts", "0.1.0", "Apache-2.0",
		   "One layer of experts that get different numbers of tokens", .opts = experts_rows,
		   .opts_size = sizeof(struct experts_opts), .check = experts_check, .ops = &experts_ops,
		   .dev = &workload_experts_code)
