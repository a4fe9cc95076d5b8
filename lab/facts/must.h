/* SPDX-License-Identifier: Apache-2.0 */
/* A lack of memory ends the command with a message: samples are then on disk or lost, and no report or verdict
 * justifies more. For the command only: library and plug-ins return errors, since an embedder may continue. */
#ifndef LOOM_MUST_H
#define LOOM_MUST_H

#include "base/base.h"

/* Call this first: afterwards cJSON never fails to allocate, so documents are complete. */
void loom__must_begin(void);
/* Returns p, which is not NULL. */
void *loom__must(void *p) __attribute__((returns_nonnull));
/* Returns a complete text; "" if nothing was added. */
const char *loom__must_text(const struct loom__text *t) __attribute__((returns_nonnull));

#endif
