/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a gnuplot script that contains its data, for papers. The settings that authors change come first. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/lines.h"
#include "report/rows.h"
#include "facts/must.h"

#define MOST_TICKS 60

static void table_row(struct loom__text *out, const struct loom__view *view, size_t m, size_t i,
		      size_t place)
{
	const struct loom__series *s = &view->variant[i].series[m];
	const struct loom__compared *c = NULL;
	for (size_t k = 0; k < view->comparisons && !c; k++)
		if (view->compared[k].metric == m && view->compared[k].variant == i)
			c = &view->compared[k];
	double figure[] = {s->median.at,
			   s->median.open ? NAN : s->median.low,
			   s->median.open ? NAN : s->median.high,
			   s->sorted[0],
			   loom__stats_quantile(s->sorted, s->n, 0.25),
			   loom__stats_quantile(s->sorted, s->n, 0.75),
			   s->sorted[s->n - 1],
			   c ? c->effect : NAN,
			   c ? c->low : NAN,
			   c ? c->high : NAN};
	loom__csv_add(out, "%s,%s,%zu,%s,%zu", view->metric[m].name, view->metric[m].unit, place,
		      view->variant[i].label, s->n);
	for (size_t k = 0; k < LOOM__COUNT(figure); k++) {
		loom__text_add(out, ",");
		loom__csv_number(out, figure[k]);
	}
	loom__csv_add(out, ",%s", c ? c->word : "");
	for (size_t f = 0; f < view->factors; f++)
		loom__csv_add(out, ",%s",
			      view->variant[i].level && view->variant[i].level[f] ? view->variant[i].level[f] : "");
	loom__text_add(out, "\n");
}

static void table(struct loom__text *out, const struct loom__view *view)
{
	loom__text_add(out,
		       "metric,unit,place,variant,samples,median,median_low,median_high,lowest,"
		       "quartile_1,quartile_3,highest,ratio,ratio_low,ratio_high,verdict");
	for (size_t f = 0; f < view->factors; f++)
		loom__csv_add(out, ",%s", view->factor[f]);
	loom__text_add(out, "\n");
	for (size_t m = 0; m < view->metrics; m++) {
		size_t place = 0;
		for (size_t i = 0; view->metric[m].shown && i < view->variants; i++)
			if (view->variant[i].series && view->variant[i].series[m].n)
				table_row(out, view, m, i, place++);
	}
}

/* Appends text in single quotes. Between single quotes, gnuplot interprets only '', which stands for one quote. */
static void quoted(struct loom__text *out, const char *text)
{
	struct loom__text line = {0};
	loom__put_line(&line, text, SIZE_MAX);
	loom__text_add(out, "'");
	for (const char *s = loom__must_text(&line); *s; s++)
		loom__text_put(out, *s == '\'' ? "''" : s, *s == '\'' ? 2 : 1);
	loom__text_add(out, "'");
	loom__text_free(&line);
}

/* Appends a here-document. It ends at the first line that starts with `mark`, so no line of the table may start with
 * `mark`. */
