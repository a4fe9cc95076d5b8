/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical document of a result: docs/results.md describes it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "run/result.h"

/* cJSON keeps numbers as doubles: 64-bit counts go in as text of a number. */
static cJSON *count(uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return cJSON_CreateRaw(text);
}

static void add_metrics(cJSON *doc, const struct loom_result *r)
{
	struct loom__metric *metric;
	size_t n = loom__result_metrics(r, &metric);
	cJSON *all = cJSON_AddObjectToObject(doc, "metrics");
	for (size_t i = 0; i < n; i++) {
		double *values;
		size_t have = loom__result_values(r, metric[i].name, &values);
		cJSON *o = cJSON_AddObjectToObject(all, metric[i].name);
		cJSON_AddStringToObject(o, "unit", metric[i].unit);
		cJSON_AddStringToObject(o, "better", loom__better_name(metric[i].better));
		cJSON *list = cJSON_CreateDoubleArray(values, (int)have); /* before the median sorts */
		cJSON_AddNumberToObject(o, "median", loom__median_of(values, have));
		cJSON_AddItemToObject(o, "samples", list);
		free(values);
	}
	free(metric);
}

static void add_samples(cJSON *doc, const struct loom_result *r)
{
	cJSON *list = cJSON_AddArrayToObject(doc, "samples");
	for (size_t i = 0; i < r->samples; i++) {
		const struct loom__sample *s = &r->sample[i];
		cJSON *o = cJSON_CreateObject();
		cJSON_AddNumberToObject(o, "order", (double)i);
		cJSON_AddBoolToObject(o, "warmup", s->warmup);
		cJSON_AddItemToObject(o, "start_ns", count(s->start_ns));
		cJSON_AddNumberToObject(o, "seconds", s->seconds);
		cJSON_AddBoolToObject(o, "verified", 1);
		cJSON_AddItemToArray(list, o);
	}
}

/* Per worker and counter the values over the counted samples; times are relative to the first begin. */
static void add_workers(cJSON *doc, const struct loom_result *r)
{
	cJSON *list = cJSON_AddArrayToObject(doc, "workers");
	for (uint32_t w = 0; w < r->workers; w++) {
		cJSON *o = cJSON_CreateObject();
		cJSON_AddNumberToObject(o, "worker", w);
#define LOOM__COUNTER_LIST(name, unit, text)                                                       \
	cJSON *name##_list = cJSON_AddArrayToObject(o, #name);
		LOOM_COUNTER_MAP(LOOM__COUNTER_LIST)
#undef LOOM__COUNTER_LIST
		for (size_t i = 0; i < r->samples; i++) {
			const struct loom__sample *s = &r->sample[i];
			struct loom_counters c = s->counters[w];
			if (s->warmup)
				continue;
			uint64_t begin = UINT64_MAX;
			for (uint32_t v = 0; v < r->workers; v++)
				if (s->counters[v].begin_ns < begin)
					begin = s->counters[v].begin_ns;
			c.begin_ns -= begin;
			c.end_ns -= c.end_ns ? begin : 0;
			c.last_task_ns -= c.last_task_ns ? begin : 0;
#define LOOM__COUNTER_ADD(name, unit, text) cJSON_AddItemToArray(name##_list, count(c.name));
			LOOM_COUNTER_MAP(LOOM__COUNTER_ADD)
#undef LOOM__COUNTER_ADD
		}
		cJSON_AddItemToArray(list, o);
	}
}

cJSON *loom__result_document(const struct loom_result *r)
{
	cJSON *doc = cJSON_CreateObject(), *part;
	if (!doc)
		return NULL;
	cJSON_AddStringToObject(doc, "schema", LOOM__RESULT_SCHEMA);
	cJSON_AddStringToObject(doc, "status", r->status);
	if (r->error.code) {
		cJSON *o = cJSON_AddObjectToObject(doc, "error");
		cJSON_AddNumberToObject(o, "code", r->error.code);
		cJSON_AddStringToObject(o, "text", r->error.text);
	} else {
		cJSON_AddNullToObject(doc, "error");
	}
	cJSON_ArrayForEach(part, r->about)
	{
		cJSON_AddItemToObject(doc, part->string, cJSON_Duplicate(part, 1));
	}
	add_metrics(doc, r);
	add_samples(doc, r);
	add_workers(doc, r);
	return doc;
}

char *loom_result_json(const struct loom_result *r)
{
	cJSON *doc = r ? loom__result_document(r) : NULL;
	char *text = doc ? cJSON_Print(doc) : NULL;
	cJSON_Delete(doc);
	return text;
}
