/* SPDX-License-Identifier: Apache-2.0 */
/* Writes all plots into one SVG file, which contains its style sheet. */
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "report/plot/plot.h"
#include "report/report.h"

#define COLUMN_MARGIN 8

double loom__plot_draw(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings, enum loom__plot_kind plot, size_t metric,
		       const struct loom__variant *v, double width)
{
	switch (plot) {
	case LOOM__PLOT_FOREST:
		return loom__plot_forest(out, view, width);
	case LOOM__PLOT_LINES:
		return loom__plot_lines(out, view, settings, metric, width);
	case LOOM__PLOT_BARS:
		return loom__plot_bars(out, view, settings, metric, width);
	case LOOM__PLOT_HEAT:
		return loom__plot_heat(out, view, settings, metric, width);
	case LOOM__PLOT_RUNS:
		return loom__plot_runs(out, view, metric, width);
	case LOOM__PLOT_DISTRIBUTION:
		return loom__plot_distribution(out, view, metric, width);
	case LOOM__PLOT_PARETO:
		return loom__plot_pareto(out, view, settings, width);
	default:
		return v ? loom__plot_workers(out, view, v, width) : 0;
	}
}

#define INTERVAL 6 /* a median of fewer samples has no interval */

/* Appends what lines or bars show beside the medians, and the number of samples if a configuration has too few for an
 * interval: ", 1 sample", ", 2 to 5 samples". */
static void add_samples(struct loom__text *out, const struct loom__view *view, int lines)
{
	size_t least = SIZE_MAX, most = 0;
	for (size_t i = 0; i < view->variants; i++) {
		size_t n = view->variant[i].rows;
		least = n && n < least ? n : least;
		most = n > most ? n : most;
	}
	if (most >= INTERVAL)
		loom__text_add(out, ", 95 %% intervals%s", least < INTERVAL ? " of 6 and more samples" : "");
	if (lines && most > 1)
		loom__text_add(out, ", lowest to highest");
	if (most && least < most && least < INTERVAL)
		loom__text_add(out, ", %zu to %zu samples", least, most);
	else if (most && most < INTERVAL)
		loom__text_add(out, ", %zu sample%s", most, most == 1 ? "" : "s");
}

static void add_heading(struct loom__text *out, const struct loom__view *view,
			const struct loom__report_settings *settings, int plot, const char *heading, double x, double y)
{
	static const unsigned means =
	    1u << LOOM__PLOT_LINES | 1u << LOOM__PLOT_BARS | 1u << LOOM__PLOT_HEAT | 1u << LOOM__PLOT_PARETO;
	struct loom__text text = {0};
	loom__text_add(&text, "%s", heading);
	if (plot == LOOM__PLOT_LINES || plot == LOOM__PLOT_BARS)
		add_samples(&text, view, plot == LOOM__PLOT_LINES);
	if (settings->mean != LOOM__NO_NAME && means & 1u << plot)
		loom__text_add(&text, "; geometric means over %s", view->factor[settings->mean]);
	loom__svg_text(out, "note", x, y, 's', loom__must_text(&text), 120);
	loom__text_free(&text);
}

/* Draws a caption, wrapped to `width`. Returns its height. */
static double add_caption(struct loom__text *out, const char *text, double left, double top, double width)
{
	size_t fits = loom__svg_fits(width);
	double y = top;
	loom__text_add(out, "<g class=\"plot\">");
	while (*text) {
		size_t n = strlen(text), cut = n;
		if (n > fits)
			for (cut = fits; cut > fits / 2 && text[cut] != ' ';)
				cut--;
		char *line = loom__must(strndup(text, cut));
		loom__svg_text(out, "note", left, y, 's', line, fits + 8);
		free(line);
		text += cut + strspn(text + cut, " ");
		y += 16;
	}
	loom__text_add(out, "</g>\n");
	return y - top;
}

