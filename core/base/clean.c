/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans text from outside for terminals, tables and documents. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Returns the number of bytes of the UTF-8 character that begins at s, or 0 if none begins there. *have is the number
 * of these bytes that are present. */
static size_t begun(const char *s, size_t n, size_t *have)
{
	const unsigned char *u = (const unsigned char *)s;
	/* The range of the second byte excludes overlong forms, surrogates and codes above U+10FFFF. */
	unsigned low = 0x80, high = 0xbf;
	size_t length;
	*have = 1;
	if (u[0] < 0x80)
		return 1;
	if (u[0] >= 0xc2 && u[0] <= 0xdf) {
		length = 2;
	} else if (u[0] >= 0xe0 && u[0] <= 0xef) {
		length = 3;
		low = u[0] == 0xe0 ? 0xa0 : low;
		high = u[0] == 0xed ? 0x9f : high;
	} else if (u[0] >= 0xf0 && u[0] <= 0xf4) {
		length = 4;
		low = u[0] == 0xf0 ? 0x90 : low;
		high = u[0] == 0xf4 ? 0x8f : high;
	} else {
		return 0;
	}
	for (; *have < length && *have < n; ++*have) {
		unsigned char c = u[*have];
		if (*have == 1 && c >= 0x80 && c <= 0xbf && (c < low || c > high))
			return 0;
		if (c < 0x80 || c > 0xbf)
			break;
	}
	return length;
}

size_t loom__utf8(const char *s, size_t n)
{
	size_t have, length = begun(s, n, &have);
	return have == length ? length : 0;
}

/* Returns 1 for control characters, line separators, marks that change the direction of text, and characters that XML
 * excludes. */
static int is_unfit(unsigned code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || (code & 0xfffe) == 0xfffe;
}

size_t loom__character(const char *s, size_t n, enum loom__fit *fit)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	size_t have, length = begun(s, n, &have);
	if (!length || have < length) {
		*fit = length ? LOOM__HALF : LOOM__UNFIT;
		return length ? have : 1;
	}
	unsigned code = (unsigned char)s[0] & first[length];
	for (size_t i = 1; i < length; i++)
		code = code << 6 | ((unsigned char)s[i] & 0x3f);
	*fit = is_unfit(code) ? LOOM__UNFIT : LOOM__FIT;
	return length;
}

size_t loom__clean_bytes(char *text, size_t n, const char *keep)
{
	char *to = text;
	enum loom__fit fit;
	for (size_t at = 0, used; at < n; at += used) {
		char c = text[at];
		used = loom__character(text + at, n - at, &fit);
		if (fit == LOOM__FIT || (c && strchr(keep, c))) {
			memmove(to, text + at, used);
			to += used;
		} else if (fit == LOOM__UNFIT) {
			*to++ = c == '\n' || c == '\t' || c == '\r' ? ' ' : '?';
		}
	}
	return (size_t)(to - text);
}

void loom__clean(char *text, size_t room)
{
	text[room - 1] = 0;
	size_t n = loom__clean_bytes(text, strlen(text), "");
	memset(text + n, 0, room - n); /* because records with the text are compared and sent as a whole */
}
