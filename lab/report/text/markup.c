/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/markup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/table.h"

#define REPLACEMENT "\xef\xbf\xbd"

static void put_character(struct loom__text *out, const char *s, size_t n, enum loom__fit fit)
{
	if (fit != LOOM__FIT && *s != '\n' && *s != '\t')
		loom__text_put(out, REPLACEMENT, 3);
	else if (*s == '<')
		loom__text_put(out, "&lt;", 4);
	else if (*s == '>')
		loom__text_put(out, "&gt;", 4);
	else if (*s == '&')
		loom__text_put(out, "&amp;", 5);
	else if (*s == '"')
		loom__text_put(out, "&quot;", 6);
	else if (*s == '\'')
		loom__text_put(out, "&#39;", 5);
	else
		loom__text_put(out, s, n);
}

void loom__markup_cut(struct loom__text *out, const char *text, size_t most)
{
	size_t left = strlen(text), width = loom__markup_width(text);
	size_t keep = width > most && most ? most - 1 : width;
	enum loom__fit fit;
	for (; left && keep; keep--) {
		size_t used = loom__character(text, left, &fit);
		put_character(out, text, used, fit);
		text += used;
		left -= used;
	}
	if (left)
		loom__text_put(out, "\xe2\x80\xa6", 3);
}

void loom__markup_text(struct loom__text *out, const char *text)
{
	loom__markup_cut(out, text, SIZE_MAX);
}

size_t loom__markup_width(const char *text)
{
	size_t left = strlen(text), width = 0;
	enum loom__fit fit;
	for (; left; width++) {
		size_t used = loom__character(text, left, &fit);
		text += used;
		left -= used;
	}
	return width;
}

void loom__markup_move(struct loom__text *out, struct loom__text *part)
{
	if (part->at)
		loom__text_put(out, part->at, part->length);
	out->failed |= part->failed;
	loom__text_free(part);
}

const char *loom__coordinate(char text[24], double v)
{
	if (!isfinite(v))
		v = 0;
	v = v > 1e6 ? 1e6 : v < -1e6 ? -1e6 : v;
	long tenths = lround(v * 10), whole = labs(tenths) / 10, rest = labs(tenths) % 10;
	const char *sign = tenths < 0 ? "-" : "";
	if (rest)
		snprintf(text, 24, "%s%ld.%ld", sign, whole, rest);
	else
		snprintf(text, 24, "%s%ld", sign, whole);
	return text;
}

/* Returns 1 if a ratio is shown as a factor, in place of percent. */
static int is_far(double ratio)
{
	return ratio >= 3 || (ratio > 0 && ratio * 3 <= 1);
}

/* Returns a factor after the sign: "4.1", "1257". */
static const char *factor(char text[48], const char *sign, double v)
{
	if (isnan(v))
		snprintf(text, 48, "\xe2\x80\x93");
	else if (isinf(v))
		snprintf(text, 48, "\xe2\x88\x9e");
	else
		snprintf(text, 48, v >= 99.95 && v < 1e15 ? "%s%.0f" : "%s%.3g", sign, v);
	return text;
}

const char *loom__change(char text[48], double ratio)
{
	double change = (ratio - 1) * 100;
	int digits = fabs(change) >= 99.5 ? 0 : fabs(change) >= 9.95 ? 1 : 2;
	if (isnan(ratio) || ratio < 0)
		factor(text, "", NAN);
	else if (is_far(ratio))
		factor(text, ratio > 1 ? "\xc3\x97" : "\xc3\xb7", ratio > 1 ? ratio : 1 / ratio);
	else
		snprintf(text, 48, "%s%.*f %%", change < 0 ? "\xe2\x88\x92" : "+", digits, fabs(change));
	return text;
}

/* Returns "LOW ... HIGH". If one end is a factor, both are. */
static const char *range(char text[112], double low, double high, int factors)
{
	char a[48], b[48];
	const char *sign = "\xc3\x97";
	factors |= is_far(low) != is_far(high) || (is_far(low) && low < 1 && high > 1);
	snprintf(text, 112, "%s \xe2\x80\xa6 %s",
		 isnan(low) ? "?" : factors ? factor(a, sign, low) : loom__change(a, low),
		 isnan(high) ? "?" : factors ? factor(b, sign, high) : loom__change(b, high));
	return text;
}

const char *loom__change_range(char text[112], double low, double high)
{
	return range(text, low, high, 0);
}

/* Returns 1 if loom__gain() shows a factor. */
static int is_gain(double ratio, enum loom_better better)
{
	return is_far(ratio) && !isinf(ratio) && (better == LOOM_BETTER_MORE || better == LOOM_BETTER_LESS);
}

const char *loom__gain(char text[48], double ratio, enum loom_better better)
{
	char number[48];
	if (!is_gain(ratio, better))
		return loom__change(text, ratio);
	snprintf(text, 48, "%.20s %s", factor(number, "\xc3\x97", ratio > 1 ? ratio : 1 / ratio),
		 (ratio > 1) == (better == LOOM_BETTER_MORE) ? "faster" : "slower");
	return text;
}

const char *loom__gain_range(char text[112], double ratio, double low, double high, enum loom_better better)
{
	if (!is_gain(ratio, better))
		return loom__change_range(text, low, high);
	return ratio > 1 ? range(text, low, high, 1) : range(text, 1 / high, 1 / low, 1);
}

const char *loom__p_value(char text[32], double p)
{
	if (isnan(p))
		snprintf(text, 32, "\xe2\x80\x93");
	else if (p < 0.001)
		snprintf(text, 32, "< 0.001");
	else
		snprintf(text, 32, "%.*f", p < 0.1 ? 3 : 2, p > 1 ? 1 : p);
	return text;
}
