/* SPDX-License-Identifier: Apache-2.0 */
/* Draws effects with their intervals and the margin. Right means better: the position is the logarithm of the ratio of
 * a rate, and that of the inverse ratio of a time. Labels give the change of the metric. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/plot/plot.h"
#include "facts/must.h"
#include "report/text/table.h"

#define MOST_ROWS 60
#define LABELS    30  /* height of the labels of an axis */
#define FURTHEST  6.9 /* ln 1000: larger effects are drawn at the edge */

struct forest {
	const struct loom__view *view;
	double left, right, reach; /* reach: the value at the ends of the axis, as a logarithm */
	int narrow;
};

/* Returns the logarithm of the improvement, or NaN if it is not known. */
static double gain(const struct loom__compared *c, double ratio)
{
	double d = log(ratio);
	d = c->better == LOOM_BETTER_LESS ? -d : d;
	return isnan(d) ? NAN : fmax(-FURTHEST, fmin(FURTHEST, d));
}

static double at(const struct forest *f, double log_ratio)
{
	double share = fmax(-1, fmin(1, log_ratio / f->reach));
	return (f->left + f->right) / 2 + share * (f->right - f->left) / 2;
}

static size_t rows_of(const struct loom__view *view)
{
	return view->comparisons < MOST_ROWS ? view->comparisons : MOST_ROWS;
}

static void fit(struct forest *f)
{
	for (size_t i = 0; i < rows_of(f->view); i++) {
		const struct loom__compared *c = &f->view->compared[i];
		double end[] = {gain(c, c->effect), gain(c, c->low), gain(c, c->high),
				isnan(c->margin) ? 0 : 1.6 * log1p(c->margin)};
		for (size_t k = 0; k < LOOM__COUNT(end); k++)
			f->reach = fmax(f->reach, isnan(end[k]) ? 0 : fabs(end[k]) * 1.08);
	}
	f->reach = fmax(f->reach, 0.01);
}

/* Draws a line at a change, with its label unless `text` is NULL. */
static void draw_tick(struct loom__text *out, const struct forest *f, double log_gain, const char *text, double top,
		      double bottom)
{
	double x = at(f, log_gain);
	if (fabs(log_gain) > f->reach * (f->narrow ? 0.86 : 0.97)) /* the label would leave the picture */
		return;
	loom__svg_line(out, log_gain == 0 ? "one" : "grid", x, top, x, bottom);
	if (text)
		loom__svg_text(out, "tick", x, bottom + 18, 'm', text, 24);
}

/* Draws the axis of a group of metrics with one direction. Labels give the change of the metric, as tables do: of a
 * time, a change to the right is negative. From a factor of 2 on, they are factors. */
static void draw_axis(struct loom__text *out, const struct forest *f, int less, double top, double bottom, int words)
{
	static const double steps[] = {.001, .002, .005, .01, .02, .05, .1, .2, .25, .5};
	char text[32];
	int most = (int)fmax(1, (f->right - f->left) / 2 / (f->narrow ? 58 : 78));
	double factor = 2;
	draw_tick(out, f, 0, words ? "same" : NULL, top, bottom);
	while (f->reach / log(factor) > most)
		factor *= factor < 16 ? 2 : 4;
	for (int sign = -1; sign <= 1; sign += 2) { /* of the change */
		double side = (sign < 0) == less ? 1 : -1, far = sign * expm1(sign * f->reach), step = steps[0];
		for (size_t i = 0; i < LOOM__COUNT(steps) && floor(far / step) > most; i++)
			step = steps[i];
		for (double c = step; f->reach < 0.8 && c < far; c += step) {
			snprintf(text, sizeof(text), "%s%.3g %%", sign < 0 ? "\xe2\x88\x92" : "+", c * 100);
			draw_tick(out, f, side * fabs(log1p(sign * c)), words ? text : NULL, top, bottom);
		}
		for (double by = factor; f->reach >= 0.8 && by < 2000; by *= factor) {
			snprintf(text, sizeof(text), "\xc3\x97%.4g", by);
			draw_tick(out, f, side * log(by), words ? text : NULL, top, bottom);
		}
	}
}

static void draw_interval(struct loom__text *out, const struct forest *f, const struct loom__compared *c, double y)
{
	static const size_t shape[] = {2, 4, 1, 3, 0, 0};
	double low = gain(c, c->low), high = gain(c, c->high), effect = gain(c, c->effect);
	double a = fmin(low, high), b = fmax(low, high);
	char tip[460], range[LOOM__EFFECT_RANGE];
	int open = isnan(low) || isnan(high);
	if (open) { /* an unbounded side extends to the edge */
		int less = c->better == LOOM_BETTER_LESS;
		a = isnan(less ? high : low) ? -f->reach : less ? high : low;
		b = isnan(less ? low : high) ? f->reach : less ? low : high;
	}
	loom__text_add(out, "<g class=\"%s\">", loom__verdict_style[c->verdict]);
	loom__svg_line(out, open ? "span open" : "span", at(f, a), y, at(f, b), y);
	if (!open) {
		loom__svg_line(out, "span", at(f, a), y - 5, at(f, a), y + 5);
		loom__svg_line(out, "span", at(f, b), y - 5, at(f, b), y + 5);
	}
	snprintf(tip, sizeof(tip), "%.60s of %.100s over %.100s: %s, 95 %% interval %s", c->name,
		 f->view->variant[c->variant].label, f->view->variant[c->baseline].label,
		 LOOM__GAIN(c->effect, c->better), loom__effect_range(range, c));
	if (!isnan(effect))
		loom__svg_mark(out, shape[c->verdict], "verdict", at(f, effect), y, 6, tip);
	loom__text_add(out, "</g>\n");
}

