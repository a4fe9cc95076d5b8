/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_release.dev.h"
/* needs BARRIER_HOW */
#include "counter.dev.h"
#include "barrier_common.h"
/* needs BARRIER_OP and barrier_signal */
#include "rounds.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

BARRIER_PLUGIN(barrier_release, "A counter; the last arriver writes a release word", barrier_counter_plan, rows)
