/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements of each format of a report, for any document. */
#ifndef LOOM_FUZZ_FORMATS_H
#define LOOM_FUZZ_FORMATS_H

#include <stddef.h>

void fuzz_say(const char *sentence);		  /* it is printable on stderr */
void fuzz_is_text(const char *text, size_t n);    /* printable */
void fuzz_is_html(const char *text, size_t n);    /* no element or attribute that runs or loads anything */
void fuzz_is_svg(const char *text, size_t n);     /* XML whose elements are closed in order, and the same */
void fuzz_is_csv(const char *text, size_t n);     /* as many fields in each row as in the first; no formula */
void fuzz_is_gnuplot(const char *text, size_t n); /* tables end where they should; no command of a shell */
void fuzz_is_json(const char *text, size_t n);    /* it parses, and prints as the same text again */

#endif
