/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/compare.h"
#include "cli/session.h"
#include "report/report.h"

static const char help[] =
	"usage: gpuloom compare CONF --vary SECTION.KEY=VALUE,VALUE [--vary ...] [options]\n"
	"       gpuloom compare A.ini B.ini [C.ini ...] [options]\n"
	"       gpuloom compare A.json B.json [C.json ...] [options]\n\n"
	"Runs variants against each other, interleaved in blocks, and says which differences are real. The\n"
	"first variant is the baseline; several --vary make the full product. Results of `gpuloom run` are\n"
	"compared as they are: not interleaved, and only when their environments agree.\n\n"
	"  --vary SECTION.KEY=A,B    what to vary; a value with a comma in double quotes\n"
	"  --set SECTION.KEY=VALUE   for all variants\n"
	"  --metric NAME[:more|less] what to compare, several with commas (default: seconds, and cpu_seconds\n"
	"                            where devices tell it)\n"
	"  --blocks N                blocks (20)      --samples-per-block N  of each variant (0: 8 to 32, as\n"
	"                                             many as fit into --spread)\n"
	"  --order abba|random       within a block   --seed N               0: drawn, and recorded\n"
	"  --warmup N                of each variant (as the conf says)\n"
	"  --rewarm N                unmeasured executions after each change of variant (0)\n"
	"  --per-block median|best   which sample stands for its block (median); on a machine that others\n"
	"                            use, the best is less disturbed, if samples are short\n"
	"  --budget TIME             no block begins after it, as in 2m\n"
	"  --spread TIME             blocks are spaced over at least this time (3s)\n"
	"  --margin SHARE            differences up to this do not matter (1%)\n"
	"  --confidence SHARE        of intervals and claims (95%)\n"
	"  --aa                      first compare the baseline with itself: the noise floor\n"
	"  --fail-on 'METRIC: slower > 3%'                  exit 5 when that is certain\n"
	"  --bar 'FIGURE: METRIC(LABEL) / METRIC(LABEL) >= 0.9'   a line per figure at the end\n"
	"  --strict                  exit 6 when a comparison is inconclusive\n"
	"  --allow-mismatch=FACT     compare results although this fact of their environments differs\n"
	"  --json FILE|-             the comparison as JSON; with '-' instead of the table\n"
	"  -o FILE                   a report, by its name: .html .md .csv .svg .gp\n"
	"  --quiet                   no table, no progress\n"
	"  --log LEVEL               error, warn (default), info or debug\n\n"
	"Ctrl-C ends after the sample in progress and keeps the complete blocks.\n"
	"Exit: 0 ok, 1 failed, 2 usage or conf, 3 wrong result, 4 not available here, 5 a rule of --fail-on\n"
	"failed, 6 inconclusive with --strict, 124 timeout, 130 interrupted.\n";

static const char *const orders[] = {"abba", "random", NULL};
static const char *const ways[] = {"median", "best", NULL};
static const struct loom_opt rows[] = {
	LOOM_OPT(struct loom__compare_values, blocks, LOOM_OPT_U32, "20", "", .min = 1, .max = 1e5),
	LOOM_OPT(struct loom__compare_values, samples_per_block, LOOM_OPT_U32, "0", "", .min = 0,
		 .max = 1e4),
	LOOM_OPT(struct loom__compare_values, warmup, LOOM_OPT_U32, "1", "", .min = 0, .max = 1e5),
	LOOM_OPT(struct loom__compare_values, rewarm, LOOM_OPT_U32, "0", "", .min = 0, .max = 1e3),
	LOOM_OPT(struct loom__compare_values, order, LOOM_OPT_ENUM, "abba", "", .choices = orders),
	LOOM_OPT(struct loom__compare_values, per_block, LOOM_OPT_ENUM, "median", "", .choices = ways),
	LOOM_OPT(struct loom__compare_values, seed, LOOM_OPT_U64, "0", ""),
	LOOM_OPT(struct loom__compare_values, budget, LOOM_OPT_TIME, "0", "", .min = 0, .max = 1e15),
	LOOM_OPT(struct loom__compare_values, spread, LOOM_OPT_TIME, "3s", "", .min = 0, .max = 1e15),
	LOOM_OPT(struct loom__compare_values, margin, LOOM_OPT_SHARE, "1%", "", .min = 0, .max = 1),
	LOOM_OPT(struct loom__compare_values, confidence, LOOM_OPT_SHARE, "95%", "", .min = 0.5,
		 .max = 0.9999),
};

