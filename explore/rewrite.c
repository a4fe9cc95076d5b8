/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum kind { END, WORD, NUMBER, STRING, CHARACTER, PUNCTUATION };
/* What begins at a token. */
enum start { NOTHING, ASM, SHARED, LAUNCH, DEVICE, TEXTURE };

struct token {
	const char *at, *file; /* file: the name in the marker, with its quotes */
	uint32_t bytes, line;
	uint8_t kind, start, system;
	uint32_t other; /* SHARED and LAUNCH: the distance to __shared__ or <<< */
};

struct rewriter {
	struct token *t; /* n tokens, and one of kind END */
	size_t n, allocated;
	FILE *out;
	char *why;
	size_t room;
	int failed;
};

/* Keeps the first reason. Returns the number of tokens, at which all loops end. */
__attribute__((format(printf, 3, 4))) static size_t fail(struct rewriter *r, size_t i, const char *format, ...)
{
	const struct token *t = &r->t[i];
	if (r->failed)
		return r->n;
	r->failed = 1;
	size_t length = strcspn(t->file + 1, "\""), most = r->room / 2; /* leaves room for the reason */
	int n = snprintf(r->why, r->room, "%.*s:%u: ", (int)(length < most ? length : most), t->file + 1, t->line);
	va_list args;
	va_start(args, format);
	if (n >= 0 && (size_t)n < r->room)
		vsnprintf(r->why + n, r->room - (size_t)n, format, args);
	va_end(args);
	return r->n;
}

/* ---- tokens ------------------------------------------------------------------------------------- */

static int in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

/* Returns the end of a string or character, whose quote is at `at`, or NULL. raw: R"x(...)x". */
static const char *quoted(const char *at, int raw)
{
	char quote = *at++;
	if (raw) {
		size_t n = strcspn(at, "(\" \\\n");
		if (n > 16 || at[n] != '(')
			return NULL;
		for (const char *p = at + n; (p = strchr(p, ')')); p++)
			if (!strncmp(p + 1, at, n) && p[n + 1] == '"')
				return p + n + 2;
		return NULL;
	}
	for (; *at && *at != '\n' && *at != quote; at++)
		at += *at == '\\' && at[1];
	return *at == quote ? at + 1 : NULL;
}

/* Returns whether `list`, with spaces around each word, has the word of n characters. */
static int listed(const char *list, const char *word, size_t n)
{
	for (const char *p = list; (p = strchr(p, ' ')); p++)
		if (!strncmp(p + 1, word, n) && p[n + 1] == ' ')
			return 1;
	return 0;
}

/* Returns the end of the token at `at`, or NULL if it is not closed. */
static const char *token_end(const char *at, uint8_t *kind)
{
	const char *p = at;
	*kind = PUNCTUATION;
	if (isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1]))) {
		*kind = NUMBER;
		while (in_word(*p) || *p == '.' || (*p == '\'' && in_word(p[1])) ||
		       ((*p == '+' || *p == '-') && strchr("eEpP", p[-1])))
			p++;
		return p;
	}
	while (in_word(*p))
		p++;
	size_t n = (size_t)(p - at);
	if ((*p == '"' || *p == '\'') && (!n || listed(" u8 u U L R u8R uR UR LR ", at, n))) {
		*kind = *p == '"' ? STRING : CHARACTER;
		return quoted(p, n && p[-1] == 'R');
	}
	if (n) {
		*kind = WORD;
		return p;
	}
	return at + 1 + (!strncmp(at, "::", 2) || !strncmp(at, "->", 2));
}

/* Reads a line that begins with '#': a marker or a pragma. */
static void marker(const char *at, struct token *place)
{
	char *after;
	at += 1 + strspn(at + 1, " \t");
	unsigned long line = strtoul(at, &after, 10);
	if (after == at)
		return;
	place->line = (uint32_t)line - 1; /* the line feed adds 1 */
	after += strspn(after, " \t");
	const char *end = *after == '"' ? quoted(after, 0) : NULL;
	if (!end)
		return;
	place->file = after;
	place->system = 0;
	for (; *end && *end != '\n'; end++)
		place->system |= *end == '3'; /* the flag of system headers */
}

