/* SPDX-License-Identifier: Apache-2.0 */
/* Out of memory ends the command with a message: samples are on disk by then or lost, and no report or verdict
 * justifies more. For the command only: the library and plug-ins return errors, since the program that embeds them may
 * continue. */
#ifndef LOOM_MUST_H
#define LOOM_MUST_H

#include "base/base.h"

/* Call it first: from now on cJSON never fails to allocate, so that documents are complete. */
void loom__must_begin(void);
/* Returns p, which is not NULL. */
void *loom__must(void *p) __attribute__((returns_nonnull));
/* A complete text; "" if nothing was added. */
const char *loom__must_text(const struct loom__text *t) __attribute__((returns_nonnull));

#endif
