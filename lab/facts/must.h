/* SPDX-License-Identifier: Apache-2.0 */
/* A lack of memory ends the command with a message. So no report or verdict is built from incomplete data. Only the
 * command may use these functions: library and plug-ins return errors, because an embedding program may continue. */
#ifndef LOOM_MUST_H
#define LOOM_MUST_H

#include "base/base.h"

/* Makes cJSON end the process when it cannot allocate, so that documents are complete. Call this function first. */
void loom__must_begin(void);
/* Returns p. Ends the process if p is NULL. */
void *loom__must(void *p) __attribute__((returns_nonnull));
/* Returns the text, or "" if nothing was added. Ends the process if the text is incomplete for lack of memory. */
const char *loom__must_text(const struct loom__text *t) __attribute__((returns_nonnull));

#endif
