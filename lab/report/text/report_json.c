/* SPDX-License-Identifier: Apache-2.0 */
/* Writes gpuloom.report/1: the content of all tables and plots, for programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/view/lines.h"
#include "report/plot/plot.h"
#include "report/report.h"
#include "facts/must.h"

static void numbers(cJSON *o, const char *key, const double *v, size_t n)
{
	cJSON *list = loom__json_add_array(o, key);
	for (size_t i = 0; i < n; i++)
		loom__json_append(list, isfinite(v[i]) ? cJSON_CreateNumber(v[i]) : cJSON_CreateNull());
}

static void texts(cJSON *o, const char *key, const char *const *text, size_t n)
{
	cJSON *list = loom__json_add_array(o, key);
	for (size_t i = 0; i < n; i++)
		loom__json_append_text(list, text[i]);
}

static const char *factor_name(const struct loom__view *view, size_t factor)
{
	return factor == LOOM__NO_NAME ? "" : view->factor[factor];
}

static cJSON *metric(const struct loom__view_metric *m, const struct loom__series *s)
{
	cJSON *o = cJSON_CreateObject();
	loom__json_add_text(o, "unit", m->unit);
	loom__json_add_text(o, "better", loom__better_name(m->better));
	loom__json_add_number(o, "samples", (double)s->n);
	loom__json_add_finite(o, "median", s->median.at);
	loom__json_add_finite(o, "low", s->median.open & LOOM__STATS_OPEN_LOW ? NAN : s->median.low);
	loom__json_add_finite(o, "high", s->median.open & LOOM__STATS_OPEN_HIGH ? NAN : s->median.high);
	loom__json_add_finite(o, "lowest", s->sorted[0]);
	loom__json_add_finite(o, "quartile_1", loom__stats_quantile(s->sorted, s->n, 0.25));
	loom__json_add_finite(o, "quartile_3", loom__stats_quantile(s->sorted, s->n, 0.75));
	loom__json_add_finite(o, "highest", s->sorted[s->n - 1]);
	numbers(o, "values", s->value, s->rows);
	return o;
}

/* Adds the counters of workers in the typical sample, which the plot of workers shows. */
static void add_workers(cJSON *o, const struct loom__view *view, const struct loom__variant *v)
{
	static const char *const counter[] = {"begin_ns", "end_ns",    "idle_ns",   "last_task_ns",
					      "executed", "stolen_in", "stolen_out"};
	const cJSON *worker, *workers = loom__json_list(v->result, "workers");
	size_t row = workers ? loom__view_typical(view, v) : SIZE_MAX;
	if (row == SIZE_MAX)
		return;
	loom__json_add_number(o, "typical", (double)row);
	cJSON *list = loom__json_add_array(o, "workers");
	cJSON_ArrayForEach(worker, workers)
	{
		cJSON *w = loom__json_append_object(list);
		loom__json_add_finite(w, "worker", loom__json_number(worker, "worker"));
		for (size_t k = 0; k < LOOM__COUNT(counter); k++)
			loom__json_add_finite(w, counter[k], loom__view_counter(worker, counter[k], row));
	}
}

static const char *const front_name[] = {"off", "near", "on"};

static void add_variants(cJSON *doc, const struct loom__view *view, const unsigned char *front)
{
	cJSON *list = loom__json_add_array(doc, "variants");
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		cJSON *o = loom__json_append_object(list), *values, *metrics;
		loom__json_add_text(o, "label", v->label);
		loom__json_add_text(o, "name", v->name);
		loom__json_add_text(o, "status", v->status);
		loom__json_add_text(o, "note", v->note);
		values = loom__json_add_object(o, "values");
		for (size_t f = 0; f < view->factors; f++)
			if (v->level && v->level[f])
				loom__json_add_text(values, view->factor[f], v->level[f]);
		metrics = loom__json_add_object(o, "metrics");
		for (size_t m = 0; v->series && m < view->metrics; m++)
			if (v->series[m].n)
				loom__json_add(metrics, view->metric[m].name, metric(&view->metric[m], &v->series[m]));
		if (front)
			loom__json_add_text(o, "front", front_name[front[i]]);
		loom__json_add_number(o, "warmups", (double)v->warmups);
		numbers(o, "order", v->order, v->rows);
		numbers(o, "start_ns", v->start_ns, v->rows);
		add_workers(o, view, v);
		if (v->result == view->head) /* then `about` has these parts */
			continue;
		loom__json_add_copy(o, "config", loom__json_object(v->result, "config"));
		loom__json_add_copy(o, "plugins", loom__json_list(v->result, "plugins"));
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
		loom__json_add_finite(o, "effect", c->effect);
		loom__json_add_finite(o, "low", c->low);
		loom__json_add_finite(o, "high", c->high);
		loom__json_add_finite(o, "p", c->p);
		loom__json_add_finite(o, "p_holm", c->p_holm);
		loom__json_add_finite(o, "blocks", c->blocks);
		loom__json_add_text(o, "better", loom__better_name(c->better));
		loom__json_add_finite(o, "margin", c->margin);
		loom__json_add_finite(o, "more_blocks", c->more_blocks);
		loom__json_add_text(o, "notes", c->notes);
		numbers(o, "ratios", c->ratio, c->ratios);
	}
}

