/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int reserve(struct text *t, size_t more)
{
	if (t->failed)
		return 0;
	if (t->length + more < t->room)
		return 1;
	size_t room = t->room ? 2 * t->room : 4096;
	while (room <= t->length + more)
		room *= 2;
	char *at = t->host->alloc(t->host, room);
	if (!at) {
		t->failed = 1;
		return 0;
	}
	if (t->at)
		memcpy(at, t->at, t->length);
	t->host->free(t->host, t->at);
	t->at = at;
	t->room = room;
	return 1;
}

void text_bytes(struct text *t, const char *bytes, size_t n)
{
	if (!reserve(t, n))
		return;
	memcpy(t->at + t->length, bytes, n);
	t->length += n;
	t->at[t->length] = 0;
}

void text_add(struct text *t, const char *fmt, ...)
{
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	int n = vsnprintf(NULL, 0, fmt, args);
	if (n >= 0 && reserve(t, (size_t)n)) {
		vsnprintf(t->at + t->length, (size_t)n + 1, fmt, again);
		t->length += (size_t)n;
	}
	va_end(again);
	va_end(args);
}

void text_free(struct text *t)
{
	t->host->free(t->host, t->at);
	*t = (struct text){.host = t->host};
}
