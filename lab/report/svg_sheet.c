/* SPDX-License-Identifier: Apache-2.0 */
/* All plots in one self-contained SVG file. */
#include <stdlib.h>

#include "report/plot.h"
#include "report/report.h"

static double draw(struct loom__text *out, const struct loom__view *view,
		   const struct loom__report_settings *settings, int plot)
{
	size_t metric = settings->metrics ? settings->metric[0] : LOOM__NO_NAME;
	if (plot == LOOM__PLOT_FOREST)
		return loom__plot_forest(out, view, LOOM__WIDE);
	if (metric == LOOM__NO_NAME)
		return 0;
	switch (plot) {
	case LOOM__PLOT_LINES:
		return loom__plot_lines(out, view, settings, metric, LOOM__WIDE);
	case LOOM__PLOT_RUNS:
		return loom__plot_runs(out, view, metric, LOOM__WIDE);
	case LOOM__PLOT_DISTRIBUTION:
		return loom__plot_distribution(out, view, metric, LOOM__WIDE);
	case LOOM__PLOT_EFFECTS:
		return view->variants > 2 ? loom__plot_effects(out, view, metric, LOOM__WIDE) : 0;
	case LOOM__PLOT_PARETO:
		return settings->x == LOOM__NO_NAME
			   ? 0
			   : loom__plot_pareto(out, view, settings->x, settings->y, LOOM__WIDE);
	default:
		return view->variants ? loom__plot_workers(out, view, &view->variant[0], LOOM__WIDE)
				      : 0;
	}
}

void loom__report_svg(struct loom__text *out, const struct loom__view *view,
		      const struct loom__report_settings *settings)
{
	static const int order[] = {LOOM__PLOT_FOREST, LOOM__PLOT_LINES,        LOOM__PLOT_EFFECTS, LOOM__PLOT_PARETO,
				    LOOM__PLOT_RUNS,   LOOM__PLOT_DISTRIBUTION, LOOM__PLOT_WORKERS};
	static const char *const heading[LOOM__PLOTS] = {"Effects with 95 % intervals",
							 "In the order of the run",
							 "Distribution",
							 "Main effects",
							 "Pareto front",
							 "Workers",
							 "Lines: medians, 95 % intervals, lowest to highest"};
	struct loom__text body = {0};
	double y = *view->title ? 64 : 20;
	for (size_t i = 0; i < LOOM__COUNT(order); i++) {
		struct loom__text one = {0};
		double height = 0;
		if (!settings->plots || settings->plots & 1u << order[i])
			height = draw(&one, view, settings, order[i]);
		if (height > 0) {
			loom__text_add(&body, "<g class=\"plot\">");
			loom__svg_text(&body, "note", 24, y, 's', heading[order[i]], 60);
			y += 16;
			loom__text_add(&body, "</g><g transform=\"translate(24 %s)\">\n", LOOM__XY(y));
			loom__text_add(&one, "</g>\n");
			y += height + 48;
		}
		loom__markup_move(&body, &one);
	}
	loom__markup_add(out,
			 "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %s\" width=\"%d\" "
			 "height=\"%s\">\n<title>%s</title>\n",
			 LOOM__WIDE + 48, LOOM__XY(y), LOOM__WIDE + 48, LOOM__XY(y),
			 *view->title ? view->title : "gpuloom");
	loom__text_add(out, "<style>\n");
	loom__plot_style_plain(out);
	loom__text_add(out, "</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n");
	if (*view->title) {
		loom__text_add(out, "<g class=\"plot\">");
		loom__svg_text(out, "title", 24, 34, 's', view->title, 90);
		loom__text_add(out, "</g>\n");
	}
	loom__markup_move(out, &body);
	loom__text_add(out, "</svg>\n");
}