static void lex(struct rewriter *r, const char *text, size_t bytes)
{
	struct token place = {.file = "\"source\"", .line = 1};
	int fresh = 1; /* no token in this line yet */
	for (const char *at = text, *end = text;; at = end) {
		if (r->n + 1 >= r->allocated) {
			r->allocated = r->allocated ? r->allocated * 2 : 1024;
			struct token *more = realloc(r->t, r->allocated * sizeof(*more));
			if (!more)
				abort();
			r->t = more;
		}
		for (; isspace((unsigned char)*at) || (*at == '#' && fresh); at++) {
			if (*at == '#') {
				marker(at, &place);
				at += strcspn(at, "\n");
				if (!*at)
					break;
			}
			fresh |= *at == '\n';
			place.line += *at == '\n';
		}
		struct token *t = &r->t[r->n];
		*t = place;
		t->at = at;
		if (!*at) {
			if (at != text + bytes)
				fail(r, r->n, "a byte 0; give a text file");
			return;
		}
		fresh = 0;
		end = token_end(at, &t->kind);
		if (!end) {
			fail(r, r->n, "%.12s: a string or character that is not closed; close it", at);
			t->kind = END;
			return;
		}
		t->bytes = (uint32_t)(end - at);
		for (const char *p = at; p < end; p++)
			place.line += *p == '\n'; /* in a raw string */
		r->n++;
	}
}

/* ---- search ------------------------------------------------------------------------------------- */

static int is(const struct rewriter *r, size_t i, const char *text)
{
	const struct token *t = &r->t[i];
	return t->bytes == strlen(text) && t->kind != STRING && !memcmp(t->at, text, t->bytes);
}

static int one_of(const struct rewriter *r, size_t i, const char *list)
{
	return r->t[i].kind == WORD && listed(list, r->t[i].at, r->t[i].bytes);
}

static char bracket(const struct rewriter *r, size_t i, const char *set)
{
	const struct token *t = &r->t[i];
	return t->kind == PUNCTUATION && t->bytes == 1 && strchr(set, *t->at) ? *t->at : 0;
}

/* Returns the bracket that closes the one at i. */
static size_t closing(struct rewriter *r, size_t i)
{
	size_t depth = 0, first = i;
	for (; i < r->n; i++) {
		depth += bracket(r, i, "([{") != 0;
		if (bracket(r, i, ")]}") && !--depth)
			return i;
	}
	return fail(r, first, "%c is not closed; close it", *r->t[first].at);
}

/* Returns the > that closes the < at i, or i if this < does not begin a list of arguments. */
static size_t closing_angle(struct rewriter *r, size_t i)
{
	size_t depth = 0;
	for (size_t k = i; k < r->n && !bracket(r, k, ";{})"); k++) {
		k = bracket(r, k, "([") ? closing(r, k) : k;
		depth += bracket(r, k, "<") != 0;
		if (bracket(r, k, ">") && !--depth)
			return k;
	}
	return i;
}

/* Returns the first of these punctuators at or after i that is not in brackets, before `to`. */
static size_t find(struct rewriter *r, size_t i, size_t to, const char *set)
{
	while (i < to && !bracket(r, i, set)) {
		if (bracket(r, i, "([{"))
			i = closing(r, i);
		else if (bracket(r, i, "<") && i && r->t[i - 1].kind == WORD)
			i = closing_angle(r, i);
		i++;
	}
	return i < to ? i : to;
}

/* Returns the bracket that opens the one at i, or the end. */
static size_t opening(struct rewriter *r, size_t i, const char *open, const char *close)
{
	for (size_t depth = 0, k = i + 1; k-- && !r->failed;) {
		if (*close == '>' && bracket(r, k, ")]"))
			k = opening(r, k, "([", ")]");
		depth += bracket(r, k, close) != 0;
		if (bracket(r, k, open) && !--depth)
			return k;
	}
	return fail(r, i, "%c has no opening bracket; add it", *r->t[i].at);
}

/* Returns the first token of the expression that ends before i: a::f<b>, (f), p->f, f[i]. */
static size_t callee(struct rewriter *r, size_t i)
{
	for (size_t k = i; k-- > 0 && k < r->n;) {
		if (bracket(r, k, ">)]")) {
			k = bracket(r, k, ">") ? opening(r, k, "<", ">") : opening(r, k, "([", ")]");
			if (k < r->n && (!bracket(r, k, "(") || (k && r->t[k - 1].kind == WORD)))
				continue;
		} else if (r->t[k].kind != WORD) {
			break;
		}
		if (k >= r->n || !k || !(is(r, k - 1, "::") || is(r, k - 1, "->") || is(r, k - 1, ".")))
			return k;
		k--; /* :: may be the first token */
		if (!k || (r->t[k - 1].kind != WORD && !bracket(r, k - 1, ">)]")))
			return k;
	}
	return fail(r, i, "<<< without the name of a kernel; write NAME<<<GRID, BLOCK>>>(ARGUMENTS)");
}

