/* SPDX-License-Identifier: Apache-2.0 */
/* Writes gpuloom.report/1: the content of the pages, for programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot.h"
#include "report/report.h"
#include "facts/must.h"

/* Adds a number. JSON has no infinity, so values that are infinite or not known become null. */
static void number(cJSON *o, const char *key, double v)
{
	if (isfinite(v))
		loom__json_add_number(o, key, v);
	else
		loom__json_add_null(o, key);
}

static cJSON *metric(const struct loom__view_metric *m, const struct loom__series *s)
{
	cJSON *o = cJSON_CreateObject();
	loom__json_add_text(o, "unit", m->unit);
	loom__json_add_text(o, "better", loom__better_name(m->better));
	loom__json_add_number(o, "samples", (double)s->n);
	number(o, "median", s->median.at);
	number(o, "low", s->median.open & LOOM__STATS_OPEN_LOW ? NAN : s->median.low);
	number(o, "high", s->median.open & LOOM__STATS_OPEN_HIGH ? NAN : s->median.high);
	number(o, "lowest", s->sorted[0]);
	number(o, "quartile_1", loom__stats_quantile(s->sorted, s->n, 0.25));
	number(o, "quartile_3", loom__stats_quantile(s->sorted, s->n, 0.75));
	number(o, "highest", s->sorted[s->n - 1]);
	return o;
}

static void add_variants(cJSON *doc, const struct loom__view *view, const unsigned char *front)
{
	static const char *const word[] = {"off", "near", "on"};
	cJSON *list = loom__json_add_array(doc, "variants");
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		cJSON *o = loom__json_append_object(list), *values, *metrics;
		loom__json_add_text(o, "label", v->label);
		loom__json_add_text(o, "status", v->status);
		loom__json_add_text(o, "note", v->note);
		values = loom__json_add_object(o, "values");
		for (size_t f = 0; f < view->factors; f++)
			if (v->level && v->level[f])
				loom__json_add_text(values, view->factor[f], v->level[f]);
		metrics = loom__json_add_object(o, "metrics");
		for (size_t m = 0; v->series && m < view->metrics; m++)
			if (v->series[m].n)
				loom__json_add(metrics, view->metric[m].name,
						      metric(&view->metric[m], &v->series[m]));
		if (front)
			loom__json_add_text(o, "front", word[front[i]]);
	}
}

static void add_comparisons(cJSON *doc, const struct loom__view *view)
{
	cJSON *list = loom__json_add_array(doc, "comparisons");
	for (size_t i = 0; i < view->comparisons; i++) {
		const struct loom__compared *c = &view->compared[i];
		cJSON *o = loom__json_append_object(list);
		loom__json_add_text(o, "metric", c->name);
		loom__json_add_number(o, "baseline", (double)c->baseline);
		loom__json_add_number(o, "variant", (double)c->variant);
		loom__json_add_text(o, "verdict", c->word);
		number(o, "effect", c->effect);
		number(o, "low", c->low);
		number(o, "high", c->high);
		number(o, "p", c->p);
		number(o, "p_holm", c->p_holm);
		number(o, "blocks", c->blocks);
	}
}

static void add_effects(cJSON *doc, const struct loom__view *view,
			const struct loom__report_settings *settings)
{
	const char *level[16];
	cJSON *list = loom__json_add_array(doc, "effects");
	for (size_t k = 0; view->variants > 1 && k < settings->metrics; k++)
		for (size_t f = 0; f < view->factors; f++) {
			size_t n = loom__effect_levels(view, f, level, LOOM__COUNT(level));
			for (size_t i = 1; i < n; i++) {
				struct loom__stats_interval r = {.at = NAN};
				size_t pairs =
				    loom__effect(view, settings->metric[k], f, level[0], level[i], &r);
				cJSON *o = loom__json_append_object(list);
				loom__json_add_text(o, "metric", view->metric[settings->metric[k]].name);
				loom__json_add_text(o, "factor", view->factor[f]);
				loom__json_add_text(o, "level", level[i]);
				loom__json_add_text(o, "against", level[0]);
				loom__json_add_number(o, "pairs", (double)pairs);
				number(o, "ratio", r.at);
				number(o, "low", pairs && !r.open ? r.low : NAN);
				number(o, "high", pairs && !r.open ? r.high : NAN);
			}
		}
}

void loom__report_summary(struct loom__text *out, const struct loom__view *view,
			  const struct loom__report_settings *settings)
{
	static const char *const kind[] = {"result", "compare", "sweep"};
	unsigned char *front = NULL;
	cJSON *doc = cJSON_CreateObject();
	loom__json_add_text(doc, "schema", "gpuloom.report/1");
	loom__json_add_text(doc, "of", kind[view->kind]);
	loom__json_add_text(doc, "title", view->title);
	if (settings->x != LOOM__NO_NAME && (front = loom__must(calloc(view->variants + 1, 1))) &&
	    !loom__view_front(view, settings->x, settings->y, front)) {
		cJSON *o = loom__json_add_object(doc, "pareto");
		loom__json_add_text(o, "x", view->metric[settings->x].name);
		loom__json_add_text(o, "y", view->metric[settings->y].name);
	}
	add_variants(doc, view, front);
	add_comparisons(doc, view);
	add_effects(doc, view, settings);
	char *json = loom__json_print(doc, 1);
	if (json)
		loom__text_add(out, "%s\n", json);
	else
		out->failed = 1;
	free(json);
	free(front);
	cJSON_Delete(doc);
}
