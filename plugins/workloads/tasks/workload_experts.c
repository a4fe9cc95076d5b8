/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_experts: one layer of routed experts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "experts_routing.h"
#include "half.h"
#include "tile_host.h"
#include "workload_experts.dev.h"
#include "../common/host.h"
#include "lib/align.h"

#define SKEW_TEXT(NAME, text, what) text,
static const char *const skews[] = {EXPERTS_SKEWS(SKEW_TEXT) NULL};
#define SKEW_HELP(NAME, text, what) text ": " what ". "
static const char *const knowns[] = {"auto", "host", "device", NULL};
enum { KNOWN_AUTO, KNOWN_HOST, KNOWN_DEVICE };

struct experts_opts {
	uint32_t experts, tokens, top, dim, hidden, skew, real, rows, block, known, checked;
};

static const struct loom_opt experts_rows[] = {
	LOOM_OPT(struct experts_opts, experts, LOOM_OPT_U32, "16", "Experts of the layer.", .min = 1, .max = 4096),
	LOOM_OPT(struct experts_opts, tokens, LOOM_OPT_U32, "64", "Tokens of the batch.", .min = 1, .max = 65536),
	LOOM_OPT(struct experts_opts, top, LOOM_OPT_U32, "2", "Experts that a token chooses.", .min = 1, .max = 64),
	LOOM_OPT(struct experts_opts, skew, LOOM_OPT_ENUM, "zipf",
			 "Which experts tokens choose, by [run] seed. " EXPERTS_SKEWS(SKEW_HELP), .choices = skews),
	LOOM_OPT(struct experts_opts, dim, LOOM_OPT_U32, "256", "Numbers of a token; a multiple of 8.", .min = 8,
			 .max = 1 << 16),
	LOOM_OPT(struct experts_opts, hidden, LOOM_OPT_U32, "512", "Numbers between the two products; a multiple of 8.",
			 .min = 8, .max = 1 << 17),
	LOOM_OPT(struct experts_opts, real, LOOM_OPT_ENUM, "bfloat16", "Type of the weights; all other numbers are float.",
			 .choices = half_types),
	LOOM_OPT(struct experts_opts, rows, LOOM_OPT_U32, "64",
			 "Rows of weights of a task, a power of two. A number beyond hidden and dim: a task per block of an expert.",
			 .min = 8, .max = 1 << 17),
	LOOM_OPT(struct experts_opts, block, LOOM_OPT_U32, "16",
			 "Tokens of an expert of a task, at most 32: an expert with more reads its weights again for each block.",
			 .min = 1, .max = EXPERTS_BLOCK_MAX),
	LOOM_OPT(struct experts_opts, known, LOOM_OPT_ENUM, "auto",
			 "Where the routing is known. host: the initial set has the tasks of the first product, with their costs. device: "
			 "a task per expert reads from memory how many tokens it has, and spawns the others. auto: host; with "
			 "skew = drift device, because each sample has another routing.", .choices = knowns),
	LOOM_OPT(struct experts_opts, checked, LOOM_OPT_U32, "auto",
			 "Tokens of a sample that are compared with a computation in double precision, drawn again for each. All "
			 "tokens are checked to have a result. auto: all, but fewer where that takes 2^30 multiplications.",
			 .max = 65536, .flags = LOOM_OPT_AUTO),
	{.name = NULL},
};

struct experts_job {
	struct workload base;
	const struct experts_opts *o;
	uint32_t *choice; /* [tokens][top]: the experts that the tokens of this sample choose */
	uint32_t *count;  /* [experts]: number of slots of each expert */
	double *hidden;	  /* [hidden]: memory of the check */
	uint64_t sample;
};

static const struct experts_opts *opts_of(const void *self)
{
	return ((const struct experts_job *)self)->o;
}

static int by_device(const struct experts_opts *o)
{
	return o->known == KNOWN_DEVICE || (o->known == KNOWN_AUTO && o->skew == EXPERTS_DRIFT);
}

