/* SPDX-License-Identifier: Apache-2.0 */
/* What a descriptor must offer besides its identity. */
#ifndef LOOM_CHECK_H
#define LOOM_CHECK_H

#include "plugin/registry.h"

/* Operations, device code, option rows. `p` is a copy of the descriptor whose identity was judged; what it points
 * to is not trusted. */
int loom__offer_check(const char *path, const struct loom_plugin *p, struct loom_error *err);

#endif
