/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom report: converts result files to other formats, without loading plug-ins. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/files.h"
#include "cli/report/report.h"
#include "compare/compare.h"
#include "papers/papers.h"
#include "report/view/foreign.h"
#include "sweep/spec.h"
#include "facts/must.h"
#include "facts/token.h"
#include "facts/write.h"

static const struct loom__option options[] = {
    {"output", "FILE",
     "output file, named " LOOM__REPORT_SUFFIXES " or .json; '-' is standard output. Default: "
     "Markdown to standard output",
     LOOM__AT(struct loom__report_args, output, STR), .letter = 'o', .writes = LOOM__WRITES_RESULT},
    {"format", "FORMAT", "html, md, csv, svg, png, pdf, tex, junit or json, whatever the name of the file",
     LOOM__AT(struct loom__report_args, format, STR)},
    {"metric", "NAME[,NAME]", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, metric, STR)},
    LOOM__OPTION_DERIVE(struct loom__report_args),
    {"pareto", "X,Y", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, pareto, STR)},
    {"plot", "NAME[,NAME]", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, plot, STR)},
    {"x", "SECTION.KEY", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, x, STR)},
    {"lines", "SECTION.KEY", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, lines, STR)},
    {"facet", "SECTION.KEY", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, facet, STR)},
    {"show", "value|ratio|speed-up|efficiency", .rows = loom__sweep_rows,
     LOOM__AT(struct loom__report_args, show, STR)},
    {"base", "LEVEL", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, base, STR)},
    {"mean", "SECTION.KEY", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, mean, STR)},
    {"axes", "linear|log-x|log-y|log", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, axes, STR)},
    {"width", "page|column", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, width, STR)},
    {0}};

static int run(struct loom__cli *cli, void *args);

const struct loom__usage loom__report_usage = {
    .command = "report",
    .synopsis = "RESULT... [-o FILE] [options]",
    .about = "Creates tables and plots from results of run, compare and sweep. Needs the files only, no\n"
	     "plug-in and no device. Several results of `gpuloom run` can share one report. Also reads files of\n"
	     "hyperfine, Google Benchmark, nvbench, nccl-tests and OSU micro-benchmarks.\n",
    .notes = "  .html  one self-contained page      .csv   one row per sample\n"
	     "  .md    tables for a pull request    .xml   JUnit: rules of --fail-on\n"
	     "  .svg   the plots                    .json  all values of tables and plots\n"
	     "  .tex   a table for LaTeX\n"
	     "  .png, .pdf  the plots, converted by rsvg-convert (Debian: librsvg2-bin)\n",
    .options = options,
    .examples = "report ab.json -o ab.html\ta page\n"
		"report study.jsonl -o study.svg --plot lines\ta plot for a paper\n"
		"report study.jsonl -o study.csv\ta row per sample\n",
    .page = "docs/report.md",
    .inputs = 1,
    LOOM__REQUEST(struct loom__report_args, file, run)};

static enum loom__report_format format_of(const struct loom__cli *cli, const struct loom__report_args *a)
{
	enum loom__report_format format = LOOM__AS_MARKDOWN;
	if (a->format)
		format = loom__report_format_named(a->format);
	else if (a->output && !loom__names_stdout(a->output))
		format = loom__report_format_of(a->output);
	if (format == LOOM__REPORT_FORMATS)
		loom__say_error(cli, "report: unknown format '%s': choose html, md, csv, svg, png, pdf, tex, junit or json",
				a->format ? a->format : a->output);
	return format;
}

static int is_plots(enum loom__report_format format)
{
	return format == LOOM__AS_SVG || format == LOOM__AS_PNG || format == LOOM__AS_PDF;
}

static int put(const struct loom__cli *cli, const char *path, const struct loom__text *t)
{
	struct loom_error err;
	const char *text = loom__must_text(t);
	if (!path || loom__names_stdout(path)) {
		fwrite(text, 1, t->length, cli->out);
		return LOOM_EXIT_OK;
	}
	if (!loom__write_file(path, text, t->length, &err))
		return LOOM_EXIT_OK;
	return loom__refuse(cli, LOOM_EXIT_FAILURE, "%s", err.text);
}

static void name_plots(struct loom__text *t, unsigned plots)
{
	for (int k = 0; k < LOOM__PLOTS; k++)
		if (plots >> k & 1)
			loom__text_add(t, "%s%s", t->length ? ", " : "", loom__plot_name[k]);
}

