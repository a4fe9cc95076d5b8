/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a sweep as a text table with a row per configuration, and its Pareto front. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/grid.h"
#include "report/report.h"
#include "report/text/table.h"
#include "facts/must.h"

#define MOST_COLUMNS 4
#define MOST_ROWS    200

struct sweep_table {
	const struct loom__view *view;
	const struct loom__report_settings *settings;
	size_t metric[MOST_COLUMNS], metrics;
	const struct loom__view *of; /* the view whose variants form the front: `view`, or its ratios and means */
	unsigned char *front;	     /* [of->variants] enum loom__front, or NULL */
	struct loom__text *out;
};

static void add_metric(struct sweep_table *t, size_t m)
{
	for (size_t i = 0; i < t->metrics; i++)
		if (t->metric[i] == m)
			return;
	if (m != LOOM__NO_NAME && t->metrics < MOST_COLUMNS)
		t->metric[t->metrics++] = m;
}

static void add_row(const struct sweep_table *t, size_t i, struct loom__grid *g)
{
	const struct loom__variant *v = &t->view->variant[i];
	loom__grid_cell(g, 0, "%c", t->front && t->of == t->view ? " ~*"[t->front[i]] : ' ');
	loom__grid_cell(g, 0, "%s", v->label);
	for (size_t k = 0; k < t->metrics; k++) {
		const struct loom__series *s = v->series ? &v->series[t->metric[k]] : NULL;
		const struct loom__view_metric *m = &t->view->metric[t->metric[k]];
		loom__grid_cell(g, 0, "%s", s && s->n ? LOOM__METRIC(s->median.at, m->name, m->unit) : "-");
	}
	loom__grid_cell(g, 0, "%zu", v->rows);
	loom__grid_cell(g, 0, "%s%s%s", *v->note ? v->status : "", *v->note ? ": " : "", v->note);
}

/* Returns the key of an option without its section, if no other factor has the same key. */
static const char *brief_key(const struct loom__view *view, size_t factor)
{
	const char *key = view->factor[factor], *dot = strrchr(key, '.');
	for (size_t f = 0; dot && f < view->factors; f++) {
		const char *other = strrchr(view->factor[f], '.');
		if (f != factor && !strcmp(other ? other + 1 : view->factor[f], dot + 1))
			return key;
	}
	return dot ? dot + 1 : key;
}

/* Adds a row for each configuration that was not skipped. Returns their number. */
static size_t add_rows(const struct sweep_table *t)
{
	struct loom__text keys = {0};
	struct loom__grid g = {0};
	size_t shown = 0;
	for (size_t f = 0; f < t->view->factors; f++)
		loom__text_add(&keys, "%s%s", f ? ", " : "", brief_key(t->view, f));
	loom__grid_column(&g, 0, "");
	loom__grid_column(&g, 0, loom__must_text(&keys));
	for (size_t k = 0; k < t->metrics; k++)
		loom__grid_column(&g, LOOM__CELL_NUMBER, t->view->metric[t->metric[k]].name);
	loom__grid_columns(&g, "#samples");
	loom__grid_column(&g, 0, "");
	for (size_t i = 0; i < t->view->variants; i++)
		if (strcmp(t->view->variant[i].status, "skipped") && shown++ < MOST_ROWS)
			add_row(t, i, &g);
	loom__grid_text(&g, t->out, 2);
	loom__text_free(&keys);
	return shown;
}

/* Adds the rows with as many metrics as fit. Metrics that the user named, and those of the front, always have a column.
 * Returns the number of rows. */
static size_t add_fitting_rows(struct sweep_table *t)
{
	size_t from = t->out->length, least = t->settings->x != LOOM__NO_NAME ? 2 : 1;
	if (*loom__json_text(loom__json_object(t->view->head, "report"), "metric"))
		return add_rows(t);
	for (;; t->metrics--) {
		size_t shown = add_rows(t);
		if (t->metrics <= least || loom__text_widest(t->out, from) <= LOOM__TABLE_WIDTH)
			return shown;
		t->out->length = from;
		loom__text_put(t->out, "", 0);
	}
}

