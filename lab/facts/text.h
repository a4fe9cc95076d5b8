/* SPDX-License-Identifier: Apache-2.0 */
/* Formatted text with escaping. */
#ifndef LOOM_TEXT_H
#define LOOM_TEXT_H

#include "base/base.h"

/* Works like loom__text_add(), but appends the argument of each %s by `put`, whose `most` is the precision. A width
 * counts characters. Supported are %s, %c, %d, %u, %x, their l, ll and z forms, %f and %g. */
typedef void loom__put_fn(struct loom__text *t, const char *text, size_t most);
void loom__text_with(struct loom__text *t, loom__put_fn *put, const char *fmt, ...) LOOM_PRINTF(3, 4);
void loom__text_vwith(struct loom__text *t, loom__put_fn *put, const char *fmt, va_list args) LOOM_PRINTF(3, 0);

/* Cleans the bytes of t from index `from` to the end, as loom__clean_bytes() does. */
void loom__text_clean(struct loom__text *t, size_t from, const char *keep);

/* For tables and terminals: turns the argument of each %s into one printable line, as base.h defines it. */
loom__put_fn loom__put_line;
#define loom__line_add(out, ...) loom__text_with(out, loom__put_line, __VA_ARGS__)

#endif
