/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom compare: compares interleaved variants, or existing results. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/compare/compare.h"
#include "cli/base/files.h"
#include "cli/base/session.h"
#include "facts/facts.h"
#include "ranks/boot.h"
#include "report/view/document.h"
#include "report/view/foreign.h"
#include "report/text/table.h"
#include "facts/must.h"
#include "facts/write.h"

/* Number of blocks of the A/A comparison: AA_BLOCKS, or AA_LEAST if the main comparison has fewer than AA_BLOCKS. More
 * blocks would add little; fewer than AA_LEAST give no interval. */
#define AA_BLOCKS 10
#define AA_LEAST 6

struct show {
	const struct loom__cli *cli;
	struct loom__compare_args *args;
	struct loom__opened *variant;
	const char *what;
	uint64_t last_ns;
	uint8_t visible, estimated; /* visible: 1 to draw progress; estimated: 1 when the estimate was printed, or not due */
};

/* Returns how many samples have been taken, of the loom__interleave_total() of all. */
static size_t taken(const struct loom__interleave *x)
{
	size_t done = 0;
	for (unsigned i = 0; i < x->arms; i++)
		done += x->arm[i].result->samples;
	return done;
}

/* Returns an estimate of the seconds that are left. */
static double left_of(const struct loom__interleave *x, uint64_t gone)
{
	const struct loom__design *d = &x->design;
	size_t total = loom__interleave_total(x), done = taken(x);
	double left = done && done < total ? (double)gone / (double)done * (double)(total - done) / 1e9 : 0;
	double spread = gone < d->spread_ns ? (double)(d->spread_ns - gone) / 1e9 : 0;
	left = spread > left ? spread : left;
	if (d->budget_ns) {
		double rest = gone < d->budget_ns ? (double)(d->budget_ns - gone) / 1e9 : 0;
		left = rest < left ? rest : left;
	}
	return left;
}

/* Callback of struct loom__interleave. Prints an estimate of a long run after half of the first block. On a
 * terminal, redraws one line with a bar, at most ten times per second. */
static void progress(void *arg, const struct loom__interleave *x)
{
	struct show *show = arg;
	char bar[LOOM__BAR];
	uint64_t now = loom__now_ns(), gone = now - x->began_ns;
	size_t total = loom__interleave_total(x), done = taken(x);
	/* Each block begins with openings and warm-ups, which count for all of its samples. Long samples outweigh them. */
	int known = 2 * done >= (size_t)x->design.per_block * x->arms || (done >= x->arms && gone > 20000000000u);
	if (!show->estimated && known && gone > 1000000000u) {
		show->estimated = 1;
		loom__say_estimate(show->cli, left_of(x, gone), "this comparison");
	}
	if (!show->visible || now - show->last_ns < 100000000u)
		return;
	show->last_ns = now;
	loom__bar(bar, done, total);
	fprintf(stderr, "\r\033[K%s%s block %u of %u", show->what, bar, x->blocks + 1, x->design.blocks);
	if (known)
		fprintf(stderr, ", about %s left", LOOM__DURATION(left_of(x, gone)));
}

static void stop(void *arg)
{
	loom__interleave_stop(arg);
}

/* Callback of struct loom__interleave: closes the stack of a variant, or opens it again. Variants share no memory,
 * because each variant has a stack of its own. */
static int reopen(void *arg, struct loom__interleave *x, unsigned arm, int open, struct loom_error *err)
{
	const struct show *show = arg;
	struct loom__opened *v = &show->variant[arm];
	if (!open) {
		int rc = loom__stack_retire(v->stack, err);
		if (!rc)
			loom__variant_shut(v);
		return rc;
	}
	int status = loom__variant_again(show->cli, show->args, v);
	x->arm[arm].stack = v->stack;
	return status ? LOOM__FAIL(err, LOOM_EINTERNAL, "%s could not be opened again", v->label) : 0;
}

#define MOST_VARIANTS 32 /* loom__compare_ready() checks this limit */