/* A picture lacks plots that were asked for, or is empty: says which plots have data. */
static int check_plots(const struct loom__view *view, const struct loom__report_settings *settings, unsigned drawn, int asked,
		       struct loom_error *err)
{
	struct loom__report_settings all = *settings;
	struct loom__text scratch = {0}, lacks = {0}, has = {0};
	unsigned lacking = asked ? settings->plots & ~drawn : drawn ? 0 : ~0u;
	if (!lacking)
		return 0;
	/* read_lines() chose factors either for lines or for bars and heat maps */
	all.plots = settings->plots & LOOM__PLOT_NAMED ? ~(1u << LOOM__PLOT_LINES) : ~(unsigned)LOOM__PLOT_NAMED;
	name_plots(&lacks, lacking);
	name_plots(&has, loom__report_svg(&scratch, view, &all));
	int rc = LOOM__FAIL(err, LOOM_EINVAL, "'%.200s' has no data for %s%s%s", view->doc[0].path, asked ? lacks.at : "a plot",
			    has.length ? "; it has data for " : "", loom__must_text(&has));
	loom__text_free(&scratch);
	loom__text_free(&lacks);
	loom__text_free(&has);
	return rc;
}

int loom__report_write(const struct loom__cli *cli, const struct loom__report_args *a,
		       const struct loom__view *view, const struct loom__report_settings *settings)
{
	struct loom__text t = {0}, drawn = {0};
	struct loom_error err;
	enum loom__report_format format = format_of(cli, a);
	int rc = 0;
	switch (format) {
	case LOOM__AS_HTML:
		loom__report_html(&t, view, settings);
		break;
	case LOOM__AS_CSV:
		loom__report_csv(&t, view);
		break;
	case LOOM__AS_SVG:
	case LOOM__AS_PNG:
	case LOOM__AS_PDF:
		rc = check_plots(view, settings, loom__report_svg(&t, view, settings), a->plot != NULL, &err);
		break;
	case LOOM__AS_JSON:
		loom__report_summary(&t, view, settings);
		break;
	case LOOM__AS_JUNIT:
		loom__report_junit(&t, view);
		break;
	case LOOM__AS_LATEX:
		loom__report_latex(&t, view, settings);
		break;
	case LOOM__REPORT_FORMATS:
		return LOOM_EXIT_USAGE;
	default:
		loom__report_markdown(&t, view, settings);
	}
	int status = rc ? LOOM_EXIT_USAGE : LOOM_EXIT_FAILURE;
	if (!rc && is_plots(format) && format != LOOM__AS_SVG)
		rc = loom__report_draw(&t, format, &drawn, &err);
	if (rc)
		loom__say_error(cli, "report: %s", err.text);
	else
		status = put(cli, a->output, drawn.length ? &drawn : &t);
	loom__text_free(&drawn);
	loom__text_free(&t);
	return status;
}

int loom__derive_option(const struct loom__cli *cli, const char *text, struct loom__derived *derived)
{
	struct loom_error err;
	if (!loom__derived_read(text, derived, &err))
		return LOOM_EXIT_OK;
	return loom__refuse(cli, LOOM_EXIT_USAGE, "--derive: %s", err.text);
}

enum settings { DERIVE, METRIC, PARETO, PLOT };

/* Checks one setting. The other settings keep their defaults. */
static int add_setting(const struct loom__view *view, enum settings which, const char *text,
		       struct loom__report_settings *settings, unsigned *plots, struct loom_error *err)
{
	struct loom__derived derived;
	if (which == DERIVE)
		return loom__derived_read(text, &derived, err);
	if (which == PLOT)
		return loom__report_plots(text, plots, err);
	return loom__report_settings(view, which == METRIC ? text : NULL, which == PARETO ? text : NULL, settings, err);
}

/* Returns a setting from the command line. If it is not given, returns the setting in the document of the sweep, or
 * NULL, which means the default. If a setting in a document does not fit the document's data, the default is used,
 * because a user of the file cannot fix it. */
