/* SPDX-License-Identifier: Apache-2.0 */
/* Computes main effects: the change from one factor while all other factors stay the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot/plot.h"

size_t loom__effect_levels(const struct loom__view *view, size_t factor, const char **level, size_t most)
{
	struct loom__arena arena = {0};
	struct loom__names own = {0}, listed = {0};
	const cJSON *value;
	for (size_t v = 0; v < view->variants; v++)
		if (view->variant[v].level && view->variant[v].level[factor])
			loom__names_add(&arena, &own, view->variant[v].level[factor]);
	/* The order is that of the sweep. The first level is the reference of the effects. */
	cJSON_ArrayForEach(value, loom__view_values(view, factor))
	{
		const char *text = loom__json_string(value);
		if (listed.count < most && *text && loom__names_find(&own, text) != LOOM__NO_NAME)
			level[loom__names_add(&arena, &listed, text)] = text;
	}
	for (size_t v = 0; v < view->variants && listed.count < most; v++)
		if (view->variant[v].level && view->variant[v].level[factor])
			level[loom__names_add(&arena, &listed, view->variant[v].level[factor])] =
			    view->variant[v].level[factor];
	size_t n = listed.count;
	loom__arena_free(&arena);
	return n;
}

/* Sets `key` to the levels of all factors but one. The key includes the lengths of the levels, to distinguish "a","bc"
 * from "ab","c". */
static void others(struct loom__text *key, const struct loom__view *view,
		   const struct loom__variant *v, size_t factor)
{
	key->length = 0;
	loom__text_put(key, "", 0);
	for (size_t f = 0; f < view->factors; f++)
		if (f != factor && v->level[f])
			loom__text_add(key, "%zu %zu %s", f, strlen(v->level[f]), v->level[f]);
}

static double median_of(const struct loom__variant *v, size_t metric)
{
	const struct loom__series *s = v->series ? &v->series[metric] : NULL;
	return s && s->n && s->median.at > 0 ? s->median.at : NAN;
}

size_t loom__effect(const struct loom__view *view, size_t metric, size_t factor, const char *base,
		    const char *level, struct loom__stats_interval *ratio)
{
	struct loom__arena arena = {0};
	struct loom__names names = {0};
	struct loom__text key = {0};
	double *first = loom__arena_get(&arena, view->variants, sizeof(*first));
	double *d = loom__arena_get(&arena, view->variants, sizeof(*d));
	size_t n = 0;
	for (int pass = 0; first && d && pass < 2; pass++)
		for (size_t i = 0; i < view->variants; i++) {
			const struct loom__variant *v = &view->variant[i];
			const char *own = v->level ? v->level[factor] : NULL;
			if (!own || strcmp(own, pass ? level : base) || isnan(median_of(v, metric)))
				continue;
			others(&key, view, v, factor);
			if (!key.at)
				continue;
			size_t at = pass ? loom__names_find(&names, key.at)
					 : loom__names_add(&arena, &names, key.at);
			if (at == LOOM__NO_NAME)
				continue;
			if (pass)
				d[n++] = log(median_of(v, metric) / first[at]);
			else
				first[at] = median_of(v, metric);
		}
	if (n)
		loom__stats_sort(d, n);
	if (!n || loom__stats_quantile_ci(d, n, 0.5, 0.95, ratio)) {
		n = 0;
	} else {
		ratio->at = exp(loom__stats_quantile(d, n, 0.5));
		ratio->low = exp(ratio->low);
		ratio->high = exp(ratio->high);
	}
	loom__text_free(&key);
	loom__arena_free(&arena);
	return n;
}
