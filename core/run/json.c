/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the canonical document of a result, which docs/results.md describes. */
#include <stdio.h>
#include <stdlib.h>

#include "run/result.h"

static void add_metrics(cJSON *doc, const struct loom_result *r)
{
	struct loom__metric *metric;
	size_t n;
	cJSON *all = loom__json_add_object(doc, "metrics");
	int rc = loom__result_metrics(r, &metric, &n);
	for (size_t i = 0; i < n && !rc; i++) {
		double *values;
		size_t have;
		rc = loom__result_values(r, metric[i].name, &values, &have);
		if (rc)
			break;
		cJSON *o = loom__json_add_object(all, metric[i].name);
		loom__json_add_text(o, "unit", metric[i].unit);
		loom__json_add_text(o, "better", loom__better_name(metric[i].better));
		if (metric[i].answer)
			loom__json_add_bool(o, "answer", 1);
		cJSON *list = cJSON_CreateDoubleArray(values, (int)have); /* before the median sorts the values */
		loom__json_add_number(o, "median", loom__median_of(values, have));
		loom__json_add(o, "samples", list);
		free(values);
	}
	free(metric);
	if (rc)
		loom__json_miss(all);
}

static void add_samples(cJSON *doc, const struct loom_result *r)
{
	cJSON *list = loom__json_add_array(doc, "samples");
	for (size_t i = 0; i < r->samples; i++) {
		const struct loom__sample *s = &r->sample[i];
		cJSON *o = loom__json_append_object(list);
		loom__json_add_number(o, "order", (double)i);
		loom__json_add_bool(o, "warmup", s->warmup);
		loom__json_add_count(o, "start_ns", s->start_ns);
		loom__json_add_number(o, "seconds", s->seconds);
		loom__json_add_bool(o, "verified", 1);
	}
}

/* Lists the values of each counter and worker in the counted samples. Times are relative to the start of the first
 * worker. */
static void add_workers(cJSON *doc, const struct loom_result *r)
{
	cJSON *list = loom__json_add_array(doc, "workers");
	for (uint32_t w = 0; w < r->workers; w++) {
		cJSON *o = cJSON_CreateObject();
		loom__json_add_number(o, "worker", w);
		if (r->rank)
			loom__json_add_number(o, "rank", r->rank[w]);
#define LOOM__COUNTER_LIST(name, unit, text)                                                       \
	cJSON *name##_list = loom__json_add_array(o, #name);
		LOOM_COUNTER_MAP(LOOM__COUNTER_LIST)
#undef LOOM__COUNTER_LIST
		for (size_t i = 0; i < r->samples; i++) {
			const struct loom__sample *s = &r->sample[i];
			struct loom_counters c = s->counters[w];
			if (s->warmup)
				continue;
			uint64_t begin = UINT64_MAX;
			for (uint32_t v = 0; v < r->workers; v++)
				if (s->counters[v].begin_ns && s->counters[v].begin_ns < begin)
					begin = s->counters[v].begin_ns;
			c.begin_ns -= c.begin_ns ? begin : 0; /* 0 means that the worker took no part */
			c.end_ns -= c.end_ns ? begin : 0;
			c.last_task_ns -= c.last_task_ns ? begin : 0;
#define LOOM__COUNTER_ADD(name, unit, text) loom__json_append_count(name##_list, c.name);
			LOOM_COUNTER_MAP(LOOM__COUNTER_ADD)
#undef LOOM__COUNTER_ADD
		}
		loom__json_append(list, o);
	}
}

static void add_warnings(cJSON *doc, const struct loom_result *r)
{
	cJSON *list = loom__json_add_array(doc, "warnings");
	char text[200];
	if (!r->repeated && !r->stalled)
		return;
	cJSON *o = cJSON_CreateObject();
	snprintf(text, sizeof(text),
		 "this job was stopped during samples, or had no core: %u of these samples do not count and were repeated, %u "
		 "count", r->repeated, r->stalled);
	loom__json_add_text(o, "id", "stopped");
	loom__json_add_text(o, "text", text);
	loom__json_append(list, o);
}

cJSON *loom__result_document(const struct loom_result *r)
{
	cJSON *doc = cJSON_CreateObject(), *about = r->about, *part;
	loom__json_add_text(doc, "schema", LOOM__RESULT_SCHEMA);
	loom__json_add_text(doc, "status", r->status);
	if (r->error.code) {
		cJSON *o = loom__json_add_object(doc, "error");
		loom__json_add_number(o, "code", r->error.code);
		loom__json_add_text(o, "text", r->error.text);
	} else {
		loom__json_add_null(doc, "error");
	}
	loom__json_add_time(doc, "started", r->began);
	cJSON_ArrayForEach(part, about)
	{
		loom__json_add_copy(doc, part->string, part);
	}
	add_metrics(doc, r);
	add_samples(doc, r);
	add_workers(doc, r);
	add_warnings(doc, r);
	if (!loom__json_broken(about) && !loom__json_broken(doc))
		return doc;
	cJSON_Delete(doc);
	return NULL;
}

char *loom_result_json(const struct loom_result *r)
{
	cJSON *doc = r ? loom__result_document(r) : NULL;
	char *text = loom__json_print(doc, 1);
	cJSON_Delete(doc);
	return text;
}