static void jobs_of(const struct loom__interleave *x, const struct loom__opened *v, struct loom__job job[MOST_VARIANTS])
{
	for (unsigned i = 0; i < x->arms; i++)
		job[i] =
		    (struct loom__job){.label = v[i].label, .about = x->arm[i].result->about, .varied = v[i].varied};
}

/* Unless the user named metrics, judges first those that the user has declared: by --derive, or by [workload.exec] metrics as
 * those that a program prints. A metric without a direction cannot be judged. */
static void add_declared(struct loom__compare_args *a, const cJSON *result)
{
	const char *list =
	    loom__json_text(loom__json_object(loom__json_object(result, "config"), "workload.exec.metrics"), "value");
	const cJSON *metrics = loom__json_object(result, "metrics");
	char name[LOOM__COMPARE_NAME];
	size_t at = 0;
	for (size_t i = 0; a->usual_metrics && i < a->derived.n; i++)
		if (a->derived.one[i].better)
			at = loom__compare_lead(a, a->derived.one[i].name, at);
	while (a->usual_metrics && *(list += strspn(list, " \t,"))) {
		size_t n = strcspn(list, " \t,");
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(list, ":,\t "), list);
		if (*loom__json_text(loom__json_object(metrics, name), "better"))
			at = loom__compare_lead(a, name, at);
		list += n;
	}
}

/* Callback of struct loom__interleave: ends the run after the first block if the results cannot be compared. */
static int check_figures(void *arg, const struct loom__interleave *x, struct loom_error *err)
{
	const struct show *show = arg;
	struct loom__compare_args *a = show->args;
	struct loom__job job[MOST_VARIANTS];
	cJSON *doc[MOST_VARIANTS] = {0};
	int rc = 0;
	jobs_of(x, show->variant, job);
	for (unsigned i = 0; i < x->arms; i++) {
		doc[i] = loom__must(loom__result_document(x->arm[i].result));
		job[i].metrics = loom__json_object(doc[i], "metrics");
	}
	add_declared(a, doc[0]);
	rc = loom__compare_figures(job, x->arms, a->metric, a->metrics, a->allowed.at, a->allowed.n, err);
	for (unsigned i = 0; i < x->arms; i++)
		cJSON_Delete(doc[i]);
	return rc;
}

static int check_jobs(const struct loom__compare_args *a, const struct loom__interleave *x,
		      const struct loom__opened *v, struct loom_error *err)
{
	struct loom__job job[MOST_VARIANTS];
	cJSON *doc = cJSON_CreateObject();
	loom__json_add_array(doc, "variants");
	loom__json_add_array(doc, "warnings");
	jobs_of(x, v, job);
	for (unsigned i = 0; i < x->arms; i++)
		loom__compare_add_variant(doc, v[i].name, v[i].label, NULL, cJSON_Duplicate(x->arm[i].result->about, 1));
	int rc = loom__compare_same_job(job, x->arms, a->allowed.at, a->allowed.n, err);
	if (!rc) /* variants may use different GPUs, and time their samples in different ways */
		rc = loom__compare_same_environment(doc, a->allowed.at, a->allowed.n, err);
	cJSON_Delete(doc);
	return rc;
}

/* Runs the variants, stops their workers, and captures the environment again. `what` begins the progress line. */
static int run(const struct loom__cli *cli, struct loom__compare_args *a, const char *what,
	       struct loom__interleave *x, struct loom__opened *v, struct loom_error *err)
{
	struct show show = {.cli = cli, .what = what, .args = a, .variant = v, .visible = cli->err_is_tty && !a->quiet};
	x->progress = a->quiet ? NULL : progress;
	x->check = check_figures;
	x->reopen = reopen;
	x->derived = &a->derived;
	x->arg = &show;
	for (unsigned i = 0; i < x->arms; i++) {
		x->arm[i].result = loom__must(loom__result_create(x->arm[i].stack));
		loom__facts_begin(NULL, x->arm[i].stack, x->arm[i].result);
	}
	int rc = check_jobs(a, x, v, err);
	if (!rc) {
		loom__on_stop(stop, x, "gpuloom: stopping after this sample; again to stop now\n");
		if (loom__stop_asked())
			loom__interleave_stop(x);
		loom__measured();
		rc = loom__interleave_run(x, err);
		loom__on_stop(NULL, NULL, NULL);
	}
	if (show.visible)
		fputs("\r\033[K", stderr);
	x->check = NULL;
	x->reopen = NULL;
	x->progress = NULL;
	x->arg = NULL;
	return rc;
}

