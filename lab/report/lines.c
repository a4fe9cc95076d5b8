/* SPDX-License-Identifier: Apache-2.0 */
#include "report/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot.h"
#include "facts/must.h"

/* Parses "64", "64k" or "64KiB" as a number, with the suffixes that confs accept. */
static int number_of(const char *text, double *x)
{
	static const struct {
		const char *name;
		double factor;
	} unit[] = {{"", 1},	   {"k", 1024},	   {"m", 0x1p20},  {"g", 0x1p30},   {"KiB", 1024}, {"MiB", 0x1p20},
		    {"GiB", 0x1p30}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},     {"%", 0.01}};
	const char *end;
	if (loom__read_double(text, &end, x))
		return 0;
	for (size_t i = 0; i < LOOM__COUNT(unit); i++)
		if (loom__same(end, unit[i].name)) {
			*x *= unit[i].factor;
			return 1;
		}
	return 0;
}

static const char **levels_of(struct loom__pool *pool, const struct loom__view *view, size_t factor, size_t *n)
{
	const char **level = loom__pool_get(pool, LOOM__LINES_LEVELS, sizeof(*level));
	*n = 1;
	level[0] = "";
	if (factor != LOOM__NO_NAME)
		*n = loom__effect_levels(view, factor, level, LOOM__LINES_LEVELS);
	return level;
}

static int in(const struct loom__variant *v, size_t factor, const char *level)
{
	return factor == LOOM__NO_NAME || (v->level && v->level[factor] && !strcmp(v->level[factor], level));
}

/* Merges the samples of all configurations at this point. */
static void fill(const struct loom__view *view, const struct loom__report_settings *settings, struct loom__lines *l,
		struct loom__lines_point *p)
{
	double *all = NULL;
	size_t room = 0;
	for (size_t v = 0; v < view->variants; v++) {
		const struct loom__variant *variant = &view->variant[v];
		const struct loom__series *s = variant->series ? &variant->series[l->metric] : NULL;
		if (!s || !s->n || !in(variant, settings->x_factor, l->x[p->at]) ||
		    !in(variant, settings->lines, l->line[p->line]) ||
		    !in(variant, settings->facet, l->facet[p->facet]))
			continue;
		all = loom__must(realloc(all, (room + s->n) * sizeof(*all)));
		memcpy(all + room, s->sorted, s->n * sizeof(*all));
		room += s->n;
		p->configs++;
	}
	struct loom__stats_interval i;
	p->n = room;
	if (room) {
		loom__stats_sort(all, room);
		loom__stats_quantile_ci(all, room, 0.5, 0.95, &i);
		p->median = loom__stats_quantile(all, room, 0.5);
		p->least = all[0];
		p->most = all[room - 1];
		p->open = i.open != 0;
		p->low = p->open ? p->least : i.low;
		p->high = p->open ? p->most : i.high;
	}
	free(all);
}

/* Converts to ratios over the line's first point, whose own spread is not included. */
static void relate(const struct loom__view *view, const struct loom__report_settings *settings,
		   const struct loom__lines *l, const struct loom__lines_point *base, struct loom__lines_point *p)
{
	int more = loom__view_more(view, l->metric);
	double to = base->median,
	       share = settings->show == LOOM__SHOW_EFFICIENCY && l->numbers && p->x > 0 ? base->x / p->x : 1;
	double *figure[] = {&p->median, &p->low, &p->high, &p->least, &p->most};
	for (size_t i = 0; i < LOOM__COUNT(figure); i++)
		*figure[i] = share * (more ? *figure[i] / to : to / *figure[i]);
	if (more)
		return;
	double t = p->low;
	p->low = p->high;
	p->high = t;
	t = p->least;
	p->least = p->most;
	p->most = t;
}

static int ascending(const void *a, const void *b)
{
	double x, y;
	number_of(*(const char *const *)a, &x);
	number_of(*(const char *const *)b, &y);
	return (x > y) - (x < y);
}

static void relate_all(const struct loom__view *view, const struct loom__report_settings *settings,
		       struct loom__lines *l)
{
	struct loom__lines_point base = {0};
	for (size_t i = 0; i < l->points; i++) {
		struct loom__lines_point *p = &l->point[i];
		if (!base.n || base.line != p->line || base.facet != p->facet)
			base = *p;
		relate(view, settings, l, &base, p);
	}
}

void loom__lines_create(const struct loom__view *view, const struct loom__report_settings *settings, size_t metric,
		       struct loom__lines *out)
{
	struct loom__lines l = {.metric = metric, .numbers = 1, .lo = INFINITY, .hi = -INFINITY};
	*out = l;
	if (settings->x_factor == LOOM__NO_NAME || metric == LOOM__NO_NAME)
		return;
	l.x = levels_of(&l.pool, view, settings->x_factor, &l.xs);
	l.line = levels_of(&l.pool, view, settings->lines, &l.lines);
	l.facet = levels_of(&l.pool, view, settings->facet, &l.facets);
	l.point = loom__pool_get(&l.pool, l.xs * l.lines * l.facets, sizeof(*l.point));
	double x;
	for (size_t i = 0; i < l.xs; i++)
		l.numbers &= number_of(l.x[i], &x);
	if (l.numbers)
		qsort(l.x, l.xs, sizeof(*l.x), ascending);
	for (size_t f = 0; f < l.facets; f++)
		for (size_t k = 0; k < l.lines; k++)
			for (size_t i = 0; i < l.xs; i++) {
				struct loom__lines_point *p = &l.point[l.points];
				*p = (struct loom__lines_point){.facet = f, .line = k, .at = i, .x = (double)i};
				if (l.numbers)
					number_of(l.x[i], &p->x);
				fill(view, settings, &l, p);
				l.points += p->n > 0;
			}
	if (settings->show != LOOM__SHOW_VALUE)
		relate_all(view, settings, &l);
	for (size_t i = 0; i < l.points; i++) {
		l.lo = fmin(l.lo, l.point[i].least);
		l.hi = fmax(l.hi, l.point[i].most);
		l.pooled = l.point[i].configs > l.pooled ? l.point[i].configs : l.pooled;
	}
	if (!isfinite(l.hi - l.lo)) /* the divisor is 0 */
		l.points = 0;
	*out = l;
}

void loom__lines_free(struct loom__lines *l)
{
	loom__pool_free(&l->pool);
	*l = (struct loom__lines){0};
}

void loom__lines_name(const struct loom__view *view, const struct loom__report_settings *settings,
		      const struct loom__lines *l, struct loom__text *out)
{
	if (settings->show != LOOM__SHOW_VALUE)
		loom__text_add(out, "%s in %.60s over %s = %.40s", loom__show_name[settings->show],
			       view->metric[l->metric].name, view->factor[settings->x_factor], l->x[0]);
	else
		loom__text_add(out, "%.60s", view->metric[l->metric].name);
}
