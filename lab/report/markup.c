/* SPDX-License-Identifier: Apache-2.0 */
#include "report/markup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/table.h"

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

const char *loom__change(char text[32], double ratio)
{
	if (isnan(ratio) || ratio < 0)
		snprintf(text, 32, "\xe2\x80\x93");
	else if (isinf(ratio))
		snprintf(text, 32, "\xe2\x88\x9e");
	else if (ratio >= 3)
		snprintf(text, 32, "\xc3\x97%.3g", ratio);
	else if (ratio * 3 <= 1 && ratio > 0)
		snprintf(text, 32, "\xc3\xb7%.3g", 1 / ratio);
	else {
		double change = (ratio - 1) * 100;
		int digits = fabs(change) >= 99.5 ? 0 : fabs(change) >= 9.95 ? 1 : 2;
		snprintf(text, 32, "%s%.*f %%", change < 0 ? "\xe2\x88\x92" : "+", digits,
			 fabs(change));
	}
	return text;
}

const char *loom__change_range(char text[80], double low, double high, const char *open)
{
	snprintf(text, 80, "%s \xe2\x80\xa6 %s", isnan(low) ? open : LOOM__CHANGE(low),
		 isnan(high) ? open : LOOM__CHANGE(high));
	return text;
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
