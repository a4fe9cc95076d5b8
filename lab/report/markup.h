/* SPDX-License-Identifier: Apache-2.0 */
/* Text into HTML and SVG. What comes from a document passes through loom__markup_text; what does
 * not is a literal of ours. */
#ifndef LOOM_MARKUP_H
#define LOOM_MARKUP_H

#include "facts/text.h"

/* `text` escaped for element content and for attributes in double quotes. Bytes that are not UTF-8,
 * controls and marks that turn the direction of text become U+FFFD. */
void loom__markup_text(struct loom__text *out, const char *text);
/* The same, at most `most` characters, the last one an ellipsis when more were there. */
void loom__markup_cut(struct loom__text *out, const char *text, size_t most);
/* loom__text_add with every %s escaped, at most its precision of characters. */
#define loom__markup_add(out, ...) loom__text_with(out, loom__markup_cut, __VA_ARGS__)
size_t loom__markup_width(const char *text); /* in characters */

/* A coordinate with one decimal, whatever the locale: "%s", LOOM__XY(x). */
const char *loom__coordinate(char text[24], double v);
#define LOOM__XY(v) loom__coordinate((char[24]){0}, (v))

/* Appends what was put together apart, and frees it. */
void loom__markup_move(struct loom__text *out, struct loom__text *part);

/* Figures as people read them; an en dash for NaN. */
void loom__markup_figure(struct loom__text *out, double v, const char *unit);
/* "302.1 ... 312.4 ms": the unit once where both have the same. */
void loom__markup_range(struct loom__text *out, double low, double high, const char *unit);
/* A ratio as a change: "+3.2 %", "-41 %", and above a factor of 3 "x4.1". */
const char *loom__change(char text[32], double ratio);
#define LOOM__CHANGE(ratio) loom__change((char[32]){0}, (ratio))
/* "+1.2 % ... +3 %", with `open` for a bound that is NaN. */
const char *loom__change_range(char text[80], double low, double high, const char *open);
/* "p 0.004", "p < 0.001"; an en dash for NaN. */
const char *loom__p_value(char text[32], double p);

#endif
