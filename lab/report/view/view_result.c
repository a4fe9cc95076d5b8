/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one or several gpuloom.result/1 into a view. */
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "report/view/view.h"

void loom__view_name_metrics(struct loom__view *view, const cJSON *result, const char *where)
{
	const cJSON *m;
	cJSON_ArrayForEach(m, loom__json_object(result, "metrics"))
	{
		if (m->string)
			loom__view_metric(view, m->string,
					  cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "unit")),
					  cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "better")),
					  &(struct loom__where){.name = where});
	}
}

/* Reads the list of samples, which marks warm-ups and gives the run order. */
static void fill_samples(struct loom__variant *v, const cJSON *list)
{
	const cJSON *s;
	size_t row = 0, n = 0;
	cJSON_ArrayForEach(s, list)
	{
		double order = loom__json_number(s, "order");
		order = order >= 0 && order < 1e12 ? order : (double)n;
		n++;
		if (loom__json_true(s, "warmup")) {
			v->warmups++;
		} else if (row < v->rows) {
			v->order[row] = order;
			v->start_ns[row++] = loom__json_number(s, "start_ns");
		}
	}
	for (; row < v->rows; row++)
		v->order[row] = (double)row;
}

void loom__view_fill(struct loom__view *view, struct loom__variant *v, const cJSON *result)
{
	const cJSON *m, *s, *list = loom__json_list(result, "samples");
	size_t rows = 0, counted = 0;
	cJSON_ArrayForEach(s, list)
	{
		counted += !loom__json_true(s, "warmup");
	}
	cJSON_ArrayForEach(m, loom__json_object(result, "metrics"))
	{
		size_t n = loom__json_length(loom__json_list(m, "samples"));
		rows = n > rows ? n : rows;
	}
	loom__view_rows(view, v, rows > counted ? rows : counted);
	if (view->too_large)
		return;
	fill_samples(v, list);
	cJSON_ArrayForEach(m, loom__json_object(result, "metrics"))
	{
		size_t i = loom__view_number(&view->metric_names, m);
		const cJSON *values = loom__json_list(m, "samples"), *value;
		if (i == LOOM__NO_NAME || v->series[i].rows)
			continue;
		loom__view_room(view, &v->series[i], loom__json_length(values));
		size_t row = 0;
		cJSON_ArrayForEach(value, values)
		{
			if (row < v->series[i].rows)
				v->series[i].value[row++] = loom__json_double(value);
		}
	}
	const char *status = loom__json_text(result, "status");
	v->status = *status ? status : "unknown";
	v->note = loom__json_text(loom__json_object(result, "error"), "text");
	v->result = result;
}

static const char *value_of(const cJSON *result, const char *key)
{
	const cJSON *config = loom__json_object(result, "config");
	return loom__json_text(loom__json_object(config, key), "value");
}

/* The values of the options of a document, indexed by the number of the option's name. */
struct options {
	struct loom__names key;
	const char **value; /* [key.count] */
};

static void read_options(struct loom__view *view, const cJSON *result, struct options *x)
{
	const cJSON *o, *config = loom__json_object(result, "config");
	x->value = loom__arena_get(&view->arena, loom__json_length(config), sizeof(*x->value));
	cJSON_ArrayForEach(o, config)
	{
		size_t known = x->key.count,
		       i = o->string ? loom__names_add(&view->arena, &x->key, o->string) : LOOM__NO_NAME;
		if (i == known)
			x->value[i] = loom__json_text(o, "value");
	}
}

/* Makes the options in which the results differ the factors. */
static void find_factors(struct loom__view *view)
{
	struct options *all = loom__arena_get(&view->arena, view->docs, sizeof(*all));
	for (size_t d = 0; d < view->docs; d++)
		read_options(view, view->doc[d].root, &all[d]);
	for (size_t k = 0; k < all[0].key.count && view->factors < LOOM__VIEW_FACTORS; k++) {
		const char *name = all[0].key.name[k];
		int differs = 0;
		for (size_t d = 1; d < view->docs && !differs; d++) {
			size_t i = loom__names_find(&all[d].key, name);
			differs = strcmp(all[0].value[k], i == LOOM__NO_NAME ? "" : all[d].value[i]) != 0;
		}
		/* The title only names a run, so it is no factor. */
		if (differs && strcmp(name, "run.title"))
			loom__view_name_factor(view, name);
	}
}

static const char *base_name(struct loom__view *view, const char *path)
{
	char *name = basename(loom__arena_copy(&view->arena, path));
	static const char *const suffix[] = {".gz", ".json", ".txt", ".out", ".log"};
	for (size_t i = 0; i < LOOM__COUNT(suffix); i++) {
		char *dot = strrchr(name, '.');
		if (dot && dot > name && !strcmp(dot, suffix[i]))
			*dot = 0;
	}
	return name;
}

void loom__view_add_results(struct loom__view *view)
{
	view->variant = loom__arena_get(&view->arena, view->docs, sizeof(*view->variant));
	if (view->docs > 1)
		find_factors(view);
	for (size_t i = 0; i < view->docs; i++)
		loom__view_name_metrics(view, view->doc[i].root, view->doc[i].path);
	for (size_t i = 0; i < view->docs; i++) {
		struct loom__variant *v = &view->variant[i];
		const cJSON *result = view->doc[i].root;
		loom__view_fill(view, v, result);
		v->level = loom__arena_get(&view->arena, view->factors, sizeof(*v->level));
		for (size_t f = 0; f < view->factors; f++)
			v->level[f] = value_of(result, view->factor[f]);
		const char *workload = loom__json_text(result, "workload");
		const char *title = loom__json_text(result, "title");
		v->name = view->doc[i].path;
		v->label = view->docs > 1 ? base_name(view, view->doc[i].path)
			   : *workload    ? workload
			   : *title       ? title
					  : "tasks";
		if (!*v->label)
			v->label = "result";
		view->variants++;
	}
	if (!*view->title)
		view->title = loom__json_text(view->head, "workload");
}
