/* SPDX-License-Identifier: Apache-2.0 */
/* The line scanner, which finds sections, keys and values. It rejects lines at which iniparser would stop, and lines
 * that iniparser would accept with another meaning. */
#include <string.h>

#include "config/inside.h"

enum where { TOP, INSIDE, LOST /* below a wrong header: its keys are not reported, because the header was */ };

struct scan {
	const char *file;
	struct loom__items *items;
	struct loom__diag *diag;
	const char *line_at;
	int line;
	enum where where;
	struct loom__slice section;
};

/* Arguments for a %.*s. */
#define WORDS(s) (int)(s).n, (s).at

#define REFUSE(s, at, ...) loom__diag_add((s)->diag, 0, (s)->file, (s)->line, column_of((s), (at)), __VA_ARGS__)

static int column_of(const struct scan *s, const char *at)
{
	return (int)(at - s->line_at) + 1;
}

struct loom__slice loom__strip(struct loom__slice s)
{
	while (s.n && loom__blank(s.at[0]))
		s.at++, s.n--;
	while (s.n && loom__blank(s.at[s.n - 1]))
		s.n--;
	return s;
}

static int same(struct loom__slice a, struct loom__slice b)
{
	if (a.n != b.n)
		return 0;
	for (size_t i = 0; i < a.n; i++)
		if (loom__lower(a.at[i]) != loom__lower(b.at[i]))
			return 0;
	return 1;
}

int loom__slice_is(struct loom__slice s, const char *word)
{
	return same(s, (struct loom__slice){word, strlen(word)});
}

const char *loom__text_fault(struct loom__slice text, size_t *where)
{
	for (size_t i = 0, n; i < text.n; i += n) {
		*where = i;
		if (!text.at[i])
			return "a NUL byte: this is not a text file";
		n = loom__utf8(text.at + i, text.n - i);
		if (!n)
			return "this is not UTF-8 text";
		if (n == 1 && text.at[i] != '\t' && ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f))
			return "a control character";
	}
	return NULL;
}

const char *loom__name_fault(struct loom__slice name, int dots, size_t *where)
{
	*where = 0;
	if (!name.n)
		return "a name is missing";
	if (name.n > LOOM__NAME_MOST)
		return "the name is too long: at most 64 characters";
	int part = 0; /* bytes since the last dot */
	for (size_t i = 0; i < name.n; i++) {
		int c = loom__lower(name.at[i]);
		*where = i;
		if (dots && c == '.' && part && i + 1 < name.n)
			part = 0;
		else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')
			part = 1;
		else
			return dots ? "the name of a section is made of letters, digits, '_', '-' "
				      "and single dots between them"
				    : "the name of a key is made of letters, digits, '_' and '-'";
	}
	return NULL;
}

static void keep(struct scan *s, struct loom__item item)
{
	struct loom__items *items = s->items;
	struct loom__item *at = loom__more(items->at, items->count, sizeof(*at));
	if (!at) {
		items->failed = 1;
		return;
	}
	items->at = at;
	item.line = s->line;
	at[items->count++] = item;
}

static void scan_header(struct scan *s, struct loom__slice line)
{
	const char *fault, *end = memchr(line.at, ']', line.n);
	size_t where;
	s->where = LOST;
	if (!end) {
		REFUSE(s, line.at, "no ']' after the name of the section");
		return;
	}
	if (end + 1 != line.at + line.n) {
		REFUSE(s, end + 1, "text after ']': a comment goes on a line of its own");
		return;
	}
	struct loom__slice name = {line.at + 1, line.n - 2};
	name = loom__strip(name);
	const char *colon = memchr(name.at, ':', name.n);
	if (colon && name.n <= LOOM__NAME_MOST) {
		char dotted[LOOM__NAME_MOST];
		for (size_t i = 0; i < name.n; i++)
			dotted[i] = name.at[i] == ':' ? '.' : name.at[i];
		REFUSE(s, colon, "names of sections have dots, not ':'; write [%.*s]", (int)name.n, dotted);
		return;
	}
	if ((fault = loom__name_fault(name, 1, &where))) {
		REFUSE(s, name.at + where, "%s", fault);
		return;
	}
	s->where = INSIDE;
	s->section = name;
	keep(s, (struct loom__item){.kind = LOOM__ITEM_SECTION, .column = column_of(s, line.at), .section = name});
}

/* Checks a quoted value. After the closing quote, only a comment may follow. Returns 1 if the value is right, else
 * 0. */
static int check_quoted(const struct scan *s, struct loom__slice value)
{
	const char *start = value.at + 1;
	const char *close = memchr(start, value.at[0], value.n - 1);
	if (!close) {
		REFUSE(s, value.at, "no %c ends the quoted value", value.at[0]);
		return 0;
	}
	struct loom__slice inner = {start, (size_t)(close - start)};
	struct loom__slice rest = {close + 1, value.n - inner.n - 2};
	rest = loom__strip(rest);
	const char *backslash = memchr(inner.at, '\\', inner.n);
	if (backslash) {
		/* iniparser 4.1 takes a backslash literally, iniparser 4.2 as an escape. */
		REFUSE(s, backslash, "'\\' inside quotes is not supported; leave out the quotes");
		return 0;
	}
	if (rest.n && rest.at[0] != ';' && rest.at[0] != '#') {
		REFUSE(s, rest.at, "text after the closing quote");
		return 0;
	}
	return 1;
}

