/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_dispatch: experts in parallel over the ranks of a job. */
#include <gpuloom/trigger.h>
#include <stdlib.h>

#include "experts_routing.h"
#include "workload_dispatch.dev.h"
#include "../common/host.h"
#include "lib/align.h"
#include "lib/random.h"

static const char *const skews[] = {EXPERTS_SKEWS(EXPERTS_SKEW_TEXT) NULL};
static const char *const redraws[] = {"run", "sample", NULL};

#define ROUNDS_MOST 1000

struct dispatch_opts {
	uint32_t experts, tokens, top, dim, skew, redraw, rounds;
	const char *trace;
};

static const struct loom_opt dispatch_rows[] = {
	LOOM_OPT(struct dispatch_opts, experts, LOOM_OPT_U32, "16", "Experts of all ranks, which have contiguous, equal ranges of them.",
		 .min = 1, .max = EXPERTS_MOST),
	LOOM_OPT(struct dispatch_opts, tokens, LOOM_OPT_U32, "64", "Tokens of all ranks.", .min = 1, .max = EXPERTS_TOKENS_MOST),
	LOOM_OPT(struct dispatch_opts, top, LOOM_OPT_U32, "2", "Experts that a token chooses. With more than 16, sums would not be exact.",
		 .min = 1, .max = 16),
	LOOM_OPT(struct dispatch_opts, dim, LOOM_OPT_U32, "512", "Numbers of a row, each a bfloat16; a multiple of 8.", .min = 8,
		 .max = 1 << 16),
	LOOM_OPT(struct dispatch_opts, skew, LOOM_OPT_ENUM, "uniform",
		 "Which experts tokens choose, and which ranks send them, by [run] seed and the step. "
		 EXPERTS_SKEWS(EXPERTS_SKEW_HELP), .choices = skews),
	LOOM_OPT(struct dispatch_opts, redraw, LOOM_OPT_ENUM, "run", "run: each sample is step 0. sample: each is the next step.",
		 .choices = redraws),
	LOOM_OPT(struct dispatch_opts, trace, LOOM_OPT_PATH, "",
		 "skew = trace: a file of choices, as `save` of workload_experts writes it. After its last step comes its first."),
	LOOM_OPT(struct dispatch_opts, rounds, LOOM_OPT_U32, "8",
		 "Rounds of dispatch and combine, one after the other, before the step; dispatch_ns and combine_ns are their medians.", .max = ROUNDS_MOST),
	{.name = NULL},
};

struct dispatch_job {
	struct workload base;
	const struct dispatch_opts *o;
	struct routing routing; /* of the file `trace`; else one step, in which the choices are drawn */
	const uint32_t *choice, *source; /* of the step of this sample */
	uint32_t *mine; /* [tokens]: the tokens of this rank, `own` of them */
	uint32_t most;	/* tokens of the rank that has most, in any step; 0: not counted yet */
	uint64_t sample;
};

static struct routing shape_of(const struct loom_host *host, const struct dispatch_opts *o)
{
	return (struct routing){
	    .experts = o->experts, .tokens = o->tokens, .top = o->top, .steps = 1, .ranks = workload_ranks(host)};
}

static int dispatch_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct dispatch_opts *o = opts;
	if (o->top > o->experts)
		return LOOM_REFUSE(host, err, "top", "top = %u: tokens choose among %u experts", o->top, o->experts);
	if (o->dim % 8)
		return LOOM_REFUSE(host, err, "dim", "dim = %u: must be a multiple of 8", o->dim);
	if (o->skew == EXPERTS_TRACE && !*o->trace)
		return LOOM_REFUSE(host, err, "trace", "skew = trace: set trace = FILE");
	return 0;
}

static void dispatch_destroy(void *self)
{
	struct dispatch_job *job = self;
	if (job) {
		routing_free(&job->routing);
		free(job->mine);
	}
	workload_destroy(self);
}

