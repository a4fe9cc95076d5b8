/* SPDX-License-Identifier: Apache-2.0 */
/* Finds formats, metrics, factors and plots by their names. */
#include "report/plot/plot.h"
#include "report/report.h"
#include "facts/token.h"

#include <stdio.h>
#include <string.h>

const char *const loom__report_format_name[] = {"html", "md", "csv", "svg", "json", "png", "pdf", "xml", "tex", NULL};
const char *const loom__plot_name[] = {"forest", "runs", "distribution", "pareto", "workers",
				       "lines",  "bars", "heat",         NULL};
const char *const loom__show_name[] = {"value", "ratio", "speed-up", "efficiency", NULL};
const char *const loom__width_name[] = {"page", "column", NULL};
const char *const loom__axes_name[] = {"linear", "log-x", "log-y", "log", NULL};

enum loom__report_format loom__report_format_named(const char *name)
{
	static const char *const other[] = {"htm", "markdown", "", "", "", "", "", "junit", "latex"};
	for (int i = 0; i < LOOM__REPORT_FORMATS; i++)
		if (loom__same(name, loom__report_format_name[i]) || (*other[i] && loom__same(name, other[i])))
			return (enum loom__report_format)i;
	return LOOM__REPORT_FORMATS;
}

enum loom__report_format loom__report_format_of(const char *path)
{
	const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
	return dot && (!slash || slash < dot) ? loom__report_format_named(dot + 1) : LOOM__REPORT_FORMATS;
}

int loom__report_plots(const char *list, unsigned *plots, struct loom_error *err)
{
	*plots = 0;
	for (char name[40]; list && loom__take_name(&list, name, sizeof(name));) {
		int k = 0;
		while (k < LOOM__PLOTS && strcmp(name, loom__plot_name[k]))
			k++;
		if (k == LOOM__PLOTS) {
			const char *near = loom__nearest(name, loom__plot_name, LOOM__PLOTS);
			return LOOM__FAIL(
			    err, LOOM_EINVAL, "no plot '%s'; %s%s", name,
			    near ? "did you mean "
				 : "choose from forest, runs, distribution, pareto, workers, lines, bars, heat",
			    near ? near : "");
		}
		*plots |= 1u << k;
	}
	return 0;
}

static int unknown(const struct loom__view *view, const char *name, struct loom_error *err)
{
	const char *near = loom__nearest(name, view->metric_names.name, view->metric_names.count);
	struct loom__text some = {0};
	for (size_t i = 0; i < view->metrics && i < 8; i++)
		loom__text_add(&some, "%s%.48s", i ? ", " : "", view->metric[i].name);
	int rc = near ? LOOM__FAIL(err, LOOM_EINVAL, "no metric '%.80s' in '%s'; did you mean '%.80s'?", name,
				   view->doc[0].path, near)
		      : LOOM__FAIL(err, LOOM_EINVAL, "no metric '%.80s' in '%s'; it has %s%s", name, view->doc[0].path,
				   some.at ? some.at : "none", view->metrics > 8 ? ", ..." : "");
	loom__text_free(&some);
	return rc;
}

/* Parses the next name in a list "a,b,c" as a metric, and moves *list past it. */
static int next_metric(const struct loom__view *view, const char **list, size_t *metric, struct loom_error *err)
{
	char name[200];
	loom__take_name(list, name, sizeof(name));
	*list += strspn(*list, ", ");
	*metric = loom__names_find(&view->metric_names, name);
	return *metric == LOOM__NO_NAME ? unknown(view, name, err) : 0;
}

static void add_setting(struct loom__report_settings *settings, size_t metric)
{
	for (size_t i = 0; i < settings->metrics; i++)
		if (settings->metric[i] == metric)
			return;
	if (metric != LOOM__NO_NAME && settings->metrics < LOOM__REPORT_METRICS)
		settings->metric[settings->metrics++] = metric;
}

static int read_front(const struct loom__view *view, const char *list, struct loom__report_settings *settings,
		      struct loom_error *err)
{
	int rc = next_metric(view, &list, &settings->x, err);
	if (!rc && !*list)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "--pareto takes two metrics, as in seconds,exit_ns");
	return rc ? rc : next_metric(view, &list, &settings->y, err);
}

int loom__report_settings(const struct loom__view *view, const char *metrics, const char *pareto,
			  struct loom__report_settings *settings, struct loom_error *err)
{
	size_t m;
	int rc = 0;
	*settings = (struct loom__report_settings){.x = LOOM__NO_NAME,
						   .y = LOOM__NO_NAME,
						   .x_factor = LOOM__NO_NAME,
						   .lines = LOOM__NO_NAME,
						   .facet = LOOM__NO_NAME,
						   .mean = LOOM__NO_NAME};
	while (metrics && *metrics && !rc) {
		rc = next_metric(view, &metrics, &m, err);
		if (!rc)
			add_setting(settings, m);
	}
	settings->asked = settings->metrics;
	if (!rc && pareto)
		rc = read_front(view, pareto, settings, err);
	else if (!rc)
		loom__view_pair(view, &settings->x, &settings->y);
	if (rc || settings->metrics)
		return rc;
	/* The metrics of the Pareto front come first. */
	add_setting(settings, pareto ? settings->x : loom__view_leading(view, NULL));
	add_setting(settings, pareto ? settings->y : LOOM__NO_NAME);
	for (m = 0; m < view->metrics; m++)
		if (view->metric[m].shown && view->metric[m].better)
			add_setting(settings, m);
	return 0;
}