static void end_results(struct loom__interleave *x, int rc, const struct loom_error *err)
{
	for (unsigned i = 0; i < x->arms; i++)
		if (x->arm[i].result) {
			loom__result_end(x->arm[i].result, rc, err);
			if (x->arm[i].stack)
				loom__facts_end(x->arm[i].stack, x->arm[i].result);
		}
}

static void drop_results(struct loom__interleave *x)
{
	for (unsigned i = 0; i < x->arms; i++)
		loom_result_destroy(x->arm[i].result);
	free(x->slot);
}

static struct loom__design design_of(const struct loom__compare_args *a, const struct loom__opened *base)
{
	struct loom__design d = {
		.order = a->order == 0 ? LOOM__STATS_ABBA : LOOM__STATS_RANDOM,
		.seed = a->seed ? a->seed : loom__now_ns() % 1000000007u + 1,
		.blocks = a->blocks,
		.openings = a->openings,
		.per_block = a->samples_per_block,
		.warmup = a->warmup == LOOM__WARMUP_OF_CONF ? base->warmup : a->warmup,
		.rewarm = a->rewarm,
		.budget_ns = a->budget ? a->budget : base->time_limit,
		.spread_ns = a->spread,
	};
	return d;
}

static struct loom__compare_about about_of(const struct loom__cli *cli, const struct loom__compare_args *a)
{
	return (struct loom__compare_about){.argc = cli->argc,
					    .argv = cli->argv,
					    .confidence = a->confidence,
					    .margin = a->margin,
					    .best = a->per_block == 1};
}

/* Also judges CPU time, which shows whether other programs used the cores. */
static void add_usual_metrics(struct loom__compare_args *a, const cJSON *doc)
{
	for (size_t v = 0; v < loom__compare_variants(doc); v++)
		if (!loom__compare_metric_of(doc, v, "cpu_seconds"))
			return;
	if (a->usual_metrics)
		loom__compare_want(a, "cpu_seconds");
}

/* Fills the document: variants, design, and the verdicts over complete blocks. There are no verdicts after a wrong
 * result, nor if check_figures() has found that the results cannot be compared. */
static int judge(struct loom__compare_args *a, cJSON *doc, struct loom__interleave *x,
		 struct loom__opened *v, int rc, const struct loom_error *error, struct loom_error *err)
{
	for (unsigned i = 0; i < x->arms; i++)
		loom__compare_add_variant(doc, v[i].name, v[i].label, v[i].varied,
					  x->arm[i].result ? loom__result_document(x->arm[i].result) : NULL);
	loom__compare_add_run(doc, x, rc, error);
	loom__compare_add_warnings(doc);
	add_usual_metrics(a, doc);
	int none = rc == LOOM_EWRONG || rc == LOOM_EINVAL || !x->blocks;
	return loom__compare_judge(doc, a->metric, none ? 0 : a->metrics, err);
}

/* Runs the A/A comparison, and adds the noise floor to doc. Each of the two copies of the baseline has its own stack,
 * so that the noise includes the effect of the placement of memory. Both copies have the name of the baseline. */
