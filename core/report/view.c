/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double *loom__view_numbers(struct loom__view *view, size_t n)
{
	double *list = NULL;
	if (n > LOOM__VIEW_VALUES - view->values)
		view->pool.failed = 1;
	else
		list = loom__pool_get(&view->pool, n, sizeof(*list));
	for (size_t i = 0; list && i < n; i++)
		list[i] = NAN;
	view->values += list ? n : 0;
	return list;
}

void loom__view_rows(struct loom__view *view, struct loom__variant *v, size_t rows)
{
	v->order = loom__view_numbers(view, rows);
	v->start_ns = loom__view_numbers(view, rows);
	v->series = loom__pool_get(&view->pool, view->metrics, sizeof(*v->series));
	v->rows = view->pool.failed ? 0 : rows;
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

size_t loom__view_metric(struct loom__view *view, const char *name, const char *unit,
			 const char *better)
{
	size_t known = view->metric_names.count;
	size_t i = loom__names_find(&view->metric_names, name);
	if (i == LOOM__NO_NAME) {
		if (known == LOOM__VIEW_METRICS) {
			view->metrics_left_out++;
			return LOOM__NO_NAME;
		}
		if (!view->metric)
			view->metric =
			    loom__pool_get(&view->pool, LOOM__VIEW_METRICS, sizeof(*view->metric));
		if (!view->metric)
			return LOOM__NO_NAME;
		i = loom__names_add(&view->pool, &view->metric_names, name);
		if (i == LOOM__NO_NAME)
			return i;
		view->metric[i] = (struct loom__view_metric){view->metric_names.name[i], "", 0, 0};
		view->metrics = i + 1;
	}
	struct loom__view_metric *m = &view->metric[i];
	if (!*m->unit && *unit) {
		const char *copy = loom__pool_copy(&view->pool, unit);
		m->unit = copy ? copy : "";
	}
	if (!m->better)
		m->better = !strcmp(better, "more")   ? LOOM__MORE_IS_BETTER
			    : !strcmp(better, "less") ? LOOM__LESS_IS_BETTER
						      : LOOM__NEITHER;
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
	const char *copy = loom__pool_copy(&view->pool, number);
	return copy ? copy : "";
}

const char *loom__view_levels(struct loom__view *view, const struct loom__variant *v, int with_keys)
{
	struct loom__text t = {0};
	for (size_t f = 0; f < view->factors; f++)
		if (v->level && v->level[f]) {
			loom__text_add(&t, "%s", t.length ? ", " : "");
			if (with_keys)
				loom__text_add(&t, "%s=", view->factor[f]);
			loom__text_add(&t, "%s", v->level[f]);
		}
	const char *copy = loom__pool_copy(&view->pool, t.at ? t.at : "");
	loom__text_free(&t);
	return copy ? copy : "";
}

static void finish_series(struct loom__view *view, struct loom__series *s)
{
	s->sorted = loom__pool_get(&view->pool, s->rows, sizeof(double));
	for (size_t i = 0; s->sorted && i < s->rows; i++)
		if (isfinite(s->value[i]))
			s->sorted[s->n++] = s->value[i];
	if (!s->n)
		return;
	loom__stats_sort(s->sorted, s->n);
	if (loom__stats_quantile_ci(s->sorted, s->n, 0.5, 0.95, &s->median))
		s->n = 0;
	else
		s->median.at = loom__stats_quantile(s->sorted, s->n, 0.5);
}

static void finish(struct loom__view *view)
{
	for (size_t v = 0; v < view->variants; v++) {
		struct loom__variant *variant = &view->variant[v];
		for (size_t m = 0; variant->series && m < view->metrics; m++) {
			struct loom__series *s = &variant->series[m];
			finish_series(view, s);
			if (s->n && (s->sorted[0] != 0 || s->sorted[s->n - 1] != 0))
				view->metric[m].shown = 1;
		}
	}
}

static int check_kinds(const struct loom__doc *doc, size_t docs, struct loom_error *err)
{
	static const char *const name[] = {"result", "comparison", "sweep"};
	for (size_t i = 0; docs > 1 && i < docs; i++)
		if (doc[i].kind != LOOM__DOC_RESULT)
			return LOOM__FAIL(err, LOOM_EINVAL,
					  "'%s' is a %s: several results can share a report, a %s "
					  "has one of its own",
					  doc[i].path, name[doc[i].kind], name[doc[i].kind]);
	return 0;
}

int loom__view_create(const struct loom__doc *doc, size_t docs, struct loom__view *view,
		      struct loom_error *err)
{
	*view =
	    (struct loom__view){.kind = doc[0].kind, .doc = doc, .docs = docs, .head = doc[0].root};
	view->title = loom__json_text(view->head, "title");
	int rc = check_kinds(doc, docs, err);
	if (rc)
		return rc;
	if (view->kind == LOOM__DOC_RESULT)
		loom__view_add_results(view);
	else if (view->kind == LOOM__DOC_COMPARE)
		loom__view_add_compare(view);
	else
		loom__view_add_sweep(view);
	if (!view->pool.failed)
		finish(view);
	if (view->pool.failed) {
		rc = view->values > LOOM__VIEW_VALUES / 2
			 ? LOOM__FAIL(err, LOOM_EINVAL, "'%s' has too many samples for one report",
				      doc[0].path)
			 : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory for '%s'", doc[0].path);
		loom__view_free(view);
	}
	return rc;
}

void loom__view_free(struct loom__view *view)
{
	cJSON_Delete(view->own);
	loom__pool_free(&view->pool);
	*view = (struct loom__view){0};
}

enum loom__stats_better loom__view_better(const struct loom__view *view, size_t metric)
{
	return view->metric[metric].better == LOOM__MORE_IS_BETTER ? LOOM__STATS_MORE
								   : LOOM__STATS_LESS;
}

size_t loom__view_leading(const struct loom__view *view, const char *name)
{
	if (name)
		return loom__names_find(&view->metric_names, name);
	/* What the comparisons are about leads, then the first that can be better or worse. */
	for (size_t c = 0; c < view->comparisons; c++)
		if (view->compared[c].metric != LOOM__NO_NAME)
			return view->compared[c].metric;
	size_t first = LOOM__NO_NAME, any = LOOM__NO_NAME;
	for (size_t m = view->metrics; m-- > 0;) {
		any = view->metric[m].shown ? m : any;
		if (!view->metric[m].shown || !view->metric[m].better)
			continue;
		first = m;
	}
	return first != LOOM__NO_NAME ? first : any;
}

static int is_rate(const char *unit)
{
	size_t n = strlen(unit);
	return n > 2 && !strcmp(unit + n - 2, "/s");
}

int loom__view_pair(const struct loom__view *view, size_t *x, size_t *y)
{
	size_t lead = loom__view_leading(view, NULL);
	if (lead == LOOM__NO_NAME || !view->metric[lead].better || view->variants < 3)
		return 0;
	for (size_t m = 0; m < view->metrics; m++) {
		const struct loom__view_metric *a = &view->metric[lead], *b = &view->metric[m];
		if (m == lead || !b->shown || !b->better)
			continue;
		/* Time and the rate made from it say the same twice. */
		if ((is_rate(a->unit) && !strcmp(b->name, "seconds")) ||
		    (!strcmp(a->name, "seconds") && is_rate(b->unit)))
			continue;
		*x = lead;
		*y = m;
		return 1;
	}
	return 0;
}

static struct loom__stats_point point_of(const struct loom__series *x, const struct loom__series *y, int medians)
{
	if (medians)
		return (struct loom__stats_point){x->median.at, x->median.at, y->median.at, y->median.at};
	return (struct loom__stats_point){x->median.low, x->median.high, y->median.low, y->median.high};
}

int loom__view_front(const struct loom__view *view, size_t x, size_t y, unsigned char *front)
{
	struct loom__stats_point *point = calloc(view->variants + 1, sizeof(*point));
	size_t *who = calloc(view->variants + 1, sizeof(*who));
	unsigned char *part = calloc(view->variants + 1, 1);
	int rc = point && who && part ? 0 : LOOM_ENOMEM;
	memset(front, 0, view->variants);
	/* One that is on the front of the medians is on that of the intervals: its levels add up to ON. */
	for (int medians = 0; medians < 2 && !rc; medians++) {
		size_t n = 0;
		for (size_t v = 0; v < view->variants; v++) {
			const struct loom__series *s = view->variant[v].series;
			if (!s || !s[x].n || !s[y].n)
				continue;
			point[n] = point_of(&s[x], &s[y], medians);
			who[n++] = v;
		}
		if (n)
			rc = loom__stats_pareto(point, n, loom__view_better(view, x), loom__view_better(view, y), part);
		for (size_t i = 0; !rc && i < n; i++)
			front[who[i]] = (unsigned char)(front[who[i]] + part[i]);
	}
	free(point);
	free(who);
	free(part);
	return rc;
}

double loom__view_counter(const cJSON *worker, const char *counter, size_t row)
{
	const cJSON *item = loom__json_list(worker, counter);
	for (item = item ? item->child : NULL; item && row; row--)
		item = item->next;
	return loom__json_double(item);
}

size_t loom__view_typical(const struct loom__view *view, const struct loom__variant *v)
{
	size_t best = SIZE_MAX, m = loom__names_find(&view->metric_names, "seconds");
	if (m == LOOM__NO_NAME || !v->series || !v->series[m].n)
		return v->rows ? v->rows - 1 : SIZE_MAX;
	double middle = v->series[m].median.at, nearest = INFINITY;
	for (size_t i = 0; i < v->series[m].rows; i++) {
		double off = fabs(v->series[m].value[i] - middle);
		if (off < nearest) {
			nearest = off;
			best = i;
		}
	}
	return best;
}
