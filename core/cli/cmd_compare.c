/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom compare: variants against each other, interleaved; or results that are already there. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/compare.h"
#include "cli/session.h"
#include "report/document.h"

/* The baseline against itself needs no more to show the noise; fewer give no interval. */
#define AA_BLOCKS 10
#define AA_LEAST 6

struct show {
	const char *what;
	uint64_t last_ns;
};

/* On a terminal only, on one line, a few times a second. */
static void progress(void *arg, const struct loom__interleave *x)
{
	struct show *show = arg;
	uint64_t now = loom__now_ns(), gone = now - x->began_ns;
	size_t total = loom__interleave_total(x), done = 0;
	if (now - show->last_ns < 100000000u)
		return;
	show->last_ns = now;
	for (unsigned i = 0; i < x->arms; i++)
		done += x->arm[i].result->samples;
	double left = done < total ? (double)gone / (double)done * (double)(total - done) / 1e9 : 0;
	if (x->design.budget_ns) {
		double rest = gone < x->design.budget_ns ? (double)(x->design.budget_ns - gone) / 1e9 : 0;
		left = rest < left ? rest : left;
	}
	fprintf(stderr, "\r\033[K%sblock %u of %u, about %.0f s left", show->what, x->blocks + 1,
		x->design.blocks, left);
}

static void stop(void *arg)
{
	loom__interleave_stop(arg);
}

/* Runs the arms; then their workers leave, and the environment is captured a second time. */
static int run(const struct loom__cli *cli, const struct loom__compare_args *a, const char *what,
	       struct loom__interleave *x, struct loom_error *err)
{
	struct show show = {.what = what};
	int visible = cli->err_is_tty && !a->quiet;
	x->progress = visible ? progress : NULL;
	x->arg = &show;
	int rc = 0;
	for (unsigned i = 0; i < x->arms && !rc; i++) {
		x->arm[i].result = loom__result_create(x->arm[i].stack);
		if (!x->arm[i].result)
			rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	}
	if (!rc) {
		loom__on_stop(stop, x, "gpuloom: stopping after this sample; again to stop now\n");
		if (loom__stop_asked())
			loom__interleave_stop(x);
		rc = loom__interleave_run(x, err);
		loom__on_stop(NULL, NULL, NULL);
	}
	if (visible)
		fputs("\r\033[K", stderr);
	x->progress = NULL;
	x->arg = NULL;
	return rc;
}

static void end_results(struct loom__interleave *x, int rc, const struct loom_error *err)
{
	for (unsigned i = 0; i < x->arms; i++)
		if (x->arm[i].result)
			loom__result_end(x->arm[i].result, rc, err);
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
		.per_block = a->samples_per_block,
		.warmup = a->warmup == LOOM__WARMUP_OF_CONF ? base->warmup : a->warmup,
		.rewarm = a->rewarm,
		.budget_ns = a->budget ? a->budget : base->time_limit,
		.spread_ns = a->spread,
	};
	return d;
}

static struct loom__compare_about about_of(const struct loom__compare_args *a, int argc, char **argv)
{
	return (struct loom__compare_about){.argc = argc,
					    .argv = argv,
					    .confidence = a->confidence,
					    .margin = a->margin,
					    .best = a->per_block == 1};
}

/* CPU time says what wall time cannot while other programs use the cores. */
static void add_usual_metrics(struct loom__compare_args *a, const cJSON *doc)
{
	for (size_t v = 0; v < loom__compare_variants(doc); v++)
		if (!loom__compare_metric_of(doc, v, "cpu_seconds"))
			return;
	if (a->usual_metrics)
		loom__compare_want(a, "cpu_seconds");
}

/* A document of what ran: variants, design, and verdicts over the complete blocks. A run with a wrong
 * answer has none. */
