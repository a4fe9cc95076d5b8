/* SPDX-License-Identifier: Apache-2.0 */
/* Makes results, with the description of their stack: effective options with their places, plug-ins, devices. Makes the
 * canonical document of a result, which docs/results.md describes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/engine.h"

/* ---- the description of a stack -------------------------------------------------------------- */

static int add_option(void *arg, const struct loom__effective *e)
{
	char name[200], at[400];
	snprintf(name, sizeof(name), "%s.%s", e->section, e->key);
	cJSON *o = loom__json_add_object(arg, name);
	loom__json_add_text(o, "value", e->value);
	loom__json_add_text(o, "written", e->shown ? e->shown : "");
	loom__json_add_text(o, "source", loom__source_name(e->entry ? e->entry->source : LOOM_FROM_DEFAULT));
	if (e->entry && e->entry->file) {
		if (e->entry->line)
			snprintf(at, sizeof(at), "%s:%d", e->entry->file, e->entry->line);
		else
			snprintf(at, sizeof(at), "%s", e->entry->file);
		loom__json_add_text(o, "at", at);
	}
	if (e->row && e->row->dflt)
		loom__json_add_text(o, "default", e->row->dflt);
	return 0;
}

static void add_plugins(cJSON *about, const struct loom_stack *s)
{
	cJSON *list = loom__json_add_array(about, "plugins");
	for (size_t i = 0; i < s->plan.choices; i++) {
		const struct loom__choice *c = &s->plan.choice[i];
		if (c->kind == LOOM_DEVICE && i > 0 && s->plan.choice[i - 1].plugin == c->plugin)
			continue;
		cJSON *o = loom__json_append_object(list);
		loom__json_add_text(o, "kind", loom__kind_name(c->kind));
		loom__json_add_text(o, "name", c->plugin->name);
		loom__json_add_text(o, "version", c->plugin->version);
		loom__json_add_text(o, "path", c->path);
	}
}

static void add_devices(cJSON *about, const struct loom_stack *s)
{
	cJSON *list = loom__json_add_array(about, "devices");
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		const struct loom_device_shape *shape = &s->shape[d];
		cJSON *o = loom__json_append_object(list);
		loom__json_add_text(o, "name", shape->name);
		loom__json_add_number(o, "first_worker", shape->first_worker);
		loom__json_add_number(o, "workers", shape->workers);
		loom__json_add_number(o, "lanes", shape->lanes);
		if (shape->numa_node >= 0)
			loom__json_add_number(o, "numa_node", shape->numa_node);
	}
}

static cJSON *choices(const struct loom_stack *s)
{
	cJSON *o = cJSON_CreateObject();
	for (uint32_t i = 0; i < s->host.facts; i++)
		loom__json_add_text(o, s->host.choice[i].name, s->host.choice[i].text);
	return o;
}

void loom__result_choices(struct loom_result *r, const struct loom_stack *s)
{
	if (r->choices == s->host.fact_changes)
		return;
	r->choices = s->host.fact_changes;
	cJSON_DeleteItemFromObjectCaseSensitive(r->about, "choices");
	loom__json_add(r->about, "choices", choices(s));
}

/* Makes the part of a result that all results of a stack have in common. */
static cJSON *about_stack(const struct loom_stack *s)
{
	cJSON *about = cJSON_CreateObject();
	cJSON *version = loom__json_add_object(about, "gpuloom");
	loom__json_add_text(version, "version", loom_version());
	loom__json_add_text(about, "title", s->plan.run.title ? s->plan.run.title : "");
	loom__json_add_text(about, "workload", s->plan.run.workload ? s->plan.run.workload : "");
	if (s->host.table.ranks > 1)
		loom__json_add_number(about, "ranks", s->host.table.ranks);
	loom__config_each(s->plan.cfg, add_option, loom__json_add_object(about, "config"));
	add_plugins(about, s);
	add_devices(about, s);
	loom__json_add(about, "choices", choices(s));
	if (!loom__json_broken(about))
		return about;
	cJSON_Delete(about);
	return NULL;
}

static struct loom__about *about_create(const struct loom_stack *s)
{
	struct loom__about *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct loom__about){.about = about_stack(s), .users = 1};
	if (a->about)
		return a;
	free(a);
	return NULL;
}

void loom__about_drop(void *at)
{
	struct loom__about *a = at;
	/* Acquire and release: all reads by earlier users happen before the last user frees the data. */
	if (!a || __atomic_sub_fetch(&a->users, 1, __ATOMIC_ACQ_REL))
		return;
	cJSON_Delete(a->about);
	free(a);
}