static void here_document(struct loom__text *out, const char *name, const struct loom__text *rows)
{
	char mark[40] = "END_OF_DATA";
	unsigned more = 0;
	const char *text = loom__must_text(rows);
	for (const char *line = text; *line;) {
		if (!strncmp(line, mark, strlen(mark))) {
			snprintf(mark, sizeof(mark), "END_OF_DATA_%u", ++more);
			line = text;
			continue;
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	loom__text_add(out, "%s << %s\n%s%s\n", name, mark, text, mark);
}

/* Appends the tick labels, as a list that an author can shorten. */
static void ticks(struct loom__text *out, const struct loom__view *view, size_t metric)
{
	size_t place = 0;
	size_t many = 0;
	for (size_t i = 0; metric != LOOM__NO_NAME && i < view->variants; i++)
		many += view->variant[i].series && view->variant[i].series[metric].n;
	/* More than 8 labels would overlap, so the labels are vertical if there are more. */
	loom__text_add(out, "set xtics rotate by %s noenhanced ( \\\n", many > 8 ? "90 right" : "-30");
	for (size_t i = 0; metric != LOOM__NO_NAME && i < view->variants && place < MOST_TICKS;
	     i++) {
		const struct loom__variant *v = &view->variant[i];
		if (!v->series || !v->series[metric].n)
			continue;
		loom__text_add(out, place ? ", \\\n  " : "  ");
		quoted(out, v->label);
		loom__text_add(out, " %zu", place++);
	}
	loom__text_add(out, "%sset xlabel ", place ? " )\n" : "  '' 0 )\n");
	struct loom__text name = {0};
	for (size_t f = 0; f < view->factors; f++)
		loom__text_add(&name, "%s%s", f ? ", " : "", view->factor[f]);
	quoted(out, loom__must_text(&name));
	loom__text_free(&name);
	loom__text_add(out, " noenhanced\n");
}

/* Appends a block of points for each line of each panel. gnuplot selects a block by `index`. */
static void line_table(struct loom__text *script, const struct loom__view *view,
		       const struct loom__report_settings *settings, const struct loom__lines *l)
{
	struct loom__text rows = {0}, *out = &rows;
	loom__csv_add(out, "%s,place,x,median,low,high,lowest,highest,samples,%s,%s,line_place,paper_low,paper_high\n",
		      view->factor[settings->x_factor],
		      settings->lines == LOOM__NO_NAME ? "line" : view->factor[settings->lines],
		      settings->facet == LOOM__NO_NAME ? "panel" : view->factor[settings->facet]);
	for (size_t f = 0; f < l->facets; f++)
		for (size_t k = 0; k < l->lines; k++) {
			for (size_t i = 0; i < l->points; i++) {
				const struct loom__lines_point *p = &l->point[i];
				const double figure[] = {p->x, p->median, p->low, p->high, p->least, p->most};
				if (p->facet != f || p->line != k)
					continue;
				loom__csv_add(out, "%s,%zu", l->x[p->at], p->at);
				for (size_t n = 0; n < LOOM__COUNT(figure); n++) {
					loom__text_add(out, ",");
					loom__csv_number(out, figure[n]);
				}
				loom__csv_add(out, ",%zu,%s,%s,%zu,", p->n, l->line[k], l->facet[f], k);
				loom__csv_number(out, isinf(p->paper_low) ? p->paper_high : p->paper_low);
				loom__text_add(out, ",");
				loom__csv_number(out, isinf(p->paper_high) ? p->paper_low : p->paper_high);
				loom__text_add(out, "\n");
			}
			loom__text_add(out, "\n\n");
		}
	here_document(script, "$lines", &rows);
	loom__text_free(&rows);
}

/* Sets the terminal and the labels of both axes. If there are several panels, also sets the layout. */
static void begin_panels(struct loom__text *out, const struct loom__view *view,
			 const struct loom__report_settings *settings, const struct loom__lines *l, const char *what)
{
	struct loom__text name = {0};
	loom__lines_name(view, settings, l, &name);
	loom__text_add(out,
		       "\n# %s\nset terminal svg size %zu,420 font 'Helvetica,12' enhanced\nset output lines_name\n"
		       "set key top left reverse Left noenhanced\nset offsets 0, 0, 0, 0\nset yrange [*:*]\n"
		       "set xrange [-0.6:%zu.6]\nset xtics nomirror norotate center noenhanced (",
		       what, l->facets > 1 ? 360 * l->facets : 640, l->xs - 1);
	for (size_t i = 0; i < l->xs; i++) {
		loom__text_add(out, i ? ", " : "");
		quoted(out, l->x[i]);
		loom__text_add(out, " %zu", i);
	}
	loom__text_add(out, ")\nset title ");
	quoted(out, loom__must_text(&name));
	loom__text_add(out, " noenhanced\nset xlabel ");
	quoted(out, view->factor[settings->x_factor]);
	loom__text_add(out, " noenhanced\n");
	if (l->facets > 1)
		loom__text_add(out, "set multiplot layout 1,%zu\n", l->facets);
	loom__text_free(&name);
}

static void panel_title(struct loom__text *out, const struct loom__view *view,
			const struct loom__report_settings *settings, const struct loom__lines *l, size_t f)
{
	struct loom__text title = {0};
	if (settings->facet != LOOM__NO_NAME) {
		loom__text_add(&title, "%s = %s", view->factor[settings->facet], l->facet[f]);
		loom__text_add(out, "set title ");
		quoted(out, loom__must_text(&title));
		loom__text_add(out, " noenhanced\n");
	}
	loom__text_free(&title);
}

static void bar_plot(struct loom__text *out, const struct loom__view *view,
		     const struct loom__report_settings *settings, const struct loom__lines *l)
{
	line_table(out, view, settings, l);
	begin_panels(out, view, settings, l, "Bars: medians and 95 % intervals; red: the paper's values.");
	loom__text_add(out, "set ylabel ''\nset style fill solid 0.9 noborder\nwide = 0.8 / %zu\nset boxwidth wide * 0.9\n%s",
		       l->lines, settings->log & LOOM__LOG_Y ? "set logscale y\n" : "set yrange [0:*]\n");
	for (size_t f = 0; f < l->facets; f++) {
		panel_title(out, view, settings, l, f);
		loom__text_add(out, "plot ");
		for (size_t k = 0; k < l->lines; k++) {
			size_t index = f * l->lines + k;
			const char *skip = index ? "" : "skip 1 ";
			loom__text_add(out,
				       "%s$lines index %zu %susing ($2+wide*(%zu-%zu/2.0)):4:5:6:(wide*0.9) with boxerrorbars lc %zu "
				       "title ",
				       k ? ", \\\n     " : "", index, skip, k, l->lines - 1, k + 1);
			quoted(out, l->line[k]);
			loom__text_add(out,
				       ", \\\n     '' index %zu %susing ($2+wide*(%zu-%zu/2.0)):13:(0):($14-$13) with vectors heads size 0.06,90 "
				       "lw 2 "
				       "lc rgb '#b0003a' notitle",
				       index, skip, k, l->lines - 1);
		}
		loom__text_add(out, "\n");
	}
	loom__text_add(out, "%sunset title\n", l->facets > 1 ? "unset multiplot\n" : "");
}

static void heat_plot(struct loom__text *out, const struct loom__view *view,
		      const struct loom__report_settings *settings, const struct loom__lines *l)
{
	line_table(out, view, settings, l);
	begin_panels(out, view, settings, l, "Medians as a heat map.");
	loom__text_add(out, "set yrange [-0.5:%zu.5]\nset ytics nomirror noenhanced (", l->lines - 1);
	for (size_t k = 0; k < l->lines; k++) {
		loom__text_add(out, k ? ", " : "");
		quoted(out, l->line[k]);
		loom__text_add(out, " %zu", k);
	}
	loom__text_add(out, ")\nset ylabel ");
	quoted(out, settings->lines == LOOM__NO_NAME ? "" : view->factor[settings->lines]);
	loom__text_add(out, " noenhanced\nset palette defined (0 '#fdf0d2', 1 '#f7c978', 2 '#e08a5c', 3 '#b04b6b', "
			    "4 '#6b246e')\n%s",
		       settings->log & LOOM__LOG_Y ? "set logscale cb\n" : "");
	for (size_t f = 0; f < l->facets; f++) {
		panel_title(out, view, settings, l, f);
		loom__text_add(out,
			       "plot $lines index %zu:%zu %susing 2:12:4 with image pixels notitle, \\\n"
			       "     '' index %zu:%zu %susing 2:12:(sprintf('%%.3g', column(4))) with labels notitle\n",
			       f * l->lines, (f + 1) * l->lines - 1, f ? "" : "skip 1 ", f * l->lines,
			       (f + 1) * l->lines - 1, f ? "" : "skip 1 ");
	}
	loom__text_add(out, "%sunset title\nset ytics autofreq\n", l->facets > 1 ? "unset multiplot\n" : "");
}

static void line_plot(struct loom__text *out, const struct loom__view *view,
		      const struct loom__report_settings *settings, const struct loom__lines *l)
{
	static const char *const axes[] = {"", "set logscale x 2\n", "set logscale y\n",
					   "set logscale x 2\nset logscale y\n"};
	struct loom__text name = {0};
	line_table(out, view, settings, l);
	loom__lines_name(view, settings, l, &name);
	loom__text_add(
	    out,
	    "\n# Lines: medians, 95 %% intervals, and thin strokes from the lowest to the highest sample.\n"
	    "set terminal svg size %zu,420 font 'Helvetica,12' enhanced\nset output lines_name\n"
	    "set key top left reverse Left noenhanced\nunset xtics\nset offsets graph 0.08, graph 0.08, graph 0.05, 0\n"
	    "set xrange [*:*]\n%sset xtics nomirror norotate noenhanced (",
	    l->facets > 1 ? 360 * l->facets : 640, axes[settings->log]);
	for (size_t i = 0; i < l->xs; i++) {
		double x = (double)i;
		for (size_t k = 0; k < l->points && l->numbers; k++)
			x = l->point[k].at == i ? l->point[k].x : x;
		loom__text_add(out, i ? ", " : "");
		quoted(out, l->x[i]);
		loom__text_add(out, " ");
		loom__text_double(out, x);
	}
	loom__text_add(out, ")\nset ylabel ");
	quoted(out, loom__must_text(&name));
	loom__text_add(out, " noenhanced\nset xlabel ");
	quoted(out, view->factor[settings->x_factor]);
	loom__text_add(out, " noenhanced\n%s", l->facets > 1 ? "set multiplot layout 1," : "");
	if (l->facets > 1)
		loom__text_add(out, "%zu\n", l->facets);
	if (l->facets > 1 && l->hi > l->lo) { /* all panels have the same y range */
		loom__text_add(out, "set yrange [");
		loom__text_double(out, settings->log & LOOM__LOG_Y ? l->lo / 1.1 : fmin(l->lo, 0));
		loom__text_add(out, ":");
		loom__text_double(out, l->hi * 1.05);
		loom__text_add(out, "]\n");
	}
	for (size_t f = 0; f < l->facets; f++) {
		panel_title(out, view, settings, l, f);
		loom__text_add(out, "plot ");
		for (size_t k = 0; k < l->lines; k++) {
			size_t index = f * l->lines + k;
			const char *skip = index ? "" : "skip 1 ";
			const char *at = l->numbers ? "3" : "2";
			loom__text_add(
			    out,
			    "%s$lines index %zu %susing %s:4:7:8 with yerrorbars ps 0 lw 0.5 lc %zu notitle, \\\n"
			    "     '' index %zu %susing %s:4:5:6 with yerrorbars pt %zu ps 0.5 lc %zu notitle, \\\n"
			    "     '' index %zu %susing %s:4 with linespoints pt %zu ps 0.5 lc %zu title ",
			    k ? ", \\\n     " : "", index, skip, at, k + 1, index, skip, at, k + 5, k + 1, index, skip,
			    at, k + 5, k + 1);
			quoted(out, l->line[k]);
		}
		loom__text_add(out, "\n");
	}
	loom__text_add(out, "%s", l->facets > 1 ? "unset multiplot\nset yrange [*:*]\n" : "");
	loom__text_free(&name);
}

void loom__report_gnuplot(struct loom__text *script, const struct loom__view *view,
			  const struct loom__report_settings *settings)
{
	size_t metric = settings->metrics ? settings->metric[0] : LOOM__NO_NAME, compared = 0;
	struct loom__text rows = {0};
	for (size_t k = 0; k < view->comparisons; k++)
		compared += view->compared[k].metric == metric;
	loom__text_add(script,
		       "# gnuplot -c THIS.gp  (gnuplot 5.2 or later)\n");
	table(&rows, view);
	here_document(script, "$data", &rows);
	loom__text_free(&rows);
	loom__text_add(script, "# Settings.\nmetric = ");
	quoted(script, metric == LOOM__NO_NAME ? "" : view->metric[metric].name);
	loom__text_add(script, "\nunit = ");
	quoted(script, metric == LOOM__NO_NAME ? "" : view->metric[metric].unit);
	loom__text_add(
	    script,
	    "\nscale = 1.0          # multiplies every value, e.g. 1e3 to show seconds as ms\n"
	    "output_name = 'figure.svg'\nlines_name = 'lines.svg'\n"
	    "set terminal svg size 640,420 font 'Helvetica,12' enhanced\n"
	    "# set terminal pdfcairo size 3.3in,2.2in font 'Times,9'\n\n"
	    "set output output_name\nset datafile separator ','\nset datafile missing ''\n"
	    "set encoding utf8\nset border 3\nset tics nomirror\nset grid ytics lc rgb '#e4e6e3' "
	    "lt 1\n"
	    "set style fill solid 0.25 border\nset boxwidth 0.5\nset key off\n"
	    "set ylabel sprintf('%%s (%%s)', metric, unit) noenhanced\n");
	ticks(script, view, metric);
	loom__text_add(
	    script,
	    "set xrange [-0.6:*]\nset offsets 0, 0.6, 0, 0\n"
	    "of(column_number) = strcol(1) eq metric ? column(column_number) * scale : NaN\n"
	    "at(dummy) = strcol(1) eq metric ? column(3) : NaN\n\n"
	    "# Box: quartiles; whiskers: lowest and highest; point: median with its 95 %% "
	    "interval.\n"
	    "plot $data using (at(0)):(of(10)):(of(9)):(of(12)):(of(11)) skip 1 \\\n"
	    "       with candlesticks lc rgb '#0072b2' whiskerbars 0.4, \\\n"
	    "     $data using (at(0)):(of(6)):(of(7)):(of(8)) skip 1 \\\n"
	    "       with yerrorbars pt 7 ps 0.6 lc rgb '#000000', \\\n"
	    "     $data using (at(0)):(of(6)) skip 1 with points pt 7 ps 0.6 lc rgb '#000000'\n");
	struct loom__lines l;
	loom__lines_create(view, settings, metric, &l);
	if (l.points && settings->plots & 1u << LOOM__PLOT_BARS)
		bar_plot(script, view, settings, &l);
	else if (l.points && l.xs > 1 && l.lines > 1 && settings->plots & 1u << LOOM__PLOT_HEAT)
		heat_plot(script, view, settings, &l);
	else if (l.points && l.xs > 1)
		line_plot(script, view, settings, &l);
	loom__lines_free(&l);
	if (!compared)
		return;
	loom__text_add(
	    script,
	    "\n# Ratio to the baseline with its 95 %% interval, on a second page.\n"
	    "set output 'effects.svg'\nset ylabel sprintf('%%s over baseline', metric) noenhanced\n"
	    "ratio(column_number) = strcol(1) eq metric ? column(column_number) : NaN\n"
	    "set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead dt 2 lc rgb '#5a646e'\n"
	    "plot $data using (at(0)):(ratio(13)):(ratio(14)):(ratio(15)) skip 1 \\\n"
	    "       with yerrorbars pt 7 lc rgb '#d55e00'\n");
}
