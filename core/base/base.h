/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the whole core: errors, numbers as text, file reading, names, and the texts of lib/text.h. */
#ifndef LOOM_BASE_H
#define LOOM_BASE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <gpuloom/error.h>

#include "lib/io.h"
#include "lib/text.h"

/* Fills *err (may be NULL) and returns `code`. The first function that knows the cause calls this. */
int loom__fail(struct loom_error *err, int code, const char *file, int line, const char *fmt, ...)
    LOOM_PRINTF(5, 6);
int loom__vfail(struct loom_error *err, int code, const char *file, int line, const char *fmt,
		va_list args) LOOM_PRINTF(5, 0);
#define LOOM__FAIL(err, code, ...) loom__fail((err), (code), __FILE__, __LINE__, __VA_ARGS__)

/* Appends the shortest decimal number that reads back as v, with a point in every locale. v must be finite. */
void loom__text_double(struct loom__text *t, double v);

/* Reads exactly [-]digits[.digits][e[+-]digits], whatever the locale. Returns 0 with *end at the first byte after the
 * number, or -1, and sets nothing, when there is no finite number. */
int loom__read_double(const char *text, const char **end, double *value);

/* Returns the length in bytes of the UTF-8 character at s, or 0 when s is none. n > 0 bytes are left. */
size_t loom__utf8(const char *s, size_t n);

/* Text from outside passes one of these functions on its way to a terminal, table or document. Such text is names,
 * paths, program output, the environment, /proc, messages of other ranks, and documents. The result is UTF-8 without
 * control characters (C0, DEL, C1), line separators and marks that change the direction of text. */
enum loom__fit {
	LOOM__FIT,
	LOOM__UNFIT, /* replaced by '?', or by a blank if it is white space */
	LOOM__HALF,  /* the start of a character that a length limit has cut: removed */
};
/* Returns the bytes of the item at s: a character, the start of one, or a stray byte; n > 0 bytes are left. */
size_t loom__character(const char *s, size_t n, enum loom__fit *fit);
/* Cleans text in place and returns its new length. `keep`: control characters that stay, as "\n\t" in several lines. */
size_t loom__clean_bytes(char *text, size_t n, const char *keep);
/* Cleans one line in an array of `room` bytes: NUL-terminates the line and fills the rest with zeros. */
void loom__clean(char *text, size_t room);
/* Cleans the bytes from `from` on. */
void loom__text_clean(struct loom__text *t, size_t from, const char *keep);

/* Reads a whole regular file into *bytes, which the caller frees. A NUL follows, which *length does not count. The
 * function rejects directories, devices and files over `most` bytes. */
int loom__read_file(const char *path, size_t most, char **bytes, size_t *length,
		    struct loom_error *err);

/* Returns LOOM_ENOENT, LOOM_ENOMEM or LOOM_EIO for an errno. */
int loom__errno_code(int number);

/* A search for the name nearest to `word` by Damerau-Levenshtein distance, at most max(1, len/3) away. Case is ignored.
 * Of equally near names the first one counts. */
struct loom__near {
	const char *word, *name; /* name: the nearest so far; NULL: none. Initialise with {.word = ...} */
	size_t edits;
};
/* Returns 1 when the candidate is now the nearest; then the candidate must stay valid as long as n. */
int loom__nearer(struct loom__near *n, const char *candidate);
/* Returns the nearest name of a list, or NULL. */
const char *loom__nearest(const char *word, const char *const *candidates, size_t n);
/* Arguments for "%s%s%s" with a nearest name or NULL. */
#define LOOM__MEANT(name) (name) ? "; did you mean '" : "", (name) ? (name) : "", (name) ? "'?" : ""

/* Returns the next word of the list *rest, which the call modifies, or NULL. Any character of `gaps` separates words. A
 * backslash makes such a character, or another backslash, part of a word. */
char *loom__word(char **rest, const char *gaps);
/* Appends `word` in the form that loom__word() reads. */
void loom__word_put(struct loom__text *t, const char *word, const char *gaps);

/* ASCII only, because names in a conf must not depend on the locale of the process. */
static inline int loom__lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c;
}
int loom__same(const char *a, const char *b); /* returns 1 if equal but for case */

/* Appends `name` relative to the folder of `file`; an absolute name is unchanged. */
void loom__beside(struct loom__text *path, const char *file, const char *name);

/* Returns 0 when the libraries that libgpuloom.so loads by itself are there. The function is absent in programs whose
 * linker adds these libraries. */
int loom__borrowed(struct loom_error *err) __attribute__((weak));

uint64_t loom__now_ns(void); /* CLOCK_MONOTONIC */

#define LOOM__COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
