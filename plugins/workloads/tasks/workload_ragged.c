/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_ragged: one decode step of attention over pages of keys and values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "half.h"
#include "ragged_lengths.h"
#include "workload_ragged.dev.h"
#include "../common/host.h"
#include "../common/products.h"
#include "lib/align.h"

#define LAW_TEXT(NAME, text, what) text,
static const char *const laws[] = {RAGGED_LAWS(LAW_TEXT) NULL};
#define LAW_HELP(NAME, text, what) text ": " what ". "
static const char *const redraws[] = {"run", "sample", NULL};

struct ragged_opts {
	uint32_t sequences, length, law, heads, kv_heads, dim, real, page, chunk, redraw, checked;
	const char *trace;
};

static const struct loom_opt ragged_rows[] = {
	LOOM_OPT(struct ragged_opts, sequences, LOOM_OPT_U32, "16", "Sequences of the batch; with law = trace those of the file. Several ranks share them: each has some in its own memory, "
			 "those that it gets if the longest go first to the rank with the fewest tokens, or with redraw = sample in turn.",
			 .min = 1, .max = 65536),
	LOOM_OPT(struct ragged_opts, law, LOOM_OPT_ENUM, "zipf",
			 "Lengths of the sequences, in random order by [run] seed. " RAGGED_LAWS(LAW_HELP), .choices = laws),
	LOOM_OPT(struct ragged_opts, length, LOOM_OPT_U32, "512", "Mean number of tokens of a sequence.", .min = 1,
			 .max = 1 << 20),
	LOOM_OPT(struct ragged_opts, trace, LOOM_OPT_PATH, "", "law = trace: a file with a length per line."),
	LOOM_OPT(struct ragged_opts, heads, LOOM_OPT_U32, "8", "Heads of queries.", .min = 1, .max = 1024),
	LOOM_OPT(struct ragged_opts, kv_heads, LOOM_OPT_U32, "2",
			 "Heads of keys and values, each for an equal number of heads of queries, at most 16.", .min = 1,
			 .max = 1024),
	LOOM_OPT(struct ragged_opts, dim, LOOM_OPT_U32, "64", "Numbers of a head; a multiple of 8.", .min = 8, .max = 256),
	LOOM_OPT(struct ragged_opts, real, LOOM_OPT_ENUM, "float16", "Type of queries, keys and values; sums are float.",
			 .choices = half_types),
	LOOM_OPT(struct ragged_opts, page, LOOM_OPT_U32, "16", "Tokens of a page, a power of two.", .min = 16, .max = 256),
	LOOM_OPT(struct ragged_opts, chunk, LOOM_OPT_U32, "auto",
			 "Tokens of a task; a multiple of page. A number beyond the longest sequence: a task per sequence and head. "
			 "auto: eight tasks per worker.", .max = 1 << 23, .flags = LOOM_OPT_AUTO),
	LOOM_OPT(struct ragged_opts, redraw, LOOM_OPT_ENUM, "run",
			 "When lengths are drawn. run: once, and tasks have them as parameters. sample: before each sample; with law = trace, "
			 "their order. A task then knows only its number, and finds its chunk by the array of the starts of sequences, as when "
			 "a kernel before has written it; some tasks find none.", .choices = redraws),
	LOOM_OPT(struct ragged_opts, checked, LOOM_OPT_U32, "auto",
			 "Heads of queries, over all sequences, that are compared with a computation in double precision, drawn again "
			 "for each sample. All are checked to have an output. auto: all, but fewer where that takes 2^30 multiplications.",
			 .flags = LOOM_OPT_AUTO),
	{.name = NULL},
};

struct ragged_job {
	struct workload base;
	const struct ragged_opts *o;
	uint32_t *drawn_length; /* [all]: tokens of each sequence of all ranks */
	uint32_t *length; /* [n]: tokens of each sequence of this rank */
	uint32_t all, n;
	uint32_t *order; /* [2][all]: memory of share() */
	uint64_t *load;	 /* [ranks]: tokens of each rank */
	uint64_t tokens, most; /* tokens of all sequences, now and at most */
	uint64_t drawn_for, sample; /* drawn_for: seed of the lengths, if `drawn` is set */
	int drawn;
	double *expected;	    /* [n][heads][dim] expected outputs; NAN: not computed yet; NULL: no memory yet */
	uint64_t state;		    /* state of the random numbers of the check */
};

