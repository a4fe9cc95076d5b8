/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text. The meaning of a conf or a result must not depend on the locale, which may use a decimal comma. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "lib/number.h"

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *s)
{
	while (is_digit(*s))
		s++;
	return s;
}

/* Returns the end of the decimal number that begins at `text`, or NULL if none begins there. */
static const char *number_end(const char *text)
{
	const char *s = text + (*text == '-');
	const char *whole = s;
	s = skip_digits(s);
	size_t digits = (size_t)(s - whole);
	if (*s == '.') {
		const char *part = s + 1;
		s = skip_digits(part);
		digits += (size_t)(s - part);
	}
	if (!digits)
		return NULL;
	if (*s == 'e' || *s == 'E') {
		const char *power = s + 1 + (s[1] == '-' || s[1] == '+');
		if (is_digit(*power))
			s = skip_digits(power);
	}
	return s;
}

int loom__read_double(const char *text, const char **end, double *value)
{
	const char *stop = number_end(text);
	if (!stop)
		return -1;
	char *read_to;
	double v = number_read(text, &read_to);
	/* The ends differ for 0x1p4, of which number_read() reads all, and number_end() only the 0. */
	if (read_to != stop || !isfinite(v))
		return -1;
	*end = stop;
	*value = v;
	return 0;
}

void loom__text_double(struct loom__text *t, double v)
{
	char text[40];
	locale_t c = number_locale();
	if (!c) {
		t->failed = 1;
		return;
	}
	locale_t before = uselocale(c);
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	uselocale(before);
	loom__text_add(t, "%s", text);
}
