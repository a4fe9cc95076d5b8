/* SPDX-License-Identifier: Apache-2.0 */
/* Text for HTML and SVG. Text from documents must pass through loom__markup_text(), which escapes it. */
#ifndef LOOM_MARKUP_H
#define LOOM_MARKUP_H

#include <gpuloom/plugin.h>

#include "facts/text.h"

/* Escapes `text` for the content of elements and for attributes in double quotes. Invalid UTF-8, control characters and
 * marks that change the direction of text become U+FFFD. */
void loom__markup_text(struct loom__text *out, const char *text);
/* Escapes at most `most` characters. If text was cut, the last character is an ellipsis. */
void loom__markup_cut(struct loom__text *out, const char *text, size_t most);
/* Works like loom__text_add(), but escapes the argument of each %s, and cuts it to the precision of the %s, which
 * counts characters. */
#define loom__markup_add(out, ...) loom__text_with(out, loom__markup_cut, __VA_ARGS__)
size_t loom__markup_width(const char *text); /* returns the number of characters */

/* Formats a coordinate with one decimal and a decimal point in every locale. LOOM__XY(x) is an argument for "%s". */
const char *loom__coordinate(char text[24], double v);
#define LOOM__XY(v) loom__coordinate((char[24]){0}, (v))

/* Appends `part` and frees it. */
void loom__markup_move(struct loom__text *out, struct loom__text *part);

/* Returns a range, such as "302.1 ... 312.4 ms". A unit that both ends share appears once. */
const char *loom__figure_range(char text[340], double low, double high, const char *unit);
/* Returns a ratio as a change: "+3.2 %" or "-41 %", and from a factor of 3 on "x4.1" or "/4.1". */
const char *loom__change(char text[48], double ratio);
#define LOOM__CHANGE(ratio) loom__change((char[48]){0}, (ratio))
/* Returns a range of changes, such as "+1.2 % ... +3 %". An end that is NaN is "?". If one end is a factor, both are:
 * "x0.66 ... x5.08". */
const char *loom__change_range(char text[112], double low, double high);
/* Returns the change of a metric, which from a factor of 3 on says whether the variant is better: "x1257 faster". */
const char *loom__gain(char text[48], double ratio, enum loom_better better);
#define LOOM__GAIN(ratio, better) loom__gain((char[48]){0}, (ratio), (better))
/* Returns the interval of loom__gain(). If that is a factor, the ends are factors in the same direction. */
const char *loom__gain_range(char text[112], double ratio, double low, double high, enum loom_better better);
/* Returns "p 0.004" or "p < 0.001", or an en dash for NaN. */
const char *loom__p_value(char text[32], double p);

#endif