/* Makes a result, which takes over one reference to `a`. Returns NULL if `a` is NULL or memory ran out. */
static struct loom_result *make(const struct loom_stack *s, struct loom__about *a)
{
	uint32_t workers = s->layout.workers + s->layout.remote_workers, ranks = s->layout.ranks > 1 ? s->layout.ranks : 0, at = 0;
	struct loom_result *r = calloc(1, sizeof(*r));
	uint32_t *rank = ranks ? calloc(workers, sizeof(*rank)) : NULL; /* [workers]; the rank of each worker */
	if (!a || !r || (ranks && !rank)) {
		loom__about_drop(a);
		free(r);
		free(rank);
		return NULL;
	}
	for (uint32_t i = 0; i < ranks; i++)
		for (uint32_t w = 0; w < s->ranks.size[i].workers; w++)
			rank[at++] = i;
	*r = (struct loom_result){.status = "failed",
				  .workers = workers,
				  .rank = rank,
				  .began_ns = loom__now_ns(),
				  .began = time(NULL),
				  .about = a->about,
				  .choices = s->host.fact_changes,
				  .shared = a};
	return r;
}

struct loom_result *loom__result_create(const struct loom_stack *s)
{
	return make(s, about_create(s));
}

struct loom_result *loom__result_share(struct loom_stack *s)
{
	struct loom__about *a = s->about;
	if (!a) {
		s->about = a = about_create(s);
		s->about_drop = loom__about_drop;
	}
	/* Relaxed: the reference that the stack holds keeps the data alive during this call. */
	if (a)
		__atomic_fetch_add(&a->users, 1, __ATOMIC_RELAXED);
	return make(s, a);
}

/* ---- values --------------------------------------------------------------------------------- */

static const struct loom__sample *result_counted(const struct loom_result *r, size_t n)
{
	for (size_t i = 0; i < r->samples; i++)
		if (!r->sample[i].warmup && n-- == 0)
			return &r->sample[i];
	return NULL;
}

size_t loom_result_samples(const struct loom_result *r)
{
	size_t n = 0;
	for (size_t i = 0; r && i < r->samples; i++)
		n += !r->sample[i].warmup;
	return n;
}

static const struct loom__metric *find(const struct loom_report *report, const char *name)
{
	for (size_t i = 0; i < report->count; i++)
		if (!strcmp(report->list[i].name, name))
			return &report->list[i];
	return NULL;
}

int loom__result_metrics(const struct loom_result *r, struct loom__metric **list, size_t *n)
{
	struct loom_report all = {0};
	for (size_t i = 0; i < r->samples; i++)
		for (size_t j = 0; !r->sample[i].warmup && j < r->sample[i].report.count; j++) {
			const struct loom__metric *m = &r->sample[i].report.list[j];
			loom__report_add(&all, m->name, m->unit, m->answer ? LOOM_BETTER_SAME : m->better, m->value);
		}
	*list = all.list;
	*n = all.count;
	return all.failed ? LOOM_ENOMEM : 0;
}

int loom__result_values(const struct loom_result *r, const char *metric, double **values, size_t *n)
{
	*n = 0;
	*values = malloc((r->samples + 1) * sizeof(double));
	for (size_t i = 0; *values && i < r->samples; i++) {
		const struct loom__metric *m = find(&r->sample[i].report, metric);
		if (!r->sample[i].warmup && m)
			(*values)[(*n)++] = m->value;
	}
	return *values ? 0 : LOOM_ENOMEM;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double loom__median_of(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), ascending);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int loom_result_median(const struct loom_result *r, const char *metric, double *value)
{
	double *values;
	size_t n;
	if (!r || !metric)
		return LOOM_EINVAL;
	int rc = loom__result_values(r, metric, &values, &n);
	if (!rc && n)
		*value = loom__median_of(values, n);
	free(values);
	return rc ? rc : n ? 0 : LOOM_ENOENT;
}

int loom_result_sample(const struct loom_result *r, size_t sample, const char *metric, double *value)
{
	const struct loom__sample *s = r ? result_counted(r, sample) : NULL;
	const struct loom__metric *m = s && metric ? find(&s->report, metric) : NULL;
	if (!m)
		return LOOM_ENOENT;
	*value = m->value;
	return 0;
}

void loom_result_destroy(struct loom_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->samples; i++) {
		loom__report_clear(&r->sample[i].report);
		free(r->sample[i].counters);
	}
	free(r->sample);
	free(r->rank);
	loom__about_drop(r->shared);
	free(r);
}

const char *loom__better_name(enum loom_better better)
{
	return better == LOOM_BETTER_MORE ? "more" : better == LOOM_BETTER_LESS ? "less" : "";
}

/* ---- the document ------------------------------------------------------------------------------ */

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
		if (s->stop & LOOM__THROTTLED)
			loom__json_add_bool(o, "throttled", 1);
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

static void add_disturbed(cJSON *list, const char *id, const char *what, const struct loom__disturbed *how)
{
	char text[200];
	if (!how->repeated && !how->counted)
		return;
	cJSON *o = loom__json_append_object(list);
	snprintf(text, sizeof(text), "%s: %u of these samples do not count and were repeated, %u count", what, how->repeated,
		 how->counted);
	loom__json_add_text(o, "id", id);
	loom__json_add_text(o, "text", text);
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
	cJSON *warnings = loom__json_add_array(doc, "warnings");
	add_disturbed(warnings, "stopped", "this job was stopped during samples, or had no core", &r->stalled);
	add_disturbed(warnings, "throttled", "heat or a lack of power throttled a device during samples", &r->throttled);
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
