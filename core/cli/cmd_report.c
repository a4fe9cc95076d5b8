/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom report: result files in, one view of them out. Loads no plug-in. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/report.h"
#include "sweep/spec.h"

static const struct loom__option options[] = {
    {"output", "FILE",
     "its name ends in .html, .md, .csv, .svg, .gp or .json; '-' is standard output. Without it: "
     "Markdown to standard output",
     LOOM__AT(struct loom__report_args, output, STR), .letter = 'o'},
    {"format", "FORMAT", "html, md, csv, svg, gp or json, whatever the name",
     LOOM__AT(struct loom__report_args, format, STR)},
    {"metric", "NAME[,NAME]", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, metric, STR)},
    {"pareto", "X,Y", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, pareto, STR)},
    {"plot", "NAME[,NAME]", .rows = loom__sweep_rows, LOOM__AT(struct loom__report_args, plot, STR)},
    {0}};

const struct loom__usage loom__report_usage = {
    .command = "report",
    .synopsis = "RESULT... [-o FILE] [options]",
    .about =
	"Makes tables and plots from what run, compare and sweep wrote. Needs the files alone: no\n"
	"plug-in, no device. Several results of `gpuloom run` share one report.\n",
    .notes = "  .html  one self-contained page          .csv   one row per sample, units in the names\n"
	     "  .md    tables for a pull request        .gp    a gnuplot script, and FILE.csv beside it\n"
	     "  .svg   the plots                        .json  medians, intervals, effects for programs\n",
    .options = options,
    .words = offsetof(struct loom__report_args, file)};

static int parse(const struct loom__cli *cli, int argc, char **argv, struct loom__report_args *a)
{
	int status = loom__options_read(cli, &loom__report_usage, argc, argv, a);
	if (status || a->file.n)
		return status;
	loom__say_error(cli, "report: which result? Try `gpuloom run CONF --json r.json`, then "
			     "`gpuloom report r.json -o r.html`");
	return LOOM_EXIT_USAGE;
}

static enum loom__report_format format_of(const struct loom__cli *cli, const struct loom__report_args *a)
{
	enum loom__report_format format = LOOM__AS_MARKDOWN;
	if (a->format)
		format = loom__report_format_named(a->format);
	else if (a->output && strcmp(a->output, "-"))
		format = loom__report_format_of(a->output);
	if (format == LOOM__REPORT_FORMATS)
		loom__say_error(cli,
				"report: '%s' is no format: choose html, md, csv, svg, gp or json",
				a->format ? a->format : a->output);
	return format;
}

static int put(const struct loom__cli *cli, const char *path, const struct loom__text *t)
{
	struct loom_error err;
	if (!loom__text_ok(t)) {
		loom__say_error(cli, "out of memory for the report");
		return LOOM_EXIT_FAILURE;
	}
	if (!path || !strcmp(path, "-")) {
		fwrite(t->at, 1, t->length, cli->out);
		return LOOM_EXIT_OK;
	}
	if (!loom__write_file(path, t->at, t->length, &err))
		return LOOM_EXIT_OK;
	loom__say_error(cli, "%s", err.text);
	return LOOM_EXIT_FAILURE;
}

/* The table goes beside the script, under the same name, as the script expects. */
static int write_gnuplot(const struct loom__cli *cli, const struct loom__report_args *a,
			 const struct loom__view *view, const struct loom__report_wish *wish)
{
	struct loom__text script = {0}, table = {0}, name = {0};
	const char *dot = strrchr(a->output, '.'), *slash = strrchr(a->output, '/');
	size_t stem =
	    dot && (!slash || dot > slash) ? (size_t)(dot - a->output) : strlen(a->output);
	loom__text_put(&name, a->output, stem);
	loom__text_add(&name, ".csv");
	if (loom__text_ok(&name))
		loom__report_gnuplot(&script, &table,
				     slash ? name.at + (slash + 1 - a->output) : name.at, view,
				     wish);
	script.failed |= name.failed;
	int status = put(cli, a->output, &script);
	status = status ? status : put(cli, name.at, &table);
	loom__text_free(&script);
	loom__text_free(&table);
	loom__text_free(&name);
	return status;
}