static const char *setting_of(const struct loom__cli *cli, const struct loom__view *view, enum settings which,
			  const char *asked)
{
	static const char *const key[] = {"derive", "metric", "pareto", "plot"};
	const char *text = view->kind == LOOM__DOC_SWEEP
			       ? loom__json_text(loom__json_object(view->head, "report"), key[which])
			       : "";
	struct loom__report_settings settings;
	struct loom_error err;
	unsigned plots;
	if (asked)
		return asked;
	if (!*text)
		return NULL;
	if (!add_setting(view, which, text, &settings, &plots, &err))
		return text;
	loom__say_warning(cli, "report: ignoring '%s' of the sweep: %s", key[which], err.text);
	return NULL;
}

static int choose(const char *option, const char *text, const char *const *names, unsigned *number,
		  struct loom_error *err)
{
	struct loom__text all = {0};
	for (*number = 0; names[*number]; ++*number) {
		if (!text || !*text || loom__same(text, names[*number])) {
			loom__text_free(&all);
			return 0;
		}
		loom__text_add(&all, "%s%s", *number ? ", " : "", names[*number]);
	}
	int rc = LOOM__FAIL(err, LOOM_EINVAL, "--%s %.40s: choose from %s", option, text, loom__must_text(&all));
	loom__text_free(&all);
	return rc;
}

/* Reads the settings of the line plot from the command line, or else from the document. Errors in a document are only
 * warnings. */
static int read_lines(const struct loom__cli *cli, const struct loom__report_args *a, const struct loom__view *view,
		      struct loom__report_settings *settings, struct loom_error *err)
{
	static const char *const key[] = {"x", "lines", "facet", "show", "axes", "mean", "base", "width"};
	const char *asked[] = {a->x, a->lines, a->facet, a->show, a->axes, a->mean, a->base, a->width};
	const char *text[LOOM__COUNT(key)];
	const cJSON *own = loom__json_object(view->head, "report");
	for (size_t i = 0; i < LOOM__COUNT(key); i++)
		text[i] = asked[i] ? asked[i] : view->kind == LOOM__DOC_SWEEP ? loom__json_text(own, key[i]) : "";
	unsigned show, width = 0;
	int rc = loom__report_mean(view, text[5], settings, err);
	rc = rc ? rc : loom__report_lines(view, text[0], text[1], text[2], settings, err);
	rc = rc ? rc : choose("show", text[3], loom__show_name, &show, err);
	rc = rc ? rc : choose("axes", text[4], loom__axes_name, &settings->log, err);
	rc = rc ? rc : loom__report_base(view, text[6], settings, err);
	rc = rc ? rc : choose("width", text[7], loom__width_name, &width, err);
	if (!rc) {
		settings->show = (enum loom__show)show;
		settings->width = (enum loom__width)width;
	}
	for (size_t i = 0; i < LOOM__COUNT(key); i++)
		if (asked[i])
			return rc;
	if (rc)
		loom__say_warning(cli, "report: ignoring the line plot of the sweep: %s", err->text);
	return 0;
}

int loom__report_view(const struct loom__cli *cli, const struct loom__report_args *a, const struct loom__doc *doc,
		      size_t docs, struct loom__view *view, struct loom__report_settings *settings)
{
	struct loom_error err;
	unsigned plots = 0;
	struct loom__derived derived;
	int rc = loom__view_create(doc, docs, view, &err);
	if (!rc) {
		rc = loom__derived_read(setting_of(cli, view, DERIVE, a->derive), &derived, &err);
		rc = rc ? rc : loom__derived_view(&derived, view, &err);
		rc = rc ? rc : loom__report_plots(setting_of(cli, view, PLOT, a->plot), &plots, &err);
		rc = rc ? rc
			: loom__report_settings(view, setting_of(cli, view, METRIC, a->metric),
						setting_of(cli, view, PARETO, a->pareto), settings, &err);
		settings->plots = rc ? 0 : plots; /* set first, because read_lines() chooses other factors for bars */
		rc = rc ? rc : read_lines(cli, a, view, settings, &err);
		if (rc)
			loom__view_free(view);
	}
	if (rc) {
		loom__say_error(cli, "report: %s", err.text);
		return rc == LOOM_ENOMEM ? LOOM_EXIT_FAILURE : LOOM_EXIT_USAGE;
	}
	if (view->repeated)
		loom__say_warning(cli, "%zu sample%s in the files more than once, and count%s once", view->repeated,
				  view->repeated == 1 ? " is" : "s are", view->repeated == 1 ? "s" : "");
	for (size_t i = 0; i < docs; i++)
		if (doc[i].torn)
			loom__say_warning(cli, "'%s': ignoring an incomplete last line", doc[i].path);
	if (view->kind == LOOM__DOC_SWEEP)
		loom__figure_marks(loom__json_object(view->head, "paper"), view, settings);
	/* Options of the line plot also request the line plot. */
	if (!a->plot && !(plots & LOOM__PLOT_NAMED) && (a->x || a->lines || a->facet || a->show || a->axes))
		settings->plots |= plots || is_plots(format_of(cli, a)) ? 1u << LOOM__PLOT_LINES : 0;
	return LOOM_EXIT_OK;
}

