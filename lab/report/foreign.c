/* SPDX-License-Identifier: Apache-2.0 */
#include "report/foreign.h"

#include <gpuloom/gpuloom.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "stats/stats.h"

static cJSON *member(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key);
}

static const char *name_of(const cJSON *variant)
{
	return loom__json_text(variant, "name");
}

void loom__foreign_begin(struct loom__foreign *f, const struct loom__doc *doc, const char *tool)
{
	*f = (struct loom__foreign){.doc = doc, .tool = tool};
	f->choices = cJSON_CreateObject();
	f->before = cJSON_CreateObject();
	f->root = cJSON_CreateObject();
	loom__json_add_text(f->root, "schema", "gpuloom.compare/1");
	loom__json_add_text(f->root, "status", "ok");
	loom__json_add_null(f->root, "error");
	loom__json_add_text(f->root, "title", tool);
	loom__json_add_array(f->root, "warnings");
	f->variants = loom__json_add_array(f->root, "variants");
}

/* Returns a gpuloom.result/1 without metrics. */
static cJSON *new_result(const char *tool)
{
	cJSON *r = cJSON_CreateObject(), *o;
	char text[80];
	loom__json_add_text(r, "schema", "gpuloom.result/1");
	loom__json_add_text(r, "status", "ok");
	loom__json_add_null(r, "error");
	o = loom__json_add_object(r, "gpuloom");
	loom__json_add_text(o, "version", loom_version());
	snprintf(text, sizeof(text), "read from a file of %s", tool);
	loom__json_add_text(loom__json_add_object(o, "revision"), "null_because", text);
	loom__json_add_text(r, "started", "");
	loom__json_add_text(r, "title", "");
	loom__json_add_text(r, "workload", tool);
	loom__json_add_object(r, "config");
	loom__json_add_array(r, "plugins");
	loom__json_add_array(r, "devices");
	loom__json_add_object(r, "metrics");
	loom__json_add_array(r, "leading");
	loom__json_add_array(r, "samples");
	loom__json_add_array(r, "workers");
	return r;
}

static cJSON *find(const struct loom__foreign *f, const char *name)
{
	cJSON *v;
	cJSON_ArrayForEach(v, f->variants)
	{
		if (!strcmp(name_of(v), name))
			return v;
	}
	return NULL;
}

/* Returns a name that another program has printed, as all outputs show it. Otherwise names that differ only in bytes that
 * are not shown would become equal in an output. The caller frees it. */
static char *shown(const char *name)
{
	char *own = loom__must(strdup(name));
	loom__clean(own, strlen(own) + 1);
	return own;
}

cJSON *loom__foreign_benchmark(struct loom__foreign *f, const char *raw, int again, struct loom_error *err)
{
	struct loom__text own = {0};
	char *name = shown(raw);
	cJSON *v = find(f, name);
	if (v && again) {
		free(name);
		return v;
	}
	if (f->benchmarks++ >= LOOM__FOREIGN_BENCHMARKS) {
		LOOM__FAIL(err, LOOM_EINVAL, "'%s' has more than %d benchmarks: select some of them", f->doc->path,
			   LOOM__FOREIGN_BENCHMARKS);
		free(name);
		return NULL;
	}
	if (v)
		loom__text_add(&own, "%s #%zu", name, f->benchmarks);
	else
		loom__text_add(&own, "%s", name);
	free(name);
	v = loom__json_append_object(f->variants);
	loom__json_add_text(v, "name", loom__must_text(&own));
	loom__json_add_text(v, "label", loom__must_text(&own));
	loom__json_add_object(v, "varied");
	loom__json_add(v, "result", new_result(f->tool));
	loom__text_free(&own);
	return v;
}

static cJSON *metrics_of(const cJSON *variant)
{
	return member(member(variant, "result"), "metrics");
}

void loom__foreign_value(cJSON *benchmark, const char *metric, const char *unit, const char *better, double value)
{
	char *name = shown(metric);
	cJSON *metrics = metrics_of(benchmark), *m = member(metrics, name);
	int full = !m && loom__json_length(metrics) >= LOOM__FOREIGN_METRICS;
	if (!m && !full) {
		m = loom__json_add_object(metrics, name);
		loom__json_add_text(m, "unit", unit);
		loom__json_add_text(m, "better", better);
		loom__json_add_array(m, "samples");
	}
	if (!full)
		loom__json_append(member(m, "samples"), cJSON_CreateNumber(value));
	free(name);
}

static void lead(cJSON *result, const char *metric)
{
	cJSON *list = member(result, "leading"), *m;
	cJSON_ArrayForEach(m, list)
	{
		if (!strcmp(loom__json_string(m), metric))
			return;
	}
	loom__json_append_text(list, metric);
}

void loom__foreign_lead(cJSON *benchmark, const char *metric)
{
	char *name = shown(metric);
	lead(member(benchmark, "result"), name);
	free(name);
}

void loom__foreign_level(cJSON *benchmark, const char *factor, const char *level)
{
	cJSON *varied = member(benchmark, "varied");
	char *name = shown(factor);
	if (!member(varied, name))
		loom__json_add_text(varied, name, level);
	free(name);
}

static void set_status(cJSON *result, const char *status, const char *text)
{
	cJSON *error = cJSON_CreateObject();
	loom__json_add_number(error, "code", LOOM_EWRONG);
	loom__json_add_text(error, "text", text);
	cJSON_ReplaceItemInObjectCaseSensitive(result, "status", cJSON_CreateString(status));
	cJSON_ReplaceItemInObjectCaseSensitive(result, "error", error);
}

void loom__foreign_failed(cJSON *benchmark, const char *status, const char *text)
{
	set_status(member(benchmark, "result"), status, text);
}

