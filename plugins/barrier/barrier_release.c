/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_release: host half. */
#include "barrier_release.dev.h"
/* needs BARRIER_HOW */
#include "counter.dev.h"
#include "host.h"
/* needs BARRIER_OP and barrier_come */
#include "ops.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

BARRIER_PLUGIN(barrier_release, "A counter; the last arriver releases a second word", barrier_counter_plan, rows)