unsigned loom__report_svg(struct loom__text *out, const struct loom__view *view,
			  const struct loom__report_settings *settings)
{
	static const enum loom__plot_kind order[] = {LOOM__PLOT_FOREST, LOOM__PLOT_LINES,  LOOM__PLOT_BARS,
						     LOOM__PLOT_HEAT,   LOOM__PLOT_PARETO, LOOM__PLOT_RUNS,
						     LOOM__PLOT_DISTRIBUTION, LOOM__PLOT_WORKERS};
	static const char *const heading[LOOM__PLOTS] = {"Effects with 95 % intervals",
							 "In the order of the run",
							 "Distribution",
							 "Pareto front",
							 "Workers",
							 "Lines: medians",
							 "Bars: medians",
							 "Medians"};
	struct loom__text body = {0};
	int column = settings->width == LOOM__WIDTH_COLUMN;
	double margin = column ? COLUMN_MARGIN : 24, width = column ? LOOM__NARROW : LOOM__WIDE;
	double y = column ? margin : *view->title ? 64 : 20;
	/* A column has room for one plot: the first of the usual ones that has data. */
	static const unsigned usual = 1u << LOOM__PLOT_FOREST | 1u << LOOM__PLOT_LINES | 1u << LOOM__PLOT_DISTRIBUTION;
	int one_plot = column && !settings->plots;
	unsigned plots = settings->plots ? settings->plots : column ? usual : ~(unsigned)LOOM__PLOT_NAMED, done = 0;
	for (size_t i = 0; i < LOOM__COUNT(order); i++) {
		/* Bars, heat maps, and lines by `plot = lines`, are drawn for each metric named; others for the first. */
		unsigned each = LOOM__PLOT_NAMED | (settings->plots & 1u << LOOM__PLOT_LINES);
		size_t metrics = 1u << order[i] & each && settings->asked ? settings->asked : 1;
		for (size_t m = 0; m < metrics && plots & 1u << order[i] && !(one_plot && done); m++) {
			struct loom__text one = {0};
			int drawn = order[i] == LOOM__PLOT_FOREST || settings->metrics;
			double height = !drawn ? 0
					       : loom__plot_draw(&one, view, settings, order[i], settings->metric[m],
								 view->variants ? view->variant : NULL, width);
			if (height > 0) {
				done |= 1u << order[i];
				if (!column) {
					loom__text_add(&body, "<g class=\"plot\">");
					add_heading(&body, view, settings, order[i], heading[order[i]], margin, y);
					loom__text_add(&body, "</g>");
					y += 16;
				}
				loom__text_add(&body, "<g transform=\"translate(%s %s)\">\n", LOOM__XY(margin),
					       LOOM__XY(y));
				loom__text_add(&one, "</g>\n");
				y += height + (column ? 12 : 48);
			}
			loom__markup_move(&body, &one);
		}
	}
	if (*view->caption && !column)
		y += add_caption(&body, view->caption, margin, y - 24, width);
	loom__markup_add(out,
			 "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %s %s\" width=\"%s%s\" "
			 "height=\"%s%s\">\n<title>%s</title>\n<desc>%s</desc>\n",
			 LOOM__XY(width + 2 * margin), LOOM__XY(y), LOOM__XY(column ? 84 : width + 2 * margin),
			 column ? "mm" : "", LOOM__XY(column ? y * 84 / (width + 2 * margin) : y), column ? "mm" : "",
			 *view->title ? view->title : "gpuloom", view->caption);
	loom__text_add(out, "<style>\n");
	loom__plot_style_plain(out);
	loom__text_add(out, "</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n");
	if (*view->title && !column) {
		loom__text_add(out, "<g class=\"plot\">");
		loom__svg_text(out, "title", 24, 34, 's', view->title, 90);
		loom__text_add(out, "</g>\n");
	}
	loom__markup_move(out, &body);
	loom__text_add(out, "</svg>\n");
	return done;
}
