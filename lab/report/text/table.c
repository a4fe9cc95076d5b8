/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that commands print, of results: metrics, workers, samples. */
#include "report/text/table.h"

#include "facts/must.h"
#include "report/view/document.h"
#include "report/text/grid.h"
#include "stats/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lowest and the highest value of a list, and its median. */
struct spread {
	double low, median, high;
};

/* Sorts the n values. n must not be 0. */
static struct spread spread_of(double *value, size_t n)
{
	loom__stats_sort(value, n);
	return (struct spread){value[0], loom__stats_quantile(value, n, 0.5), value[n - 1]};
}

static void heading(const cJSON *doc, int choices, struct loom__text *out)
{
	const cJSON *item, *plugins = cJSON_GetObjectItemCaseSensitive(doc, "plugins");
	const char *title = loom__json_text(doc, "title"), *workload = loom__json_text(doc, "workload");
	double ranks = loom__json_number(doc, "ranks");
	/* A workload outside of the plug-in folders has the name of its file. */
	const char *slash = strrchr(workload, '/');
	workload = slash ? slash + 1 : workload;
	loom__line_add(out, "%s\n", *title ? title : *workload ? workload : "tasks of the program");
	if (ranks > 1)
		loom__line_add(out, "  %.0f ranks, each", ranks);
	loom__line_add(out, ranks > 1 ? " on" : "  on");
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(doc, "devices"))
	{
		double workers = loom__json_number(item, "workers"), lanes = loom__json_number(item, "lanes");
		loom__line_add(out, " %s (%.0f worker%s", loom__json_text(item, "name"), workers,
			       workers == 1 ? "" : "s");
		loom__line_add(out, lanes > 1 ? ", %.0f lanes)" : ")", lanes);
	}
	loom__line_add(out, "\n  with");
	size_t column = 6;
	cJSON_ArrayForEach(item, plugins)
	{
		const char *name = loom__json_text(item, "name");
		if (column + 1 + loom__markup_width(name) > LOOM__TABLE_WIDTH) {
			loom__line_add(out, "\n      ");
			column = 6;
		}
		loom__line_add(out, " %s", name);
		column += 1 + loom__markup_width(name);
	}
	loom__line_add(out, "\n");
	const cJSON *all = choices ? cJSON_GetObjectItemCaseSensitive(doc, "choices") : NULL;
	cJSON_ArrayForEach(item, all)
	{
		loom__line_add(out, "  %s: %s\n", item->string, loom__json_string(item));
	}
	loom__line_add(out, "\n");
}

/* Appends the metrics; without `all`, only those with a direction. Returns the number of the others. */
static size_t add_metrics(const cJSON *doc, int all, struct loom__text *out)
{
	const cJSON *m, *v;
	struct loom__grid g = {0};
	size_t others = 0;
	loom__grid_columns(&g, "metric|#median|#lowest .. highest");
	cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(doc, "metrics"))
	{
		const cJSON *samples = cJSON_GetObjectItemCaseSensitive(m, "samples");
		double least = INFINITY, most = -INFINITY;
		char text[340];
		const char *unit = loom__json_text(m, "unit");
		cJSON_ArrayForEach(v, samples)
		{
			least = fmin(least, v->valuedouble);
			most = fmax(most, v->valuedouble);
		}
		if (least == 0 && most == 0)
			continue; /* all values are 0, so the mechanism that the metric describes took no part */
		if (!all && !*loom__json_text(m, "better")) {
			others++;
			continue;
		}
		loom__grid_cell(&g, 0, "%s", m->string);
		loom__grid_cell(&g, 0, "%s", LOOM__METRIC(loom__json_number(m, "median"), m->string, unit));
		loom__grid_cell(&g, 0, "%s", loom__metric_range(text, least, most, m->string, unit));
	}
	loom__grid_text(&g, out, 2);
	return others;
}

/* ---- workers ---------------------------------------------------------------------------------------- */

static const char *const counters[] = {"executed",   "spawned",	       "claimed", "stolen_in",
				       "stolen_out", "steal_attempts", "idle_ns"};

/* Returns a counter of a worker in the last sample, or NaN. */
static double last_of(const cJSON *worker, const char *counter)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(worker, counter);
	return loom__json_double(cJSON_GetArrayItem(list, cJSON_GetArraySize(list) - 1));
}

/* Sets value[worker] to a counter in the last sample. Returns the number of known values, or 0 if all are 0. */
static size_t collect(const cJSON *workers, const char *counter, double *value)
{
	const cJSON *w;
	size_t n = 0, any = 0;
	cJSON_ArrayForEach(w, workers)
	{
		double v = last_of(w, counter);
		if (!isnan(v))
			value[n++] = v;
		any |= v > 0;
	}
	return any ? n : 0;
}

/* Formats a count in at most 7 characters: "12,345", "12.35 M". */
static const char *brief(char text[160], double v)
{
	static const char *const up[] = {"", "k", "M", "G", "T", "P"};
	size_t step = 0;
	if (fabs(v) < 999999.5)
		return loom__figure(text, v, "");
	for (; fabs(v) >= 999.95 && step + 1 < LOOM__COUNT(up); step++)
		v /= 1000;
	snprintf(text, 160, "%.4g %s", v, up[step]);
	return text;
}

static int is_time(const char *counter)
{
	return !strcmp(counter, "idle_ns");
}