static const struct ragged_opts *opts_of(const struct ragged_job *job)
{
	return job->o;
}

static int ragged_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct ragged_opts *o = opts;
	if (o->heads % o->kv_heads || o->heads / o->kv_heads > RAGGED_GROUP_MAX)
		return LOOM_REFUSE(host, err, "kv_heads",
				   "kv_heads = %u: must divide heads = %u, into at most %u heads for each", o->kv_heads, o->heads,
				   RAGGED_GROUP_MAX);
	if (o->dim % 8)
		return LOOM_REFUSE(host, err, "dim", "dim = %u: must be a multiple of 8", o->dim);
	if (!loom__is_power_of_two(o->page))
		return LOOM_REFUSE(host, err, "page", "page = %u: must be a power of two", o->page);
	if (o->chunk % o->page)
		return LOOM_REFUSE(host, err, "chunk", "chunk = %u: must be a multiple of page = %u", o->chunk, o->page);
	if (o->law == RAGGED_TRACE && !*o->trace)
		return LOOM_REFUSE(host, err, "trace", "law = trace: set trace = FILE");
	return 0;
}

static void ragged_destroy(void *self)
{
	struct ragged_job *job = self;
	if (job) {
		free(job->drawn_length);
		free(job->length);
		free(job->order);
		free(job->load);
		free(job->expected);
	}
	workload_destroy(self);
}

static int ragged_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	void *made = NULL;
	int rc = workload_create(host, opts, sizeof(struct ragged_job), &made, err);
	if (rc)
		return rc;
	struct ragged_job *job = made;
	job->o = opts;
	job->all = job->o->sequences;
	if (job->o->law == RAGGED_TRACE)
		rc = ragged_read(host, job->o->trace, &job->drawn_length, &job->all, err);
	else
		job->drawn_length = calloc(job->all, sizeof(*job->drawn_length));
	job->length = rc ? NULL : calloc(job->all, sizeof(*job->length));
	job->order = rc ? NULL : calloc(job->all, 2 * sizeof(*job->order));
	job->load = rc ? NULL : calloc(workload_ranks(host), sizeof(*job->load));
	if (!rc && (!job->drawn_length || !job->length || !job->order || !job->load))
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	if (!rc && job->all < workload_ranks(host))
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "ragged: %u sequences are too few for %u ranks", job->all, workload_ranks(host));
	if (rc)
		ragged_destroy(job);
	else
		*self = job;
	return rc;
}

static int ragged_inputs(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct ragged_opts *o = opts;
	uint32_t *length = NULL, n;
	int rc = o->law == RAGGED_TRACE ? ragged_read(host, o->trace, &length, &n, err) : 0;
	free(length);
	return rc;
}

/* ---- memory ----------------------------------------------------------------------------------- */

static uint64_t ragged_scratch_bytes(void *self, const struct loom_layout *layout)
{
	const struct ragged_opts *o = opts_of(self);
	uint32_t most = 0;
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint32_t lanes = layout->device[d].lanes;
		int gpu = layout->device[d].kind == LOOM_ON_GPU;
		struct ragged_scratch at =
		    gpu && workload_products(layout)
			? ragged_scratch_of_warps(lanes, o->dim, o->heads / o->kv_heads)
			: ragged_scratch(lanes, o->dim, o->heads / o->kv_heads, o->page);
		most = at.bytes > most ? at.bytes : most;
	}
	return most;
}

static int ragged_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err)
{
	const struct ragged_opts *o = opts_of(self);
	(void)err;
	snprintf(text, room,
		 "#define RAGGED_DIM %u\n#define RAGGED_GROUP %u\n#define RAGGED_BFLOAT %u\n#define RAGGED_PRODUCTS %u\n",
		 o->dim, o->heads / o->kv_heads, o->real, workload_products(layout));
	return 0;
}