int loom__report(const struct loom__cli *cli, const struct loom__report_args *a, const struct loom__doc *doc,
		 size_t docs)
{
	struct loom__view view;
	struct loom__report_settings settings;
	int status = loom__report_view(cli, a, doc, docs, &view, &settings);
	if (status)
		return status;
	for (size_t i = 0; i < docs; i++) {
		const cJSON *w, *list = doc[i].foreign ? loom__json_list(doc[i].root, "warnings") : NULL;
		cJSON_ArrayForEach(w, list)
		{
			loom__say_warning(cli, "'%s': %s", doc[i].path, loom__json_text(w, "text"));
		}
	}
	status = loom__report_write(cli, a, &view, &settings);
	loom__view_free(&view);
	return status;
}

/* Keeps the verdicts on the metrics that --metric names. If one of them has no verdict yet, judges all of them from the samples
 * in the blocks. */
static void judge_named(const struct loom__report_args *a, cJSON *doc)
{
	cJSON *v, *next, *list = cJSON_GetObjectItemCaseSensitive(doc, "comparisons");
	struct loom__compare_metric *metric = loom__must(calloc(strlen(a->metric) + 1, sizeof(*metric)));
	struct loom__derived derived;
	struct loom_error err;
	const char *text = a->metric;
	size_t n = 0, lacking = 0, i;
	if (a->derive && !loom__derived_read(a->derive, &derived, &err))
		cJSON_ArrayForEach(v, loom__json_list(doc, "variants"))
		{
			loom__derived_result(&derived, cJSON_GetObjectItemCaseSensitive(v, "result"), &err);
		}
	while (loom__take_name(&text, metric[n].name, sizeof(metric[n].name))) {
		if (!loom__compare_better(doc, metric[n].name))
			continue;
		int known = 0;
		cJSON_ArrayForEach(v, list)
		{
			known |= !strcmp(loom__json_text(v, "metric"), metric[n].name);
		}
		lacking += !known;
		n++;
	}
	if (lacking) /* it fails if the document lacks what a verdict needs, and then the view names the metrics that are missing */
		loom__compare_again(doc, NULL, metric, n, &err);
	for (v = lacking || !cJSON_IsArray(list) ? NULL : list->child; v; v = next) {
		next = v->next;
		for (i = 0; i < n && strcmp(metric[i].name, loom__json_text(v, "metric"));)
			i++;
		if (i == n)
			cJSON_Delete(cJSON_DetachItemViaPointer(list, v));
	}
	free(metric);
}

static int run(struct loom__cli *cli, void *args)
{
	struct loom__report_args *a = args;
	if (!a->file.n)
		return loom__refuse(cli, LOOM_EXIT_USAGE,
				    "report: no result given: try `gpuloom run CONF --json r.json`, then "
				    "`gpuloom report r.json -o r.html`");
	if (format_of(cli, a) == LOOM__REPORT_FORMATS)
		return LOOM_EXIT_USAGE;
	for (size_t i = 0; i < a->file.n; i++)
		if (strlen(a->file.at[i]) > 4 && !strcmp(a->file.at[i] + strlen(a->file.at[i]) - 4, ".ini"))
			return loom__refuse(cli, LOOM_EXIT_USAGE, "report: '%s' is a conf: `gpuloom run %s --json r.json` makes a result of it",
					    a->file.at[i], a->file.at[i]);
	struct loom__doc *doc = loom__must(calloc(a->file.n, sizeof(*doc)));
	int status = loom__file_documents(cli, &a->file, doc);
	if (!status && a->metric && doc[0].kind == LOOM__DOC_COMPARE && !doc[0].foreign)
		judge_named(a, doc[0].root);
	if (!status)
		status = loom__report(cli, a, doc, a->file.n);
	for (size_t i = 0; i < a->file.n; i++)
		loom__doc_free(&doc[i]);
	free(doc);
	return status;
}
