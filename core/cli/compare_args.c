/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/compare.h"
#include "report/report.h"

static int take_metric(void *args, const char *list, struct loom_error *err)
{
	struct loom__compare_args *a = args;
	while (*list) {
		char one[64] = "";
		size_t n = strcspn(list, ",");
		strncat(one, list, n < sizeof(one) - 1 ? n : sizeof(one) - 1);
		list += n + (list[n] == ',');
		int rc = loom__compare_metric_parse(one, &a->metric[a->metrics], err);
		if (rc)
			return rc;
		a->metrics++;
	}
	return 0;
}

void loom__compare_want(struct loom__compare_args *a, const char *name)
{
	for (size_t i = 0; i < a->metrics; i++)
		if (!strcmp(a->metric[i].name, name))
			return;
	strcpy(a->metric[a->metrics++].name, name);
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
	a->output = value;
	if (f == LOOM__AS_JSON)
		return LOOM__FAIL(err, LOOM_EINVAL, "-o makes reports; --json %s writes the comparison",
				  value);
	if (f == LOOM__REPORT_FORMATS || !strcmp(value, "-"))
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "-o %s: its name must end in .html, .md, .csv, .svg or .gp", value);
	return loom__write_check(value, err);
}

static const char *const orders[] = {"abba", "random", NULL};
static const char *const ways[] = {"median", "best", NULL};

#define AT(field, type) LOOM__AT(struct loom__compare_args, field, type)
static const struct loom__option options[] = {
	{"vary", "SECTION.KEY=A,B", "vary an option; several --vary make all combinations. Double quotes keep a comma",
	 .take = take_vary},
	LOOM__OPTION_SET(struct loom__compare_args),
	{"metric", "NAME[:more|less]",
	 "what to judge, several separated by commas (seconds, and cpu_seconds where devices report it)",
	 .take = take_metric},
	{"blocks", "N", "blocks, in each of which all variants run", AT(blocks, U32), .dflt = "20", .min = 1, .max = 1e5},
	{"samples-per-block", "N", "samples of each variant in a block; 0: 8 to 32, as many as --spread leaves room for",
	 AT(samples_per_block, U32), .dflt = "0", .max = 1e4},
	{"order", NULL, "order of the variants within a block: random and then reversed, or random", AT(order, ENUM), .dflt = "abba", .choices = orders},
	{"seed", "N", "seed of the order; 0: a random one, which the result records", AT(seed, U64), .dflt = "0"},
	{"warmup", "N", "unmeasured executions of each variant (as the conf says)", AT(warmup, U32),
	 .max = 1e5},
	{"rewarm", "N", "unmeasured executions after each change of variant", AT(rewarm, U32),
	 .dflt = "0", .max = 1e3},
	{"per-block", NULL,
	 "which sample represents a block; on a machine that others use, the best one is disturbed less, "
	 "if samples are short",
	 AT(per_block, ENUM), .dflt = "median", .choices = ways},
	{"budget", "TIME", "no block begins after that long, as in 2m", AT(budget, TIME), .max = 1e15},
	{"spread", "TIME", "the blocks are spread over at least this time", AT(spread, TIME), .dflt = "3s",
	 .max = 1e15},
	{"margin", "SHARE", "differences up to this do not matter: EQUIVALENT", AT(margin, SHARE), .dflt = "1%",
	 .max = 1},
	{"confidence", "SHARE", "confidence of intervals and verdicts", AT(confidence, SHARE), .dflt = "95%",
	 .min = 0.5, .max = 0.9999},
	{"aa", NULL, "first compare the baseline with itself, which shows the noise of the machine", AT(aa, BOOL)},
	{"fail-on", "'METRIC: slower > 3%'", "end with exit code 5 when that is certain", .take = take_rule},
	{"bar", "'FIGURE: METRIC(LABEL) / METRIC(LABEL) >= 0.9'", "print a line `bar FIGURE VALUE >= 0.9 ok` (or short) at the end",
	 .take = take_bar},
	{"strict", NULL, "end with exit code 6 when a comparison is inconclusive", AT(strict, BOOL)},
	{"allow-mismatch", "FACT",
	 "compare results although this fact of their environments differs", AT(allowed, NONE)},
	{"json", "FILE|-", "write the comparison as JSON; '-' is standard output, in place of the table", AT(json, STR), .writes = 1},
	{"output", "FILE", "write a report; its name ends in .html, .md, .csv, .svg or .gp", .take = take_output,
	 .letter = 'o'},
	{"quiet", NULL, "no table, no progress", AT(quiet, BOOL)},
	LOOM__OPTION_LOG(struct loom__compare_args),
	{0}};