/* Compares two sequences, the longer one first. */
static int longer(const void *a, const void *b, void *job)
{
	const uint32_t *length = ((const struct ragged_job *)job)->drawn_length, x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return length[x] != length[y] ? (length[x] < length[y]) - (length[x] > length[y]) : (x > y) - (x < y);
}

/* Gives each sequence to a rank, and copies the lengths of this rank's in their order. If lengths are drawn again, a sequence stays
 * where its keys are. */
static void share(struct ragged_job *job)
{
	uint32_t ranks = workload_ranks(job->base.host), *order = job->order, *home = job->order + job->all;
	memset(job->load, 0, ranks * sizeof(*job->load));
	for (uint32_t i = 0; i < job->all; i++)
		order[i] = i;
	if (ranks > 1 && !job->o->redraw)
		qsort_r(order, job->all, sizeof(*order), longer, job);
	for (uint32_t i = 0; i < job->all; i++) {
		uint32_t to = i % ranks;
		for (uint32_t r = 0; !job->o->redraw && r < ranks; r++)
			to = job->load[r] < job->load[to] ? r : to;
		job->load[to] += job->drawn_length[order[i]];
		home[order[i]] = to;
	}
	job->n = 0;
	for (uint32_t i = 0; i < job->all; i++)
		if (home[i] == workload_rank(job->base.host))
			job->length[job->n++] = job->drawn_length[i];
}

/* Draws the lengths of the current sample. */
static void draw(struct ragged_job *job, const struct loom_layout *layout)
{
	const struct ragged_opts *o = job->o;
	uint64_t seed = layout->seed + (o->redraw ? job->sample : 0);
	if (job->drawn && job->drawn_for == seed)
		return;
	job->drawn = 1;
	job->drawn_for = seed;
	if (o->law == RAGGED_TRACE && o->redraw)
		ragged_shuffle(job->drawn_length, job->all, seed);
	else if (o->law != RAGGED_TRACE)
		ragged_draw(o->law, o->length, seed, job->all, job->drawn_length);
	share(job);
	job->tokens = 0;
	for (uint32_t i = 0; i < job->n; i++)
		job->tokens += job->length[i];
	/* All draws of other laws have the same sum over all ranks. */
	job->most = job->tokens;
	if (o->redraw && o->law == RAGGED_UNIFORM)
		job->most = 2ull * o->length * job->n;
	for (uint32_t r = 0; o->redraw && o->law != RAGGED_UNIFORM && r < workload_ranks(job->base.host); r++)
		job->most = r ? job->most + job->load[r] : job->load[0];
	for (uint64_t i = 0; job->expected && i < (uint64_t)job->n * o->heads * o->dim; i++)
		job->expected[i] = NAN;
}

/* Returns the number of tokens of a chunk, a multiple of the page. */
static uint32_t chunk_of(const struct ragged_job *job, const struct loom_layout *layout)
{
	const struct ragged_opts *o = job->o;
	uint64_t each = job->most * o->kv_heads / (8ull * layout->workers);
	uint64_t chunk = o->chunk ? o->chunk : loom__align(each ? each : 1, o->page);
	return chunk < RAGGED_LONGEST ? (uint32_t)chunk : RAGGED_LONGEST;
}

static uint64_t pages_of(const struct ragged_job *job)
{
	return job->most / job->o->page + job->n;
}