/* Returns whether token i is outside of functions and classes. */
static int at_namespace(struct rewriter *r, size_t i)
{
	for (size_t depth = 0; i--;) {
		depth += bracket(r, i, "}") != 0;
		if (!bracket(r, i, "{") || (depth && depth--))
			continue;
		size_t k = i;
		while (k && (r->t[k - 1].kind == WORD || r->t[k - 1].kind == STRING || is(r, k - 1, "::")) &&
		       !one_of(r, k, " namespace extern "))
			k--;
		if (!one_of(r, k, " namespace extern "))
			return 0;
	}
	return 1;
}

static const char attributes[] = " alignas __attribute__ decltype noexcept explicit ";

static size_t after_attributes(struct rewriter *r, size_t i)
{
	while (!r->failed && one_of(r, i, attributes) && bracket(r, i + 1, "("))
		i = closing(r, i + 1) + 1;
	return i;
}

/* Marks the tokens at which a construct begins. */
static void mark(struct rewriter *r, size_t i)
{
	struct token *t = &r->t[i];
	if (bracket(r, i, "<") && bracket(r, i + 1, "<") && bracket(r, i + 2, "<") && i && !is(r, i - 1, "operator") &&
	    !bracket(r, i - 1, "<")) {
		size_t first = callee(r, i);
		r->t[first].start = LAUNCH;
		r->t[first].other = (uint32_t)(i - first);
	} else if (is(r, i, "__shared__")) {
		size_t first = i;
		while (first &&
		       (one_of(r, first - 1, " static extern volatile const inline ") || bracket(r, first - 1, ")"))) {
			size_t k = first - 1;
			if (bracket(r, k, ")") &&
			    !((k = opening(r, k, "(", ")")) && k < r->n && one_of(r, --k, attributes)))
				break;
			first = k;
		}
		r->t[first].start = SHARED;
		r->t[first].other = (uint32_t)(i - first);
	} else if (one_of(r, i, " asm __asm __asm__ ")) {
		t->start = ASM;
	} else if (one_of(r, i, " __device__ __constant__ __managed__ ") ||
		   (is(r, i, "__noinline__") && i && !bracket(r, i - 1, "(") && !bracket(r, i - 1, ","))) {
		t->start = DEVICE;
	} else if (one_of(r, i, " texture surface ") && bracket(r, i + 1, "<")) {
		t->start = TEXTURE;
	}
}

/* ---- output: each of these functions writes the construct at i and returns the token after it. */

static void copy(struct rewriter *r, size_t from, size_t to, int flat);

static void place(struct rewriter *r, size_t i, const char *what)
{
	const struct token *t = &r->t[i];
	fprintf(r->out, "::explore_place{\"%s\", %.*s, %u}", what, (int)strcspn(t->file + 1, "\"") + 2, t->file,
		t->line);
}

/* Writes strings of a template, in which %N replaces %[NAME]. names[N]: the token of NAME, or 0. */
static void template(struct rewriter *r, size_t i, const size_t *names, size_t n)
{
	const struct token *t = &r->t[i];
	for (const char *p = t->at, *end = t->at + t->bytes; p < end; p++) {
		size_t k = 0, length = *p == '%' && p[1] == '[' ? strcspn(p + 2, "]\"") : 0;
		while (length && k < n &&
		       !(names[k] && r->t[names[k]].bytes == length && !memcmp(r->t[names[k]].at, p + 2, length)))
			k++;
		if (!length)
			putc(*p == '\n' ? ' ' : *p, r->out);
		else if (k == n || p[2 + length] != ']')
			fail(r, i, "asm: %%[%.*s] names no operand; name the operand", (int)length, p + 2);
		else if (fprintf(r->out, "%%%zu", k))
			p += 2 + length;
		if (p[0] == '%' && p[1] == '%')
			putc(*++p, r->out);
	}
}

enum { OPERANDS = 64 };

