/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep as a person reads it on a terminal: a row per cell, and the front. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/markup.h"
#include "report/report.h"
#include "report/table.h"
#include "facts/must.h"
#include "facts/text.h"

#define MOST_COLUMNS 4
#define MOST_ROWS    200

struct sweep_table {
	const struct loom__view *view;
	const struct loom__report_wish *wish;
	size_t metric[MOST_COLUMNS], metrics;
	unsigned char *front; /* [variants], or NULL */
	int width;            /* of the first column */
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

static void put(struct loom__text *out, const char *text, int width)
{
	loom__line_add(out, "%-*s", width, text);
}

/* "victim_speed" over its figures; its direction tells which end is the good one. */
static void heading(const struct sweep_table *t)
{
	struct loom__text keys = {0};
	for (size_t f = 0; f < t->view->factors; f++)
		loom__line_add(&keys, "%s%s", f ? ", " : "", t->view->factor[f]);
	loom__line_add(t->out, "    ");
	put(t->out, loom__must_text(&keys), t->width);
	for (size_t k = 0; k < t->metrics; k++)
		loom__line_add(t->out, "  %20.20s", t->view->metric[t->metric[k]].name);
	loom__line_add(t->out, "  samples\n");
	loom__text_free(&keys);
}

static void row(const struct sweep_table *t, size_t i)
{
	const struct loom__variant *v = &t->view->variant[i];
	loom__line_add(t->out, "  %c ", t->front ? " ~*"[t->front[i]] : ' ');
	put(t->out, v->label, t->width);
	for (size_t k = 0; k < t->metrics; k++) {
		const struct loom__series *s = v->series ? &v->series[t->metric[k]] : NULL;
		const char *unit = t->view->metric[t->metric[k]].unit;
		loom__line_add(t->out, "  %20s", s && s->n ? LOOM__FIGURE(s->median.at, unit) : "-");
	}
	loom__line_add(t->out, "  %7zu", v->rows);
	if (*v->note) {
		loom__line_add(t->out, "  %s: ", v->status);
		put(t->out, v->note, 0);
	}
	loom__line_add(t->out, "\n");
}

/* Cells that were left out: once for each reason. */
static void say_skipped(const struct sweep_table *t)
{
	const struct loom__view *view = t->view;
	struct loom__pool pool = {0};
	struct loom__names reason = {0};
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		size_t known = reason.count, same = 0;
		if (strcmp(v->status, "skipped") || loom__names_add(&pool, &reason, v->note) < known)
			continue;
		for (size_t j = i; j < view->variants; j++)
			same += !strcmp(view->variant[j].status, "skipped") && !strcmp(view->variant[j].note, v->note);
		loom__line_add(t->out, "    %zu left out: ", same);
		put(t->out, v->note, 0);
		loom__line_add(t->out, "\n");
	}
	loom__pool_free(&pool);
}

static const char *direction(const struct loom__view *view, size_t metric)
{
	return loom__view_more(view, metric) ? "more" : "less";
}

static void say_front(const struct sweep_table *t)
{
	const struct loom__view *view = t->view;
	size_t x = t->wish->x, y = t->wish->y, near = 0;
	const char *between = "";
	if (!t->front)
		return;
	for (size_t i = 0; i < view->variants; i++)
		near += t->front[i] == LOOM__FRONT_NEAR;
	loom__line_add(t->out, "\n");
	if (near)
		loom__line_add(t->out, "  ~ beaten by another median, but not surely\n");
	loom__line_add(t->out, "  * the front of %s (%s is better) and %s (%s is better):\n    ", view->metric[x].name,
		       direction(view, x), view->metric[y].name, direction(view, y));
	for (size_t i = 0; i < view->variants; i++) {
		if (t->front[i] != LOOM__FRONT_ON)
			continue;
		loom__line_add(t->out, "%s", between);
		put(t->out, view->variant[i].label, 0);
		between = "; ";
	}
	loom__line_add(t->out, "\n");
}

void loom__table_sweep(const struct loom__view *view, const struct loom__report_wish *wish, struct loom__text *out)
{
	struct sweep_table t = {.view = view, .wish = wish, .out = out, .width = 8};
	size_t keys = 0, shown = 0;
	if (wish->x != LOOM__NO_NAME) {
		add_metric(&t, wish->x);
		add_metric(&t, wish->y);
		t.front = loom__must(calloc(view->variants + 1, 1));
		if (loom__view_front(view, wish->x, wish->y, t.front)) {
			free(t.front);
			t.front = NULL;
		}
	}
	for (size_t k = 0; k < wish->metrics; k++)
		add_metric(&t, wish->metric[k]);
	for (size_t f = 0; f < view->factors; f++)
		keys += strlen(view->factor[f]) + 2;
	t.width = keys > 10 ? (int)(keys - 2) : t.width;
	for (size_t i = 0; i < view->variants; i++)
		if ((int)loom__markup_width(view->variant[i].label) > t.width)
			t.width = (int)loom__markup_width(view->variant[i].label);
	loom__line_add(out, "%s, medians\n\n", *view->title ? view->title : "sweep");
	heading(&t);
	for (size_t i = 0; i < view->variants; i++)
		if (strcmp(view->variant[i].status, "skipped") && shown++ < MOST_ROWS)
			row(&t, i);
	if (shown > MOST_ROWS)
		loom__line_add(out, "    ... %zu more: see the report\n", shown - MOST_ROWS);
	say_skipped(&t);
	say_front(&t);
	free(t.front);
}