/* Appends a row per worker. Counters that are 0 for all workers have no column. */
static void each_worker(const cJSON *workers, double *value, struct loom__text *out)
{
	const cJSON *w;
	unsigned shown = 0; /* bit i: counters[i] has a column */
	struct loom__grid g = {0};
	loom__grid_columns(&g, "worker");
	for (size_t i = 0; i < LOOM__COUNT(counters); i++) {
		if (!collect(workers, counters[i], value))
			continue;
		shown |= 1u << i;
		loom__grid_column(&g, LOOM__CELL_NUMBER,
				  is_time(counters[i])			  ? "idle" :
				  !strcmp(counters[i], "steal_attempts") ? "attempts" :
									    counters[i]);
	}
	if (!shown) {
		loom__grid_free(&g);
		loom__text_add(out, "\n  The workers of this job count no tasks.\n");
		return;
	}
	cJSON_ArrayForEach(w, workers)
	{
		loom__grid_cell(&g, 0, "%.0f", loom__json_number(w, "worker"));
		for (size_t i = 0; i < LOOM__COUNT(counters); i++) {
			double v = last_of(w, counters[i]);
			if (!(shown >> i & 1))
				continue;
			if (isnan(v))
				loom__grid_cell(&g, 0, "-");
			else if (is_time(counters[i]))
				loom__grid_cell(&g, 0, "%s", LOOM__FIGURE(v, "ns"));
			else
				loom__grid_cell(&g, 0, "%s", brief((char[160]){0}, v));
		}
	}
	loom__text_add(out, "\n  Workers in the last sample:\n");
	loom__grid_text(&g, out, 2);
}

/* Appends the least, the median and the largest value over the workers, for each counter that is not 0 for all of them. */
static void workers_spread(const cJSON *workers, double *value, struct loom__text *out)
{
	struct loom__grid g = {0};
	loom__grid_columns(&g, "per worker|#lowest|#median|#highest");
	for (size_t i = 0; i < LOOM__COUNT(counters); i++) {
		size_t n = collect(workers, counters[i], value);
		if (!n)
			continue;
		struct spread s = spread_of(value, n);
		loom__grid_cell(&g, 0, "%s", is_time(counters[i]) ? "idle" : counters[i]);
		for (int k = 0; k < 3; k++)
			loom__grid_cell(&g, 0, "%s",
					LOOM__FIGURE(k == 0 ? s.low : k == 1 ? s.median : s.high,
						     is_time(counters[i]) ? "ns" : ""));
	}
	if (!g.cells) {
		loom__grid_free(&g);
		return;
	}
	loom__text_add(out, "\n  %d workers in the last sample (--workers shows each):\n", cJSON_GetArraySize(workers));
	loom__grid_text(&g, out, 2);
}

static void add_workers(const cJSON *doc, unsigned show, struct loom__text *out)
{
	const cJSON *workers = cJSON_GetObjectItemCaseSensitive(doc, "workers");
	int n = cJSON_GetArraySize(workers);
	double *value = loom__must(calloc((size_t)n + 1, sizeof(*value)));
	if (show & LOOM__SHOW_WORKERS && n)
		each_worker(workers, value, out);
	else if (show & LOOM__SHOW_ALL && n > 1)
		workers_spread(workers, value, out);
	free(value);
}

/* ---- the last lines --------------------------------------------------------------------------------- */

static void add_warnings(const cJSON *doc, struct loom__text *out)
{
	const cJSON *w;
	cJSON_ArrayForEach(w, cJSON_GetObjectItemCaseSensitive(doc, "warnings"))
	{
		loom__text_add(out, w->prev->next ? "" : "\n");
		loom__line_add(out, "  %s: %s\n",
			       strcmp(loom__json_text(w, "id"), "not_quiet") ? "note" : "not quiet",
			       loom__json_text(w, "text"));
	}
}

/* Appends how many samples there are, and the time of a sample. */
static void add_summary(const cJSON *doc, int counted, struct loom__text *out)
{
	const cJSON *m = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(doc, "metrics"), "seconds");
	const cJSON *samples = cJSON_GetObjectItemCaseSensitive(m, "samples"), *v;
	size_t n = 0;
	double *value = loom__must(calloc((size_t)cJSON_GetArraySize(samples) + 1, sizeof(*value)));
	cJSON_ArrayForEach(v, samples)
	{
		value[n++] = v->valuedouble;
	}
	loom__line_add(out, counted == 1 ? "\n  %d sample, verified" : "\n  %d samples, each verified", counted);
	if (n) {
		struct spread s = spread_of(value, n);
		char text[340];
		loom__line_add(out, ": %s", LOOM__FIGURE(s.median, "s"));
		loom__figure_range(text, s.low, s.high, "s");
		if (n > 1)
			loom__line_add(out, " (%s)", loom__ascii(text));
	}
	loom__line_add(out, ".\n");
	free(value);
}

void loom__table_result(const cJSON *doc, unsigned show, struct loom__text *out)
{
	int counted = 0;
	const cJSON *s;
	cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(doc, "samples"))
	{
		counted += !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s, "warmup"));
	}
	heading(doc, show & LOOM__SHOW_ALL, out);
	if (counted) {
		size_t others = add_metrics(doc, show & LOOM__SHOW_ALL, out);
		if (others)
			loom__line_add(out, "  %zu more metric%s, and the workers: -v\n", others, others == 1 ? "" : "s");
		add_workers(doc, show, out);
		add_warnings(doc, out);
		add_summary(doc, counted, out);
	} else {
		loom__line_add(out, "  no sample was completed\n");
	}
	const char *status = loom__json_text(doc, "status");
	if (strcmp(status, "ok")) /* stderr has the reason */
		loom__line_add(out, "  status: %s\n", status);
}