static void check_plain(const struct scan *s, struct loom__slice value)
{
	size_t n = 0;
	while (n < value.n && value.at[n] != ';' && value.at[n] != '#')
		n++;
	if (n && n < value.n && !loom__blank(value.at[n - 1]))
		loom__diag_add(s->diag, 1, s->file, s->line, column_of(s, value.at + n),
			       "value cut at '%c'; quote it, or put a blank before a comment", value.at[n]);
}

static const struct loom__item *first_of(const struct loom__items *items, struct loom__slice section,
					 struct loom__slice key)
{
	for (size_t i = 0; i < items->count; i++)
		if (items->at[i].kind == LOOM__ITEM_KEY && same(items->at[i].key, key) &&
		    same(items->at[i].section, section))
			return &items->at[i];
	return NULL;
}

/* Stores an item for `key = value`, or reports why the key is wrong at this place. Key and value have no blanks around
 * them. */
static void scan_pair(struct scan *s, struct loom__slice key, struct loom__slice value, int value_column)
{
	struct loom__item item = {.kind = LOOM__ITEM_KEY,
				  .column = column_of(s, key.at),
				  .value_column = value_column,
				  .section = s->section,
				  .key = key,
				  .value = value};
	const struct loom__item *first;
	if (loom__slice_is(key, "include") && s->where == INSIDE && !loom__slice_is(s->section, "gpuloom")) {
		REFUSE(s, key.at, "include goes before the first section or into [gpuloom]");
	} else if (loom__slice_is(key, "include") && s->where != LOST) {
		item.kind = LOOM__ITEM_INCLUDE;
		keep(s, item);
	} else if (s->where == TOP) {
		REFUSE(s, key.at, "key '%.*s' is before the first section; put it under its [section]", WORDS(key));
	} else if (s->where == INSIDE && (first = first_of(s->items, s->section, key))) {
		REFUSE(s, key.at, "key '%.*s' is twice in [%.*s]; the first is on line %d", WORDS(key),
		       WORDS(s->section), first->line);
	} else if (s->where == INSIDE) {
		keep(s, item);
	}
}

static void scan_key(struct scan *s, struct loom__slice line)
{
	const char *fault, *equals = memchr(line.at, '=', line.n);
	size_t where;
	if (!equals) {
		REFUSE(s, line.at, "expected [section], key = value, or a comment after ';'%s",
		       memchr(line.at, ':', line.n) ? " (with '=', not ':')" : "");
		return;
	}
	struct loom__slice key = {line.at, (size_t)(equals - line.at)};
	key = loom__strip(key);
	int own = s->where == INSIDE && s->section.n > 2 && loom__slice_is((struct loom__slice){s->section.at, 2}, "x-");
	if ((fault = loom__name_fault(key, own, &where))) {
		const char *dot = memrchr(key.at, '.', key.n);
		if (dot && dot > key.at && s->where == INSIDE)
			REFUSE(s, dot, "a key has no dots; write [%.*s.%.*s] and below it %.*s = ...",
			       WORDS(s->section), (int)(dot - key.at), key.at, (int)(key.at + key.n - dot - 1),
			       dot + 1);
		else
			REFUSE(s, key.at + where, "%s", fault);
		return;
	}
	struct loom__slice value = {equals + 1, line.n - (size_t)(equals + 1 - line.at)};
	value = loom__strip(value);
	int value_column = column_of(s, value.at);
	if (value.n && (value.at[0] == '"' || value.at[0] == '\'')) {
		if (!check_quoted(s, value))
			return;
	} else {
		check_plain(s, value);
	}
	scan_pair(s, key, value, value_column);
}

static void scan_line(struct scan *s, struct loom__slice line)
{
	const char *fault;
	size_t where;
	s->line++;
	s->line_at = line.at;
	if (line.n && line.at[line.n - 1] == '\r')
		line.n--;
	if (line.n > LOOM__LINE_MOST) {
		REFUSE(s, line.at + LOOM__LINE_MOST, "the line has %zu bytes; the most is %d", line.n, LOOM__LINE_MOST);
		return;
	}
	if ((fault = loom__text_fault(line, &where))) {
		REFUSE(s, line.at + where, "%s", fault);
		return;
	}
	line = loom__strip(line);
	if (!line.n)
		return;
	/* Comments are rejected in the same way, because iniparser would join the next line to the comment. */
	if (line.at[line.n - 1] == '\\')
		REFUSE(s, line.at + line.n - 1, "a line may not end in '\\': there are no continuation lines");
	else if (line.at[0] == '[')
		scan_header(s, line);
	else if (line.at[0] != ';' && line.at[0] != '#')
		scan_key(s, line);
}

void loom__scan(const char *file, const char *text, size_t length, struct loom__items *items, struct loom__diag *diag)
{
	struct scan s = {.file = file, .items = items, .diag = diag};
	const char *end = text + length;
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		if (!stop)
			stop = end;
		scan_line(&s, (struct loom__slice){text, (size_t)(stop - text)});
		if (items->count > LOOM__ITEMS_MOST) {
			REFUSE(&s, s.line_at, "more than %d sections and keys in one file", LOOM__ITEMS_MOST);
			return;
		}
		text = stop < end ? stop + 1 : end;
	}
}