static size_t write_asm(struct rewriter *r, size_t i)
{
	size_t first = i++, name[OPERANDS], constraint[OPERANDS], section[OPERANDS], n = 0, sections = 0, open;
	while (one_of(r, i, " volatile __volatile__ __volatile inline "))
		i++;
	if (!bracket(r, i, "(") || r->t[i + 1].kind != STRING)
		return fail(r, first, "asm without a text; write asm(\"TEXT\" : OUTPUTS : INPUTS)");
	size_t end = closing(r, i), text = ++i;
	while (r->t[i].kind == STRING)
		i++;
	for (; i < end; i++) {
		int colons = is(r, i, "::") ? 2 : bracket(r, i, ":") != 0;
		sections += (size_t)colons;
		if (colons || sections > 2 || (n && bracket(r, i, ","))) /* > 2: names of registers */
			continue;
		int named = bracket(r, i, "[") && r->t[i + 1].kind == WORD && bracket(r, i + 2, "]");
		name[n] = named ? i + 1 : 0;
		constraint[n] = open = i + (named ? 3 : 0);
		while (r->t[open].kind == STRING)
			open++;
		if (!sections || open == constraint[n] || !bracket(r, open, "(") || n == OPERANDS - 1)
			return fail(r, i, "asm: %.*s is no operand; write \"CONSTRAINT\"(VALUE), at most %d",
				    (int)r->t[i].bytes, r->t[i].at, OPERANDS - 1);
		section[n++] = sections;
		i = closing(r, open);
	}
	fputs("::explore::ptx(", r->out);
	place(r, first, "asm");
	fputs(", ", r->out);
	for (i = text; r->t[i].kind == STRING && !r->failed; i++)
		template(r, i, name, n);
	for (i = 0; i < n && !r->failed; i++) {
		fprintf(r->out, ", ::explore::%s(", section[i] == 1 ? "out" : "in");
		for (open = constraint[i]; r->t[open].kind == STRING; open++)
			fprintf(r->out, "%.*s", (int)r->t[open].bytes, r->t[open].at);
		fputs(", ", r->out);
		copy(r, open + 1, closing(r, open), 1);
		putc(')', r->out);
	}
	putc(')', r->out);
	return end + 1;
}

/* [static] __shared__ T a[2], *b;   or   extern __shared__ T a[]; */
static size_t write_shared(struct rewriter *r, size_t i)
{
	size_t first = i, word = i + r->t[i].other, is_extern = 0, is_volatile = 0;
	for (; i < word; i++) {
		is_extern |= (size_t)is(r, i, "extern");
		is_volatile |= (size_t)is(r, i, "volatile");
	}
	size_t base = after_attributes(r, word + 1), stop = find(r, base, r->n, ";"), type;
	size_t from = find(r, base, stop, "[,=({");
	for (type = base; type < from && !bracket(r, type, "*&"); type++)
		if (bracket(r, type, "<"))
			type = closing_angle(r, type);
	type -= type == from; /* the name is the last word */
	if (stop == r->n || type <= base || type > from || r->failed)
		return fail(r, word, "__shared__: no declaration; write __shared__ TYPE NAME[SIZE];");
	if (is_extern && at_namespace(r, first))
		return fail(r, word, "extern __shared__ outside of a kernel is not supported; move it into the kernel");
	for (size_t at = type; at < stop && !r->failed; at = from + 1) {
		from = find(r, at, stop, "[,=({");
		size_t end = find(r, from, stop, ",=({"), name = from - 1;
		const struct token *t = &r->t[name];
		if (name < at || t->kind != WORD || (end < stop && !bracket(r, end, ",")))
			return fail(
			    r, name,
			    "__shared__ %.*s: only variables and arrays of named types, without values, are supported",
			    (int)t->bytes, t->at);
		if (is_extern && !(bracket(r, from, "[") && bracket(r, from + 1, "]") && from + 2 == end))
			return fail(r, name, "extern __shared__ %.*s: not an array without size; write %.*s[]",
				    (int)t->bytes, t->at, (int)t->bytes, t->at);
		fprintf(r->out, "auto %c%.*s = ::explore::%sshared<%s", is_extern ? '*' : '&', (int)t->bytes, t->at,
			is_extern ? "dynamic_" : "", is_volatile ? "volatile " : "");
		copy(r, base, type, 1);
		copy(r, at, name, 1);
		copy(r, from, is_extern ? from : end, 1);
		fprintf(r->out, ">(%s); ", is_extern ? "" : "[]{}");
		from = end;
	}
	return stop + 1;
}

