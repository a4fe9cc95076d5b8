/* SPDX-License-Identifier: Apache-2.0 */
/* Axes with ticks at round numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/plot/plot.h"

/* Selects a prefix of the unit for values up to `most`. Returns the factor from values to labels. */
static double unit_for(const char *unit, double most, char *name, size_t size)
{
	static const struct {
		double from, factor;
		const char *name;
	} time[] = {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}},
	  many[] = {{1e12, 1e-12, "T"}, {1e9, 1e-9, "G"}, {1e6, 1e-6, "M"}, {1e4, 1e-3, "k"}};
	double seconds = !strcmp(unit, "ns") ? 1e-9 : 1;
	if (!strcmp(unit, "s") || !strcmp(unit, "ns")) {
		size_t i = 0;
		while (i < 3 && most * seconds < time[i].from)
			i++;
		snprintf(name, size, "%s", time[i].name);
		return seconds * time[i].factor;
	}
	for (size_t i = 0; i < LOOM__COUNT(many); i++)
		if (most >= many[i].from) {
			snprintf(name, size, "%s%s%.30s", many[i].name, *unit == '/' ? " " : "", unit);
			return many[i].factor;
		}
	snprintf(name, size, "%.30s", unit);
	return 1;
}

static double round_step(double rough)
{
	double power = pow(10, floor(log10(rough))), part = rough / power;
	return (part <= 1 ? 1 : part <= 2 ? 2 : part <= 2.5 ? 2.5 : part <= 5 ? 5 : 10) * power;
}

void loom__scale_fit(struct loom__scale *s, double lo, double hi, const char *unit, double a, double b, double spacing)
{
	*s = (struct loom__scale){.a = a, .b = b};
	double most = fmax(fabs(lo), fabs(hi)), room = (hi - lo) * 0.06;
	/* If all values are equal, the axis would have no length without this margin. */
	if (!(room > most * 1e-9))
		room = most > 0 ? most * 0.05 : 1;
	s->lo = lo >= 0 && lo - room < 0 ? 0 : lo - room;
	s->hi = hi + room;
	s->factor = unit_for(unit, fmax(fabs(s->lo), fabs(s->hi)), s->unit, sizeof(s->unit));
	double wanted = fmax(2, fabs(b - a) / spacing);
	double step = round_step((s->hi - s->lo) * s->factor / wanted);
	s->decimals = (int)fmax(0, -floor(log10(step) + 1e-9));
	/* For example, a step of 2.5 needs one decimal more than a step of 2. */
	if (fabs(step * pow(10, s->decimals) - round(step * pow(10, s->decimals))) > 1e-6)
		s->decimals++;
	s->decimals = s->decimals > 9 ? 9 : s->decimals;
	s->step = step / s->factor;
}

void loom__scale_log(struct loom__scale *s, double lo, double hi)
{
	if (!(lo > 0) || !isfinite(hi))
		return;
	s->log = 1;
	s->lo = lo / 1.05;
	s->hi = hi * 1.05;
}

/* Labels of a horizontal axis take 36 pixels, so a narrow one has fewer ticks. */
static int tick_log(const struct loom__scale *s, int i, double *v, char label[32])
{
	static const double parts[][3] = {{1, 2, 5}, {1, 3}, {1}};
	double factor = s->factor > 0 ? s->factor : 1, lo = s->lo * factor * (1 - 1e-9), hi = s->hi * factor * (1 + 1e-9);
	double decades = log10(hi / lo), room = s->b > s->a ? (s->b - s->a) / 36 : 100;
	const double *part = parts[decades > 4 || room * log10(3) < decades ? 2 : room * log10(2) < decades];
	for (double power = pow(10, floor(log10(lo))); power <= hi; power *= 10)
		for (int k = 0; k < 3 && part[k] > 0; k++) {
			double at = power * part[k];
			if (at < lo || at > hi || i-- > 0)
				continue;
			*v = at / factor;
			snprintf(label, 32, "%.6g", at);
			return 1;
		}
	return 0;
}

double loom__scale_at(const struct loom__scale *s, double v)
{
	double share = s->log ? log(fmax(v, 1e-300) / s->lo) / log(s->hi / s->lo) : (v - s->lo) / (s->hi - s->lo);
	share = share < -0.02 ? -0.02 : share > 1.02 ? 1.02 : share;
	return s->a + share * (s->b - s->a);
}

int loom__scale_tick(const struct loom__scale *s, int i, double *v, char label[32])
{
	if (s->log && s->hi / s->lo > 8) /* below this, 1, 2 and 5 times powers of ten are too few ticks */
		return tick_log(s, i, v, label);
	double first = ceil(s->lo / s->step - 1e-9);
	*v = (first + i) * s->step;
	if (i > 24 || !isfinite(*v) || *v > s->hi + s->step * 1e-9)
		return 0;
	double shown = *v * s->factor;
	if (fabs(shown) < s->step * s->factor * 1e-6)
		shown = 0; /* avoids "-0" */
	snprintf(label, 32, "%.*f", s->decimals, shown);
	for (char *c = label; *c; c++) /* a decimal point in every locale */
		if (*c == ',')
			*c = '.';
	return 1;
}