static int run_aa(const struct loom__cli *cli, struct loom__compare_args *a,
		  const struct loom__compare_about *about, struct loom__opened *base,
		  const struct loom__design *design, uint64_t opening_ns, cJSON *doc)
{
	struct loom__opened pair[2] = {*base, {0}};
	struct loom__arm arm[2] = {{.stack = base->stack}};
	struct loom__interleave x = {.design = *design, .arm = arm, .arms = 2, .opening_ns = 2 * opening_ns};
	struct loom_error err = {0}, more = {0};
	int status = loom__variant_open(cli, a, 0, &pair[1]);
	if (status)
		goto out;
	arm[1].stack = pair[1].stack;
	x.design.blocks = design->blocks < AA_BLOCKS ? AA_LEAST : AA_BLOCKS;
	x.design.budget_ns = design->budget_ns / 4;
	x.design.spread_ns = design->spread_ns / 2;
	int rc = run(cli, a, "noise floor: ", &x, pair, &err);
	base->stack = pair[0].stack; /* the run may have opened this stack again */
	end_results(&x, rc, &err);
	cJSON *same = loom__compare_document(about);
	if (rc == LOOM_EINTR)
		; /* the main comparison will report this error */
	else if (rc)
		loom__say_error(cli, "%s", err.text);
	else if ((rc = judge(a, same, &x, pair, rc, &err, &more)))
		loom__say_error(cli, "%s", more.text);
	else
		loom__compare_add_noise(doc, same, design->blocks);
	cJSON_Delete(same);
	drop_results(&x);
	status = loom__exit_of(rc);
out:
	loom__variant_close(&pair[1]);
	return status;
}

/* ---- output --------------------------------------------------------------------------------------- */

/* Prints the table of the document `json`, the bars unless `table` is 0, and writes the reports. */
static int report(const struct loom__cli *cli, const struct loom__compare_args *a, const char *json, int table,
		  struct loom__text *bars)
{
	struct loom__doc doc;
	struct loom__view view;
	struct loom__text text = {0};
	struct loom_error err;
	int status = LOOM_EXIT_OK;
	if (loom__doc_parse("this comparison", loom__must(strdup(json)), strlen(json), &doc, &err))
		return loom__refuse(cli, LOOM_EXIT_FAILURE, "%s", err.text);
	if (table && !a->quiet) {
		if (loom__view_create(&doc, 1, &view, &err)) {
			status = loom__refuse(cli, LOOM_EXIT_FAILURE, "%s", err.text);
		} else {
			loom__table_compare(&view, &text);
			loom__view_free(&view);
		}
		loom__put_table(cli, &text);
		loom__text_free(&text);
	}
	if (table)
		loom__put_table(cli, bars);
	for (size_t i = 0; i < a->output.n; i++) {
		const struct loom__report_args args = {.output = a->output.at[i], .width = loom__width_name[a->width]};
		int reported = loom__report(cli, &args, &doc, 1);
		status = status ? status : reported;
	}
	loom__doc_free(&doc);
	return status;
}

/* Returns 1 if a verdict that counts is inconclusive. A verdict counts if the user has named its metric. If the user
 * has named none, verdicts on the first metric count. */
static int inconclusive(const struct loom__compare_args *a, const cJSON *doc)
{
	const cJSON *c;
	cJSON_ArrayForEach(c, loom__json_list(doc, "comparisons"))
	{
		int counts = !a->usual_metrics || !strcmp(loom__json_text(c, "metric"), a->metric[0].name);
		if (counts && !strcmp(loom__json_text(c, "verdict"), "INCONCLUSIVE"))
			return 1;
	}
	return 0;
}

/* Prints rules, JSON, table, bars and report. Returns the exit code that follows from them. */
static int finish(const struct loom__cli *cli, const struct loom__compare_args *a, cJSON *doc)
{
	size_t failed = 0, undecided = 0;
	struct loom__text bars = {0};
	struct loom_error err;
	int status = LOOM_EXIT_OK, there = 0;
	int whole = loom__json_length(loom__json_list(doc, "comparisons")) > 0;
	loom__compare_gate(doc, a->rule, whole ? a->rules : 0, &failed, &undecided);
	if (whole && loom__compare_bars(doc, a->bar, a->bars, &bars, &err)) {
		loom__say_error(cli, "%s", err.text);
		status = LOOM_EXIT_USAGE;
	}
	char *json = loom__must(loom__json_print(doc, 1));
	if (a->json) {
		int wrote = loom__put_result(cli, a->json, json, &there);
		status = status ? status : wrote;
	}
	int reported = report(cli, a, json, !there, &bars);
	status = status ? status : reported;
	if (undecided)
		loom__say_warning(cli, "%zu rule%s of --fail-on could not be decided: more --blocks may help",
				  undecided, undecided == 1 ? "" : "s");
	if (!status && failed)
		status = LOOM_EXIT_GATE;
	if (!status && a->strict && (inconclusive(a, doc) || undecided))
		status = LOOM_EXIT_INCONCLUSIVE;
	loom__text_free(&bars);
	free(json);
	return status;
}