static size_t write_launch(struct rewriter *r, size_t first)
{
	size_t angle = first + r->t[first].other, i = angle + 3, commas = 0, end = i;
	while (end < r->n && !(bracket(r, end, ">") && bracket(r, end + 1, ">") && bracket(r, end + 2, ">") &&
			       bracket(r, end + 3, "("))) {
		commas += bracket(r, end, ",") != 0;
		end = bracket(r, end, "([{") ? closing(r, end) + 1 : bracket(r, end, ";") ? r->n : end + 1;
	}
	if (end >= r->n)
		return fail(r, angle, "<<< is not closed; write <<<GRID, BLOCK>>>(ARGUMENTS)");
	if (!commas || commas > 3)
		return fail(r, angle, "<<<>>> has %zu values; write <<<GRID, BLOCK, SHARED, STREAM>>>", commas + 1);
	size_t close = closing(r, end + 3);
	fputs("::explore::launch(", r->out);
	place(r, angle, "launch");
	fputs(", [=](auto... explore_a) { ", r->out);
	copy(r, first, angle, 1);
	fputs("(explore_a...); }, ::explore::grid(", r->out);
	copy(r, i, end, 1);
	putc(')', r->out);
	fputs(close > end + 4 ? ", " : "", r->out);
	copy(r, end + 4, close, 1);
	putc(')', r->out);
	return close + 1;
}

/* Ranks are threads of one process, so all of them would share a variable of a device. A function is accepted, and a
 * constant. */
static size_t check_device(struct rewriter *r, size_t i)
{
	size_t k = i, name = i;
	int constant = 0, is_type = 0;
	for (size_t b = i; b && !bracket(r, b - 1, ";{}"); b--)
		constant |= is(r, b - 1, "constexpr");
	if (i > 1 && bracket(r, i - 1, "]") && !bracket(r, i - 2, "]"))
		return i + 1; /* a lambda */
	for (; k < r->n && !bracket(r, k, ";={(["); k++) {
		if (is(r, k, "operator"))
			return i + 1;
		constant |= is(r, k, "constexpr");
		is_type |= one_of(r, k, " struct class union enum ");
		name = r->t[k].kind == WORD ? k : name;
		if (one_of(r, k, attributes) && bracket(r, k + 1, "("))
			k = closing(r, k + 1);
		else if (bracket(r, k, "<") && r->t[k - 1].kind == WORD)
			k = closing_angle(r, k);
		else if (bracket(r, k + 1, "[") && bracket(r, k + 2, "["))
			k = closing(r, k + 1);
	}
	if (k < r->n && !bracket(r, k, "(") && !(is_type && bracket(r, k, "{")) && !constant)
		return fail(
		    r, name,
		    "%.*s: all ranks would share this %.*s variable; allocate it for each rank, and pass a pointer",
		    (int)r->t[name].bytes, r->t[name].at, (int)r->t[i].bytes, r->t[i].at);
	return i + 1;
}

static size_t construct(struct rewriter *r, size_t i)
{
	int start = r->t[i].start;
	r->t[i].start = NOTHING; /* for its tokens are copied by copy() */
	switch (start) {
	case ASM:
		return write_asm(r, i);
	case SHARED:
		return write_shared(r, i);
	case LAUNCH:
		return write_launch(r, i);
	case DEVICE:
		return check_device(r, i);
	default: /* TEXTURE */
		return fail(r, i, "%.*s is not supported; docs/explore.md lists what is", (int)r->t[i].bytes,
			    r->t[i].at);
	}
}

/* Writes tokens. flat: in one line, as a part of a construct. */
static void copy(struct rewriter *r, size_t from, size_t to, int flat)
{
	for (size_t i = from, next; i < to && !r->failed; i = next) {
		const struct token *t = &r->t[i], *before = i ? t - 1 : NULL;
		const char *gap = before ? before->at + before->bytes : NULL;
		if (flat)
			fputs(i > from && gap < t->at ? " " : "", r->out);
		else if (gap)
			fwrite(gap, 1, (size_t)(t->at - gap), r->out);
		next = i + 1;
		if (t->start == NOTHING) {
			fwrite(t->at, 1, t->bytes, r->out);
			continue;
		}
		next = construct(r, i);
		const struct token *last = &r->t[next - 1];
		if (!flat && !r->failed && (last->line != t->line || last->file != t->file))
			fprintf(r->out, "\n# %u %.*s\n", last->line, (int)strcspn(last->file + 1, "\"") + 2,
				last->file);
	}
}

int explore_rewrite(const char *text, size_t bytes, FILE *out, char *why, size_t room)
{
	struct rewriter r = {.out = out, .why = why, .room = room};
	lex(&r, text, bytes);
	for (size_t i = 0; i < r.n && !r.failed; i++)
		if (!r.t[i].system)
			mark(&r, i);
	if (!r.failed) {
		fwrite(text, 1, (size_t)(r.t[0].at - text), out);
		copy(&r, 0, r.n, 0);
		if (r.n)
			fputs(r.t[r.n - 1].at + r.t[r.n - 1].bytes, out);
	}
	free(r.t);
	return r.failed ? -1 : 0;
}