static void draw_row(struct loom__text *out, const struct forest *f, const struct loom__compared *c, double y)
{
	const struct loom__variant *v = &f->view->variant[c->variant];
	struct loom__text right = {0};
	char range[LOOM__EFFECT_RANGE];
	loom__text_add(&right, "%s  (%s)", LOOM__GAIN(c->effect, c->better), loom__effect_range(range, c));
	draw_interval(out, f, c, f->narrow ? y + 14 : y);
	if (f->narrow) {
		loom__svg_text(out, "label", 0, y - 6, 's', v->label, loom__svg_fits(f->right * 0.55));
		loom__svg_text(out, "strong", f->right, y - 6, 'e', c->word, 16);
		loom__svg_text(out, "note", f->right, y + 36, 'e', loom__must_text(&right), 48);
	} else {
		loom__svg_text(out, "label", f->left - 16, y + 4, 'e', v->label, loom__svg_fits(f->left - 16));
		loom__svg_text(out, "strong", f->right + 16, y - 3, 's', c->word, 16);
		loom__svg_text(out, "note", f->right + 16, y + 13, 's', loom__must_text(&right), 48);
	}
	loom__text_free(&right);
}

static int new_group(const struct loom__view *view, size_t i)
{
	return !i || strcmp(view->compared[i].name, view->compared[i - 1].name) ||
	       view->compared[i].baseline != view->compared[i - 1].baseline;
}

/* Returns 1 if the metrics before and from row i on have different directions, and so axes with different labels. */
static int changes_side(const struct loom__view *view, size_t i)
{
	const struct loom__compared *c = &view->compared[i];
	return (c[0].better == LOOM_BETTER_LESS) != (c[-1].better == LOOM_BETTER_LESS);
}

/* Draws the margin and the grid from `top` to `bottom`; the axis if `words` is 1. */
static void draw_strip(struct loom__text *out, const struct forest *f, const struct loom__compared *c, double top,
		       double bottom, int words)
{
	if (!isnan(c->margin) && c->margin > 0)
		loom__svg_box(out, "band", at(f, -log1p(c->margin)), top,
			      at(f, log1p(c->margin)) - at(f, -log1p(c->margin)), bottom - top, 0);
	draw_axis(out, f, c->better == LOOM_BETTER_LESS, top, bottom, words);
}

static void draw_heading(struct loom__text *out, const struct forest *f, const struct loom__compared *c, double y)
{
	struct loom__text t = {0};
	const char *better = loom__better_name(c->better);
	loom__text_add(&t, *better ? "%.60s against %.100s, %s is better" : "%.60s against %.100s", c->name,
		       f->view->variant[c->baseline].label, better);
	loom__svg_text(out, "name", 0, y, 's', loom__must_text(&t), loom__svg_fits(f->narrow ? f->right : 700));
	loom__text_free(&t);
}

double loom__plot_forest(struct loom__text *out, const struct loom__view *view, double width)
{
	struct forest f = {.view = view, .narrow = width < 600};
	size_t rows = rows_of(view), groups = 0;
	if (!rows)
		return 0;
	size_t longest = 0;
	for (size_t i = 0; i < rows; i++) {
		size_t w = loom__markup_width(view->variant[view->compared[i].variant].label);
		longest = w > longest ? w : longest;
		groups += (size_t)new_group(view, i);
	}
	double wanted = (double)longest * 6.9 + 30;
	f.left = f.narrow ? 0 : wanted < 190 ? 190 : wanted > 420 ? 420 : wanted;
	f.right = f.narrow ? width : width - 220;
	fit(&f);
	double pitch = f.narrow ? 72 : 44, head = f.narrow ? 50 : 42, foot = 46, y = 0;
	double height = (double)groups * head + (double)rows * pitch + foot;
	for (size_t i = 1; i < rows; i++)
		height += changes_side(view, i) ? LABELS : 0;
	loom__svg_begin(out, width, height, "Effects with 95 % intervals; right is better");
	/* Each group gets an axis of its own, so that no line crosses a heading. */
	for (size_t i = 0, last; i < rows; i = last) {
		for (last = i + 1; last < rows && !new_group(view, last);)
			last++;
		double end = y + head + (double)(last - i) * pitch;
		int words = last == rows || changes_side(view, last);
		draw_heading(out, &f, &view->compared[i], y + (f.narrow ? 26 : 18));
		/* In a column the text of a row is above and below its interval, where no line must cross it. */
		if (!f.narrow || words)
			draw_strip(out, &f, &view->compared[i], f.narrow ? end - 4 : y + 30, end, words);
		for (size_t k = i; k < last; k++) {
			double row = y + head + (double)(k - i) * pitch + pitch / 2 - (f.narrow ? 18 : 0);
			if (f.narrow)
				draw_strip(out, &f, &view->compared[k], row + 2, row + 26, 0);
			draw_row(out, &f, &view->compared[k], row);
		}
		y = end + (words ? LABELS : 0);
	}
	loom__svg_line(out, "axis", f.left, height - foot, f.right, height - foot);
	loom__svg_text(out, "note", f.left, height - 6, 's', "\xe2\x86\x90 worse", 20);
	loom__svg_text(out, "note", f.right, height - 6, 'e', "better \xe2\x86\x92", 20);
	loom__svg_end(out);
	return height;
}