/* ---- confs and results ----------------------------------------------------------------------- */

static int compare_confs(const struct loom__cli *cli, struct loom__compare_args *a)
{
	size_t n = loom__variant_count(a), opened = 0;
	struct loom__opened *v = loom__must(calloc(n, sizeof(*v)));
	struct loom__arm *arm = loom__must(calloc(n, sizeof(*arm)));
	struct loom__compare_about about = about_of(cli, a);
	cJSON *doc = loom__compare_document(&about);
	struct loom__interleave x = {.arm = arm, .arms = (unsigned)n};
	struct loom_error error = {0}, err = {0};
	int status = LOOM_EXIT_FAILURE, rc = 0, judged = -1;
	uint64_t began = loom__now_ns();
	for (; opened < n; opened++) {
		status = loom__variant_open(cli, a, opened, &v[opened]);
		if (status) {
			opened++;
			goto out;
		}
		arm[opened].stack = v[opened].stack;
	}
	x.design = design_of(a, &v[0]);
	x.opening_ns = loom__now_ns() - began;
	status = a->aa ? run_aa(cli, a, &about, &v[0], &x.design, x.opening_ns / n, doc) : LOOM_EXIT_OK;
	arm[0].stack = v[0].stack;
	if (status && status != LOOM_EXIT_INTERRUPTED) /* after an interrupt the report is written as usual */
		goto out;
	rc = run(cli, a, "", &x, v, &error);
	for (size_t i = 0; i < n; i++) { /* the CPU time of children counts only when they have ended */
		struct loom_error ending;
		int ended = v[i].stack ? loom__stack_retire(v[i].stack, &ending) : 0;
		if (!rc && ended) {
			rc = ended;
			error = ending;
		}
	}
	end_results(&x, rc, &error);
	status = loom__exit_of(rc);
	judged = judge(a, doc, &x, v, rc, &error, &err);
	if (judged) {
		loom__say_error(cli, "%s", err.text);
		if (!status)
			status = loom__exit_of(judged);
	} else {
		int finished = finish(cli, a, doc);
		status = status ? status : finished;
	}
	if (rc)
		loom__say_error(cli, "%s", error.text);
	drop_results(&x);
out:
	while (opened > 0)
		loom__variant_close(&v[--opened]);
	cJSON_Delete(doc);
	free(arm);
	free(v);
	return status;
}

/* Adds a variant for each benchmark of the only file, which is of another program. */
static int add_benchmarks(const struct loom__cli *cli, const struct loom__compare_args *a, const struct loom__doc *from,
			  cJSON *doc)
{
	struct loom_error err;
	cJSON *v, *list = cJSON_GetObjectItemCaseSensitive(from->root, "variants");
	size_t n = loom__json_length(list);
	if (n > MOST_VARIANTS)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "compare: '%s' has %zu benchmarks, and more than %d cannot be "
				    "compared with the first: give two files", from->path, n, MOST_VARIANTS);
	cJSON_ArrayForEach(v, list)
	{
		cJSON *result = cJSON_DetachItemFromObjectCaseSensitive(v, "result");
		const char *label = loom__json_text(v, "label"), *status = loom__json_text(result, "status");
		if (strcmp(status, "ok"))
			loom__say_warning(cli, "%s: %s: %s", from->path, label,
					  loom__json_text(loom__json_object(result, "error"), "text"));
		int rc = loom__derived_result(&a->derived, result, &err);
		loom__compare_add_variant(doc, label, label, loom__json_object(v, "varied"), result);
		if (rc)
			return loom__refuse(cli, LOOM_EXIT_USAGE, "%s", err.text);
		if (!strcmp(status, "wrong"))
			return loom__refuse(cli, LOOM_EXIT_USAGE, "%s: %s is from a run with a wrong result", from->path,
					    label);
	}
	return LOOM_EXIT_OK;
}

