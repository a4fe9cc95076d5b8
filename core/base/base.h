/* SPDX-License-Identifier: Apache-2.0 */
/* What all parts of the core use: errors, numbers as text, file reading, names, and the texts of lib/text.h. */
#ifndef LOOM_BASE_H
#define LOOM_BASE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <gpuloom/error.h>

#include "lib/io.h"
#include "lib/text.h"

/* Fills *err, which may be NULL, and returns `code`. The function that first detects an error calls this. */
int loom__fail(struct loom_error *err, int code, const char *file, int line, const char *fmt, ...)
    LOOM_PRINTF(5, 6);
int loom__vfail(struct loom_error *err, int code, const char *file, int line, const char *fmt,
		va_list args) LOOM_PRINTF(5, 0);
#define LOOM__FAIL(err, code, ...) loom__fail((err), (code), __FILE__, __LINE__, __VA_ARGS__)

/* Returns LOOM_ENOMEM if the stack of the calling thread is too small for a call that reads a conf, loads plug-ins or
 * composes code. It takes microseconds. */
int loom__stack_room(struct loom_error *err);

/* Appends the shortest decimal number that reads back as v. Its decimal mark is a point in every locale. v must be
 * finite. */
void loom__text_double(struct loom__text *t, double v);

/* Reads a number of the form [-]digits[.digits][e[+-]digits], independent of the locale. Returns 0, with *end at the
 * first byte after the number. If there is no finite number, returns -1 and sets nothing. */
int loom__read_double(const char *text, const char **end, double *value);

/* Returns the length of the UTF-8 character at s in bytes, or 0 if there is no valid character. n is the number of
 * bytes that are left at s, at least 1. */
size_t loom__utf8(const char *s, size_t n);

/* Text from outside must pass one of these functions before it gets to a terminal, table or document. Text from outside
 * is names, paths, program output, the environment, /proc, messages of other ranks, and documents. The result is UTF-8
 * without control characters (C0, DEL, C1), line separators and marks that change the direction of text. */
enum loom__fit {
	LOOM__FIT,   /* a character that loom__clean_bytes() keeps */
	LOOM__UNFIT, /* a character that loom__clean_bytes() replaces by '?', or by a blank if it is white space */
	LOOM__HALF,  /* the start of a character that a length limit has cut; loom__clean_bytes() removes it */
};
/* Returns the length of the item at s in bytes: a character, the start of a character, or a stray byte. n is the number
 * of bytes that are left at s, at least 1. */
size_t loom__character(const char *s, size_t n, enum loom__fit *fit);
/* Cleans text in place and returns its new length. `keep`: control characters that stay, such as "\n\t" if text has
 * several lines. */
size_t loom__clean_bytes(char *text, size_t n, const char *keep);
/* Cleans a line in an array of `room` bytes, ends it with a NUL, and fills the rest of the array with zeros. */
void loom__clean(char *text, size_t room);

/* Reads a whole regular file into *bytes, which the caller frees. A NUL follows the bytes; *length does not count it.
 * The function rejects directories, devices, pipes, and files larger than `most` bytes. */
int loom__read_file(const char *path, size_t most, char **bytes, size_t *length,
		    struct loom_error *err);

/* A search for the name nearest to `word`. The measure is the Damerau-Levenshtein distance without regard to case, of
 * at most max(1, length of `word` / 3). If several names are equally near, the first is taken. */
struct loom__near {
	const char *word, *name; /* name: the nearest name found so far, or NULL. Initialise with {.word = ...} */
	size_t edits;            /* distance of `name` from `word` */
};
/* Makes `candidate` the nearest name if it is nearer than the name before. Returns 1 if it is nearer. `candidate` must
 * then stay valid as long as n. */
int loom__nearer(struct loom__near *n, const char *candidate);
/* Returns the nearest name of a list, or NULL. */
const char *loom__nearest(const char *word, const char *const *candidates, size_t n);
/* The three arguments for a "%s%s%s" that suggests `name`. If `name` is NULL, all three are empty. */
#define LOOM__MEANT(name) (name) ? "; did you mean '" : "", (name) ? (name) : "", (name) ? "'?" : ""

/* Returns the next word of the text *rest, or NULL. Modifies the text. Any character of `gaps` separates words. A
 * backslash makes a separator, or another backslash, part of a word. */
char *loom__word(char **rest, const char *gaps);
/* Appends `word` in the form that loom__word() reads. */
void loom__word_put(struct loom__text *t, const char *word, const char *gaps);

/* Only ASCII letters change, because names in a conf must not depend on the locale of the process. */
static inline int loom__lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c;
}
int loom__same(const char *a, const char *b); /* returns 1 if both are equal when case is ignored */

/* Appends `name` as a path. An absolute name is unchanged; a relative name is relative to the folder of `file`. */
void loom__beside(struct loom__text *path, const char *file, const char *name);

/* Returns 0 if libgpuloom.so has loaded cJSON and iniparser (borrowed.c), else an error. The function does not exist
 * (its address is NULL) in programs that link to these two libraries themselves. */
int loom__borrowed(struct loom_error *err) __attribute__((weak));

uint64_t loom__now_ns(void); /* returns the time of CLOCK_MONOTONIC */

#define LOOM__COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