/* Appends how many configurations were left out, for each reason. */
static void add_skipped(const struct sweep_table *t)
{
	const struct loom__view *view = t->view;
	struct loom__arena arena = {0};
	struct loom__names reason = {0};
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		size_t known = reason.count, same = 0;
		if (strcmp(v->status, "skipped") || loom__names_add(&arena, &reason, v->note) < known)
			continue;
		for (size_t j = i; j < view->variants; j++)
			same += !strcmp(view->variant[j].status, "skipped") && !strcmp(view->variant[j].note, v->note);
		loom__line_add(t->out, "    %zu left out: %s\n", same, v->note);
	}
	loom__arena_free(&arena);
}

static const char *direction(const struct loom__view *view, size_t metric)
{
	return loom__view_more(view, metric) ? "more" : "less";
}

static void add_front(const struct sweep_table *t)
{
	const struct loom__view *view = t->of;
	size_t x = t->settings->x, y = t->settings->y, near = 0;
	const char *between = "";
	if (!t->front)
		return;
	for (size_t i = 0; i < view->variants; i++)
		near += t->front[i] == LOOM__FRONT_NEAR;
	loom__line_add(t->out, "\n");
	if (near)
		loom__line_add(t->out, "  ~ dominated by another median, but the intervals overlap\n");
	loom__line_add(t->out, "  * the Pareto front of %s (%s is better) and %s (%s is better):\n    ",
		       view->metric[x].name, direction(view, x), view->metric[y].name, direction(view, y));
	for (size_t i = 0; i < view->variants; i++) {
		if (t->front[i] != LOOM__FRONT_ON)
			continue;
		loom__line_add(t->out, "%s%s", between, view->variant[i].label);
		between = "; ";
	}
	loom__line_add(t->out, "\n");
}

/* Appends the best and the worst configuration by the main metric. */
static void add_summary(const struct sweep_table *t)
{
	static const char *const word[] = {"best", "worst"};
	size_t n, metric = t->settings->metrics ? t->settings->metric[0] : LOOM__NO_NAME;
	if (metric == LOOM__NO_NAME)
		return;
	const struct loom__view_metric *m = &t->view->metric[metric];
	size_t *order = loom__view_order(t->view, metric, 1, &n);
	for (size_t k = 0; n > 1 && m->better && k < 2; k++) {
		const struct loom__variant *v = &t->view->variant[order[k ? n - 1 : 0]];
		loom__text_add(t->out, k ? "" : "\n");
		loom__line_add(t->out, "  %s %s: %s, %s\n", word[k], m->name,
			       LOOM__METRIC(v->series[metric].median.at, m->name, m->unit), v->label);
	}
	free(order);
}

void loom__table_sweep(const struct loom__view *view, const struct loom__report_settings *settings,
		       struct loom__text *out)
{
	struct sweep_table t = {.view = view, .settings = settings, .out = out};
	struct loom__view relative = {0};
	const cJSON *warning;
	size_t shown;
	if (settings->x != LOOM__NO_NAME) {
		add_metric(&t, settings->x);
		add_metric(&t, settings->y);
		t.of = loom__view_relative(view, settings, &relative) ? &relative : view;
		t.front = loom__must(calloc(t.of->variants + 1, 1));
		if (loom__view_front(t.of, settings->x, settings->y, t.front)) {
			free(t.front);
			t.front = NULL;
		}
	}
	for (size_t k = 0; k < settings->metrics; k++)
		add_metric(&t, settings->metric[k]);
	loom__line_add(out, "%s, medians\n\n", *view->title ? view->title : "sweep");
	shown = add_fitting_rows(&t);
	if (shown > MOST_ROWS)
		loom__line_add(out, "    ... %zu more: see the report\n", shown - MOST_ROWS);
	add_skipped(&t);
	cJSON_ArrayForEach(warning, loom__json_list(view->head, "warnings"))
	{
		loom__text_add(out, warning->prev->next ? "" : "\n");
		loom__line_add(out, "  the machine was not quiet: %s\n", loom__json_text(warning, "text"));
	}
	add_front(&t);
	add_summary(&t);
	free(t.front);
	loom__view_free(&relative);
}
