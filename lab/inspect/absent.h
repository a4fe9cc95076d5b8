/* SPDX-License-Identifier: Apache-2.0 */
/* All that the build left out. */
#ifndef LOOM_ABSENT_H
#define LOOM_ABSENT_H

#include "plugin/registry.h"

enum { LOOM__ABSENT_MOST = 32 };
/* How many there are, without those that another folder has. */
size_t loom__absent_scan(const struct loom__search *s, struct loom__absent *out, size_t most);
/* Of whatever kind: LOOM_EUNAVAIL in one sentence, or 0: no such plug-in was left out. */
int loom__absent_named(const struct loom__search *s, const char *name, struct loom_error *err);

#endif