/* Returns the head of the block as tasks() writes it. Sets *bytes to the size of the whole block. */
static struct ragged head_of(struct ragged_job *job, const struct loom_layout *layout, uint64_t *bytes)
{
	const struct ragged_opts *o = job->o;
	draw(job, layout);
	struct ragged r = {.sequences = job->n,
			   .heads = o->heads,
			   .kv = o->kv_heads,
			   .group = o->heads / o->kv_heads,
			   .dim = o->dim,
			   .page_log2 = (uint32_t)__builtin_ctz(o->page),
			   .chunk = chunk_of(job, layout),
			   .bfloat = o->real,
			   .noncoherent = LOOM_HAS(layout, noncoherent) && layout->noncoherent && layout->devices > 1,
			   .scale = (float)(1.4426950408889634 / sqrt(o->dim))};
	uint64_t at = sizeof(r) + layout->devices * sizeof(struct loom_onebit_lock), n = job->n;
#define PLACE(what, size) (r.what##_at = workload_place(&at, size))
	PLACE(start, (n + 1) * 4);
	PLACE(table, pages_of(job) * 4);
	PLACE(pages, pages_of(job) * o->kv_heads * 2 * o->page * o->dim * 2);
	PLACE(queries, n * o->heads * o->dim * 2);
	PLACE(pending, n * o->kv_heads * 8);
	PLACE(parts, (uint64_t)pieces_room(job->most, job->n, r.chunk) * r.kv * r.group * (o->dim + 2) * 4);
	PLACE(out, n * o->heads * o->dim * 4);
#undef PLACE
	*bytes = at;
	return r;
}

static int ragged_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct ragged_job *job = self;
	draw(job, layout);
	if (job->most > UINT32_MAX)
		return LOOM_FAIL(job->base.host, err, LOOM_EINVAL, "ragged: %llu tokens, more than 2^32 - 1: set fewer or shorter "
				 "sequences", (unsigned long long)job->most);
	struct ragged head = head_of(job, layout, &need->global);
	need->local = ragged_scratch_bytes(self, layout);
	if (head.noncoherent) {
		need->global_place = LOOM_PLACE_HOST;
		need->device = LOOM_ONEBIT_LOCAL_BYTES;
		need->device_place = LOOM_PLACE_DEVICE;
	}
	return 0;
}

static uint64_t ragged_task_count(void *self, const struct loom_layout *layout)
{
	struct ragged_job *job = self;
	draw(job, layout);
	uint32_t chunk = chunk_of(job, layout);
	uint64_t n = job->o->redraw ? pieces_room(job->most, job->n, chunk) : 0;
	for (uint32_t i = 0; !job->o->redraw && i < job->n; i++)
		n += pieces_of(job->length[i], chunk);
	return n * job->o->kv_heads;
}

/* Fills the table with the pages in random order. */
static int shuffle(const struct loom_host *host, uint32_t *table, uint32_t n, uint64_t seed, struct loom_error *err)
{
	int rc = 0;
	for (uint32_t i = 0; i < n; i++)
		table[i] = i;
	for (uint32_t i = n; i > 1 && !(rc = workload_goes_on(host, i, n, err)); i--) {
		uint32_t k = (uint32_t)(loom__random(&seed) % i), t = table[i - 1];
		table[i - 1] = table[k];
		table[k] = t;
	}
	return rc;
}

static int ragged_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			struct loom_task *tasks, struct loom_error *err)
{
	struct ragged_job *job = self;
	const struct ragged_opts *o = job->o;
	struct ragged *r = view->global;
	uint64_t bytes, numbers = pages_of(job) * o->kv_heads * 2 * o->page * o->dim;
	(void)global;
	*r = head_of(job, layout, &bytes);
	int rc = shuffle(job->base.host, RAGGED_AT(r, uint32_t, table), (uint32_t)pages_of(job), layout->seed, err);
	rc = rc ? rc : half_fill(job->base.host, RAGGED_AT(r, uint16_t, pages), numbers, layout->seed, 0, o->real, err);
	rc = rc ? rc
		: half_fill(job->base.host, RAGGED_AT(r, uint16_t, queries), (uint64_t)job->n * o->heads * o->dim,
			    layout->seed, numbers, o->real, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; o->redraw && i < pieces_room(job->most, job->n, r->chunk); i++)
		for (uint32_t kv = 0; kv < o->kv_heads; kv++)
			ragged_fill_piece(i, kv, tasks++);
	for (uint32_t i = 0; !o->redraw && i < job->n; i++)
		for (uint32_t kv = 0; kv < o->kv_heads; kv++)
			for (uint32_t k = 0; k < pieces_of(job->length[i], r->chunk); k++)
				ragged_fill(r, i, kv, job->length[i], k, tasks++);
	return 0;
}

