/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_central.dev.h"
/* needs BARRIER_HOW */
#include "counter.dev.h"
#include "barrier_common.h"
/* needs BARRIER_OP and barrier_signal */
#include "rounds.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

BARRIER_PLUGIN(barrier_central, "A counter that all workers increment and poll", barrier_counter_plan, rows)