static const char *const options[] = {
	"--vary",   "--set",    "--metric", "--blocks",    "--samples-per-block", "--order",
	"--seed",   "--warmup", "--rewarm", "--per-block", "--budget",            "--spread",
	"--margin", "--aa",     "--strict", "--fail-on",   "--confidence",        "--bar",
	"--json",   "--output", "--quiet",  "--log",       "--allow-mismatch",    "--help"};

/* "--samples-per-block" is the row samples_per_block. */
static const struct loom_opt *row_of(const char *option)
{
	for (size_t i = 0; i < LOOM__COUNT(rows); i++) {
		const char *a = option + 2, *b = rows[i].name;
		while (*a && (*a == *b || (*a == '-' && *b == '_')))
			a++, b++;
		if (!*a && !*b)
			return &rows[i];
	}
	return NULL;
}

static int add_metrics(struct loom__compare_args *a, const char *list, struct loom_error *err)
{
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

static int same_key(const struct loom__compare_args *a, struct loom_error *err)
{
	for (size_t i = 1; i < a->factors; i++)
		for (size_t j = 0; j < i; j++)
			if (loom__same(a->factor[i].key, a->factor[j].key))
				return LOOM__FAIL(err, LOOM_EINVAL, "--vary %s: named twice",
						  a->factor[i].key);
	return 0;
}

static int take_value(struct loom__compare_args *a, const char *name, const char *value,
		      struct loom_error *err)
{
	const struct loom_opt *row = row_of(name);
	int rc = 0;
	if (row) {
		rc = loom__value_parse(row, value, (char *)&a->values + row->offset, err);
		a->warmup_given |= !strcmp(row->name, "warmup");
	} else if (!strcmp(name, "--vary")) {
		rc = loom__factor_parse(value, &a->factor[a->factors], err);
		a->factors += !rc;
		rc = rc ? rc : same_key(a, err);
	} else if (!strcmp(name, "--metric")) {
		rc = add_metrics(a, value, err);
	} else if (!strcmp(name, "--fail-on")) {
		rc = loom__gate_rule_parse(value, &a->rule[a->rules], err);
		a->rules += !rc;
	} else if (!strcmp(name, "--bar")) {
		rc = loom__bar_parse(value, &a->bar[a->bars], err);
		a->bars += !rc;
	} else if (!strcmp(name, "--allow-mismatch")) {
		a->allowed[a->allowances++] = value;
	} else if (!strcmp(name, "--json")) {
		a->json = value;
	} else if (!strcmp(name, "-o") || !strcmp(name, "--output")) {
		a->output = value;
		enum loom__report_format f = loom__report_format_of(value);
		if (f == LOOM__AS_JSON)
			rc = LOOM__FAIL(err, LOOM_EINVAL, "-o makes reports; --json %s writes the comparison",
					value);
		else if (f == LOOM__REPORT_FORMATS || !strcmp(value, "-"))
			rc = LOOM__FAIL(err, LOOM_EINVAL,
					"-o %s: its name must end in .html, .md, .csv, .svg or .gp", value);
	} else if (!strcmp(name, "--log")) {
		a->log_level = loom__log_level(value);
		if (a->log_level < 0)
			rc = LOOM__FAIL(err, LOOM_EINVAL, "--log is error, warn, info or debug, not '%s'",
					value);
	} else {
		return LOOM_ENOENT;
	}
	return rc;
}

static int flag(struct loom__compare_args *a, const char *arg)
{
	int *which = !strcmp(arg, "--aa")     ? &a->aa :
		     !strcmp(arg, "--strict") ? &a->strict :
		     !strcmp(arg, "--quiet")  ? &a->quiet :
						NULL;
	if (which)
		*which = 1;
	return which != NULL;
}

static int needs_value(const char *name)
{
	static const char *const others[] = {"--vary",   "--metric", "--fail-on", "--bar", "--allow-mismatch",
					     "--json",   "-o",       "--output",  "--log"};
	for (size_t i = 0; i < LOOM__COUNT(others); i++)
		if (!strcmp(name, others[i]))
			return 1;
	return row_of(name) != NULL;
}

/* One option at argv[i], as "--name value" or "--name=value"; how many arguments it took, 0: an error
 * was printed. */
static int one_option(const struct loom__cli *cli, struct loom__compare_args *a, int argc, char **argv,
		      int i)
{
	char name[40] = "";
	const char *equals = argv[i][1] == '-' ? strchr(argv[i], '=') : NULL, *value;
	struct loom_error err;
	size_t n = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
	strncat(name, argv[i], n < sizeof(name) - 1 ? n : sizeof(name) - 1);
	if (!needs_value(name)) {
		loom__bad_option(cli, "compare", argv[i], options, LOOM__COUNT(options));
		return 0;
	}
	value = equals ? equals + 1 : i + 1 < argc ? argv[i + 1] : NULL;
	if (!value) {
		loom__say_error(cli, "compare: %s needs a value", name);
		return 0;
	}
	if (take_value(a, name, value, &err)) {
		if (row_of(name))
			loom__say_error(cli, "compare: %s: %s", name, err.text);
		else
			loom__say_error(cli, "compare: %s", err.text);
		return 0;
	}
	return equals ? 1 : 2;
}

static int is_result(const char *path)
{
	size_t n = strlen(path);
	return n > 5 && !strcasecmp(path + n - 5, ".json");
}

static int check(const struct loom__cli *cli, struct loom__compare_args *a)
{
	size_t results = 0;
	for (size_t i = 0; i < a->conf.files; i++)
		results += is_result(a->conf.file[i]);
	const char *fault = NULL;
	a->from_results = results > 0;
	if (!a->conf.files)
		fault = "which conf? Try `gpuloom compare conf/contains.ini --vary scheduler.use=mgws,static`";
	else if (results && results < a->conf.files)
		fault = "results (.json) and confs cannot be mixed: run the conf first";
	else if (results && (a->factors || a->conf.sets || a->aa || a->values.budget))
		fault = "results are compared as they are: --vary, --set, --aa and --budget are for confs";
	else if (loom__variant_count(a) < 2)
		fault = "that is one variant: add --vary SECTION.KEY=VALUE,VALUE or a second file";
	else if (loom__variant_count(a) > 32)
		fault = "more than 32 variants: all are open at the same time; `gpuloom sweep` takes one after "
			"the other";
	else if (a->values.order == 0 && a->values.samples_per_block % 2)
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
	a->allowed = calloc(most, sizeof(*a->allowed));
	return a->factor && a->rule && a->bar && a->allowed && a->metric ? 0 : -1;
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
	for (size_t i = 0; i < LOOM__COUNT(rows); i++)
		loom__value_parse(&rows[i], rows[i].dflt, (char *)&a->values + rows[i].offset, NULL);
	for (int i = 1; i < argc;) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(help, cli->out);
			return -1;
		}
		if (flag(a, argv[i])) {
			i++;
			continue;
		}
		int used = loom__conf_argument(&a->conf, argc, argv, i);
		used = used ? used : one_option(cli, a, argc, argv, i);
		if (!used)
			return LOOM_EXIT_USAGE;
		i += used;
	}
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
	free(a->allowed);
	loom__conf_free(&a->conf);
}