/* Adds the points of lines, bars and heat maps, for each plotted metric. */
static void add_lines(cJSON *doc, const struct loom__view *view, const struct loom__report_settings *settings)
{
	cJSON *list = loom__json_add_array(doc, "lines");
	for (size_t k = 0; k < settings->metrics; k++) {
		struct loom__lines l;
		struct loom__text title = {0};
		loom__lines_create(view, settings, settings->metric[k], &l);
		cJSON *o = l.points ? loom__json_append_object(list) : NULL, *points;
		if (l.points) {
			loom__lines_name(view, settings, &l, &title);
			loom__json_add_text(o, "metric", view->metric[l.metric].name);
			loom__json_add_text(o, "title", loom__must_text(&title));
			texts(o, "x", l.x, l.xs);
			texts(o, "lines", l.line, l.lines);
			texts(o, "panels", l.facet, l.facets);
			loom__json_add_number(o, "pooled", (double)l.pooled);
			points = loom__json_add_array(o, "points");
		}
		for (size_t i = 0; i < l.points; i++) {
			const struct loom__lines_point *p = &l.point[i];
			cJSON *point = loom__json_append_object(points);
			loom__json_add_text(point, "panel", l.facet[p->facet]);
			loom__json_add_text(point, "line", l.line[p->line]);
			loom__json_add_text(point, "x", l.x[p->at]);
			loom__json_add_finite(point, "median", p->median);
			loom__json_add_finite(point, "low", p->open ? NAN : p->low);
			loom__json_add_finite(point, "high", p->open ? NAN : p->high);
			loom__json_add_finite(point, "lowest", p->least);
			loom__json_add_finite(point, "highest", p->most);
			loom__json_add_number(point, "samples", (double)p->n);
			if (!isnan(p->paper_low)) {
				loom__json_add_finite(point, "paper_low", p->paper_low);
				loom__json_add_finite(point, "paper_high", p->paper_high);
			}
		}
		loom__text_free(&title);
		loom__lines_free(&l);
	}
}

/* Adds the Pareto front of ratios and geometric means, which the plot shows if the settings ask for these. */
static void add_relative(cJSON *pareto, const struct loom__view *view, const struct loom__report_settings *settings)
{
	struct loom__view r;
	if (!loom__view_relative(view, settings, &r))
		return;
	unsigned char *front = loom__must(calloc(r.variants + 1, 1));
	cJSON *list = loom__json_add_array(pareto, "points");
	int failed = loom__view_front(&r, settings->x, settings->y, front);
	for (size_t i = 0; !failed && i < r.variants; i++) {
		const struct loom__series *x = &r.variant[i].series[settings->x],
					  *y = &r.variant[i].series[settings->y];
		if (!x->n || !y->n)
			continue;
		cJSON *o = loom__json_append_object(list);
		loom__json_add_text(o, "label", r.variant[i].label);
		loom__json_add_finite(o, "x", x->median.at);
		loom__json_add_finite(o, "y", y->median.at);
		loom__json_add_text(o, "front", front_name[front[i]]);
	}
	free(front);
	loom__view_free(&r);
}

static void add_settings(cJSON *doc, const struct loom__view *view, const struct loom__report_settings *settings)
{
	cJSON *list = loom__json_add_array(doc, "metrics"), *o = loom__json_add_object(doc, "settings");
	for (size_t m = 0; m < view->metrics; m++) {
		cJSON *about = loom__json_append_object(list);
		loom__json_add_text(about, "name", view->metric[m].name);
		loom__json_add_text(about, "unit", view->metric[m].unit);
		loom__json_add_text(about, "better", loom__better_name(view->metric[m].better));
		loom__json_add_bool(about, "shown", view->metric[m].shown);
	}
	texts(doc, "factors", view->factor, view->factors);
	list = loom__json_add_array(o, "metric");
	for (size_t k = 0; k < settings->metrics; k++)
		loom__json_append_text(list, view->metric[settings->metric[k]].name);
	loom__json_add_text(o, "x", factor_name(view, settings->x_factor));
	loom__json_add_text(o, "lines", factor_name(view, settings->lines));
	loom__json_add_text(o, "facet", factor_name(view, settings->facet));
	loom__json_add_text(o, "mean", factor_name(view, settings->mean));
	loom__json_add_text(o, "show", loom__show_name[settings->show]);
	loom__json_add_text(o, "base", settings->base ? settings->base : "");
	loom__json_add_text(o, "axes", loom__axes_name[settings->log]);
}

/* Copies what the head of the document says of the run. Its parts are as the document has them. */
static void add_about(cJSON *doc, const struct loom__view *view)
{
	static const char *const part[] = {"command", "started", "status", "error",   "warnings",   "noise",
					   "quiet",   "gate",    "config", "plugins", "environment"};
	cJSON *o = loom__json_add_object(doc, "about");
	for (size_t i = 0; i < LOOM__COUNT(part); i++)
		loom__json_add_copy(o, part[i], cJSON_GetObjectItemCaseSensitive(view->head, part[i]));
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
	loom__json_add_text(doc, "caption", view->caption);
	add_settings(doc, view, settings);
	if (settings->x != LOOM__NO_NAME && (front = loom__must(calloc(view->variants + 1, 1))) &&
	    !loom__view_front(view, settings->x, settings->y, front)) {
		cJSON *o = loom__json_add_object(doc, "pareto");
		loom__json_add_text(o, "x", view->metric[settings->x].name);
		loom__json_add_text(o, "y", view->metric[settings->y].name);
		add_relative(o, view, settings);
	}
	add_variants(doc, view, front);
	add_comparisons(doc, view);
	add_lines(doc, view, settings);
	add_about(doc, view);
	char *json = loom__json_print(doc, 1);
	if (json)
		loom__text_add(out, "%s\n", json);
	else
		out->failed = 1;
	free(json);
	free(front);
	cJSON_Delete(doc);
}
