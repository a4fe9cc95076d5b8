/* SPDX-License-Identifier: Apache-2.0 */
#include "report/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void with_commas(double value, char *text, size_t size)
{
	char digits[40];
	int n = snprintf(digits, sizeof(digits), "%.0f", value);
	size_t at = 0;
	for (int i = 0; i < n && at + 2 < size; i++) {
		text[at++] = digits[i];
		int left = n - 1 - i;
		if (left && left % 3 == 0 && digits[i] != '-')
			text[at++] = ',';
	}
	text[at] = 0;
}

void loom__figure(double v, const char *unit, char *text, size_t size)
{
	static const char *const up[] = {"", "k", "M", "G", "T"};
	double a = fabs(v);
	int step = 0, time = !strcmp(unit, "s") || !strcmp(unit, "ns");
	if (time) {
		double s = !strcmp(unit, "ns") ? v / 1e9 : v;
		a = fabs(s);
		if (a >= 1 || a == 0)
			snprintf(text, size, "%.4g s", s);
		else if (a >= 1e-3)
			snprintf(text, size, "%.4g ms", s * 1e3);
		else if (a >= 1e-6)
			snprintf(text, size, "%.4g us", s * 1e6);
		else
			snprintf(text, size, "%.4g ns", s * 1e9);
		return;
	}
	size_t length = strlen(unit);
	if (length > 2 && !strcmp(unit + length - 2, "/s")) {
		while (a >= 1000 && step < 4) {
			a /= 1000;
			v /= 1000;
			step++;
		}
		snprintf(text, size, "%.4g %s%s", v, up[step], unit);
		return;
	}
	char number[64];
	if ((v == floor(v) || a >= 1000) && a < 1e15) /* half a task in a median is no news */
		with_commas(v, number, sizeof(number));
	else
		snprintf(number, sizeof(number), "%.4g", v);
	snprintf(text, size, "%s%s%s", number, *unit && strcmp(unit, "tasks") ? " " : "",
		 strcmp(unit, "tasks") ? unit : "");
}

static const char *string_of(const cJSON *o, const char *key)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	return s ? s : "";
}

static double number_of(const cJSON *o, const char *key)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, key));
}

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

static void heading(const cJSON *doc, struct loom__text *out)
{
	const cJSON *item, *plugins = cJSON_GetObjectItemCaseSensitive(doc, "plugins");
	const char *title = string_of(doc, "title"), *workload = string_of(doc, "workload");
	loom__text_add(out, "%s\n", *title ? title : *workload ? workload : "tasks of the program");
	loom__text_add(out, "  on");
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(doc, "devices"))
	{
		double workers = number_of(item, "workers"), lanes = number_of(item, "lanes");
		loom__text_add(out, " %s (%.0f worker%s", string_of(item, "name"), workers,
			       workers == 1 ? "" : "s");
		loom__text_add(out, lanes > 1 ? ", %.0f lanes)" : ")", lanes);
	}
	loom__text_add(out, "\n  with");
	cJSON_ArrayForEach(item, plugins)
	{
		loom__text_add(out, " %s", string_of(item, "name"));
	}
	loom__text_add(out, "\n\n");
}

static void metric_rows(const cJSON *doc, struct loom__text *out)
{
	const cJSON *m;
	loom__text_add(out, "  %-22s %16s %16s %16s\n", "metric", "median", "lowest", "highest");
	cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(doc, "metrics"))
	{
		char median[80], low[80], high[80];
		double least, most;
		spread(cJSON_GetObjectItemCaseSensitive(m, "samples"), &least, &most);
		if (least == 0 && most == 0)
			continue; /* a mechanism that took no part */
		const char *unit = string_of(m, "unit");
		loom__figure(number_of(m, "median"), unit, median, sizeof(median));
		loom__figure(least, unit, low, sizeof(low));
		loom__figure(most, unit, high, sizeof(high));
		loom__text_add(out, "  %-22s %16s %16s %16s\n", m->string, median, low, high);
	}
}

/* Columns of the worker table: the last sample's counters. */
static void worker_rows(const cJSON *doc, struct loom__text *out)
{
	static const char *const column[] = {"executed", "spawned",	   "claimed",	 "stolen_in",
					     "stolen_out", "steal_attempts", "idle_ns"};
	const cJSON *w, *workers = cJSON_GetObjectItemCaseSensitive(doc, "workers");
	if (cJSON_GetArraySize(workers) < 2)
		return;
	loom__text_add(out, "\n  %-8s", "worker");
	for (size_t i = 0; i < LOOM__COUNT(column); i++)
		loom__text_add(out, " %15s", column[i]);
	loom__text_add(out, "   (last sample)\n");
	int shown = 0;
	cJSON_ArrayForEach(w, workers)
	{
		if (++shown > 32) {
			loom__text_add(out, "  ... %d more: see --json\n",
				       cJSON_GetArraySize(workers) - 32);
			break;
		}
		loom__text_add(out, "  %-8.0f", number_of(w, "worker"));
		for (size_t i = 0; i < LOOM__COUNT(column); i++) {
			const cJSON *list = cJSON_GetObjectItemCaseSensitive(w, column[i]);
			int n = cJSON_GetArraySize(list);
			char figure[80] = "-";
			if (n) {
				/* Counts are raw text when the document was just made, numbers once parsed. */
				const cJSON *last = cJSON_GetArrayItem(list, n - 1);
				double v = cJSON_IsRaw(last) ? strtod(last->valuestring, NULL) :
							       last->valuedouble;
				loom__figure(v, strcmp(column[i], "idle_ns") ? "" : "ns", figure,
					     sizeof(figure));
			}
			loom__text_add(out, " %15s", figure);
		}
		loom__text_add(out, "\n");
	}
}

void loom__table_result(const cJSON *doc, struct loom__text *out)
{
	int counted = 0;
	const cJSON *s;
	cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(doc, "samples"))
	{
		counted += !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s, "warmup"));
	}
	heading(doc, out);
	if (counted) {
		metric_rows(doc, out);
		worker_rows(doc, out);
		loom__text_add(out, "\n  %d sample%s, each verified.\n", counted, counted == 1 ? "" : "s");
	} else {
		loom__text_add(out, "  no sample was completed\n");
	}
	const char *status = string_of(doc, "status");
	if (strcmp(status, "ok")) {
		const cJSON *error = cJSON_GetObjectItemCaseSensitive(doc, "error");
		loom__text_add(out, "  status: %s: %s\n", status, string_of(error, "text"));
	}
}