void loom__foreign_warn(struct loom__foreign *f, const char *id, const char *fmt, ...)
{
	char text[600];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cJSON *o = loom__json_append_object(member(f->root, "warnings"));
	loom__json_add_text(o, "id", id);
	loom__json_add_text(o, "text", text);
}

int loom__foreign_time(const char *unit, double *seconds)
{
	static const struct {
		const char *name;
		double seconds;
	} known[] = {{"s", 1}, {"sec", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
	for (size_t i = 0; i < LOOM__COUNT(known); i++)
		if (!strcmp(unit, known[i].name)) {
			*seconds = known[i].seconds;
			return 1;
		}
	return 0;
}

static void add_median(cJSON *metric)
{
	const cJSON *s, *list = member(metric, "samples");
	double *x = loom__must(malloc((loom__json_length(list) + 1) * sizeof(*x)));
	size_t n = 0;
	cJSON_ArrayForEach(s, list)
	{
		x[n] = loom__json_double(s);
		n += isfinite(x[n]);
	}
	if (n) {
		loom__stats_sort(x, n);
		loom__json_add_number(metric, "median", loom__stats_quantile(x, n, 0.5));
	} else {
		loom__json_add_null(metric, "median");
	}
	free(x);
}

/* Adds the parts of a result that follow from the whole file. */
static void complete(const struct loom__foreign *f, cJSON *result)
{
	cJSON *m, *environment = loom__json_add_object(result, "environment");
	cJSON_ArrayForEach(m, member(result, "metrics"))
	{
		add_median(m);
	}
	loom__json_add_copy(environment, "before", f->before);
	loom__json_add_copy(result, "choices", f->choices);
	loom__json_add_copy(result, "warnings", member(f->root, "warnings"));
}

int loom__foreign_end(struct loom__foreign *f, int rc, struct loom__doc *doc, struct loom_error *err)
{
	size_t samples = 0;
	cJSON *v, *next;
	for (v = f->variants->child; v; v = next) { /* benchmarks without samples are left out */
		next = v->next;
		if (metrics_of(v)->child) {
			complete(f, member(v, "result"));
			samples++;
		} else {
			cJSON_Delete(cJSON_DetachItemViaPointer(f->variants, v));
		}
	}
	cJSON_Delete(f->choices);
	cJSON_Delete(f->before);
	if (!rc && !samples)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is of %s, but has no samples", doc->path, f->tool);
	cJSON_Delete(rc ? f->root : doc->root);
	if (rc)
		return rc;
	doc->root = f->root;
	doc->kind = LOOM__DOC_COMPARE;
	doc->tool = f->tool;
	return 0;
}

/* ---- forms -------------------------------------------------------------------------------------- */

/* Appends a name in the characters that options such as --metric accept in the name of a metric. */
static void add_name(struct loom__text *out, const char *text)
{
	for (; *text; text++) {
		char c = *text == ':' ? '=' : *text;
		if (!isalnum((unsigned char)c) && !strchr("_./<>=+-*&%#", c))
			c = '_';
		loom__text_put(out, &c, 1);
	}
}

/* Moves the metrics of a benchmark into a result. Their names begin with the benchmark. The first leading metric has the
 * name of the benchmark alone. */
static void move_metrics(cJSON *variant, cJSON *into)
{
	cJSON *own = member(variant, "result"), *from = member(own, "metrics"), *m, *l;
	const char *first = loom__json_string(member(own, "leading")->child);
	while ((m = from->child)) {
		struct loom__text name = {0};
		add_name(&name, name_of(variant));
		if (strcmp(m->string, first)) {
			loom__text_add(&name, ".");
			add_name(&name, m->string);
		}
		while (member(member(into, "metrics"), loom__must_text(&name)))
			loom__text_add(&name, "#");
		cJSON_ArrayForEach(l, member(own, "leading"))
		{
			if (!strcmp(loom__json_string(l), m->string))
				lead(into, loom__must_text(&name));
		}
		cJSON_DetachItemViaPointer(from, m);
		loom__json_add(member(into, "metrics"), loom__must_text(&name), m);
		loom__text_free(&name);
	}
	const char *status = loom__json_text(own, "status");
	if (strcmp(status, "ok") && !strcmp(loom__json_text(into, "status"), "ok")) {
		struct loom__text text = {0};
		loom__text_add(&text, "%s: %s", name_of(variant),
			       loom__json_text(loom__json_object(own, "error"), "text"));
		set_status(into, status, loom__must_text(&text));
		loom__text_free(&text);
	}
}

static cJSON *one_result(cJSON *root, const char *tool, int named)
{
	cJSON *variants = member(root, "variants"), *v;
	if (!named)
		return cJSON_DetachItemFromObjectCaseSensitive(variants->child, "result");
	cJSON *result = new_result(tool);
	static const char *const common[] = {"environment", "choices", "warnings"};
	for (size_t i = 0; i < LOOM__COUNT(common); i++)
		loom__json_add_copy(result, common[i], member(member(variants->child, "result"), common[i]));
	cJSON_ArrayForEach(v, variants)
	{
		move_metrics(v, result);
	}
	return result;
}

void loom__foreign_settle(struct loom__doc *doc, size_t docs)
{
	int several = 0;
	for (size_t i = 0; i < docs; i++)
		several |= doc[i].tool && loom__json_length(loom__json_list(doc[i].root, "variants")) > 1;
	for (size_t i = 0; i < docs && (docs > 1 || !several); i++) {
		if (!doc[i].tool || doc[i].kind != LOOM__DOC_COMPARE)
			continue;
		cJSON *result = one_result(doc[i].root, doc[i].tool, several);
		cJSON_Delete(doc[i].root);
		doc[i].root = result;
		doc[i].kind = LOOM__DOC_RESULT;
	}
}
