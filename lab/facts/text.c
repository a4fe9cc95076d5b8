/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number of characters in the text after byte `from`. Each counts as one column. */
static size_t columns(const struct loom__text *t, size_t from)
{
	size_t n = 0;
	for (size_t i = from; i < t->length; i++)
		n += ((unsigned char)t->at[i] & 0xc0) != 0x80;
	return n;
}

static void pad(struct loom__text *t, size_t have, size_t width)
{
	for (; have < width; have++)
		loom__text_put(t, " ", 1);
}

/* Formats one %s. `spec` is its format specification with flags, width and precision. */
static void add_string(struct loom__text *t, loom__put_fn *put, const char *spec, const char *text)
{
	int left = spec[1] == '-';
	char *at;
	size_t width = strtoul(spec + 1 + left, &at, 10), from = t->length;
	size_t most = *at == '.' ? strtoul(at + 1, NULL, 10) : SIZE_MAX;
	put(t, text, most);
	size_t have = columns(t, from);
	if (left || have >= width) {
		pad(t, have, width);
		return;
	}
	struct loom__text part = {0};
	loom__text_put(&part, t->at ? t->at + from : "", t->length - from);
	t->length = from;
	pad(t, have, width);
	loom__text_put(t, part.at ? part.at : "", part.length);
	t->failed |= part.failed;
	loom__text_free(&part);
}

void loom__text_vwith(struct loom__text *t, loom__put_fn *put, const char *fmt, va_list args)
{
	for (const char *at; *fmt; fmt = at) {
		char spec[24] = "";
		at = fmt + strcspn(fmt, "%");
		loom__text_put(t, fmt, (size_t)(at - fmt));
		if (!*at)
			break;
		size_t n = 0;
		spec[n++] = *at++;
		while (*at && n + 12 < sizeof(spec)) {
			if (*at == '*') { /* the argument replaces the star */
				n += (size_t)snprintf(spec + n, sizeof(spec) - n, "%d", va_arg(args, int));
				at++;
				continue;
			}
			spec[n++] = *at++;
			if (strchr("%scduxgf", spec[n - 1]))
				break;
		}
		char last = spec[n - 1];
		if (last == '%')
			loom__text_put(t, "%", 1);
		else if (last == 's')
			add_string(t, put, spec, va_arg(args, const char *));
		else if (strchr(spec, 'z'))
			loom__text_add(t, spec, va_arg(args, size_t));
		else if (strstr(spec, "ll"))
			loom__text_add(t, spec, va_arg(args, long long));
		else if (strchr(spec, 'l'))
			loom__text_add(t, spec, va_arg(args, long));
		else if (last == 'g' || last == 'f')
			loom__text_add(t, spec, va_arg(args, double));
		else
			loom__text_add(t, spec, va_arg(args, int));
	}
}

void loom__text_with(struct loom__text *t, loom__put_fn *put, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	loom__text_vwith(t, put, fmt, args);
	va_end(args);
}

void loom__text_clean(struct loom__text *t, size_t from, const char *keep)
{
	if (!t->at || from >= t->length)
		return;
	t->length = from + loom__clean_bytes(t->at + from, t->length - from, keep);
	t->at[t->length] = 0;
}

void loom__put_line(struct loom__text *t, const char *text, size_t most)
{
	size_t from = t->length;
	loom__text_put(t, text, strnlen(text, most));
	loom__text_clean(t, from, "");
}
