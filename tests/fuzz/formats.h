/* SPDX-License-Identifier: Apache-2.0 */
/* Each function checks that a report in one format meets the requirements of the format. */
#ifndef LOOM_FUZZ_FORMATS_H
#define LOOM_FUZZ_FORMATS_H

#include <stddef.h>

void fuzz_say(const char *sentence);		  /* prints the sentence to stderr, where it must be printable */
void fuzz_is_text(const char *text, size_t n);    /* the text must be printable */
void fuzz_is_html(const char *text, size_t n);    /* no element or attribute runs or loads anything */
void fuzz_is_svg(const char *text, size_t n);     /* the text is well-formed XML, and nothing runs or loads anything */
void fuzz_is_csv(const char *text, size_t n);     /* each row has as many fields as the first; no field is a formula */
void fuzz_is_json(const char *text, size_t n);    /* the text parses, and prints as the same text */

#endif