static int experts_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct experts_opts *o = opts;
	if (o->top > o->experts)
		return LOOM_REFUSE(host, err, "top", "top = %u: there are %u experts", o->top, o->experts);
	if (o->dim % 8)
		return LOOM_REFUSE(host, err, "dim", "dim = %u: must be a multiple of 8", o->dim);
	if (o->hidden % 8)
		return LOOM_REFUSE(host, err, "hidden", "hidden = %u: must be a multiple of 8", o->hidden);
	if (!loom__is_power_of_two(o->rows))
		return LOOM_REFUSE(host, err, "rows", "rows = %u: must be a power of two", o->rows);
	if (o->known == KNOWN_HOST && o->skew == EXPERTS_DRIFT)
		return LOOM_REFUSE(host, err, "known",
				   "known = host: with skew = drift each sample has another routing, and the initial set is made "
				   "once: set known = device");
	return 0;
}

static void experts_destroy(void *self)
{
	struct experts_job *job = self;
	if (job) {
		free(job->choice);
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
	job->choice = calloc((uint64_t)job->o->tokens * job->o->top, sizeof(*job->choice));
	job->count = calloc(job->o->experts, sizeof(*job->count));
	job->hidden = calloc(job->o->hidden, sizeof(*job->hidden));
	if (!job->choice || !job->count || !job->hidden) {
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

/* Returns the number of rows of a tile in a GPU's scratchpad memory. */
static uint32_t tile_rows_of(const struct experts_opts *o, const struct loom_layout *layout)
{
	return experts_tile_rows(rows_of(o), o->block, workload_products(layout));
}

static uint64_t experts_scratch(void *self, const struct loom_layout *layout)
{
	const struct experts_opts *o = opts_of(self);
	uint32_t rows = tile_rows_of(o, layout), warps = tile_warps(layout);
	if (workload_products(layout))
		return (warps < TILE_AREAS ? warps : TILE_AREAS) * EXPERTS_AREA(rows, o->block) * 4ull;
	for (uint32_t d = 0; d < layout->devices; d++)
		if (layout->device[d].kind == LOOM_ON_GPU && layout->device[d].lanes > 1)
			return EXPERTS_SCRATCH(rows, o->block);
	return 0;
}

static int experts_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err)
{
	const struct experts_opts *o = opts_of(self);
	(void)err;
	snprintf(text, room,
		 "#define EXPERTS_ROWS %u\n#define EXPERTS_BLOCK %u\n#define EXPERTS_BFLOAT %u\n#define EXPERTS_PRODUCTS %u\n",
		 tile_rows_of(o, layout), o->block, o->real, workload_products(layout));
	return 0;
}

static void route(struct experts_job *job, const struct loom_layout *layout)
{
	const struct experts_opts *o = job->o;
	experts_route(o->skew, layout->seed, job->sample, o->experts, o->tokens, o->top, job->choice);
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
			    .block = o->block,
			    .bfloat = o->real,
			    .noncoherent = LOOM_HAS(layout, noncoherent) && layout->noncoherent && layout->devices > 1};
	uint64_t at = sizeof(r) + layout->devices * sizeof(struct loom_onebit_lock), slots = (uint64_t)o->tokens * o->top,
		 blocks = slots / o->block + o->experts, weights = (uint64_t)o->experts * o->dim * o->hidden * 2;
#define PLACE(what, size) (r.what##_at = at, at = loom__align(at + (size), 64))
	PLACE(first_slot, (o->experts + 1) * 4ull);
	PLACE(first_block, o->experts * 4ull);
	PLACE(order, slots * 4);
	PLACE(weight, slots * 4);
	PLACE(pending, blocks * 16);
	PLACE(open, o->tokens * 8ull);
	PLACE(x, (uint64_t)o->tokens * o->dim * 4);
	PLACE(first, weights);
	PLACE(second, weights);
	PLACE(hidden, slots * o->hidden * 4);
	PLACE(result, slots * o->dim * 4);
	PLACE(place, slots * 4);
	PLACE(out, (uint64_t)o->tokens * o->dim * 4);
#undef PLACE
	*bytes = at;
	return r;
}

static int experts_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct experts head = head_of(self, layout, &need->global);
	(void)err;
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
	uint64_t n = 0;
	if (by_device(job->o))
		return job->o->experts;
	route(job, layout);
	for (uint32_t e = 0; e < job->o->experts; e++)
		n += (uint64_t)blocks_of(job, e) * tiles_of(job, job->o->hidden);
	return n;
}

