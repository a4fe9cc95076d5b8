/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the distribution of the samples: a curve with the share of samples up to each value, and below it one strip per
 * variant. A strip shows all samples, the middle half, and the median with its interval. Both parts have the same axis.
 * If there are many variants, only strips are drawn, best first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot/plot.h"
#include "report/text/table.h"
#include "facts/must.h"

#define MOST_STRIPS 40
#define MOST_DOTS   200
#define MOST_STEPS  200

struct strips {
	const struct loom__view *view;
	size_t metric, *row, rows, left_out; /* row: indices of variants in drawing order */
	struct loom__scale x;
	int narrow;
	double left, right;
};

static const struct loom__series *series_of(const struct strips *s, size_t i)
{
	return &s->view->variant[s->row[i]].series[s->metric];
}

/* Selects the strips. If there are too many variants, the best ones are drawn. */
static void choose(struct strips *s)
{
	s->row = loom__view_order(s->view, s->metric, 0, &s->rows);
	if (s->rows > LOOM__SERIES) {
		free(s->row);
		s->row = loom__view_order(s->view, s->metric, 1, &s->rows);
	}
	if (s->rows > MOST_STRIPS) {
		s->left_out = s->rows - MOST_STRIPS;
		s->rows = MOST_STRIPS;
	}
}

static void fit(struct strips *s)
{
	double lo = INFINITY, hi = -INFINITY, most = 0; /* most: the largest third quartile */
	for (size_t i = 0; i < s->rows; i++) {
		const struct loom__series *d = series_of(s, i);
		lo = fmin(lo, d->sorted[0]);
		hi = fmax(hi, d->sorted[d->n - 1]);
		most = fmax(most, loom__stats_quantile(d->sorted, d->n, 0.75));
	}
	loom__scale_fit(&s->x, lo, hi, s->view->metric[s->metric].unit, s->left, s->right, s->narrow ? 64 : 90);
	if (hi > 3 * most || hi > 20 * lo) /* a long tail would press everything else together */
		loom__scale_log(&s->x, lo, hi);
}

static void draw_ecdf(struct loom__text *out, const struct strips *s, double top, double bottom)
{
	static const char *const share[] = {"0 %", "50 %", "100 %"};
	for (int i = 0; i < 3; i++) {
		double y = bottom - (bottom - top) * i / 2;
		loom__svg_line(out, "grid", s->left, y, s->right, y);
		loom__svg_text(out, "tick", s->left - 8, y + 4, 'e', share[i], 8);
	}
	for (size_t i = 0; i < s->rows; i++) {
		const struct loom__series *d = series_of(s, i);
		size_t steps = d->n < MOST_STEPS ? d->n : MOST_STEPS;
		loom__text_add(out, "<path class=\"line s%zu\" d=\"M%s %s", s->row[i] % LOOM__SERIES,
			       LOOM__XY(loom__scale_at(&s->x, d->sorted[0])), LOOM__XY(bottom));
		for (size_t k = 0; k < steps; k++) {
			size_t upto = (k + 1) * d->n / steps;
			loom__text_add(out, "H%sV%s", LOOM__XY(loom__scale_at(&s->x, d->sorted[upto - 1])),
				       LOOM__XY(bottom - (bottom - top) * (double)upto / (double)d->n));
		}
		loom__text_add(out, "\"/>\n");
	}
}