static int add_result(const struct loom__cli *cli, struct loom__compare_args *a, size_t i, struct loom__doc *from,
		      cJSON *doc)
{
	struct loom__opened v;
	struct loom_error err;
	cJSON *result = NULL;
	int status = loom__variant_take(cli, a, i, from, &v, &result);
	if (!status && loom__derived_result(&a->derived, result, &err)) {
		cJSON_Delete(result);
		status = loom__refuse(cli, LOOM_EXIT_USAGE, "%s", err.text);
	} else if (!status) {
		loom__compare_add_variant(doc, v.name, v.label, v.varied, result);
	}
	loom__variant_close(&v);
	return status;
}

/* Takes a saved comparison in place of *doc, to judge it again. */
static int take_saved(const struct loom__cli *cli, const struct loom__compare_args *a, struct loom__doc *from, cJSON **doc)
{
	const cJSON *v, *list = loom__json_list(from->root, "variants");
	struct loom_error err;
	if (loom__json_length(list) > MOST_VARIANTS)
		return loom__refuse(cli, LOOM_EXIT_USAGE, "compare: '%s' has more than %d variants", from->path, MOST_VARIANTS);
	cJSON_ArrayForEach(v, list)
	{
		cJSON *result = cJSON_GetObjectItemCaseSensitive(v, "result");
		if (loom__derived_result(&a->derived, result, &err))
			return loom__refuse(cli, LOOM_EXIT_USAGE, "%s", err.text);
	}
	cJSON_Delete(*doc);
	*doc = from->root;
	from->root = NULL;
	return LOOM_EXIT_OK;
}

/* Reads the files, and adds their variants to *doc. *saved: 1 if the only file is a comparison, which replaces *doc. */
static int read_results(const struct loom__cli *cli, struct loom__compare_args *a, cJSON **doc, int *saved)
{
	struct loom__doc file[MOST_VARIANTS] = {{0}};
	int status = loom__file_documents(cli, &a->conf.file, file);
	size_t n = a->conf.file.n;
	if (!status) {
		*saved = n == 1 && !file[0].foreign && file[0].kind == LOOM__DOC_COMPARE;
		if (*saved)
			status = take_saved(cli, a, &file[0], doc);
		else if (n == 1 && file[0].foreign && file[0].kind == LOOM__DOC_COMPARE)
			status = add_benchmarks(cli, a, &file[0], *doc);
		else if (n == 1)
			status = loom__refuse(cli, LOOM_EXIT_USAGE, "compare: only one variant: give a second file");
		for (size_t i = 0; n > 1 && i < n && !status; i++)
			status = add_result(cli, a, i, &file[i], *doc);
	}
	for (size_t i = 0; i < n; i++)
		loom__doc_free(&file[i]);
	return status;
}

/* Judges the metrics that a result of another program leads with, unless the user named metrics. */
static void add_leading(struct loom__compare_args *a, const cJSON *doc)
{
	const cJSON *m, *result = loom__json_object(loom__compare_variant(doc, 0), "result");
	const cJSON *list = loom__json_list(result, "leading");
	if (!a->usual_metrics || !list || !list->child)
		return;
	if (!loom__json_object(loom__json_object(result, "metrics"), a->metric[0].name))
		a->metrics = 0; /* "seconds", which was the default */
	for (size_t i = 0; i < a->rules; i++)
		if (strcmp(a->rule[i].metric, "*"))
			loom__compare_want(a, a->rule[i].metric)->gate = 1;
	cJSON_ArrayForEach(m, list)
	{
		if (strlen(loom__json_string(m)) < LOOM__COMPARE_NAME)
			loom__compare_want(a, loom__json_string(m));
	}
}

