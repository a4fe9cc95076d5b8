/* SPDX-License-Identifier: Apache-2.0 */
/* Gives memory that is not zeroed. */
#define NAME "transport_dirty"
#define FILL(at, bytes) memset(at, (int)t->opts->touch + 1, bytes)
#include "transport.h"
