/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/text.h"

#include <stdlib.h>
#include <string.h>

void loom__text_with(struct loom__text *t, loom__put_fn *put, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	for (const char *at; *fmt; fmt = at) {
		char spec[16] = "";
		at = fmt + strcspn(fmt, "%");
		loom__text_put(t, fmt, (size_t)(at - fmt));
		if (!*at)
			break;
		size_t n = strcspn(at + 1, "%scduxgf") + 2;
		memcpy(spec, at, n < sizeof(spec) ? n : sizeof(spec) - 1);
		at += n;
		if (at[-1] == '%')
			loom__text_put(t, "%", 1);
		else if (at[-1] == 's')
			put(t, va_arg(args, const char *), spec[1] == '.' ? strtoul(spec + 2, NULL, 10) : SIZE_MAX);
		else if (strchr(spec, 'z'))
			loom__text_add(t, spec, va_arg(args, size_t));
		else if (strstr(spec, "ll"))
			loom__text_add(t, spec, va_arg(args, long long));
		else if (strchr(spec, 'l'))
			loom__text_add(t, spec, va_arg(args, long));
		else if (strchr("gf", at[-1]))
			loom__text_add(t, spec, va_arg(args, double));
		else
			loom__text_add(t, spec, va_arg(args, int));
	}
	va_end(args);
}
