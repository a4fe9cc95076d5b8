/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_central.dev.h"
/* counter.dev.h needs BARRIER_HOW, which barrier_central.dev.h defines */
#include "counter.dev.h"
#include "barrier_common.h"
/* rounds.dev.h needs BARRIER_OP and barrier_signal(), which the files above define */
#include "rounds.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

BARRIER_PLUGIN(barrier_central, "A counter that all workers increment and poll", barrier_counter_plan, rows)
