/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_release.dev.h"
/* counter.dev.h needs BARRIER_HOW, which barrier_release.dev.h defines */
#include "counter.dev.h"
#include "barrier_common.h"
/* rounds.dev.h needs BARRIER_OP and barrier_signal(), which the files above define */
#include "rounds.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

BARRIER_PLUGIN(barrier_release, "A counter; the last arriver writes a release word", barrier_counter_plan, rows)