static int dispatch_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct dispatch_opts *o = opts;
	struct routing shape = shape_of(host, o);
	void *made = NULL;
	int rc = workload_create(host, opts, sizeof(struct dispatch_job), &made, err);
	struct dispatch_job *job = made;
	if (rc)
		return rc;
	job->o = o;
	if (shape.ranks > DISPATCH_RANKS_MOST || shape.ranks > o->experts)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "dispatch: %u ranks: each must have an expert, and there may be %u", shape.ranks,
			       DISPATCH_RANKS_MOST);
	else if (o->top > routing_some(o->skew, &shape))
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "dispatch: top = %u: tokens choose among %u experts", o->top,
			       routing_some(o->skew, &shape));
	else
		rc = routing_create(host, o->skew, o->trace, &shape, &job->routing, err);
	if (!rc && job->routing.ranks != shape.ranks)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s: start %u ranks", o->trace, job->routing.ranks);
	if (!rc && !(job->mine = calloc(o->tokens, sizeof(*job->mine))))
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	if (rc)
		dispatch_destroy(job);
	else
		*self = job;
	return rc;
}

static int dispatch_inputs(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	return routing_inputs(host, ((const struct dispatch_opts *)opts)->skew, ((const struct dispatch_opts *)opts)->trace, err);
}

/* Sets the choices of a step, and finds this rank's tokens. Returns their number. */
static uint32_t route(struct dispatch_job *job, uint64_t seed, uint64_t step)
{
	struct routing *t = &job->routing;
	uint32_t own = 0;
	if (job->o->skew != EXPERTS_TRACE)
		routing_draw(job->o->skew, seed, step, t, t->choice, t->source);
	job->choice = t->choice + step % t->steps * t->tokens * t->top;
	job->source = t->source + step % t->steps * t->tokens;
	for (uint32_t i = 0; i < t->tokens; i++)
		if (job->source[i] == workload_rank(job->base.host))
			job->mine[own++] = i;
	return own;
}

/* Returns the tokens of the rank that has most, in any step. Skews do not change this number from step to step. */
static uint32_t most_of(struct dispatch_job *job, uint64_t seed)
{
	uint32_t most = 1;
	for (uint64_t step = 0; !job->most && step < job->routing.steps; step++) {
		uint32_t count[DISPATCH_RANKS_MOST] = {0};
		route(job, seed, step);
		for (uint32_t i = 0; i < job->o->tokens; i++)
			count[job->source[i]]++;
		for (uint32_t r = 0; r < job->routing.ranks; r++)
			most = count[r] > most ? count[r] : most;
	}
	job->most = job->most ? job->most : most;
	return job->most;
}

static struct dispatch head_of(struct dispatch_job *job, const struct loom_layout *layout, uint64_t *bytes)
{
	const struct dispatch_opts *o = job->o;
	struct dispatch d = {.rank = workload_rank(job->base.host),
			     .ranks = job->routing.ranks,
			     .most = most_of(job, layout->seed),
			     .experts = o->experts,
			     .top = o->top,
			     .dim = o->dim,
			     .rounds = o->rounds};
	uint64_t at = sizeof(d), places = (uint64_t)d.ranks * d.most, row = o->dim * 2ull;
	d.note_bytes = loom__align(sizeof(struct dispatch_note) + d.top * sizeof(struct dispatch_share), 64);
#define PLACE(what, size) (d.what##_at = workload_place(&at, size))
	PLACE(base, d.ranks * 8);
	PLACE(meet, d.ranks * layout->workers * 8ull);
	PLACE(choice, (uint64_t)d.most * d.top * 4);
	PLACE(x, d.most * row);
	PLACE(factor, d.experts * row);
	PLACE(note, places * d.note_bytes);
	PLACE(in, places * row);
	PLACE(done, places * 8);
	PLACE(back, places * row);
	PLACE(out, 2 * d.most * row);
#undef PLACE
	*bytes = at;
	return d;
}

static int dispatch_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct dispatch_job *job = self;
	if (layout->devices > 1)
		return LOOM_FAIL(job->base.host, err, LOOM_ENOTSUP, "dispatch: a rank has one device: name one in [run] devices, and start "
				 "a rank for each, as in gpuloom run -n 2");
	head_of(job, layout, &need->global);
	need->global_place = LOOM_PLACE_NET;
	need->worker = (job->o->rounds + 1) * DISPATCH_STAMPS * sizeof(uint64_t);
	return 0;
}

static uint64_t dispatch_task_count(void *self, const struct loom_layout *layout)
{
	struct dispatch_job *job = self;
	return (uint64_t)job->routing.ranks * most_of(job, layout->seed);
}

