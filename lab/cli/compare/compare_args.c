/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "cli/base/files.h"
#include "report/report.h"
#include "facts/must.h"

static int take_metric(void *args, const char *list, struct loom_error *err)
{
	struct loom__compare_args *a = args;
	while (*list) {
		char one[64] = "";
		size_t n = strcspn(list, ",");
		strncat(one, list, n < sizeof(one) - 1 ? n : sizeof(one) - 1);
		list += n + (list[n] == ',');
		struct loom__compare_metric m;
		int rc = loom__compare_metric_parse(one, &m, err);
		if (rc)
			return rc;
		loom__compare_want(a, m.name)->better = m.better;
	}
	return 0;
}

struct loom__compare_metric *loom__compare_want(struct loom__compare_args *a, const char *name)
{
	for (size_t i = 0; i < a->metrics; i++)
		if (!strcmp(a->metric[i].name, name))
			return &a->metric[i];
	a->metric = loom__must(reallocarray(a->metric, a->metrics + 1, sizeof(*a->metric)));
	struct loom__compare_metric *m = &a->metric[a->metrics++];
	*m = (struct loom__compare_metric){.better = LOOM_BETTER_NONE};
	snprintf(m->name, sizeof(m->name), "%s", name);
	return m;
}

size_t loom__compare_lead(struct loom__compare_args *a, const char *name, size_t at)
{
	size_t from = (size_t)(loom__compare_want(a, name) - a->metric);
	struct loom__compare_metric one = a->metric[from];
	if (from < at)
		return at;
	memmove(&a->metric[at + 1], &a->metric[at], (from - at) * sizeof(one));
	a->metric[at] = one;
	return at + 1;
}

static int take_vary(void *args, const char *value, struct loom_error *err)
{
	struct loom__compare_args *a = args;
	return loom__factor_add(value, a->factor, &a->factors, err);
}

static int take_rule(void *args, const char *value, struct loom_error *err)
{
	struct loom__compare_args *a = args;
	int rc = loom__gate_rule_parse(value, &a->rule[a->rules], err);
	a->rules += !rc;
	return rc;
}

static int take_bar(void *args, const char *value, struct loom_error *err)
{
	struct loom__compare_args *a = args;
	int rc = loom__bar_parse(value, &a->bar[a->bars], err);
	a->bars += !rc;
	return rc;
}

static int take_output(void *args, const char *value, struct loom_error *err)
{
	struct loom__compare_args *a = args;
	enum loom__report_format f = loom__report_format_of(value);
	a->output.at[a->output.n++] = value;
	if (f == LOOM__AS_JSON)
		return LOOM__FAIL(err, LOOM_EINVAL, "-o writes reports: use --json %s for the comparison",
				  value);
	if (f == LOOM__REPORT_FORMATS || !strcmp(value, "-"))
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "-o %s: its name must end in " LOOM__REPORT_SUFFIXES, value);
	return 0;
}

static const char *const orders[] = {"abba", "random", NULL};
static const char *const ways[] = {"median", "best", NULL};

#define AT(field, type) LOOM__AT(struct loom__compare_args, field, type)
const struct loom__option loom__compare_options[] = {
    {"vary", "SECTION.KEY=A,B", "vary an option; several --vary make all combinations. Double quotes keep a comma",
     .take = take_vary},
    LOOM__OPTION_SET(struct loom__compare_args),
    {"metric", "NAME[:more|less]",
     "metrics to judge, separated by commas (those of --derive and of [workload.exec] metrics with a direction, seconds, and "
     "cpu_seconds if devices report it)", .take = take_metric},
    LOOM__OPTION_DERIVE(struct loom__compare_args),
    {"blocks", "N", "blocks, in each of which all variants run", AT(blocks, U32), .dflt = "20", .min = 1, .max = 1e5},
    {"openings", "N",
     "all variants are opened at least so often, but at most once per block; 0: for each block, unless that takes "
     "longer than a minute",
     AT(openings, U32), .dflt = "0", .max = 1e5},
    {"samples-per-block", "N", "samples of each variant in a block; 0: 8 to 32, as many as fit into --spread",
     AT(samples_per_block, U32), .dflt = "0", .max = 1e4},
    {"order", NULL, "order of the variants within a block: random and then reversed, or random", AT(order, ENUM),
     .dflt = "abba", .choices = orders},
    {"seed", "N", "seed of the order; 0: a random one, which the result records", AT(seed, U64), .dflt = "0"},
    {"warmup", "N", "unmeasured executions of each variant (as the conf says)", AT(warmup, U32), .max = 1e5},
    {"rewarm", "N", "unmeasured executions after each change of variant", AT(rewarm, U32), .dflt = "0", .max = 1e3},
    {"per-block", NULL,
     "statistic that represents a block; 'best' is more robust to background load if samples "
     "are short",
     AT(per_block, ENUM), .dflt = "median", .choices = ways},
    {"budget", "TIME", "start no block after this time, as in 2m", AT(budget, TIME), .max = 1e15},
    {"spread", "TIME", "spread the blocks over at least this time", AT(spread, TIME), .dflt = "3s", .max = 1e15},
    {"margin", "SHARE", "differences up to this do not matter (EQUIVALENT)", AT(margin, SHARE), .dflt = "1%", .max = 1},
    {"confidence", "SHARE", "confidence of intervals and verdicts", AT(confidence, SHARE), .dflt = "95%", .min = 0.5,
     .max = 0.9999},
    {"aa", NULL, "first compare the baseline with itself, to measure the noise of the machine", AT(aa, BOOL)},
    {"fail-on", "'METRIC: slower > 3%'", "exit with code 5 if this is certain", .take = take_rule},
    {"bar", "'NAME: METRIC(LABEL) / METRIC(LABEL) >= 0.9'",
     "print a line `bar NAME VALUE >= 0.9 ok` (or short) at the end; without a target `figure NAME VALUE`", .take = take_bar},
    {"strict", NULL,
     "exit with code 6, not 0, if a rule of --fail-on is undecided, or a verdict inconclusive: on a metric that --metric "
     "names or, without --metric, on the first one",
     AT(strict, BOOL)},
    {"allow-mismatch", "FACT",
     "compare despite this difference: a fact of the environment, 'workload', or an option of the workload",
     AT(allowed, NONE)},
    {"json", "FILE|-", "write the comparison as JSON; '-' is standard output, instead of the table", AT(json, STR),
     .writes = LOOM__WRITES_RESULT},
    {"output", "FILE", "write a report; its name ends in " LOOM__REPORT_SUFFIXES "; may be repeated",
     .take = take_output, .letter = 'o'},
    {"width", "page|column", .rows = loom__sweep_rows, AT(width, ENUM), .choices = loom__width_name},
    {"quiet", NULL, "no table, no progress", AT(quiet, BOOL)},
    LOOM__OPTION_LOG(struct loom__compare_args),
    {0}};
