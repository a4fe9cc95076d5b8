/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/token.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

static void skip(const char **at)
{
	*at += strspn(*at, " \t");
}

int loom__take(const char **at, const char *token)
{
	size_t n = strlen(token);
	skip(at);
	if (strncmp(*at, token, n))
		return 0;
	*at += n;
	return 1;
}

int loom__take_number(const char **at, double *value)
{
	skip(at);
	return !loom__read_double(*at, at, value);
}

int loom__take_until(const char **at, const char *stops, char *word, size_t room)
{
	skip(at);
	size_t all = strcspn(*at, stops), n = all;
	while (n && strchr(" \t", (*at)[n - 1]))
		n--;
	if (!n || n >= room)
		return 0;
	memcpy(word, *at, n);
	word[n] = 0;
	*at += all;
	return 1;
}

int loom__take_group(const char **at)
{
	const char *s = *at;
	for (int depth = 1, quoted = 0; *s; s++) {
		quoted ^= *s == '"';
		depth += quoted ? 0 : *s == '(' ? 1 : *s == ')' ? -1 : 0;
		if (!depth) {
			*at = s + 1;
			return 1;
		}
	}
	return 0;
}

int loom__take_name(const char **list, char *name, size_t room)
{
	*list += strspn(*list, ", ");
	size_t n = strcspn(*list, ", ");
	snprintf(name, room, "%.*s", (int)n, *list);
	*list += n;
	return n > 0;
}

int loom__take_end(const char **at)
{
	skip(at);
	return !**at;
}
