/* SPDX-License-Identifier: Apache-2.0 */
/* The command ends with a sentence where memory is out: what it measured is on disk by then or is not,
 * and no report, table or verdict is worth more than that. For the command alone: the library and
 * plug-ins give an error, for the program around them may go on. */
#ifndef LOOM_MUST_H
#define LOOM_MUST_H

#include "base/base.h"

/* First of all: from now on documents, too, are whole, and what is looked for in them is there or never was. */
void loom__must_begin(void);
/* p, which is not NULL from here on. */
void *loom__must(void *p) __attribute__((returns_nonnull));
/* A text that is whole; "" when nothing was added. */
const char *loom__must_text(const struct loom__text *t) __attribute__((returns_nonnull));

#endif
