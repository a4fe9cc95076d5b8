/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the readers of all schemas share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view/view.h"
#include "facts/must.h"

double *loom__view_numbers(struct loom__view *view, size_t n)
{
	view->too_large |= n > LOOM__VIEW_VALUES - view->values;
	if (view->too_large)
		return NULL;
	double *list = loom__arena_get(&view->arena, n, sizeof(*list));
	for (size_t i = 0; i < n; i++)
		list[i] = NAN;
	view->values += n;
	return list;
}

void loom__view_rows(struct loom__view *view, struct loom__variant *v, size_t rows)
{
	v->order = loom__view_numbers(view, rows);
	v->start_ns = loom__view_numbers(view, rows);
	/* Each metric of each variant takes space, even without values. */
	size_t figures = view->metrics * sizeof(*v->series) / sizeof(double);
	view->too_large |= figures > LOOM__VIEW_VALUES - view->values;
	v->rows = view->too_large ? 0 : rows;
	if (view->too_large)
		return;
	view->values += figures;
	v->series = loom__arena_get(&view->arena, view->metrics, sizeof(*v->series));
}

void loom__view_room(struct loom__view *view, struct loom__series *s, size_t rows)
{
	s->value = loom__view_numbers(view, rows);
	s->rows = s->value ? rows : 0;
}

double loom__view_value(const struct loom__variant *v, size_t metric, size_t row)
{
	const struct loom__series *s = v->series ? &v->series[metric] : NULL;
	return s && row < s->rows ? s->value[row] : NAN;
}

enum loom_better loom__better_named(const char *word)
{
	return !strcmp(word, "more") ? LOOM_BETTER_MORE : !strcmp(word, "less") ? LOOM_BETTER_LESS : LOOM_BETTER_NONE;
}

size_t loom__view_number(const struct loom__names *names, const cJSON *member)
{
	return member->string ? loom__names_find(names, member->string) : LOOM__NO_NAME;
}

void loom__view_name_factor(struct loom__view *view, const char *name)
{
	if (name && *name && view->factor_names.count < LOOM__VIEW_FACTORS)
		loom__names_add(&view->arena, &view->factor_names, name);
	view->factor = view->factor_names.name;
	view->factors = view->factor_names.count;
}

void loom__view_name_factors(struct loom__view *view, const cJSON *values)
{
	const cJSON *o;
	cJSON_ArrayForEach(o, values) loom__view_name_factor(view, o->string);
}

static const char *place(struct loom__view *view, const struct loom__where *where)
{
	struct loom__text t = {0};
	const cJSON *o;
	if (where->name)
		return where->name;
	cJSON_ArrayForEach(o, where->values)
	    loom__text_add(&t, "%s%s=%s", t.length ? ", " : "", o->string, loom__json_string(o));
	const char *copy = loom__arena_copy(&view->arena, *loom__must_text(&t) ? t.at : "a configuration");
	loom__text_free(&t);
	return copy;
}

static void clash(struct loom__view *view, const struct loom__view_metric *m, const char *unit, const char *better,
		  const struct loom__where *where)
{
	struct loom__text t = {0};
	const char *was = loom__better_name(m->better), *at = place(view, where);
	if (view->clash)
		return;
	if (unit && strcmp(unit, m->unit))
		loom__text_add(&t, "'%.80s' is in %.40s in %.120s and in %.40s in %.120s", m->name,
			       *m->unit ? m->unit : "no unit", m->unit_of, *unit ? unit : "no unit", at);
	else
		loom__text_add(&t, "'%.80s' is better when it is %s in %.120s, and when it is %.20s in %.120s", m->name,
			       *was ? was : "(not given)", m->unit_of, *better ? better : "(not given)", at);
	loom__text_add(&t,
		       ": a report needs one unit and one direction per metric; create separate reports, or make the "
		       "results agree");
	view->clash = loom__arena_copy(&view->arena, loom__must_text(&t));
	loom__text_free(&t);
}

size_t loom__view_metric(struct loom__view *view, const char *name, const char *unit, const char *better,
			 const struct loom__where *where)
{
	size_t known = view->metric_names.count;
	size_t i = loom__names_find(&view->metric_names, name);
	if (i == LOOM__NO_NAME) {
		if (known == LOOM__VIEW_METRICS) {
			view->metrics_left_out++;
			return LOOM__NO_NAME;
		}
		if (!view->metric)
			view->metric = loom__arena_get(&view->arena, LOOM__VIEW_METRICS, sizeof(*view->metric));
		i = loom__names_add(&view->arena, &view->metric_names, name);
		view->metric[i] = (struct loom__view_metric){.name = view->metric_names.name[i], .unit = ""};
		view->metrics = i + 1;
	}
	struct loom__view_metric *m = &view->metric[i];
	if (!m->unit_of && (unit || better)) {
		m->unit = unit ? loom__arena_copy(&view->arena, unit) : "";
		m->better = loom__better_named(better ? better : "");
		m->unit_of = place(view, where);
	} else if ((unit && strcmp(unit, m->unit)) || (better && loom__better_named(better) != m->better)) {
		clash(view, m, unit, better, where);
	}
	return i;
}

const char *loom__view_scalar(struct loom__view *view, const cJSON *item)
{
	char number[40];
	if (cJSON_IsString(item))
		return loom__json_string(item);
	if (cJSON_IsBool(item))
		return cJSON_IsTrue(item) ? "yes" : "no";
	if (!cJSON_IsNumber(item))
		return NULL;
	snprintf(number, sizeof(number), "%.15g", item->valuedouble);
	return loom__arena_copy(&view->arena, number);
}

const char *loom__view_levels(struct loom__view *view, const struct loom__variant *v, int with_keys)
{
	struct loom__text t = {0};
	for (size_t f = 0; f < view->factors; f++)
		if (v->level[f]) {
			loom__text_add(&t, "%s", t.length ? ", " : "");
			if (with_keys)
				loom__text_add(&t, "%s=", view->factor[f]);
			loom__text_add(&t, "%s", v->level[f]);
		}
	const char *copy = loom__arena_copy(&view->arena, loom__must_text(&t));
	loom__text_free(&t);
	return copy;
}