static int dispatch_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			  struct loom_task *tasks, struct loom_error *err)
{
	uint64_t places = dispatch_task_count(self, layout);
	(void)view, (void)global, (void)err;
	for (uint64_t i = 0; i < places; i++) {
		workload_task(&tasks[i], 0);
		tasks[i].param[0] = i;
	}
	return 0;
}

/* Number j of a token's row: -2, -1, 1 or 2. Number j of an expert's vector: 1, 2 or 3. */
static float number_of(uint64_t seed, uint32_t token, uint32_t j)
{
	static const float values[] = {-2, -1, 1, 2};
	return values[loom__mix64(seed ^ ((uint64_t)token << 32 | j)) & 3];
}
static float factor_of(uint32_t expert, uint32_t j)
{
	return (float)(1 + (expert + j) % 3);
}

static int dispatch_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct dispatch_job *job = self;
	struct dispatch *d = view->global;
	char *all = view->global;
	uint64_t bytes;
	(void)err;
	*d = head_of(job, layout, &bytes);
	d->own = route(job, layout->seed, job->o->redraw ? job->sample++ : 0);
	memset(all + d->meet_at, 0, d->x_at - d->meet_at);
	memset(all + d->note_at, 0, d->in_at - d->note_at);
	memset(all + d->done_at, 0, d->back_at - d->done_at);
	/* Rows start as NaN, so that the check finds a missing one. */
	memset(all + d->in_at, 0xff, d->done_at - d->in_at);
	memset(all + d->back_at, 0xff, bytes - d->back_at);
	for (uint32_t i = 0; i < d->own; i++) {
		memcpy(all + d->choice_at + i * d->top * 4ull, job->choice + (uint64_t)job->mine[i] * d->top, d->top * 4ull);
		for (uint32_t j = 0; j < d->dim; j++)
			((uint16_t *)(all + d->x_at))[(uint64_t)i * d->dim + j] = (uint16_t)dispatch_round(number_of(layout->seed, job->mine[i], j));
	}
	for (uint32_t e = 0; e < d->experts; e++)
		for (uint32_t j = 0; j < d->dim; j++)
			((uint16_t *)(all + d->factor_at))[(uint64_t)e * d->dim + j] = (uint16_t)dispatch_round(factor_of(e, j));
	for (uint32_t w = 0; w < layout->workers; w++)
		memset(view->worker[w], 0, (d->rounds + 1) * DISPATCH_STAMPS * sizeof(uint64_t));
	return 0;
}

static int dispatch_wire(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			 const struct loom_trigger *trigger, struct loom_error *err)
{
	struct dispatch_job *job = self;
	const struct dispatch *d = view->global;
	uint64_t *base = (uint64_t *)((char *)view->global + d->base_at), bytes;
	int rc = 0;
	if (!LOOM_HAS(trigger->ops, reach))
		return LOOM_FAIL(job->base.host, err, LOOM_ENOTSUP,
				 "dispatch needs a trigger whose workers store into other ranks: choose --set trigger.use=peer");
	head_of(job, layout, &bytes);
	for (uint32_t r = 0; r < d->ranks && !rc; r++)
		if (r != d->rank)
			rc = trigger->ops->reach(trigger->self, r, global, bytes, &base[r], err);
	return rc;
}

/* ---- the check --------------------------------------------------------------------------------- */

/* Compares the outputs `which` (0: of the last round, 1: of the step) with sums in double precision, which are exact. */
static int check(struct dispatch_job *job, const struct dispatch *d, uint64_t seed, uint32_t which, struct loom_error *err)
{
	const uint16_t *out = (const uint16_t *)((const char *)d + d->out_at) + (uint64_t)which * d->most * d->dim;
	for (uint32_t i = 0; i < d->own; i++)
		for (uint32_t j = 0; j < d->dim; j++) {
			const uint32_t *choice = job->choice + (uint64_t)job->mine[i] * d->top;
			double sum = 0, found = tile_bfloat(out[(uint64_t)i * d->dim + j]);
			for (uint32_t k = 0; k < d->top; k++)
				sum += dispatch_weight(d->rank, i, k) * factor_of(choice[k], j) * number_of(seed, job->mine[i], j);
			if (found != sum)
				return LOOM_FAIL(job->base.host, err, LOOM_EWRONG,
						 "dispatch: number %u of token %u of rank %u is %g instead of %g, in %s", j, i, d->rank, found, sum,
						 which ? "the step" : "the last round");
		}
	return 0;
}

