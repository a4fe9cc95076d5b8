/* SPDX-License-Identifier: Apache-2.0 */
/* Text into formats that want some of it escaped. */
#ifndef LOOM_TEXT_H
#define LOOM_TEXT_H

#include "base/base.h"

/* loom__text_add with every %s through `put`, its precision as `most`. Knows %s, %c, %d, %u, their l, ll and z, %f and %g. */
typedef void loom__put_fn(struct loom__text *t, const char *text, size_t most);
void loom__text_with(struct loom__text *t, loom__put_fn *put, const char *fmt, ...) LOOM_PRINTF(3, 4);

#endif
