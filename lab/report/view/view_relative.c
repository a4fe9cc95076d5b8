/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a view of ratios to a base and of geometric means over a factor. Plots use this view if they have no axis for a
 * factor. */
#include <math.h>
#include <string.h>

#include "facts/must.h"
#include "report/report.h"

#define MOST 1000 /* limit on variants, because the time grows with the square of their number */

struct relative {
	const struct loom__view *from;
	const struct loom__report_settings *settings;
	struct loom__view *to;
	size_t base; /* factor that has the base as a level; LOOM__NO_NAME: no ratios */
};

/* Returns 1 if the levels of all factors except `but` are the same. */
static int alike(const struct loom__view *view, const struct loom__variant *a, const struct loom__variant *b,
		 size_t but)
{
	for (size_t f = 0; f < view->factors; f++)
		if (f != but && strcmp(a->level[f] ? a->level[f] : "", b->level[f] ? b->level[f] : "") != 0)
			return 0;
	return 1;
}

/* Returns the variant to which the ratio of v refers, or NULL. */
static const struct loom__variant *base_of(const struct relative *r, const struct loom__variant *v)
{
	for (size_t i = 0; i < r->from->variants; i++) {
		const struct loom__variant *b = &r->from->variant[i];
		if (b->level && b->level[r->base] && !strcmp(b->level[r->base], r->settings->base) &&
		    alike(r->from, v, b, r->base))
			return b;
	}
	return NULL;
}

static int is_inverse(const struct relative *r, size_t metric)
{
	return r->base != LOOM__NO_NAME && r->settings->show != LOOM__SHOW_RATIO && !loom__view_more(r->from, metric);
}

/* Returns the median of a metric, or its ratio to the base. NAN: not known. */
static double value_of(const struct relative *r, const struct loom__variant *v, size_t metric)
{
	const struct loom__variant *base = r->base == LOOM__NO_NAME ? NULL : base_of(r, v);
	double x = v->series && v->series[metric].n ? v->series[metric].median.at : NAN;
	if (r->base == LOOM__NO_NAME)
		return x;
	double to = base && base->series && base->series[metric].n ? base->series[metric].median.at : NAN;
	return is_inverse(r, metric) ? to / x : x / to;
}

/* Sets *s, the series of `v`, to the geometric mean over the levels of the averaged factor; other factors are as in
 * `v`. */
static void fill(const struct relative *r, const struct loom__variant *v, size_t metric, struct loom__series *s)
{
	double logs = 0, one = NAN;
	size_t n = 0;
	for (size_t i = 0; i < r->from->variants; i++) {
		const struct loom__variant *o = &r->from->variant[i];
		if (o != v &&
		    (r->settings->mean == LOOM__NO_NAME || !o->level || !alike(r->from, v, o, r->settings->mean)))
			continue;
		double x = value_of(r, o, metric);
		if (!(x > 0))
			continue;
		one = x;
		logs += log(x);
		n++;
	}
	if (!n)
		return;
	s->sorted = loom__arena_get(&r->to->arena, 1, sizeof(*s->sorted));
	s->value = s->sorted;
	s->sorted[0] = n == 1 ? one : exp(logs / (double)n);
	s->rows = s->n = 1;
	s->median = (struct loom__stats_interval){.at = s->sorted[0],
						  .low = s->sorted[0],
						  .high = s->sorted[0],
						  .open = LOOM__STATS_OPEN_LOW | LOOM__STATS_OPEN_HIGH};
}

static void name_metrics(const struct relative *r)
{
	struct loom__view *to = r->to;
	to->metric = loom__arena_get(&to->arena, to->metrics + 1, sizeof(*to->metric));
	for (size_t m = 0; m < to->metrics; m++) {
		struct loom__text name = {0};
		to->metric[m] = r->from->metric[m];
		if (r->base == LOOM__NO_NAME)
			continue;
		loom__text_add(&name, "%s over %s", r->from->metric[m].name, r->settings->base);
		to->metric[m].name = loom__arena_copy(&to->arena, loom__must_text(&name));
		to->metric[m].unit = "";
		if (is_inverse(r, m))
			to->metric[m].better = LOOM_BETTER_MORE;
		loom__text_free(&name);
	}
}

/* Returns 1 if variant i is the first of the variants that are merged into one mean. This variant stands for all of
 * them. */
static int is_first(const struct relative *r, size_t i)
{
	for (size_t k = 0; k < i && r->settings->mean != LOOM__NO_NAME; k++)
		if (r->from->variant[k].level &&
		    alike(r->from, &r->from->variant[k], &r->from->variant[i], r->settings->mean))
			return 0;
	return 1;
}

int loom__view_relative(const struct loom__view *view, const struct loom__report_settings *settings,
			struct loom__view *out)
{
	struct relative r = {view, settings, out, LOOM__NO_NAME};
	const size_t metric[] = {settings->x, settings->y};
	if (settings->show != LOOM__SHOW_VALUE)
		r.base = loom__report_base_factor(view, settings);
	if ((settings->mean == LOOM__NO_NAME && r.base == LOOM__NO_NAME) || view->variants > MOST)
		return 0;
	*out = *view;
	out->arena = (struct loom__arena){0};
	out->own = NULL;
	out->variants = 0;
	out->variant = loom__arena_get(&out->arena, view->variants + 1, sizeof(*out->variant));
	name_metrics(&r);
	for (size_t i = 0; i < view->variants; i++) {
		struct loom__variant *v = &out->variant[out->variants];
		if (!view->variant[i].level || !is_first(&r, i))
			continue;
		*v = view->variant[i];
		v->series = loom__arena_get(&out->arena, view->metrics + 1, sizeof(*v->series));
		for (size_t k = 0; k < LOOM__COUNT(metric); k++)
			if (metric[k] != LOOM__NO_NAME)
				fill(&r, &view->variant[i], metric[k], &v->series[metric[k]]);
		v->level = loom__arena_get(&out->arena, view->factors + 1, sizeof(*v->level));
		for (size_t f = 0; f < view->factors; f++)
			v->level[f] = f == settings->mean ? NULL : view->variant[i].level[f];
		v->label = loom__view_levels(out, v, 0);
		v->name = v->label;
		out->variants++;
	}
	return 1;
}
