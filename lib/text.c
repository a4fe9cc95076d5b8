/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/align.h"
#include "lib/io.h"

/* Makes room for `more` bytes and the NUL. Returns 0 if memory has run out. */
static int grow(struct loom__text *t, size_t more)
{
	if (t->failed)
		return 0;
	if (more < t->room - t->length)
		return 1;
	size_t room = t->room ? t->room : 64;
	while (room - t->length <= more) {
		if (__builtin_mul_overflow(room, (size_t)2, &room)) {
			t->failed = 1;
			return 0;
		}
	}
	char *at = realloc(t->at, room);
	if (!at) {
		t->failed = 1;
		return 0;
	}
	t->at = at;
	t->room = room;
	return 1;
}

void loom__text_put(struct loom__text *t, const char *bytes, size_t n)
{
	if (!grow(t, n))
		return;
	if (n)
		memcpy(t->at + t->length, bytes, n);
	t->length += n;
	t->at[t->length] = 0;
}

void loom__text_add(struct loom__text *t, const char *fmt, ...)
{
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	int n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0) {
		t->failed = 1;
	} else if (grow(t, (size_t)n)) {
		vsnprintf(t->at + t->length, (size_t)n + 1, fmt, again);
		t->length += (size_t)n;
	}
	va_end(again);
}

void loom__text_free(struct loom__text *t)
{
	free(t->at);
	*t = (struct loom__text){0};
}

void *loom__more(void *list, size_t n, size_t size)
{
	enum { FIRST = 8 };
	size_t bytes;
	if (n && (n < FIRST || !loom__is_power_of_two(n))) /* the list still has room */
		return list;
	return __builtin_mul_overflow(n ? 2 * n : FIRST, size, &bytes) ? NULL : realloc(list, bytes);
}

const char *loom__text_read(struct loom__text *t, const char *path, size_t most)
{
	char part[16384];
	const char *why = NULL;
	ssize_t n = 1;
	int fd = loom__open_input(path, &why), number = 0;
	if (fd < 0)
		return why;
	size_t end = t->length + most;
	loom__text_put(t, "", 0);
	while (n && !number && loom__text_ok(t) && t->length <= end) {
		size_t want =
		    end + 1 - t->length; /* the size in the inode may be 0, as in /proc, so the limit is seen here */
		n = read(fd, part, want < sizeof(part) ? want : sizeof(part));
		if (n > 0)
			loom__text_put(t, part, (size_t)n);
		else if (n < 0 && errno != EINTR)
			number = errno;
	}
	close(fd);
	if (!loom__text_ok(t))
		number = ENOMEM;
	errno = number;
	return number ? strerror(number) : t->length > end ? "is larger than the limit" : NULL;
}