/* Returns the median of n rounds from number `first` on: the time from the first worker's stamp `from` to the last one's stamp `to`. */
static uint64_t median_of(const struct loom_layout *layout, const struct loom_view *view, uint32_t first, uint32_t n, uint32_t from,
			  uint32_t to)
{
	uint64_t ns[ROUNDS_MOST + 1] = {0};
	for (uint32_t i = 0; i < n; i++) {
		uint64_t begin = UINT64_MAX, end = 0;
		for (uint32_t w = 0; w < layout->workers; w++) {
			const uint64_t *at = (const uint64_t *)view->worker[w] + (uint64_t)(first + i) * DISPATCH_STAMPS;
			begin = at[from] < begin ? at[from] : begin;
			end = at[to] > end ? at[to] : end;
		}
		ns[i] = end - begin;
	}
	qsort(ns, n, sizeof(*ns), workload_ascending);
	return ns[n / 2];
}

/* What each rank measures. The metrics are the most of all ranks. */
enum { STEP_NS, DISPATCH_NS, COMBINE_NS, ROWS, MEASURES };

static int dispatch_verify(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_report *report,
			   struct loom_error *err)
{
	static const char *const names[MEASURES] = {"step_ns", "dispatch_ns", "combine_ns", "most_rows"};
	struct dispatch_job *job = self;
	const struct loom_host *host = job->base.host;
	const struct dispatch *d = view->global;
	uint64_t mine[MEASURES] = {median_of(layout, view, d->rounds, 1, DISPATCH_BEGUN, DISPATCH_COMBINED),
				   median_of(layout, view, 0, d->rounds, DISPATCH_BEGUN, DISPATCH_ARRIVED),
				   median_of(layout, view, 0, d->rounds, DISPATCH_ANSWERS, DISPATCH_COMBINED)};
	uint64_t all[DISPATCH_RANKS_MOST][MEASURES], rows = 0;
	int rc = check(job, d, layout->seed, 1, err);
	rc = rc || !d->rounds ? rc : check(job, d, layout->seed, 0, err);
	for (uint64_t p = 0; p < (uint64_t)d->ranks * d->most; p++)
		mine[ROWS] += ((const struct dispatch_note *)((const char *)d + d->note_at + p * d->note_bytes))->n > 0;
	memcpy(all[0], mine, sizeof(mine));
	rc = rc || d->ranks == 1 ? rc : host->allgather(host, mine, all, sizeof(mine), err);
	for (uint32_t r = 0; !rc && r < d->ranks; r++) {
		rows += all[r][ROWS];
		for (uint32_t i = 0; i < MEASURES; i++)
			mine[i] = all[r][i] > mine[i] ? all[r][i] : mine[i];
	}
	for (uint32_t i = 0; !rc && i < ROWS; i++)
		if (d->rounds || i == STEP_NS)
			host->metric(host, report, names[i], "ns", LOOM_BETTER_LESS, (double)mine[i]);
	if (!rc)
		host->metric(host, report, names[ROWS], "rows", LOOM_BETTER_NONE, (double)mine[ROWS]);
	if (!rc)
		host->metric(host, report, "row_bytes", "B", LOOM_BETTER_NONE, (double)rows * d->dim * 2);
	return rc;
}

WORKLOAD_OPS(dispatch, .create = dispatch_create, .destroy = dispatch_destroy, .task_count = dispatch_task_count,
	     .tasks = dispatch_tasks, .wire = dispatch_wire, .inputs = dispatch_inputs, .needs = 1u << LOOM_SCHED | 1u << LOOM_TERM);

static const struct loom_task_entry dispatch_entries[] = {{"workload_dispatch_row", workload_dispatch_row}};
WORKLOAD_CODE(workload_dispatch, dispatch_entries, LOOM_CODE_FILE("task.dev.h") LOOM_CODE_FILE("tile.dev.h")
	      LOOM_CODE_FILE("workload_dispatch.dev.h"), .kernel = workload_dispatch_kernel);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_dispatch", "0.1.0", "Apache-2.0",
		   "Experts in parallel: tokens travel to the ranks of their experts, and results come back", .opts = dispatch_rows,
		   .opts_size = sizeof(struct dispatch_opts), .check = dispatch_check, .ops = &dispatch_ops, .dev = &workload_dispatch_code)
