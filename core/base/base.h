/* SPDX-License-Identifier: Apache-2.0 */
/* What the whole core uses: errors, numbers as text, file reading, names; and the texts of lib/text.h. */
#ifndef LOOM_BASE_H
#define LOOM_BASE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <gpuloom/error.h>

#include "lib/io.h"
#include "lib/text.h"

/* Fills *err (may be NULL), returns code. The first function that knows the cause calls this. */
int loom__fail(struct loom_error *err, int code, const char *file, int line, const char *fmt, ...)
    LOOM_PRINTF(5, 6);
int loom__vfail(struct loom_error *err, int code, const char *file, int line, const char *fmt,
		va_list args) LOOM_PRINTF(5, 0);
#define LOOM__FAIL(err, code, ...) loom__fail((err), (code), __FILE__, __LINE__, __VA_ARGS__)

/* The shortest decimal number that reads back as v; a point in every locale. v is finite. */
void loom__text_double(struct loom__text *t, double v);

/* Reads [-]digits[.digits][e[+-]digits] and nothing else, whatever the locale. 0: *end is the first
 * byte not read. -1: there is no finite number, and nothing is set. */
int loom__read_double(const char *text, const char **end, double *value);

/* Bytes of the UTF-8 character at s (n bytes are left, n > 0), or 0 when it is not one. */
size_t loom__utf8(const char *s, size_t n);

/* Text from outside (names, paths, figures and messages of programs, environment, /proc, other ranks, documents) passes
 * one of these on its way to a terminal, a table or a document. What comes out is UTF-8 without control characters (C0,
 * DEL, C1), line separators and marks that turn the direction of text. */
enum loom__fit {
	LOOM__FIT,
	LOOM__UNFIT, /* '?' stands for it, a blank for white space */
	LOOM__HALF,  /* the part of a character that a limit of length left: removed */
};
/* Bytes of the item at s (n bytes are left, n > 0): a character, the start of one, or a byte that is neither. */
size_t loom__character(const char *s, size_t n, enum loom__fit *fit);
/* In place; the new length. `keep`: control characters that stay, as "\n\t" in text of several lines. */
size_t loom__clean_bytes(char *text, size_t n, const char *keep);
/* One line in an array of `room` bytes: terminated, and filled with zeros. */
void loom__clean(char *text, size_t room);
/* The bytes from `from` on. */
void loom__text_clean(struct loom__text *t, size_t from, const char *keep);

/* The whole of a regular file, NUL-terminated (the NUL not counted); free(*bytes). A directory, a
 * device or a file over `most` bytes is rejected. */
int loom__read_file(const char *path, size_t most, char **bytes, size_t *length,
		    struct loom_error *err);

/* LOOM_ENOENT, LOOM_ENOMEM or LOOM_EIO. */
int loom__errno_code(int number);

/* The search for the name nearest to `word` by Damerau-Levenshtein distance, at most max(1, len/3) away, the
 * first of several. Case is ignored. */
struct loom__near {
	const char *word, *name; /* name: the nearest so far; NULL: none. Start with {.word = ...} */
	size_t edits;
};
/* 1: the candidate is now the nearest, and must stay valid as long as n. */
int loom__nearer(struct loom__near *n, const char *candidate);
/* Among all of a list, or NULL. */
const char *loom__nearest(const char *word, const char *const *candidates, size_t n);
/* Of a nearest name or NULL, for "%s%s%s". */
#define LOOM__MEANT(name) (name) ? "; did you mean '" : "", (name) ? (name) : "", (name) ? "'?" : ""

/* The next word of a list that *rest is, which is changed, or NULL: any of `gaps` separates words. A backslash before one
 * of these, or before another backslash, makes it a part of the word. */
char *loom__word(char **rest, const char *gaps);
/* Appends `word` so that loom__word() gives it back. */
void loom__word_put(struct loom__text *t, const char *word, const char *gaps);

/* ASCII alone: the names in a conf must not depend on the process's locale. */
static inline int loom__lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c;
}
int loom__same(const char *a, const char *b); /* 1: equal but for case */

/* Appends `name` as seen from the folder of `file`; an absolute name stays as it is. */
void loom__beside(struct loom__text *path, const char *file, const char *name);

/* 0: the libraries that libgpuloom.so loads by itself are there. Absent in other programs, whose linker adds them. */
int loom__borrowed(struct loom_error *err) __attribute__((weak));

uint64_t loom__now_ns(void); /* CLOCK_MONOTONIC */

#define LOOM__COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
