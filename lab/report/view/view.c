/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/view.h"
#include "facts/must.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void finish_series(struct loom__view *view, struct loom__series *s)
{
	s->n = 0;
	s->sorted = loom__arena_get(&view->arena, s->rows, sizeof(double));
	for (size_t i = 0; i < s->rows; i++)
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

void loom__view_finish(struct loom__view *view, size_t m)
{
	for (size_t v = 0; v < view->variants; v++) {
		struct loom__variant *variant = &view->variant[v];
		struct loom__series *s = &variant->series[m];
		finish_series(view, s);
		if (s->n && (s->sorted[0] != 0 || s->sorted[s->n - 1] != 0))
			view->metric[m].shown = 1;
	}
}

static int check_kinds(const struct loom__doc *doc, size_t docs, struct loom_error *err)
{
	static const char *const name[] = {"result", "comparison", "sweep"};
	static const char *const same[] = {"workload", "factors", "constraints"};
	for (size_t i = 1; doc[0].kind == LOOM__DOC_SWEEP && i < docs && doc[i].kind == LOOM__DOC_SWEEP; i++)
		for (size_t k = 0; k < LOOM__COUNT(same); k++) {
			const cJSON *a = cJSON_GetObjectItemCaseSensitive(doc[0].root, same[k]);
			const cJSON *b = cJSON_GetObjectItemCaseSensitive(doc[i].root, same[k]);
			if ((a || b) && !cJSON_Compare(a, b, 1))
				return LOOM__FAIL(err, LOOM_EINVAL,
						  "'%s' and '%s' are not shards of one sweep: they differ in %s",
						  doc[0].path, doc[i].path, same[k]);
		}
	for (size_t i = 0; docs > 1 && i < docs; i++)
		if (doc[i].kind != LOOM__DOC_RESULT &&
		    (doc[i].kind != LOOM__DOC_SWEEP || doc[0].kind != LOOM__DOC_SWEEP))
			return LOOM__FAIL(
			    err, LOOM_EINVAL,
			    "'%s' is a %s: several results, or shards of one sweep, can share a report; a %s "
			    "needs a separate one",
			    doc[i].path, name[doc[i].kind], name[doc[i].kind]);
	return 0;
}

int loom__view_create(const struct loom__doc *doc, size_t docs, struct loom__view *view, struct loom_error *err)
{
	*view = (struct loom__view){.kind = doc[0].kind, .doc = doc, .docs = docs, .head = doc[0].root};
	view->title = loom__json_text(view->head, "title");
	view->caption = "";
	int rc = check_kinds(doc, docs, err);
	if (rc)
		return rc;
	if (view->kind == LOOM__DOC_RESULT)
		loom__view_add_results(view);
	else if (view->kind == LOOM__DOC_COMPARE)
		loom__view_add_compare(view);
	else
		loom__view_add_sweep(view);
	if (view->clash) {
		rc = LOOM__FAIL(err, LOOM_EINVAL, "'%.200s': %s", doc[0].path, view->clash);
		loom__view_free(view);
		return rc;
	}
	if (!view->too_large) {
		for (size_t m = 0; m < view->metrics; m++)
			loom__view_finish(view, m);
		return 0;
	}
	loom__view_free(view);
	return LOOM__FAIL(err, LOOM_EINVAL, "'%s' has too many samples, or variants times metrics, for one report",
			  doc[0].path);
}

void loom__view_free(struct loom__view *view)
{
	cJSON_Delete(view->own);
	loom__arena_free(&view->arena);
	*view = (struct loom__view){0};
}

int loom__view_more(const struct loom__view *view, size_t metric)
{
	return view->metric[metric].better == LOOM_BETTER_MORE;
}

struct order {
	const struct loom__view *view;
	size_t metric;
};

static int better_first(const void *a, const void *b, void *arg)
{
	const struct order *o = arg;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	double x = o->view->variant[i].series[o->metric].median.at;
	double y = o->view->variant[k].series[o->metric].median.at;
	if (x == y)
		return (i > k) - (i < k);
	return (x > y) == loom__view_more(o->view, o->metric) ? -1 : 1;
}

size_t *loom__view_order(const struct loom__view *view, size_t metric, int sorted, size_t *n)
{
	struct order by = {view, metric};
	size_t *order = loom__must(calloc(view->variants + 1, sizeof(*order)));
	*n = 0;
	for (size_t i = 0; i < view->variants; i++)
		if (view->variant[i].series[metric].n)
			order[(*n)++] = i;
	if (sorted)
		qsort_r(order, *n, sizeof(*order), better_first, &by);
	return order;
}

size_t loom__view_leading(const struct loom__view *view, const char *name)
{
	if (name)
		return loom__names_find(&view->metric_names, name);
	/* The metric of the comparisons leads. If there are no comparisons, the first metric with a direction leads. */
	for (size_t c = 0; c < view->comparisons; c++)
		if (view->compared[c].metric != LOOM__NO_NAME)
			return view->compared[c].metric;
	size_t first = LOOM__NO_NAME, any = LOOM__NO_NAME;
	for (size_t m = view->metrics; m-- > 0;) {
		any = view->metric[m].shown ? m : any;
		first = view->metric[m].shown && view->metric[m].better ? m : first;
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
		/* A time and the rate derived from it contain the same information. */
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
	struct loom__stats_point *point = loom__must(calloc(view->variants + 1, sizeof(*point)));
	size_t *who = loom__must(calloc(view->variants + 1, sizeof(*who)));
	unsigned char *part = loom__must(calloc(view->variants + 1, 1));
	int rc = 0;
	memset(front, 0, view->variants);
	/* front[v] is the number of fronts that contain v. There are two fronts: one by the intervals, and one by the
	 * medians. A point on the front of the medians is also on the front of the intervals, so 2 means
	 * LOOM__FRONT_ON. */
	for (int medians = 0; medians < 2 && !rc; medians++) {
		size_t n = 0;
		for (size_t v = 0; v < view->variants; v++) {
			const struct loom__series *s = view->variant[v].series;
			if (!s[x].n || !s[y].n)
				continue;
			point[n] = point_of(&s[x], &s[y], medians);
			who[n++] = v;
		}
		if (n)
			rc =
			    loom__stats_pareto(point, n, loom__view_more(view, x) ? LOOM__STATS_MORE : LOOM__STATS_LESS,
					       loom__view_more(view, y) ? LOOM__STATS_MORE : LOOM__STATS_LESS, part);
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
	if (m == LOOM__NO_NAME || !v->series[m].n)
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
