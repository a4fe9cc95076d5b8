/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot/plot.h"
#include "facts/must.h"

/* Parses the value of an option as a number, with the suffixes that confs accept: "64", "64k", "64KiB". Returns 1 on
 * success. */
static int number_of(const char *text, double *x)
{
	static const struct {
		const char *name;
		double factor;
	} unit[] = {{"", 1},         {"k", 1024},  {"m", 0x1p20}, {"g", 0x1p30}, {"KiB", 1024}, {"MiB", 0x1p20},
		    {"GiB", 0x1p30}, {"ns", 1e-9}, {"us", 1e-6},  {"ms", 1e-3},  {"s", 1},      {"%", 0.01}};
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

/* The configurations at each place of the grid facet x line x x. A place can have several, if other factors vary. */
struct grid {
	size_t *first;   /* [places + 1] where the configurations of a place begin in `variant` */
	size_t *variant; /* numbers of variants that have samples of the metric */
};

static size_t place(const struct loom__lines *l, size_t facet, size_t line, size_t at)
{
	return (facet * l->lines + line) * l->xs + at;
}

static size_t place_of(const struct loom__lines *l, const struct loom__lines_point *p)
{
	return place(l, p->facet, p->line, p->at);
}

static struct loom__names index_of(struct loom__arena *arena, const char **level, size_t n)
{
	struct loom__names index = {0};
	for (size_t i = 0; i < n; i++)
		loom__names_add(arena, &index, level[i]);
	return index;
}

/* Returns the number of the variant's level of the factor, 0 if there is no such factor, LOOM__NO_NAME if it has none.
 */
static size_t level_of(const struct loom__variant *v, size_t factor, const struct loom__names *index)
{
	if (factor == LOOM__NO_NAME)
		return 0;
	return v->level && v->level[factor] ? loom__names_find(index, v->level[factor]) : LOOM__NO_NAME;
}

/* Lists the levels of a factor. Levels without samples, such as a program that was not installed, would be empty places
 * in a plot. */
static const char **levels_of(struct loom__arena *arena, const struct loom__view *view, size_t factor, size_t *n)
{
	const char **level = loom__arena_get(arena, LOOM__LINES_LEVELS, sizeof(*level));
	unsigned char used[LOOM__LINES_LEVELS] = {0};
	size_t all = 1;
	level[0] = "";
	if (factor != LOOM__NO_NAME)
		all = loom__factor_levels(view, factor, level, LOOM__LINES_LEVELS);
	struct loom__names index = index_of(arena, level, all);
	for (size_t i = 0; i < view->variants; i++) {
		size_t k = view->variant[i].rows ? level_of(&view->variant[i], factor, &index) : LOOM__NO_NAME;
		if (k != LOOM__NO_NAME)
			used[k] = 1;
	}
	*n = 0;
	for (size_t i = 0; i < all; i++)
		if (used[i])
			level[(*n)++] = level[i];
	*n = *n ? *n : 1;
	return level;
}

/* Sorts the configurations by their places: counts them in one pass, and writes them in a second one. */
static void sort_into(const struct loom__view *view, const struct loom__report_settings *settings,
		      struct loom__lines *l, struct grid *g)
{
	const size_t factor[] = {settings->facet, settings->lines, settings->x_factor};
	const struct loom__names index[] = {index_of(&l->arena, l->facet, l->facets),
					    index_of(&l->arena, l->line, l->lines),
					    index_of(&l->arena, l->x, l->xs - (size_t)l->mean_x)};
	size_t places = l->xs * l->lines * l->facets;
	g->first = loom__arena_get(&l->arena, places + 2, sizeof(*g->first));
	g->variant = loom__arena_get(&l->arena, view->variants * (l->mean_x ? 2 : 1), sizeof(*g->variant));
	for (int pass = 0; pass < 2; pass++) {
		/* In the second pass first[place + 1] is where the next configuration of the place belongs. */
		for (size_t i = 0; pass && i < places; i++)
			g->first[i + 2] += g->first[i + 1];
		for (size_t i = 0; i < view->variants; i++) {
			const struct loom__variant *v = &view->variant[i];
			size_t at[LOOM__COUNT(factor)];
			for (size_t k = 0; k < LOOM__COUNT(factor); k++)
				at[k] = level_of(v, factor[k], &index[k]);
			if (!v->series || !v->series[l->metric].n || at[0] == LOOM__NO_NAME || at[1] == LOOM__NO_NAME)
				continue;
			const size_t x[] = {at[2], l->mean_x ? l->xs - 1 : LOOM__NO_NAME}; /* the mean has all x */
			for (size_t k = 0; k < LOOM__COUNT(x); k++) {
				size_t to = x[k] == LOOM__NO_NAME ? 0 : place(l, at[0], at[1], x[k]);
				if (x[k] == LOOM__NO_NAME)
					continue;
				if (pass)
					g->variant[g->first[to + 1]++] = i;
				else
					g->first[to + 2]++;
			}
		}
	}
}

/* Sets the values of a point from the n samples of all its configurations. Sorts all[n]. */
static void merge(double *all, size_t n, struct loom__lines_point *p)
{
	struct loom__stats_interval i;
	loom__stats_sort(all, n);
	loom__stats_quantile_ci(all, n, 0.5, 0.95, &i);
	p->median = loom__stats_quantile(all, n, 0.5);
	p->least = all[0];
	p->most = all[n - 1];
	p->open = i.open != 0;
	p->low = p->open ? p->least : i.low;
	p->high = p->open ? p->most : i.high;
}

/* Computes a point: from the samples of all configurations at this point, or as the geometric mean of the medians of
 * these configurations. */
static void fill(const struct loom__view *view, const struct loom__report_settings *settings,
		 const struct loom__lines *l, const struct grid *g, struct loom__lines_point *p)
{
	int mean = settings->mean != LOOM__NO_NAME &&
		   (settings->mean != settings->x_factor
			? settings->mean != settings->lines && settings->mean != settings->facet
			: l->mean_x && p->at + 1 == l->xs);
	double *all = NULL, logs = 0;
	size_t room = 0;
	for (size_t i = g->first[place_of(l, p)]; i < g->first[place_of(l, p) + 1]; i++) {
		const struct loom__series *s = &view->variant[g->variant[i]].series[l->metric];
		all = loom__must(realloc(all, (room + s->n) * sizeof(*all)));
		memcpy(all + room, s->sorted, s->n * sizeof(*all));
		room += s->n;
		logs += log(s->median.at);
		p->configs++;
	}
	p->n = room;
	if (room)
		merge(all, room, p);
	if (room && mean && p->configs > 1) {
		p->median = p->low = p->high = p->least = p->most = exp(logs / (double)p->configs);
		p->open = 1;
		p->configs = 1;
	}
	free(all);
}

/* Divides the values of a point by the value of the base. For a speed-up of a time, divides the value of the base by
 * the values of the point. The spread of the base is not included. */
static void relate(const struct loom__view *view, const struct loom__report_settings *settings,
		   const struct loom__lines *l, const struct loom__lines_point *base, struct loom__lines_point *p)
{
	int over = settings->show == LOOM__SHOW_RATIO || loom__view_more(view, l->metric);
	double to = base->median,
	       share = settings->show == LOOM__SHOW_EFFICIENCY && l->numbers && p->x > 0 ? base->x / p->x : 1;
	double *figure[] = {&p->median, &p->low, &p->high, &p->least, &p->most};
	for (size_t i = 0; i < LOOM__COUNT(figure); i++)
		*figure[i] = share * (over ? *figure[i] / to : to / *figure[i]);
	if (over)
		return;
	double t = p->low;
	p->low = p->high;
	p->high = t;
	t = p->least;
	p->least = p->most;
	p->most = t;
}

/* Returns 1 if the point has exactly the configurations of the set. set[v] is 1 if variant v belongs to it. */
static int is_set(const struct loom__view *view, const struct loom__lines *l, const struct grid *g,
		  const struct loom__lines_point *p, const unsigned char *set)
{
	size_t from = g->first[place_of(l, p)], to = g->first[place_of(l, p) + 1], n = 0;
	for (size_t i = from; i < to; i++)
		if (!set[g->variant[i]])
			return 0;
	for (size_t v = 0; v < view->variants && n <= to - from; v++)
		n += set[v];
	return n && n == to - from;
}

/* Sets the paper's value of a point, if there is one. Call it before the point becomes a ratio to `base`. `base` is
 * NULL if the plot shows no ratio. */
static void mark(const struct loom__view *view, const struct loom__report_settings *settings,
		 const struct loom__lines *l, const struct grid *g, const struct loom__lines_point *base,
		 struct loom__lines_point *p)
{
	int over = settings->show == LOOM__SHOW_RATIO || loom__view_more(view, l->metric);
	p->paper_low = p->paper_high = NAN;
	for (size_t i = 0; i < settings->marks && settings->show != LOOM__SHOW_EFFICIENCY; i++) {
		const struct loom__paper_mark *m = &settings->mark[i];
		if (m->metric != l->metric || !m->over != !base)
			continue;
		int same = is_set(view, l, g, p, m->of) && (!base || is_set(view, l, g, base, m->over));
		int turned = base && is_set(view, l, g, p, m->over) && is_set(view, l, g, base, m->of);
		if (!same && !turned)
			continue;
		int inverse = base && turned == over; /* the claim and the plot have opposite quotients */
		p->paper_low = inverse ? 1 / m->high : m->low;
		p->paper_high = inverse ? 1 / m->low : m->high;
	}
}

static int ascending(const void *a, const void *b)
{
	double x, y;
	number_of(*(const char *const *)a, &x);
	number_of(*(const char *const *)b, &y);
	return (x > y) - (x < y);
}

/* Returns the number of a level, or n if there is no such level. */
static size_t number_in(const char *const *level, size_t n, const char *text)
{
	size_t i = 0;
	while (i < n && strcmp(level[i], text))
		i++;
	return i;
}

/* Returns the point to which the ratio of p refers, or NULL. at[place] is the point at a place, or NULL. */
static const struct loom__lines_point *base_of(const struct loom__report_settings *settings,
					       const struct loom__lines *l, const struct loom__lines_point *const *at,
					       const struct loom__lines_point *p)
{
	int named = settings->base && *settings->base;
	size_t line = named ? number_in(l->line, l->lines, settings->base) : l->lines, x = 0;
	if (line < l->lines)
		return at[place(l, p->facet, line, p->at)];
	if (named)
		x = number_in(l->x, l->xs, settings->base);
	else
		while (x < l->xs && !at[place(l, p->facet, p->line, x)])
			x++;
	return x < l->xs ? at[place(l, p->facet, p->line, x)] : NULL;
}

static void relate_all(const struct loom__view *view, const struct loom__report_settings *settings,
		       struct loom__lines *l, const struct grid *g)
{
	struct loom__lines_point *was = loom__arena_get(&l->arena, l->points, sizeof(*was));
	const struct loom__lines_point **at = loom__arena_get(&l->arena, l->xs * l->lines * l->facets, sizeof(*at));
	size_t n = 0;
	if (l->points)
		memcpy(was, l->point, l->points * sizeof(*was));
	for (size_t i = 0; i < l->points; i++)
		at[place_of(l, &was[i])] = &was[i];
	for (size_t i = 0; i < l->points; i++) {
		struct loom__lines_point p = was[i];
		const struct loom__lines_point *base = base_of(settings, l, at, &p);
		if (!base)
			continue;
		mark(view, settings, l, g, base, &p);
		if (base == &was[i])
			p.paper_low = p.paper_high = NAN;
		relate(view, settings, l, base, &p);
		l->point[n++] = p;
	}
	l->points = n;
}

void loom__lines_create(const struct loom__view *view, const struct loom__report_settings *settings, size_t metric,
			struct loom__lines *out)
{
	struct loom__lines l = {.metric = metric, .numbers = 1, .lo = INFINITY, .hi = -INFINITY};
	struct grid g;
	*out = l;
	if (settings->x_factor == LOOM__NO_NAME || metric == LOOM__NO_NAME)
		return;
	l.x = levels_of(&l.arena, view, settings->x_factor, &l.xs);
	if (settings->mean == settings->x_factor && l.xs < LOOM__LINES_LEVELS) {
		l.x[l.xs++] = "geomean";
		l.mean_x = 1;
	}
	l.line = levels_of(&l.arena, view, settings->lines, &l.lines);
	l.facet = levels_of(&l.arena, view, settings->facet, &l.facets);
	l.point = loom__arena_get(&l.arena, l.xs * l.lines * l.facets, sizeof(*l.point));
	double x;
	for (size_t i = 0; i < l.xs; i++)
		l.numbers &= number_of(l.x[i], &x);
	if (l.numbers)
		qsort(l.x, l.xs, sizeof(*l.x), ascending);
	sort_into(view, settings, &l, &g);
	for (size_t f = 0; f < l.facets; f++)
		for (size_t k = 0; k < l.lines; k++)
			for (size_t i = 0; i < l.xs; i++) {
				struct loom__lines_point *p = &l.point[l.points];
				*p = (struct loom__lines_point){.facet = f, .line = k, .at = i, .x = (double)i};
				if (l.numbers)
					number_of(l.x[i], &p->x);
				fill(view, settings, &l, &g, p);
				l.points += p->n > 0;
			}
	for (size_t i = 0; i < l.points && settings->show == LOOM__SHOW_VALUE; i++)
		mark(view, settings, &l, &g, NULL, &l.point[i]);
	if (settings->show != LOOM__SHOW_VALUE)
		relate_all(view, settings, &l, &g);
	for (size_t i = 0; i < l.points; i++) {
		l.lo = fmin(l.lo, l.point[i].least);
		l.hi = fmax(l.hi, l.point[i].most);
		l.pooled = l.point[i].configs > l.pooled ? l.point[i].configs : l.pooled;
	}
	if (!isfinite(l.hi - l.lo)) /* not finite, for example because a base is 0 */
		l.points = 0;
	*out = l;
}

void loom__lines_free(struct loom__lines *l)
{
	loom__arena_free(&l->arena);
	*l = (struct loom__lines){0};
}

void loom__lines_name(const struct loom__view *view, const struct loom__report_settings *settings,
		      const struct loom__lines *l, struct loom__text *out)
{
	const char *name = view->metric[l->metric].name,
		   *base = settings->base && *settings->base ? settings->base : NULL;
	int by_line = base && settings->lines != LOOM__NO_NAME;
	if (settings->show == LOOM__SHOW_RATIO)
		loom__text_add(out, "%.60s over that of ", name);
	else if (settings->show != LOOM__SHOW_VALUE)
		loom__text_add(out, "%s in %.60s over ", loom__show_name[settings->show], name);
	else
		loom__text_add(out, "%.60s", name);
	if (settings->show != LOOM__SHOW_VALUE && base)
		loom__text_add(out, "%.60s", base);
	else if (settings->show != LOOM__SHOW_VALUE)
		loom__text_add(out, "%s = %.40s", view->factor[by_line ? settings->lines : settings->x_factor],
			       l->x[0]);
}
