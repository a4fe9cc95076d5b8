/* SPDX-License-Identifier: Apache-2.0 */
#include "report/table.h"

#include "report/document.h"
#include "report/grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void spread(const cJSON *samples, double *low, double *high)
{
	const cJSON *v;
	*low = INFINITY;
	*high = -INFINITY;
	cJSON_ArrayForEach(v, samples)
	{
		*low = v->valuedouble < *low ? v->valuedouble : *low;
		*high = v->valuedouble > *high ? v->valuedouble : *high;
	}
}

static void heading(const cJSON *doc, int choices, struct loom__text *out)
{
	const cJSON *item, *plugins = cJSON_GetObjectItemCaseSensitive(doc, "plugins");
	const char *title = loom__json_text(doc, "title"), *workload = loom__json_text(doc, "workload");
	loom__line_add(out, "%s\n", *title ? title : *workload ? workload : "tasks of the program");
	loom__line_add(out, "  on");
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(doc, "devices"))
	{
		double workers = loom__json_number(item, "workers"), lanes = loom__json_number(item, "lanes");
		loom__line_add(out, " %s (%.0f worker%s", loom__json_text(item, "name"), workers,
			       workers == 1 ? "" : "s");
		loom__line_add(out, lanes > 1 ? ", %.0f lanes)" : ")", lanes);
	}
	loom__line_add(out, "\n  with");
	cJSON_ArrayForEach(item, plugins)
	{
		loom__line_add(out, " %s", loom__json_text(item, "name"));
	}
	loom__line_add(out, "\n");
	const cJSON *all = choices ? cJSON_GetObjectItemCaseSensitive(doc, "choices") : NULL;
	cJSON_ArrayForEach(item, all)
	{
		loom__line_add(out, "  %s: %s\n", item->string, loom__json_string(item));
	}
	loom__line_add(out, "\n");
}

static void metric_rows(const cJSON *doc, struct loom__text *out)
{
	const cJSON *m;
	struct loom__grid g = {0};
	loom__grid_columns(&g, "metric|#median|#lowest|#highest");
	cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(doc, "metrics"))
	{
		double least, most;
		const char *unit = loom__json_text(m, "unit");
		spread(cJSON_GetObjectItemCaseSensitive(m, "samples"), &least, &most);
		if (least == 0 && most == 0)
			continue; /* all values are 0, so the mechanism that the metric describes took no part */
		loom__grid_cell(&g, 0, "%s", m->string);
		loom__grid_cell(&g, 0, "%s", LOOM__FIGURE(loom__json_number(m, "median"), unit));
		loom__grid_cell(&g, 0, "%s", LOOM__FIGURE(least, unit));
		loom__grid_cell(&g, 0, "%s", LOOM__FIGURE(most, unit));
	}
	loom__grid_text(&g, out, 2);
}

/* Appends the workers' counters of the last sample. */
static void worker_rows(const cJSON *doc, struct loom__text *out)
{
	static const char *const column[] = {"executed",   "spawned",	     "claimed", "stolen_in",
					     "stolen_out", "steal_attempts", "idle_ns"};
	enum { MOST_WORKERS = 32 };
	const cJSON *w, *workers = cJSON_GetObjectItemCaseSensitive(doc, "workers");
	int all = cJSON_GetArraySize(workers), shown = 0;
	struct loom__grid g = {0};
	if (all < 2)
		return;
	loom__grid_columns(&g, "worker");
	for (size_t i = 0; i < LOOM__COUNT(column); i++)
		loom__grid_column(&g, LOOM__CELL_NUMBER, column[i]);
	cJSON_ArrayForEach(w, workers)
	{
		if (++shown > MOST_WORKERS)
			break;
		loom__grid_cell(&g, 0, "%.0f", loom__json_number(w, "worker"));
		for (size_t i = 0; i < LOOM__COUNT(column); i++) {
			const cJSON *list = cJSON_GetObjectItemCaseSensitive(w, column[i]);
			double v = loom__json_double(cJSON_GetArrayItem(list, cJSON_GetArraySize(list) - 1));
			loom__grid_cell(&g, 0, "%s",
					isnan(v) ? "-" : LOOM__FIGURE(v, strcmp(column[i], "idle_ns") ? "" : "ns"));
		}
	}
	loom__text_add(out, "\n  Workers in the last sample:\n");
	loom__grid_text(&g, out, 2);
	if (all > MOST_WORKERS)
		loom__text_add(out, "  ... %d more: see --json\n", all - MOST_WORKERS);
}

void loom__table_result(const cJSON *doc, int choices, struct loom__text *out)
{
	int counted = 0;
	const cJSON *s;
	cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(doc, "samples"))
	{
		counted += !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s, "warmup"));
	}
	heading(doc, choices, out);
	if (counted) {
		metric_rows(doc, out);
		worker_rows(doc, out);
		loom__line_add(out, counted == 1 ? "\n  %d sample, verified.\n" : "\n  %d samples, each verified.\n",
			       counted);
	} else {
		loom__line_add(out, "  no sample was completed\n");
	}
	const char *status = loom__json_text(doc, "status");
	if (strcmp(status, "ok")) /* stderr has the reason */
		loom__line_add(out, "  status: %s\n", status);
}
