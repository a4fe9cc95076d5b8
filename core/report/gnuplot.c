/* SPDX-License-Identifier: Apache-2.0 */
/* A script and a table for papers: everything that an author wants to change stands at the top. */
#include <math.h>
#include <string.h>

#include "report/rows.h"

#define MOST_TICKS 60

static void table_row(struct loom__text *out, const struct loom__view *view, size_t m, size_t i,
		      size_t place)
{
	const struct loom__series *s = &view->variant[i].series[m];
	const struct loom__compared *c = NULL;
	for (size_t k = 0; k < view->comparisons && !c; k++)
		if (view->compared[k].metric == m && view->compared[k].variant == i)
			c = &view->compared[k];
	loom__csv_field(out, view->metric[m].name);
	loom__text_add(out, ",");
	loom__csv_field(out, view->metric[m].unit);
	loom__text_add(out, ",%zu,", place);
	loom__csv_field(out, view->variant[i].label);
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
	loom__text_add(out, ",%zu", s->n);
	for (size_t k = 0; k < LOOM__COUNT(figure); k++) {
		loom__text_add(out, ",");
		loom__csv_number(out, figure[k]);
	}
	loom__text_add(out, ",");
	loom__csv_field(out, c ? c->word : "");
	loom__text_add(out, "\n");
}

static void table(struct loom__text *out, const struct loom__view *view)
{
	loom__text_add(out,
		       "metric,unit,place,variant,samples,median,median_low,median_high,lowest,"
		       "quartile_1,quartile_3,highest,ratio,ratio_low,ratio_high,verdict\n");
	for (size_t m = 0; m < view->metrics; m++) {
		size_t place = 0;
		for (size_t i = 0; view->metric[m].shown && i < view->variants; i++)
			if (view->variant[i].series && view->variant[i].series[m].n)
				table_row(out, view, m, i, place++);
	}
}

/* In single quotes: gnuplot reads '' as a quote and nothing else in there. */
static void quoted(struct loom__text *out, const char *text)
{
	loom__text_add(out, "'");
	for (const char *s = text; *s; s++)
		if (*s == '\'')
			loom__text_add(out, "''");
		else
			loom__text_put(out, (unsigned char)*s < 0x20 ? " " : s, 1);
	loom__text_add(out, "'");
}

/* Names under the axis, where an author can shorten them. */
static void ticks(struct loom__text *out, const struct loom__view *view, size_t metric)
{
	size_t place = 0;
	loom__text_add(out, "set xtics rotate by -30 noenhanced ( \\\n");
	for (size_t i = 0; metric != LOOM__NO_NAME && i < view->variants && place < MOST_TICKS;
	     i++) {
		const struct loom__variant *v = &view->variant[i];
		if (!v->series || !v->series[metric].n)
			continue;
		loom__text_add(out, place ? ", \\\n  " : "  ");
		quoted(out, v->label);
		loom__text_add(out, " %zu", place++);
	}
	loom__text_add(out, place ? " )\n" : "  '' 0 )\n");
}

void loom__report_gnuplot(struct loom__text *script, struct loom__text *csv, const char *data,
			  const struct loom__view *view, const struct loom__report_wish *wish)
{
	size_t metric = wish->metrics ? wish->metric[0] : LOOM__NO_NAME, compared = 0;
	table(csv, view);
	for (size_t k = 0; k < view->comparisons; k++)
		compared += view->compared[k].metric == metric;
	loom__text_add(script,
		       "# gnuplot -c THIS.gp  (gnuplot 5.2 or later)\n# Change these.\ndata = ");
	quoted(script, data);
	loom__text_add(script, "\nmetric = ");
	quoted(script, metric == LOOM__NO_NAME ? "" : view->metric[metric].name);
	loom__text_add(script, "\nunit = ");
	quoted(script, metric == LOOM__NO_NAME ? "" : view->metric[metric].unit);
	loom__text_add(
	    script,
	    "\nscale = 1.0          # multiplies every figure, e.g. 1e3 to show seconds as ms\n"
	    "output_name = 'figure.svg'\n"
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
	    "plot data using (at(0)):(of(10)):(of(9)):(of(12)):(of(11)) skip 1 \\\n"
	    "       with candlesticks lc rgb '#0072b2' whiskerbars 0.4, \\\n"
	    "     '' using (at(0)):(of(6)):(of(7)):(of(8)) skip 1 \\\n"
	    "       with yerrorbars pt 7 ps 0.6 lc rgb '#000000', \\\n"
	    "     '' using (at(0)):(of(6)) skip 1 with points pt 7 ps 0.6 lc rgb '#000000'\n");
	if (!compared)
		return;
	loom__text_add(
	    script,
	    "\n# Ratio to the baseline with its 95 %% interval, on a second page.\n"
	    "set output 'effects.svg'\nset ylabel sprintf('%%s over baseline', metric) noenhanced\n"
	    "ratio(column_number) = strcol(1) eq metric ? column(column_number) : NaN\n"
	    "set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead dt 2 lc rgb '#5a646e'\n"
	    "plot data using (at(0)):(ratio(13)):(ratio(14)):(ratio(15)) skip 1 \\\n"
	    "       with yerrorbars pt 7 lc rgb '#d55e00'\n");
}
