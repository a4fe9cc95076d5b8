/* SPDX-License-Identifier: Apache-2.0 */
/* Formats numbers with their units, in the same way for all tables and pages. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/text/markup.h"
#include "report/text/table.h"

static void with_commas(double value, char *text, size_t size)
{
	char digits[40];
	int n = snprintf(digits, sizeof(digits), "%.0f", value);
	size_t at = 0;
	for (int i = 0; i < n && at + 2 < size; i++) {
		text[at++] = digits[i];
		int left = n - 1 - i;
		if (left && left % 3 == 0 && digits[i] != '-')
			text[at++] = ',';
	}
	text[at] = 0;
}

const char *loom__figure(char text[160], double v, const char *unit)
{
	static const char *const up[] = {"", "k", "M", "G", "T"};
	static const struct {
		double least, factor;
		const char *unit;
	} time[] = {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}};
	size_t step = 0, length = strlen(unit), size = 160;
	char number[64];
	if (!strcmp(unit, "s") || !strcmp(unit, "ns")) {
		double s = *unit == 'n' ? v / 1e9 : v;
		while (s != 0 && fabs(s) < time[step].least)
			step++;
		snprintf(text, size, "%.4g %s", s * time[step].factor, time[step].unit);
	} else if (length > 2 && !strcmp(unit + length - 2, "/s")) {
		for (; fabs(v) >= 1000 && step < 4; step++)
			v /= 1000;
		snprintf(text, size, "%.4g %s%.39s", v, up[step], unit);
	} else {
		/* A median of numbers of tasks may end in one half. Above 1000, the decimals of such a median are
		 * useless. */
		if ((v == floor(v) || fabs(v) >= 1000) && fabs(v) < 1e15)
			with_commas(v, number, sizeof(number));
		else
			snprintf(number, sizeof(number), "%.4g", v);
		int tasks = !strcmp(unit, "tasks");
		snprintf(text, size, "%s%s%.39s", number, *unit && !tasks ? " " : "", tasks ? "" : unit);
	}
	return text;
}

const char *loom__metric_figure(char text[160], double v, const char *name, const char *unit)
{
	size_t n = strlen(name);
	char number[64];
	if (strcmp(unit, "ns") || n < 4 || strcmp(name + n - 3, "_ns"))
		return loom__figure(text, v, unit);
	/* Four significant digits, as for all other numbers. */
	double step = fabs(v) >= 1e4 ? pow(10, floor(log10(fabs(v))) - 3) : 1;
	if (fabs(v) >= 1000 && fabs(v) < 1e15)
		with_commas(round(v / step) * step, number, sizeof(number));
	else
		snprintf(number, sizeof(number), "%.4g", v);
	snprintf(text, 160, "%s ns", number);
	return text;
}

const char *loom__metric_range(char text[340], double low, double high, const char *name, const char *unit)
{
	char a[160], b[160];
	loom__metric_figure(a, low, name, unit);
	loom__metric_figure(b, high, name, unit);
	char *first = strchr(a, ' '), *second = strchr(b, ' ');
	if (first && second && !strcmp(first, second))
		*first = 0;
	snprintf(text, 340, "%s \xe2\x80\xa6 %s", a, b);
	return text;
}

const char *loom__figure_range(char text[340], double low, double high, const char *unit)
{
	return loom__metric_range(text, low, high, "", unit);
}

const char *loom__duration(char text[32], double seconds)
{
	double s = seconds < 1e12 ? round(seconds) : 1e12;
	if (s >= 3600)
		snprintf(text, 32, "%.0f h %02.0f min", floor(s / 3600), floor(fmod(s, 3600) / 60));
	else if (s >= 100)
		snprintf(text, 32, "%.0f min", round(s / 60));
	else
		snprintf(text, 32, "%.0f s", s);
	return text;
}