static int judge(struct loom__compare_args *a, cJSON *doc, struct loom__interleave *x,
		 struct loom__opened *v, int rc, const struct loom_error *error, struct loom_error *err)
{
	int failed = 0;
	for (unsigned i = 0; i < x->arms && !failed; i++) {
		cJSON *result = x->arm[i].result ? loom__result_document(x->arm[i].result) : NULL;
		failed = loom__compare_add_variant(doc, v[i].name, v[i].label,
						   cJSON_Duplicate(v[i].varied, 1), result);
	}
	if (!failed)
		failed = loom__compare_add_run(doc, x, rc, error);
	if (!failed)
		add_usual_metrics(a, doc);
	size_t metrics = rc == LOOM_EWRONG || !x->blocks ? 0 : a->metrics;
	if (!failed)
		failed = loom__compare_judge(doc, a->metric, metrics, err);
	else
		LOOM__FAIL(err, failed, "out of memory");
	return failed;
}

/* A against A, each with a stack of its own, so that where memory happens to lie counts too. The
 * names are those of the baseline. */
static int run_aa(const struct loom__cli *cli, struct loom__compare_args *a,
		  const struct loom__compare_about *about, struct loom__opened *base,
		  const struct loom__design *design, cJSON *doc)
{
	struct loom__opened pair[2] = {*base, {0}};
	struct loom__arm arm[2] = {{.stack = base->stack}};
	struct loom__interleave x = {.design = *design, .arm = arm, .arms = 2};
	struct loom_error err = {0}, more = {0};
	int status = loom__variant_open(cli, a, 0, &pair[1]);
	if (status)
		goto out;
	arm[1].stack = pair[1].stack;
	x.design.blocks = design->blocks < AA_BLOCKS ? AA_LEAST : AA_BLOCKS;
	x.design.budget_ns = design->budget_ns / 4;
	x.design.spread_ns = design->spread_ns / 2;
	int rc = run(cli, a, "noise floor: ", &x, &err);
	end_results(&x, rc, &err);
	cJSON *same = loom__compare_document(about);
	if (rc == LOOM_EINTR)
		; /* the comparison itself says so */
	else if (rc)
		loom__say_error(cli, "%s", err.text);
	else if (!same || judge(a, same, &x, pair, rc, &err, &more) ||
		 loom__compare_add_noise(doc, same, design->blocks)) {
		loom__say_error(cli, "out of memory");
		rc = LOOM_ENOMEM;
	}
	cJSON_Delete(same);
	drop_results(&x);
	status = loom__exit_of(rc);
out:
	loom__variant_close(&pair[1]);
	return status;
}

/* ---- output --------------------------------------------------------------------------------------- */

/* The report command reads a file: the one of --json, or one that is gone afterwards. */
static int report(struct loom__cli *cli, const struct loom__compare_args *a, const char *json)
{
	char path[] = "/tmp/gpuloom-compare-XXXXXX.json", command[] = "report", option[] = "-o";
	char *from = (char *)(uintptr_t)a->json, *to = (char *)(uintptr_t)a->output;
	int own = !a->json || !strcmp(a->json, "-"), fd = own ? mkstemps(path, 5) : -1;
	if (own) {
		size_t n = strlen(json);
		if (fd < 0 || write(fd, json, n) != (ssize_t)n) {
			loom__say_error(cli, "cannot write %s for the report", path);
			if (fd >= 0) {
				close(fd);
				unlink(path);
			}
			return LOOM_EXIT_FAILURE;
		}
		close(fd);
		from = path;
	}
	char *argv[] = {command, from, option, to, NULL};
	int status = loom__cmd_report(cli, 4, argv);
	if (own)
		unlink(path);
	return status;
}

/* Of the metrics that the user named, else of the leading one. */
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

