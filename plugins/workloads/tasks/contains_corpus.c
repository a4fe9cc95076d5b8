/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that are generated from a seed. They are as irregular as the thesis's corpus (section 6.1): articles of
 * very different length, of which 39.83 % contain the word. A search stops at the word. Lengths are log-normal, as in
 * many text corpora. The word occurs at random places at a constant rate. This rate is set so that the expected share
 * of documents with the word is the thesis's. */
#include "contains.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/random.h"
#include "../common/host.h"

#define SHARE 0.3983
#define MEDIAN 3600.0 /* median length of a document in bytes */
#define SIGMA 1.2     /* deviation of the logarithm of the length: the mean is exp(SIGMA * SIGMA / 2) medians */
#define LONGEST (4u << 20)

/* Letters as frequent as in German text, and blanks. The index is a random byte. */
static const char letters[256 + 1] =
	"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeennnnnnnnnnnnnnnnnnnniiiiiiiiiiiiiiiissssssssssssssrrrrrrrrrrrrrraaaaaaaaaaaaa"
	"ttttttttttttddddddddddhhhhhhhhhhuuuuuuuuullllllllccccccggggggmmmmmooooobbbbwwwwffffkkkzzpppvvjyxq"
	"                                             ";

/* Returns a random number in (0, 1). */
static double uniform(uint64_t *state)
{
	return ((double)(loom__random(state) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
	double r = sqrt(-2 * log(uniform(state)));
	return r * cos(6.283185307179586 * uniform(state));
}

/* Sets the distance between occurrences at which the expected share of documents with the word is SHARE. The share
 * falls with the distance, so bisection finds it. */
static int set_spacing(const struct loom_host *host, struct contains_list *list, struct loom_error *err)
{
	int rc = 0;
	double low = 1, high = LONGEST * 16.0;
	for (int i = 0; i < 60 && !rc; i++) {
		double middle = sqrt(low * high), share = 0;
		for (size_t k = 0; k < list->count && !(rc = workload_goes_on(host, k, list->count, err)); k++)
			share += 1 - exp(-(double)list->source[k].bytes / middle);
		if (share > SHARE * (double)list->count)
			low = middle;
		else
			high = middle;
	}
	list->spacing = low;
	return rc;
}

int contains_generate(const struct loom_host *host, const struct contains_opts *o, struct contains_list *list,
		      struct loom_error *err)
{
	uint64_t state = o->seed;
	size_t n = o->limit && o->limit < o->documents ? o->limit : o->documents;
	list->source = calloc(n, sizeof(*list->source));
	if (!list->source)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "contains: out of memory for %zu documents", n);
	list->count = list->room = n;
	int rc = 0;
	for (size_t i = 0; i < n && !(rc = workload_goes_on(host, i, n, err)); i++) {
		/* The median falls from MEDIAN * sqrt(drift) for the first document to MEDIAN / sqrt(drift) for the
		 * last one. */
		double place = n > 1 ? 0.5 - (double)i / (double)(n - 1) : 0;
		double bytes = MEDIAN * exp(SIGMA * normal(&state) + place * log(o->drift));
		list->source[i].bytes = bytes < 64 ? 64 : bytes > LONGEST ? LONGEST : (uint64_t)bytes;
		list->source[i].seed = loom__random(&state) | 1;
	}
	rc = rc ? rc : set_spacing(host, list, err);
	list->word = o->word;
	list->word_bytes = strlen(o->word);
	for (size_t i = 0; i < n; i++)
		list->source[i].list = list;
	return rc;
}

static uint64_t next_gap(struct contains_pen *pen, double spacing)
{
	double gap = -spacing * log(uniform(&pen->state));
	return gap < 1e15 ? (uint64_t)gap : ~0ull >> 1;
}

uint64_t contains_write(struct contains_pen *pen, const struct contains_source *s, uint64_t done, char *to, uint64_t room)
{
	const char *word = s->list->word;
	uint64_t n = s->list->word_bytes, left = s->bytes - done, written = 0;
	if (!done) {
		*pen = (struct contains_pen){.state = s->seed, .last = ' '};
		pen->gap = next_gap(pen, s->list->spacing);
	}
	room = room < left ? room : left;
	while (written < room) {
		/* An occurrence has a blank on either side. One that would exceed the document is left out. */
		if (!pen->gap && !pen->inside) {
			pen->inside = done + written + n + 2 <= s->bytes ? n + 2 : 0;
			pen->gap = next_gap(pen, s->list->spacing);
		}
		if (pen->inside) {
			uint64_t at = n + 2 - pen->inside--;
			pen->last = to[written++] = at == 0 || at == n + 1 ? ' ' : word[at - 1];
			continue;
		}
		if (!pen->bytes) {
			pen->random = loom__random(&pen->state);
			pen->bytes = 8;
		}
		char next = letters[pen->random & 255];
		pen->random >>= 8;
		pen->bytes--;
		/* Outside of occurrences, the text must not contain the start of the word. */
		if (n == 1 ? next == word[0] : pen->last == word[0] && next == word[1])
			next = word[n > 1] == ' ' ? 'e' : ' ';
		pen->last = to[written++] = next;
		pen->gap--;
	}
	return written;
}