int loom__report_write(const struct loom__cli *cli, const struct loom__report_args *a,
		       const struct loom__view *view, const struct loom__report_wish *wish)
{
	struct loom__text t = {0};
	enum loom__report_format format = format_of(cli, a);
	switch (format) {
	case LOOM__AS_HTML:
		loom__report_html(&t, view, wish);
		break;
	case LOOM__AS_CSV:
		loom__report_csv(&t, view);
		break;
	case LOOM__AS_SVG:
		loom__report_svg(&t, view, wish);
		break;
	case LOOM__AS_JSON:
		loom__report_summary(&t, view, wish);
		break;
	case LOOM__AS_GNUPLOT:
		if (a->output && strcmp(a->output, "-"))
			return write_gnuplot(cli, a, view, wish);
		loom__say_error(
		    cli, "report: gnuplot needs a script and a table: give them a name with -o "
			 "FILE.gp");
		return LOOM_EXIT_USAGE;
	case LOOM__REPORT_FORMATS:
		return LOOM_EXIT_USAGE;
	default:
		loom__report_markdown(&t, view, wish);
	}
	int status = put(cli, a->output, &t);
	loom__text_free(&t);
	return status;
}

enum wish { METRIC, PARETO, PLOT };

/* One wish among others that are left open. */
static int add_wish(const struct loom__view *view, enum wish which, const char *text, struct loom__report_wish *wish,
		    unsigned *plots, struct loom_error *err)
{
	if (which == PLOT)
		return loom__report_plots(text, plots, err);
	return loom__report_wish(view, which == METRIC ? text : NULL, which == PARETO ? text : NULL, wish, err);
}

/* What is asked for, else what the document of a sweep says that its conf wished. NULL: the usual, also where the
 * document wishes for what it does not have: whoever reads it cannot mend that. */
static const char *wished(const struct loom__cli *cli, const struct loom__view *view, enum wish which,
			  const char *asked)
{
	static const char *const key[] = {"metric", "pareto", "plot"};
	const char *text = view->kind == LOOM__DOC_SWEEP
			       ? loom__json_text(loom__json_object(view->head, "report"), key[which])
			       : "";
	struct loom__report_wish wish;
	struct loom_error err;
	unsigned plots;
	if (asked)
		return asked;
	if (!*text)
		return NULL;
	if (!add_wish(view, which, text, &wish, &plots, &err))
		return text;
	loom__say_warning(cli, "report: the sweep's own '%s' is left out: %s", key[which], err.text);
	return NULL;
}

int loom__report_view(const struct loom__cli *cli, const struct loom__report_args *a, const struct loom__doc *doc,
		      size_t docs, struct loom__view *view, struct loom__report_wish *wish)
{
	struct loom_error err;
	unsigned plots = 0;
	int rc = loom__view_create(doc, docs, view, &err);
	if (!rc) {
		rc = loom__report_wish(view, wished(cli, view, METRIC, a->metric), wished(cli, view, PARETO, a->pareto),
				       wish, &err);
		rc = rc ? rc : loom__report_plots(wished(cli, view, PLOT, a->plot), &plots, &err);
		if (rc)
			loom__view_free(view);
	}
	if (rc) {
		loom__say_error(cli, "report: %s", err.text);
		return rc == LOOM_ENOMEM ? LOOM_EXIT_FAILURE : LOOM_EXIT_USAGE;
	}
	wish->plots = plots;
	return LOOM_EXIT_OK;
}

static int report(const struct loom__cli *cli, const struct loom__report_args *a, struct loom__doc *doc)
{
	struct loom_error err;
	struct loom__view view;
	struct loom__report_wish wish;
	if (format_of(cli, a) == LOOM__REPORT_FORMATS)
		return LOOM_EXIT_USAGE;
	for (size_t i = 0; i < a->file.n; i++) {
		int rc = loom__doc_read(a->file.at[i], &doc[i], &err);
		if (!rc)
			continue;
		loom__say_error(cli, "%s", err.text);
		return rc == LOOM_ENOMEM || rc == LOOM_EIO ? LOOM_EXIT_FAILURE : LOOM_EXIT_USAGE;
	}
	int status = loom__report_view(cli, a, doc, a->file.n, &view, &wish);
	if (status)
		return status;
	if (doc[0].torn)
		loom__say_warning(cli, "'%s' ends in half a line, which was left out", doc[0].path);
	status = loom__report_write(cli, a, &view, &wish);
	loom__view_free(&view);
	return status;
}

int loom__cmd_report(struct loom__cli *cli, int argc, char **argv)
{
	struct loom__report_args a = {0};
	struct loom__doc *doc = calloc((size_t)argc, sizeof(*doc));
	int status = LOOM_EXIT_FAILURE;
	if (!doc) {
		loom__say_error(cli, "out of memory");
	} else {
		status = parse(cli, argc, argv, &a);
		if (!status)
			status = report(cli, &a, doc);
		for (size_t i = 0; i < a.file.n; i++)
			loom__doc_free(&doc[i]);
	}
	free(doc);
	loom__options_free(&loom__report_usage, &a);
	return status < 0 ? LOOM_EXIT_OK : status;
}
