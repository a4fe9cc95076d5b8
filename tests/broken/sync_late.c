/* SPDX-License-Identifier: Apache-2.0 */
/* Does not keep to deadlines. */
#define NAME "sync_late"
#define LATE(c, until) ((until) == ~0ull)
#include "sync.h"