static int find_factor(const struct loom__view *view, const char *option, const char *name, size_t *factor,
		       struct loom_error *err)
{
	struct loom__text some = {0};
	if (!name || !*name)
		return 0;
	for (size_t f = 0; f < view->factors; f++)
		if (loom__same(view->factor[f], name)) {
			*factor = f;
			return 0;
		}
	const char *near = loom__nearest(name, view->factor, view->factors);
	for (size_t f = 0; f < view->factors; f++)
		loom__text_add(&some, "%s%.80s", f ? ", " : "", view->factor[f]);
	int rc = LOOM__FAIL(err, LOOM_EINVAL, "--%s %.80s: '%s' does not vary it; %s%s%s", option, name,
			    view->doc[0].path, near ? "did you mean '" : "it varies ",
			    near      ? near
			    : some.at ? some.at
				      : "nothing",
			    near ? "'?" : "");
	loom__text_free(&some);
	return rc;
}

static int has_numbers(const struct loom__view *view, size_t factor)
{
	const char *level[LOOM__VIEW_FACTORS];
	size_t n = loom__factor_levels(view, factor, level, LOOM__COUNT(level));
	double v;
	int numbers = n > 2;
	for (size_t i = 0; i < n; i++) {
		const char *end;
		numbers &= !loom__read_double(level[i], &end, &v);
	}
	return numbers;
}

int loom__report_lines(const struct loom__view *view, const char *x, const char *lines, const char *facet,
		       struct loom__report_settings *settings, struct loom_error *err)
{
	int rc = find_factor(view, "x", x, &settings->x_factor, err);
	rc = rc ? rc : find_factor(view, "lines", lines, &settings->lines, err);
	rc = rc ? rc : find_factor(view, "facet", facet, &settings->facet, err);
	if (rc) {
		settings->x_factor = settings->lines = settings->facet = LOOM__NO_NAME;
		return rc;
	}
	for (size_t f = 0; f < view->factors && settings->x_factor == LOOM__NO_NAME; f++)
		if (f != settings->lines && f != settings->facet && has_numbers(view, f))
			settings->x_factor = f;
	for (size_t f = 0;
	     f < view->factors && settings->plots & LOOM__PLOT_NAMED && settings->x_factor == LOOM__NO_NAME; f++)
		if (f != settings->lines && f != settings->facet)
			settings->x_factor = f;
	/* Factors that were not selected become lines and panels, because otherwise configurations that differ in them
	 * would be merged. */
	for (size_t f = 0; f < view->factors && settings->x_factor != LOOM__NO_NAME && settings->lines == LOOM__NO_NAME;
	     f++)
		if (f != settings->x_factor && f != settings->facet && f != settings->mean)
			settings->lines = f;
	for (size_t f = 0; f < view->factors && settings->lines != LOOM__NO_NAME && settings->facet == LOOM__NO_NAME;
	     f++)
		if (f != settings->x_factor && f != settings->lines && f != settings->mean)
			settings->facet = f;
	return 0;
}

int loom__report_mean(const struct loom__view *view, const char *mean, struct loom__report_settings *settings,
		      struct loom_error *err)
{
	return find_factor(view, "mean", mean, &settings->mean, err);
}

static int has_level(const struct loom__view *view, size_t factor, const char *text)
{
	for (size_t v = 0; v < view->variants; v++) {
		const char *own = view->variant[v].level ? view->variant[v].level[factor] : NULL;
		if (own && !strcmp(own, text))
			return 1;
	}
	return 0;
}

size_t loom__report_base_factor(const struct loom__view *view, const struct loom__report_settings *settings)
{
	const size_t first[] = {settings->lines, settings->x_factor};
	if (!settings->base || !*settings->base)
		return LOOM__NO_NAME;
	for (size_t i = 0; i < LOOM__COUNT(first); i++)
		if (first[i] != LOOM__NO_NAME && has_level(view, first[i], settings->base))
			return first[i];
	for (size_t f = 0; f < view->factors; f++)
		if (has_level(view, f, settings->base))
			return f;
	return LOOM__NO_NAME;
}

int loom__report_base(const struct loom__view *view, const char *base, struct loom__report_settings *settings,
		      struct loom_error *err)
{
	struct loom__near near = {.word = base};
	const char *level[LOOM__VIEW_FACTORS];
	settings->base = base;
	if (!base || !*base || loom__report_base_factor(view, settings) != LOOM__NO_NAME)
		return 0;
	for (size_t f = 0; f < view->factors; f++)
		for (size_t i = 0, n = loom__factor_levels(view, f, level, LOOM__COUNT(level)); i < n; i++)
			loom__nearer(&near, level[i]);
	return LOOM__FAIL(err, LOOM_EINVAL, "--base %.80s: no factor has this level%s%s%s", base,
			  LOOM__MEANT(near.name));
}