static int compare_results(const struct loom__cli *cli, struct loom__compare_args *a)
{
	struct loom__compare_about about = about_of(cli, a);
	cJSON *doc = loom__compare_document(&about);
	struct loom_error err = {0};
	struct loom__job job[MOST_VARIANTS];
	int rc = 0, saved = 0, status = read_results(cli, a, &doc, &saved);
	size_t n = loom__compare_variants(doc);
	for (size_t i = 0; i < n && !status; i++) {
		const cJSON *variant = loom__compare_variant(doc, i);
		const cJSON *result = loom__json_object(variant, "result");
		job[i] = (struct loom__job){loom__compare_label(doc, i), result, loom__json_object(result, "metrics"),
					    loom__json_object(variant, "varied")};
	}
	if (!status) {
		add_leading(a, doc);
		add_declared(a, loom__json_object(loom__compare_variant(doc, 0), "result"));
		rc = saved ? 0 : loom__compare_same_job(job, n, a->allowed.at, a->allowed.n, &err);
	}
	if (!status && !rc)
		rc = loom__compare_figures(job, n, a->metric, a->metrics, a->allowed.at, a->allowed.n, &err);
	if (!status && !rc && !saved) {
		loom__compare_add_files(doc);
		rc = loom__compare_same_environment(doc, a->allowed.at, a->allowed.n, &err);
	}
	if (!status && !rc && !saved) {
		loom__compare_choices(doc);
		loom__compare_add_warnings(doc);
	}
	if (!status && !rc) {
		add_usual_metrics(a, doc);
		rc = saved ? loom__compare_again(doc, &about, a->metric, a->metrics, &err)
			   : loom__compare_judge(doc, a->metric, a->metrics, &err);
	}
	if (rc)
		loom__say_error(cli, "%s", err.text);
	if (!status && rc)
		status = loom__exit_of(rc);
	else if (!status)
		status = finish(cli, a, doc);
	cJSON_Delete(doc);
	return status;
}

static int run_command(struct loom__cli *cli, void *args)
{
	struct loom__compare_args *a = args;
	int status = loom__compare_ready(cli, a);
	struct loom_error err;
	if (!status)
		status = loom__check_stdout(cli, a->json ? a->json : a->output.n ? a->output.at[0] : NULL, a->quiet);
	if (status)
		return status;
	if (!a->from_results && loom__boot_alone("compare", &err))
		return loom__refuse(cli, LOOM_EXIT_USAGE, "%s", err.text);
	loom__catch_signals();
	return a->from_results ? compare_results(cli, a) : compare_confs(cli, a);
}

const struct loom__usage loom__compare_usage = {
    .command = "compare",
    .synopsis = "CONF --vary SECTION.KEY=VALUE,VALUE [--vary ...] [options]\n"
		"A.ini B.ini [C.ini ...] [options]\n"
		"A.json B.json [C.json ...] [options]\n"
		"COMPARISON.json [options]",
    .about = "Runs variants interleaved in blocks and reports which differences are significant. The\n"
	     "first variant is the baseline. Results of `gpuloom run` (JSON) can be compared as well, although they\n"
	     "were not interleaved, if their environments agree; also files of hyperfine, Google Benchmark and nvbench\n"
	     "(.json), nccl-tests and OSU micro-benchmarks (.txt, .out, .log). A saved comparison is judged again, by\n"
	     "other metrics or rules.\n",
    .notes = "Ctrl-C ends after the sample in progress and keeps the complete blocks.\n\n"
	     "Exit: 0 ok, 1 failed, 2 usage or conf, 3 wrong result, 4 not available here, 5 a rule of --fail-on\n"
	     "failed, 6 inconclusive with --strict, 124 timeout, 130 interrupted.\n",
    .options = loom__compare_options,
    .examples = "compare contains --vary scheduler.use=mgws,static\twork stealing against equal shares\n"
		"compare a.ini b.ini --budget 2m -o ab.html\tat most 2 minutes, and a page\n"
		"compare old.json new.json --fail-on 'seconds: slower > 3%'\tresults of two builds, for CI\n",
    .page = "docs/compare.md",
    .inputs = 1,
    LOOM__REQUEST(struct loom__compare_args, conf.file, run_command),
    .begin = loom__compare_begin,
    .end = loom__compare_end};