/* Rules, then JSON, table, bars and report; the exit code that they give by themselves. */
static int finish(struct loom__cli *cli, const struct loom__compare_args *a, cJSON *doc)
{
	size_t failed = 0, undecided = 0;
	struct loom__text bars = {0}, table = {0};
	struct loom_error err;
	int status = LOOM_EXIT_OK, there = 0;
	int whole = loom__json_length(loom__json_list(doc, "comparisons")) > 0;
	loom__compare_gate(doc, a->rule, whole ? a->rules : 0, &failed, &undecided);
	if (whole && loom__compare_bars(doc, a->bar, a->bars, &bars, &err)) {
		loom__say_error(cli, "%s", err.text);
		status = LOOM_EXIT_USAGE;
	}
	char *json = a->json || a->output ? cJSON_Print(doc) : NULL;
	if ((a->json || a->output) && !json) {
		loom__say_error(cli, "out of memory for the result");
		return LOOM_EXIT_FAILURE;
	}
	if (a->json) {
		int wrote = loom__put_result(cli, a->json, json, &there);
		status = status ? status : wrote;
	}
	if (!a->quiet && !there) {
		loom__compare_table(doc, &table);
		fputs(table.at ? table.at : "", cli->out);
	}
	if (bars.at && !there)
		fputs(bars.at, cli->out);
	if (a->output) {
		int reported = report(cli, a, json);
		status = status ? status : reported;
	}
	if (undecided)
		loom__say_warning(cli, "%zu rule%s of --fail-on could not be decided: more --blocks may help",
				  undecided, undecided == 1 ? "" : "s");
	if (!status && failed)
		status = LOOM_EXIT_GATE;
	if (!status && a->strict && (inconclusive(a, doc) || undecided))
		status = LOOM_EXIT_INCONCLUSIVE;
	loom__text_free(&bars);
	loom__text_free(&table);
	free(json);
	return status;
}

/* ---- both ways ------------------------------------------------------------------------------------ */

static int compare_confs(struct loom__cli *cli, struct loom__compare_args *a, int argc, char **argv)
{
	size_t n = loom__variant_count(a), opened = 0;
	struct loom__opened *v = calloc(n, sizeof(*v));
	struct loom__arm *arm = calloc(n, sizeof(*arm));
	struct loom__compare_about about = about_of(a, argc, argv);
	cJSON *doc = loom__compare_document(&about);
	struct loom__interleave x = {.arm = arm, .arms = (unsigned)n};
	struct loom_error error = {0}, err = {0};
	int status = LOOM_EXIT_FAILURE, rc = 0, judged = -1;
	if (!v || !arm || !doc) {
		loom__say_error(cli, "out of memory");
		goto out;
	}
	for (; opened < n; opened++) {
		status = loom__variant_open(cli, a, opened, &v[opened]);
		if (status) {
			opened++;
			goto out;
		}
		arm[opened].stack = v[opened].stack;
	}
	x.design = design_of(a, &v[0]);
	status = a->aa ? run_aa(cli, a, &about, &v[0], &x.design, doc) : LOOM_EXIT_OK;
	if (status && status != LOOM_EXIT_INTERRUPTED) /* interrupted, it ends as it always does */
		goto out;
	rc = run(cli, a, "", &x, &error);
	for (size_t i = 0; i < n; i++) { /* so that a child's CPU time is counted as ours */
		struct loom_error ending;
		int ended = loom__stack_retire(v[i].stack, &ending);
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

static int compare_results(struct loom__cli *cli, struct loom__compare_args *a, int argc, char **argv)
{
	struct loom__compare_about about = about_of(a, argc, argv);
	cJSON *doc = loom__compare_document(&about);
	struct loom_error err = {0};
	int status = doc ? LOOM_EXIT_OK : LOOM_EXIT_FAILURE, rc = 0;
	for (size_t i = 0; i < a->conf.file.n && !status && !rc; i++) {
		struct loom__opened v;
		cJSON *result = NULL;
		status = loom__variant_read(cli, a, i, &v, &result);
		if (!status)
			rc = loom__compare_add_variant(doc, v.name, v.label, cJSON_Duplicate(v.varied, 1),
						       result);
		if (rc)
			LOOM__FAIL(&err, rc, "out of memory");
		loom__variant_close(&v);
	}
	if (!status && !rc)
		rc = loom__compare_add_files(doc);
	if (!status && !rc)
		rc = loom__compare_same_environment(doc, a->allowed.at, a->allowed.n, &err);
	if (!status && !rc) {
		add_usual_metrics(a, doc);
		rc = loom__compare_judge(doc, a->metric, a->metrics, &err);
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

int loom__cmd_compare(struct loom__cli *cli, int argc, char **argv)
{
	struct loom__compare_args a = {0};
	int status = loom__compare_parse(cli, argc, argv, &a);
	if (!status) {
		loom__catch_signals();
		status = a.from_results ? compare_results(cli, &a, argc, argv) :
					  compare_confs(cli, &a, argc, argv);
	}
	loom__compare_args_free(&a);
	return status < 0 ? LOOM_EXIT_OK : status;
}