#undef AT

const struct loom__usage loom__compare_usage = {
	.command = "compare",
	.synopsis = "CONF --vary SECTION.KEY=VALUE,VALUE [--vary ...] [options]\n"
		    "A.ini B.ini [C.ini ...] [options]\n"
		    "A.json B.json [C.json ...] [options]",
	.about = "Runs variants against each other, interleaved in blocks, and says which differences are real. The\n"
		 "first variant is the baseline. Results of `gpuloom run` (JSON) can be compared, too, although they\n"
		 "were not interleaved, if their environments agree.\n",
	.notes = "Ctrl-C ends after the sample in progress and keeps the complete blocks.\n"
		 "Exit: 0 ok, 1 failed, 2 usage or conf, 3 wrong result, 4 not available here, 5 a rule of --fail-on\n"
		 "failed, 6 inconclusive with --strict, 124 timeout, 130 interrupted.\n",
	.options = options,
	.words = offsetof(struct loom__compare_args, conf.file)};

static int is_result(const char *path)
{
	size_t n = strlen(path);
	return n > 5 && !strcasecmp(path + n - 5, ".json");
}

static int check(const struct loom__cli *cli, struct loom__compare_args *a)
{
	size_t results = 0;
	for (size_t i = 0; i < a->conf.file.n; i++)
		results += is_result(a->conf.file.at[i]);
	const char *fault = NULL;
	a->from_results = results > 0;
	if (!a->conf.file.n)
		fault = "which conf? Try `gpuloom compare conf/contains.ini --vary scheduler.use=mgws,static`";
	else if (results && results < a->conf.file.n)
		fault = "results (.json) and confs cannot be mixed: run the conf first";
	else if (results && (a->factors || a->conf.set.n || a->aa || a->budget))
		fault = "results are compared as they are: --vary, --set, --aa and --budget are for confs";
	else if (loom__variant_count(a) < 2)
		fault = "that is one variant: add --vary SECTION.KEY=VALUE,VALUE or a second file";
	else if (loom__variant_count(a) > 32)
		fault = "more than 32 variants: all are open at the same time; `gpuloom sweep` takes one after "
			"the other";
	else if (a->order == 0 && a->samples_per_block % 2)
		fault = "--samples-per-block must be even for --order abba";
	if (!fault)
		return 0;
	loom__say_error(cli, "compare: %s", fault);
	return LOOM_EXIT_USAGE;
}

static int allocate(struct loom__compare_args *a, size_t most)
{
	a->factor = calloc(most, sizeof(*a->factor));
	a->rule = calloc(most, sizeof(*a->rule));
	a->bar = calloc(most, sizeof(*a->bar));
	return a->factor && a->rule && a->bar && a->metric ? 0 : -1;
}

int loom__compare_parse(const struct loom__cli *cli, int argc, char **argv,
			struct loom__compare_args *a)
{
	size_t metrics = (size_t)argc + 1;
	for (int i = 0; i < argc; i++)
		for (const char *s = argv[i]; *s; s++)
			metrics += *s == ',';
	a->metric = calloc(metrics, sizeof(*a->metric));
	if (allocate(a, (size_t)argc + 1)) {
		loom__say_error(cli, "out of memory");
		return LOOM_EXIT_FAILURE;
	}
	a->warmup = LOOM__WARMUP_OF_CONF;
	int status = loom__options_read(cli, &loom__compare_usage, argc, argv, a);
	if (status)
		return status;
	a->usual_metrics = !a->metrics;
	if (!a->metrics)
		loom__compare_want(a, "seconds");
	for (size_t i = 0; i < a->rules; i++)
		loom__compare_want(a, a->rule[i].metric);
	return check(cli, a);
}

void loom__compare_args_free(struct loom__compare_args *a)
{
	for (size_t i = 0; i < a->factors; i++)
		loom__factor_free(&a->factor[i]);
	free(a->factor);
	free(a->metric);
	free(a->rule);
	free(a->bar);
	loom__options_free(&loom__compare_usage, a);
}