/* ---- samples ---------------------------------------------------------------------------------- */

static int ragged_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct ragged_job *job = self;
	struct ragged *r = view->global;
	uint64_t out = (uint64_t)r->sequences * r->heads * r->dim;
	uint32_t *start = RAGGED_AT(r, uint32_t, start);
	(void)err;
	job->sample++;
	draw(job, layout);
	start[0] = 0;
	if (r->noncoherent) {
		memset(r + 1, 0, layout->devices * sizeof(struct loom_onebit_lock));
		for (uint32_t d = 0; d < layout->devices; d++)
			memset(view->device[d], 0, LOOM_ONEBIT_LOCAL_BYTES);
	}
	for (uint32_t i = 0; i < r->sequences; i++) {
		start[i + 1] = start[i] + job->length[i];
		for (uint32_t kv = 0; kv < r->kv; kv++)
			RAGGED_AT(r, uint64_t, pending)[(uint64_t)i * r->kv + kv] = pieces_of(job->length[i], r->chunk);
	}
	/* Results start as NaN, so that the check finds a missing one. */
	memset(RAGGED_AT(r, float, out), 0xff, out * sizeof(float));
	return 0;
}

static double number_at(const struct ragged *r, const uint16_t *at)
{
	return half_value(*at, r->bfloat);
}

/* Computes a head of a sequence in double precision: first all scores, then weights relative to the largest score. */
static void expect_head(const struct ragged_job *job, struct ragged *r, uint32_t sequence, uint32_t head, double *score,
			double *out)
{
	const uint32_t *table = ragged_table(r, sequence);
	const uint16_t *q = RAGGED_AT(r, uint16_t, queries) + ((uint64_t)sequence * r->heads + head) * r->dim;
	double highest = -INFINITY, total = 0;
	uint32_t n = job->length[sequence];
	for (uint32_t t = 0; t < n; t++) {
		const uint16_t *k = ragged_keys(r, table, head / r->group, t);
		score[t] = 0;
		for (uint32_t d = 0; d < r->dim; d++)
			score[t] += number_at(r, &q[d]) * number_at(r, &k[d]);
		score[t] /= sqrt(r->dim);
		highest = fmax(highest, score[t]);
	}
	memset(out, 0, r->dim * sizeof(*out));
	for (uint32_t t = 0; t < n; t++) {
		const uint16_t *v = ragged_keys(r, table, head / r->group, t) + ((uint64_t)r->dim << r->page_log2);
		double weight = exp(score[t] - highest);
		total += weight;
		for (uint32_t d = 0; d < r->dim; d++)
			out[d] += weight * number_at(r, &v[d]);
	}
	for (uint32_t d = 0; d < r->dim; d++)
		out[d] /= total;
}

/* Largest error of an output. Values are below 1, and the sum of weights is 1. Rounding errors come from the scores,
 * which are sums of dim products in float, and from the sums of weights over n tokens in tiles. 2^-16 is about a
 * hundred times the errors that are observed. */
#define TOLERANCE 0x1p-16

/* Checks head i, counted over all sequences. The expected values of a head are computed once. */
static int check_head(struct ragged_job *job, struct ragged *r, uint64_t i, double *score, double *worst,
		      struct loom_error *err)
{
	const float *out = RAGGED_AT(r, float, out) + i * r->dim;
	double *expected = job->expected + i * r->dim;
	uint32_t sequence = (uint32_t)(i / r->heads), head = (uint32_t)(i % r->heads);
	if (isnan(expected[0]))
		expect_head(job, r, sequence, head, score, expected);
	for (uint32_t d = 0; d < r->dim; d++) {
		double off = fabs(out[d] - expected[d]);
		if (!(off <= TOLERANCE))
			return LOOM_FAIL(job->base.host, err, LOOM_EWRONG,
					 "ragged: sequence %u (%u tokens), head %u, number %u: %g was expected, %g was found",
					 sequence, job->length[sequence], head, d, expected[d], out[d]);
		*worst = off > *worst ? off : *worst;
	}
	return 0;
}

