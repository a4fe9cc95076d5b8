/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/base.h"

/* Words with more bytes get no suggestion, because the search takes quadratic time. */
#define WORD_MOST 64

int loom__same(const char *a, const char *b)
{
	while (*a && loom__lower(*a) == loom__lower(*b))
		a++, b++;
	return loom__lower(*a) == loom__lower(*b);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns the number of edits that turn a into b. An edit inserts, deletes or replaces a letter, or swaps two
 * neighbours. a and b have at most WORD_MOST bytes each. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t rows[3][WORD_MOST + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t j = 0; j <= nb; j++)
		last[j] = j;
	for (size_t i = 1; i <= na; i++) {
		now[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			int x = loom__lower(a[i - 1]), y = loom__lower(b[j - 1]);
			now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == loom__lower(b[j - 2]) && y == loom__lower(a[i - 2]))
				now[j] = least(now[j], before[j - 2] + 1);
		}
		size_t *oldest = before;
		before = last;
		last = now;
		now = oldest;
	}
	return last[nb];
}

int loom__nearer(struct loom__near *n, const char *candidate)
{
	size_t length = strlen(n->word), other = strlen(candidate), most = length / 3 ? length / 3 : 1;
	if (length > WORD_MOST || other > WORD_MOST)
		return 0;
	size_t edits = distance(n->word, length, candidate, other);
	/* If all letters of the word would have to be replaced, the candidate is no suggestion. */
	if (edits > most || edits >= length || (n->name && edits >= n->edits))
		return 0;
	n->name = candidate;
	n->edits = edits;
	return 1;
}

const char *loom__nearest(const char *word, const char *const *candidates, size_t n)
{
	struct loom__near near = {.word = word};
	for (size_t i = 0; i < n; i++)
		loom__nearer(&near, candidates[i]);
	return near.name;
}

static int is_escaped(const char *at, const char *gaps)
{
	return *at == '\\' && at[1] && (at[1] == '\\' || strchr(gaps, at[1]));
}

char *loom__word(char **rest, const char *gaps)
{
	char *word = *rest + strspn(*rest, gaps), *to = word, *at = word;
	if (!*word)
		return NULL;
	for (; *at && !strchr(gaps, *at); at++) {
		at += is_escaped(at, gaps);
		*to++ = *at;
	}
	*rest = at + (*at != 0);
	*to = 0;
	return word;
}

void loom__word_put(struct loom__text *t, const char *word, const char *gaps)
{
	for (; *word; word++) {
		if (strchr(gaps, *word) || is_escaped(word, gaps))
			loom__text_put(t, "\\", 1);
		loom__text_put(t, word, 1);
	}
}