static void draw_strip(struct loom__text *out, const struct strips *s, size_t i, double y)
{
	const struct loom__series *d = series_of(s, i);
	size_t color = s->view->variants > LOOM__SERIES ? 0 : s->row[i];
	size_t dots = d->n < MOST_DOTS ? d->n : MOST_DOTS;
	const char *unit = s->view->metric[s->metric].unit, *figure = LOOM__FIGURE(d->median.at, unit);
	char tip[640];
	double from = loom__scale_at(&s->x, loom__stats_quantile(d->sorted, d->n, 0.25));
	double to = loom__scale_at(&s->x, loom__stats_quantile(d->sorted, d->n, 0.75));
	loom__text_add(out, "<rect class=\"half s%zu\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"14\" rx=\"3\"/>\n",
		       color % LOOM__SERIES, LOOM__XY(from), LOOM__XY(y - 7), LOOM__XY(fmax(to - from, 1)));
	for (size_t k = 0; k < dots; k++) {
		/* The dots are spread evenly over the ranks, including both ends. They vary in height, so that equal
		 * values stay visible. */
		size_t rank = dots > 1 ? k * (d->n - 1) / (dots - 1) : 0;
		double up = (double)((k * 7) % 5) * 2 - 4;
		loom__text_add(out, "<circle class=\"dot s%zu\" cx=\"%s\" cy=\"%s\" r=\"2\"/>\n", color % LOOM__SERIES,
			       LOOM__XY(loom__scale_at(&s->x, d->sorted[rank])), LOOM__XY(y + up));
	}
	double at = loom__scale_at(&s->x, d->median.at);
	double left = d->median.open & LOOM__STATS_OPEN_LOW ? d->sorted[0] : d->median.low;
	double right = d->median.open & LOOM__STATS_OPEN_HIGH ? d->sorted[d->n - 1] : d->median.high;
	loom__svg_line(out, d->median.open ? "whisker open" : "whisker", loom__scale_at(&s->x, left), y,
		       loom__scale_at(&s->x, right), y);
	snprintf(tip, sizeof(tip), "median %s, %zu samples, 95 %% interval %s to %s", figure, d->n,
		 d->median.open ? "open" : LOOM__FIGURE(d->median.low, unit),
		 d->median.open ? "open: fewer than 6 samples" : LOOM__FIGURE(d->median.high, unit));
	loom__svg_mark(out, color, "fill ring", at, y, 4.4, tip);
	const struct loom__variant *v = &s->view->variant[s->row[i]];
	if (s->narrow) {
		loom__svg_text(out, "label", 0, y - 16, 's', v->label, loom__svg_fits(s->right - 90));
		loom__svg_text(out, "note", s->right, y - 16, 'e', figure, 24);
	} else {
		loom__svg_text(out, "label", s->left - 14, y + 4, 'e', v->label, loom__svg_fits(s->left - 14));
		loom__svg_text(out, "note", s->right + 14, y + 4, 's', figure, 24);
	}
}

double loom__plot_distribution(struct loom__text *out, const struct loom__view *view, size_t metric, double width)
{
	struct strips s = {.view = view, .metric = metric, .narrow = width < 600};
	choose(&s);
	if (!s.rows) {
		free(s.row);
		return 0;
	}
	int ecdf = view->variants <= LOOM__SERIES;
	double pitch = s.narrow ? 44 : 30;
	s.left = s.narrow ? (ecdf ? 46 : 6) : ecdf ? 190 : 280;
	s.right = s.narrow ? width - 6 : width - 110;
	fit(&s);
	double top = 34, split = ecdf ? top + (s.narrow ? 140 : 190) : top;
	double bottom = split + 12 + pitch * (double)s.rows + (s.narrow ? 8 : 0);
	double height = bottom + 30 + (s.left_out ? 20 : 0);
	loom__svg_begin(out, width, height, "Distribution of the samples");
	loom__svg_metric(out, view, metric, s.x.unit, 0, 14, 's');
	if (s.x.log)
		loom__svg_text(out, "note", width, s.narrow ? 28 : 14, 'e', "logarithmic axis", 20);
	loom__svg_axis_x(out, &s.x, bottom, top);
	if (ecdf)
		draw_ecdf(out, &s, top, split);
	for (size_t i = 0; i < s.rows; i++)
		draw_strip(out, &s, i, split + 12 + pitch * ((double)i + 0.5) + (s.narrow ? 8 : 0));
	if (s.left_out) {
		char text[80];
		snprintf(text, sizeof(text), "and %zu more, all worse: see the table", s.left_out);
		loom__svg_text(out, "note", s.left, bottom + 40, 's', text, 80);
	}
	loom__svg_end(out);
	free(s.row);
	return height;
}
