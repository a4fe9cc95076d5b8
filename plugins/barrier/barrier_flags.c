/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_flags.dev.h"
/* rounds.dev.h needs BARRIER_OP and barrier_signal(), which the file above defines */
#include "barrier_common.h"
#include "rounds.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

static void plan_flags(const struct loom_layout *layout, const struct barrier_opts *o, struct barrier_plan *plan)
{
	barrier_counter_plan(layout, o, plan);
	plan->single = 1;
	plan->flags = 1;
}

BARRIER_PLUGIN(barrier_flags, "Each worker raises a flag and polls those of all others", plan_flags, rows)