static int check_heads(struct ragged_job *job, struct ragged *r, double *worst, struct loom_error *err)
{
	const struct loom_host *host = job->base.host;
	uint64_t all = (uint64_t)r->sequences * r->heads, n = half_checked(job->o->checked, all, 2.0 * (double)job->tokens / job->n * r->dim);
	double *score = malloc(RAGGED_LONGEST * sizeof(*score));
	int rc = 0;
	if (!job->expected) {
		job->expected = malloc(all * r->dim * sizeof(double));
		for (uint64_t i = 0; job->expected && i < all * r->dim; i++)
			job->expected[i] = NAN;
	}
	if (!score || !job->expected)
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "ragged: out of memory");
	for (uint64_t i = 0; !rc && i < n; i++) {
		rc = check_head(job, r, n == all ? i : loom__random(&job->state) % all, score, worst, err);
		if (!rc && LOOM_HAS(host, progress))
			rc = host->progress(host, (double)(i + 1) / (double)n, err);
	}
	free(score);
	return rc;
}

static int ragged_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_report *report, struct loom_error *err)
{
	struct ragged_job *job = self;
	const struct loom_host *host = job->base.host;
	struct ragged *r = view->global;
	uint64_t bytes, all = (uint64_t)r->sequences * r->heads * r->dim;
	struct ragged head = head_of(job, layout, &bytes);
	if (memcmp(r, &head, sizeof(head)))
		return LOOM_FAIL(host, err, LOOM_EWRONG, "ragged: the description of the batch was overwritten");
	double worst = 0;
	for (uint64_t i = 0; i < all; i++)
		if (!isfinite(RAGGED_AT(r, float, out)[i]))
			return LOOM_FAIL(host, err, LOOM_EWRONG, "ragged: sequence %llu, head %llu has no output",
					 (unsigned long long)(i / r->dim / r->heads),
					 (unsigned long long)(i / r->dim % r->heads));
	int rc = check_heads(job, r, &worst, err);
	if (rc)
		return rc;
	double mean = (double)job->tokens / job->n, square = 0;
	for (uint32_t i = 0; i < job->n; i++)
		square += (job->length[i] - mean) * (job->length[i] - mean);
	enum loom_better same = job->o->redraw ? LOOM_BETTER_NONE : LOOM_BETTER_SAME;
	host->metric(host, report, "bytes", "B", same, (double)job->tokens * r->kv * r->dim * 4);
	host->metric(host, report, "tokens", "tokens", same, (double)job->tokens);
	host->metric(host, report, "variation", "", same, sqrt(square / job->n) / mean);
	host->metric(host, report, "error", "", LOOM_BETTER_NONE, worst);
	return 0;
}

static uint32_t ragged_registers(void *self, const struct loom_layout *layout)
{
	(void)self;
	return workload_product_registers(layout);
}

static const struct loom_workload_ops ragged_ops = {
	.size = sizeof(struct loom_workload_ops),
	.create = ragged_create,
	.destroy = ragged_destroy,
	.need = ragged_need,
	.init = ragged_init,
	.constants = ragged_constants,
	.task_count = ragged_task_count,
	.tasks = ragged_tasks,
	.verify = ragged_verify,
	.work = "bytes",
	.inputs = ragged_inputs,
	.registers = ragged_registers,
	.scratch = ragged_scratch_bytes,
};

static const struct loom_task_entry ragged_entries[] = {{"workload_ragged_chunk", workload_ragged_chunk}};
WORKLOAD_CODE(workload_ragged, ragged_entries, LOOM_CODE_FILE("task.dev.h") LOOM_CODE_FILE("pieces.dev.h")
	      LOOM_CODE_FILE("tile.dev.h") LOOM_CODE_FILE("workload_ragged.dev.h"), .cost = workload_ragged_cost);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_ragged", "0.1.0", "Apache-2.0",
		   "Decode attention over paged sequences of different lengths", .opts = ragged_rows,
		   .opts_size = sizeof(struct ragged_opts), .check = ragged_check, .ops = &ragged_ops,
		   .dev = &workload_ragged_code)