static int experts_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			 struct loom_task *tasks, struct loom_error *err)
{
	struct experts_job *job = self;
	const struct experts_opts *o = job->o;
	struct experts *r = view->global;
	uint64_t bytes, weights = (uint64_t)o->experts * o->dim * o->hidden, from = 0;
	uint32_t place = 0, block = 0;
	(void)global;
	*r = head_of(job, layout, &bytes);
	int rc = half_fill(job->base.host, EXPERTS_AT(r, uint16_t, first), weights, layout->seed, from, o->real, err);
	from += weights;
	rc = rc ? rc
		: half_fill(job->base.host, EXPERTS_AT(r, uint16_t, second), weights, layout->seed, from, o->real, err);
	if (rc)
		return rc;
	from += weights;
	/* Divide by the root of dim, because sums of random numbers grow with the root of their number. So sums stay
	 * of the order of 1. */
	for (uint64_t i = 0; i < (uint64_t)o->tokens * o->dim; i++)
		EXPERTS_AT(r, float, x)[i] = (float)(half_value(half_random(layout->seed, from + i, 1), 1) / sqrt(o->dim));
	for (uint64_t i = 0; i < (uint64_t)o->tokens * o->top; i++)
		EXPERTS_AT(r, float, weight)[i] = (float)(1.0 / o->top);
	route(job, layout);
	for (uint32_t e = 0; e < o->experts; e++) {
		if (by_device(o)) {
			workload_task(&tasks[e], EXPERTS_OPEN);
			tasks[e].param[0] = e;
			continue;
		}
		for (uint32_t b = 0; b < blocks_of(job, e); b++, block++) {
			uint32_t left = job->count[e] - b * o->block, n = left < o->block ? left : o->block;
			for (uint32_t t = 0; t < tiles_of(job, o->hidden); t++)
				experts_fill(r, e, 0, t, place, n, block, tasks++);
			place += n;
		}
	}
	return 0;
}

/* Returns the cost of a task. The unit is the time to multiply a row of weights by one slot. Each row is also read
 * once, which takes as long as 8 slots. */
static uint64_t experts_cost(void *self, const struct loom_layout *layout, const struct loom_task *task)
{
	uint64_t rows = task->param[1] >> 32, slots = task->param[2] >> 32;
	(void)layout;
	return by_device(opts_of(self)) ? 1 : rows * (8 + slots);
}

/* ---- samples ---------------------------------------------------------------------------------- */