#undef AT

static int check(const struct loom__cli *cli, struct loom__compare_args *a)
{
	size_t results = 0;
	for (size_t i = 0; i < a->conf.file.n; i++)
		results += loom__input_kind(a->conf.file.at[i]) != LOOM__INPUT_CONF;
	const char *fault = NULL;
	a->from_results = results > 0;
	if (!a->conf.file.n)
		fault = "no conf given: try `gpuloom compare conf/contains.ini --vary scheduler.use=mgws,static`";
	else if (results && results < a->conf.file.n)
		fault = "results (.json, .txt, .out, .log, also with .gz) and confs cannot be mixed: run the conf first";
	else if (results && (a->factors || a->conf.set.n || a->aa || a->budget))
		fault = "--vary, --set, --aa and --budget require confs, not results";
	else if (results && (a->blocks != 20 || a->openings || a->samples_per_block || a->rewarm || a->warmup != LOOM__WARMUP_OF_CONF))
		fault = "options for blocks, samples and warm-ups require confs: results have been measured";
	else if (!results && loom__variant_count(a) < 2)
		fault = "only one variant: add --vary SECTION.KEY=VALUE,VALUE or a second file";
	else if (loom__variant_count(a) > 32)
		fault = results ? "more than 32 results"
				: "more than 32 variants, which would all be open at the same time: `gpuloom sweep` runs "
				  "one at a time";
	else if (a->order == 0 && a->samples_per_block % 2)
		fault = "--samples-per-block must be even for --order abba";
	else if (a->width && !a->output.n)
		fault = "--width is the width of a report, which --output FILE names";
	if (!fault)
		return 0;
	return loom__refuse(cli, LOOM_EXIT_USAGE, "compare: %s", fault);
}

void loom__compare_begin(struct loom__cli *cli, void *args)
{
	struct loom__compare_args *a = args;
	size_t most = (size_t)cli->argc + 1;
	a->factor = loom__must(calloc(most, sizeof(*a->factor)));
	a->rule = loom__must(calloc(most, sizeof(*a->rule)));
	a->bar = loom__must(calloc(most, sizeof(*a->bar)));
	a->output.at = loom__must(calloc(most, sizeof(*a->output.at)));
	a->warmup = LOOM__WARMUP_OF_CONF;
}

int loom__compare_ready(const struct loom__cli *cli, struct loom__compare_args *a)
{
	struct loom_error err;
	int status = loom__derive_option(cli, a->derive, &a->derived);
	for (size_t i = 0; i < a->output.n && !status; i++)
		if (loom__file_writes(cli, "--output", a->output.at[i], LOOM__WRITES_RESULT, &err))
			status = loom__refuse(cli, LOOM_EXIT_USAGE, "compare: %s", err.text);
	if (status)
		return status;
	a->usual_metrics = !a->metrics;
	if (!a->metrics)
		loom__compare_want(a, "seconds");
	for (size_t i = 0; i < a->rules; i++)
		if (strcmp(a->rule[i].metric, "*"))
			loom__compare_want(a, a->rule[i].metric)->gate = 1;
	return check(cli, a);
}

void loom__compare_end(void *args)
{
	struct loom__compare_args *a = args;
	for (size_t i = 0; i < a->factors; i++)
		loom__factor_free(&a->factor[i]);
	free(a->factor);
	free(a->metric);
	free(a->rule);
	free(a->bar);
	free(a->output.at);
}
