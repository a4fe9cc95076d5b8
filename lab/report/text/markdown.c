/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a report for pull requests: the verdicts first, then the values. Tables for a paper in LaTeX have the verdicts of a
 * comparison, then the medians, also that of the baseline. */
#include <math.h>
#include <string.h>

#include "report/page/html.h"
#include "report/report.h"
#include "report/text/table.h"
#include "facts/must.h"
#include "facts/text.h"

#define MOST_ROWS    60
#define MOST_COLUMNS 6

#define add loom__markdown_add

/* Makes a row for each configuration with samples, at most `most`. Returns the number of such configurations. */
static size_t by_variant(const struct loom__view *view, const struct loom__report_settings *settings, size_t most,
			 struct loom__grid *g)
{
	size_t all = 0;
	loom__grid_columns(g, "configuration");
	for (size_t k = 0; k < settings->metrics; k++)
		loom__grid_column(g, LOOM__CELL_NUMBER, view->metric[settings->metric[k]].name);
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		if (!v->rows || all++ >= most)
			continue;
		loom__grid_cell(g, 0, "%s", v->name);
		for (size_t k = 0; k < settings->metrics; k++) {
			const struct loom__series *s = &v->series[settings->metric[k]];
			const struct loom__view_metric *m = &view->metric[settings->metric[k]];
			loom__grid_cell(g, 0, "%s", s->n ? LOOM__METRIC(s->median.at, m->name, m->unit) : "\xe2\x80\x93");
		}
	}
	return all;
}

static void not_run(struct loom__text *out, const struct loom__view *view)
{
	size_t n = 0;
	for (size_t i = 0; i < view->variants && n < MOST_ROWS; i++) {
		const struct loom__variant *v = &view->variant[i];
		if (*v->note)
			add(out, n++ ? "- %s: %s: %s\n" : "\nNot run, or not to the end:\n\n- %s: %s: %s\n", v->name,
			    v->status, v->note);
	}
}

/* The rules of --fail-on, because a forge shows this file and not the exit code. */
static void gates(struct loom__text *out, const struct loom__view *view)
{
	const cJSON *o, *list = loom__json_list(view->head, "gate");
	int open = 0;
	cJSON_ArrayForEach(o, list)
	{
		add(out, "- gate %s ", loom__json_text(o, "rule"));
		add(out, "**%s**: %s\n", loom__gate_outcome(o), loom__json_text(o, "text"));
		open |= loom__json_true(o, "undecided");
	}
	if (list && list->child)
		loom__text_add(out, open ? "\nAn undecided rule passes; with `--strict` it fails.\n\n" : "\n");
}

static void command(struct loom__text *out, const struct loom__view *view)
{
	const cJSON *word, *list = loom__json_list(view->head, "command");
	const char *started = loom__json_text(view->head, "started");
	loom__text_add(out, "\n<sub>");
	cJSON_ArrayForEach(word, list)
	{
		add(out, "%s ", loom__json_string(word));
	}
	add(out, "%s%s</sub>\n", *started ? "\xc2\xb7 " : "", started);
}

void loom__report_markdown(struct loom__text *out, const struct loom__view *view,
			   const struct loom__report_settings *settings)
{
	struct loom__grid g = {0};
	const char *status = loom__json_text(view->head, "status");
	const char *error = loom__json_text(loom__json_object(view->head, "error"), "text");
	add(out, "### %s\n\n", *view->title ? view->title : "gpuloom");
	if (*status && strcmp(status, "ok"))
		add(out, "**Failed: %s**\n\n", *error ? error : status);
	if (view->comparisons) {
		loom__verdict_grid(view, MOST_ROWS, 0, &g);
		loom__grid_markdown(&g, out);
		loom__text_add(out, "\n");
	}
	gates(out, view);
	if (!view->metrics)
		loom__text_add(out, "No sample was completed.\n");
	else if (view->variants <= MOST_COLUMNS && view->kind != LOOM__DOC_SWEEP) {
		loom__metric_grid(view, view->variants, 0, &g);
		loom__grid_markdown(&g, out);
	} else if (settings->metrics) {
		size_t all = by_variant(view, settings, MOST_ROWS, &g);
		loom__grid_markdown(&g, out);
		if (all > MOST_ROWS)
			loom__text_add(out, "\n%d of %zu configurations.\n", MOST_ROWS, all);
	}
	not_run(out, view);
	command(out, view);
}

void loom__report_latex(struct loom__text *out, const struct loom__view *view, const struct loom__report_settings *settings)
{
	struct loom__grid g = {0};
	loom__text_with(out, loom__latex_put, "%% %s; \\usepackage{booktabs}\n", *view->title ? view->title : "gpuloom");
	if (view->comparisons) {
		loom__verdict_grid(view, SIZE_MAX, 0, &g);
		loom__grid_latex(&g, out);
		loom__text_add(out, "\n");
	}
	by_variant(view, settings, SIZE_MAX, &g);
	loom__grid_latex(&g, out);
}