/* Sorts slots by expert, and sets the counts of tiles that have not ended. */
static void sort_slots(const struct experts_job *job, struct experts *r)
{
	uint32_t *first = EXPERTS_AT(r, uint32_t, first_slot), *order = EXPERTS_AT(r, uint32_t, order),
		 *block = EXPERTS_AT(r, uint32_t, first_block), *place = EXPERTS_AT(r, uint32_t, place), blocks = 0;
	first[0] = 0;
	for (uint32_t e = 0; e < r->experts; e++) {
		first[e + 1] = first[e] + job->count[e];
		block[e] = blocks;
		blocks += blocks_of(job, e);
	}
	for (uint32_t slot = 0; slot < r->tokens * r->top; slot++) {
		place[slot] = first[job->choice[slot]]++;
		order[place[slot]] = slot;
	}
	for (uint32_t e = r->experts; e > 0; e--)
		first[e] = first[e - 1];
	first[0] = 0;
	for (uint32_t b = 0; b < blocks; b++) {
		EXPERTS_AT(r, uint64_t, pending)[2ull * b] = experts_tiles(r, r->hidden);
		EXPERTS_AT(r, uint64_t, pending)[2ull * b + 1] = experts_tiles(r, r->dim);
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
	job->sample++;
	if (job->o->skew == EXPERTS_DRIFT)
		route(job, layout);
	sort_slots(job, r);
	for (uint32_t t = 0; t < r->tokens; t++)
		EXPERTS_AT(r, uint64_t, open)[t] = r->top;
	/* All results start as NaN, so that the check finds a missing one. */
	memset(EXPERTS_AT(r, float, hidden), 0xff, slots * r->hidden * sizeof(float));
	memset(EXPERTS_AT(r, float, result), 0xff, slots * r->dim * sizeof(float));
	memset(EXPERTS_AT(r, float, out), 0xff, (uint64_t)r->tokens * r->dim * sizeof(float));
	return 0;
}

static double dot(const uint16_t *weights, const double *with, const float *with_float, uint32_t n, uint32_t bfloat)
{
	double sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += half_value(weights[i], bfloat) * (with ? with[i] : (double)with_float[i]);
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
		uint64_t e = job->choice[(uint64_t)token * r->top + k], at = e * r->dim * r->hidden;
		const float *hidden = EXPERTS_AT(r, const float, hidden) +
				      (uint64_t)EXPERTS_AT(r, const uint32_t, place)[(uint64_t)token * r->top + k] * r->hidden;
		for (uint32_t i = 0; i < r->hidden; i++) {
			double a = dot(EXPERTS_AT(r, const uint16_t, first) + at + (uint64_t)i * r->dim, NULL, x, r->dim,
				       r->bfloat);
			job->hidden[i] = a / (1 + exp(-a));
			/* The unit is the rounding error of dim steps with numbers below 1 / sqrt(dim). */
			double off = fabs(hidden[i] - job->hidden[i]) * 0x1p23;
			*worst = off <= *worst ? *worst : off;
		}
		for (uint32_t d = 0; d < r->dim; d++)
			sum[d] += (double)EXPERTS_AT(r, const float, weight)[(uint64_t)token * r->top + k] *
				  dot(EXPERTS_AT(r, const uint16_t, second) + at + (uint64_t)d * r->hidden, job->hidden, NULL,
				      r->hidden, r->bfloat);
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
	uint32_t most = job->o->checked, n;
	uint64_t state = layout->seed + job->sample;
	int rc = sum ? 0 : LOOM_FAIL(host, err, LOOM_ENOMEM, "experts: out of memory");
	if (!most)
		most = 0x1p30 / each < 1 ? 1 : 0x1p30 / each > r->tokens ? r->tokens : (uint32_t)(0x1p30 / each);
	n = most < r->tokens ? most : r->tokens;
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
	/* If the option `skew` is drift, samples differ in the number of blocks. */
	enum loom_better same = job->o->skew == EXPERTS_DRIFT ? LOOM_BETTER_NONE : LOOM_BETTER_SAME;
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
	.cost = experts_cost,
	.registers = tile_registers,
	.scratch = experts_scratch,
};

static const struct loom_task_entry experts_entries[] = {{"workload_experts_tile", workload_experts_tile},
							 {"workload_experts_open", workload_experts_open}};
WORKLOAD_CODE(workload_experts, experts_entries, LOOM_CODE_FILE("task.dev.h") LOOM_CODE_FILE("tile.dev.h")
	      LOOM_CODE_FILE("workload_experts.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_experts", "0.1.0", "Apache-2.0",
		   "One layer of experts that get different numbers of tokens", .opts = experts_rows,
		   .opts_size = sizeof(struct experts_opts), .check = experts_check, .ops = &experts_ops,
		   .dev = &workload_experts_code)
