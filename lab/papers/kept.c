/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads reduced results, which are kept in the repository: a sweep without the metrics, options and facts
 * that no page shows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "papers/papers.h"
#include "sweep/sweep.h"

/* Copies the members named in key[n] from one object to another. */
static void copy(cJSON *to, const cJSON *from, const char *const *key, size_t n)
{
	for (size_t i = 0; i < n; i++)
		loom__json_add_copy(to, key[i], cJSON_GetObjectItemCaseSensitive(from, key[i]));
}

static int put(struct loom__text *out, cJSON *line)
{
	char *text = loom__must(loom__json_print(line, 0));
	loom__text_add(out, "%s\n", text);
	free(text);
	cJSON_Delete(line);
	return 0;
}

static cJSON *head_of(const struct loom__view *view, const struct loom__figure *f, double took)
{
	static const char *const key[] = {"schema",      "title",   "workload",       "factors",
					  "constraints", "report",  "configurations", "samples",  "seed",
					  "started",     "gpuloom", "status",         "warnings"};
	static const char *const fact[] = {"cpu_model", "cores_online", "affinity", "kernel", "virtualisation"};
	const cJSON *d, *environment = loom__json_object(view->head, "environment");
	const cJSON *before = loom__json_object(environment, "before");
	cJSON *head = cJSON_CreateObject(), *list;
	copy(head, view->head, key, LOOM__COUNT(key));
	/* derived metrics are already stored with the samples */
	cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(head, "report"), "derive");
	if (isfinite(took))
		loom__json_add_number(head, "took_s", round(took));
	loom__json_add(head, "paper", loom__figure_json(f));
	copy(loom__json_add_object(loom__json_add_object(head, "environment"), "before"), before, fact,
	     LOOM__COUNT(fact));
	list = loom__json_add_array(head, "devices");
	cJSON_ArrayForEach(d, loom__json_list(view->head, "devices"))
	{
		static const char *const of[] = {"name", "workers"};
		copy(loom__json_append_object(list), d, of, LOOM__COUNT(of));
	}
	list = loom__json_add_object(head, "choices");
	cJSON_ArrayForEach(d, loom__json_object(view->head, "choices"))
	{
		size_t n = strlen(d->string);
		if (n > 6 && !strcmp(d->string + n - 6, ".model"))
			loom__json_add_copy(list, d->string, d);
	}
	return head;
}

static cJSON *line_of(const struct loom__view *view, size_t variant)
{
	char id[24];
	cJSON *line = cJSON_CreateObject(), *values;
	snprintf(id, sizeof(id), "%zu", variant + 1);
	loom__json_add_text(line, "configuration", id);
	values = loom__json_add_object(line, "values");
	for (size_t f = 0; f < view->factors; f++)
		if (view->variant[variant].level[f])
			loom__json_add_text(values, view->factor[f], view->variant[variant].level[f]);
	return line;
}

/* Adds unit and direction of metric m to a line. This is done only in the first line that has the metric. */
static void add_meaning(cJSON *line, const struct loom__view *view, size_t m)
{
	cJSON *units = cJSON_GetObjectItemCaseSensitive(line, "units"),
	      *better = cJSON_GetObjectItemCaseSensitive(line, "better");
	units = units ? units : loom__json_add_object(line, "units");
	better = better ? better : loom__json_add_object(line, "better");
	if (*view->metric[m].unit)
		loom__json_add_text(units, view->metric[m].name, view->metric[m].unit);
	if (view->metric[m].better)
		loom__json_add_text(better, view->metric[m].name, loom__better_name(view->metric[m].better));
}

static void add_number(cJSON *line, const char *key, double v)
{
	loom__json_add_number(line, key, isfinite(v) ? v : 0);
}

static void put_samples(const struct loom__view *view, size_t i, const char *const *metric, size_t metrics,
			unsigned char *meant, struct loom__text *out)
{
	const struct loom__variant *v = &view->variant[i];
	size_t seconds = loom__names_find(&view->metric_names, "seconds");
	for (size_t row = 0; row < v->rows; row++) {
		cJSON *line = line_of(view, i), *list;
		loom__json_add_number(line, "sample", (double)row);
		add_number(line, "start_ns", v->start_ns[row]);
		add_number(line, "seconds", seconds == LOOM__NO_NAME ? NAN : loom__view_value(v, seconds, row));
		list = loom__json_add_object(line, "metrics");
		for (size_t k = 0; k < metrics; k++) {
			size_t m = loom__names_find(&view->metric_names, metric[k]);
			double x = m == LOOM__NO_NAME ? NAN : loom__view_value(v, m, row);
			if (!isfinite(x))
				continue;
			loom__json_add_number(list, metric[k], x);
			if (!meant[k])
				add_meaning(line, view, m);
			meant[k] = 1;
		}
		put(out, line);
	}
}

int loom__kept_write(const struct loom__view *view, const struct loom__figure *f, const char *const *metric,
		     size_t metrics, double took, struct loom__text *out, struct loom_error *err)
{
	unsigned char *meant = loom__must(calloc(metrics + 1, 1));
	size_t samples = 0;
	put(out, head_of(view, f, took));
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		samples += v->rows;
		put_samples(view, i, metric, metrics, meant, out);
		cJSON *line = line_of(view, i);
		int failed = *v->note && strcmp(v->status, "skipped");
		if (failed)
			loom__json_add_text(line, "status", v->status);
		if (*v->note)
			loom__json_add_text(line, failed ? "failed" : "skipped", v->note);
		else
			loom__json_add_bool(line, "done", 1);
		put(out, line);
	}
	free(meant);
	return samples ? 0 : LOOM__FAIL(err, LOOM_EUNAVAIL, "no sample to keep");
}

int loom__kept_read(const char *path, struct loom__doc *doc, struct loom_error *err)
{
	int rc = loom__doc_read(path, doc, err);
	if (!rc && doc->kind != LOOM__DOC_SWEEP) {
		loom__doc_free(doc);
		rc = LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not the file of a sweep", path);
	}
	return rc;
}
