/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_dissemination.dev.h"
/* rounds.dev.h needs BARRIER_OP and barrier_signal(), which the file above defines */
#include "barrier_common.h"
#include "rounds.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

static void plan_dissemination(const struct loom_layout *layout, const struct barrier_opts *o,
			       struct barrier_plan *plan)
{
	uint32_t steps = 0;
	while (1u << steps < barrier_most_workers(layout))
		steps++;
	barrier_counter_plan(layout, o, plan);
	plan->single = 1;
	plan->worker_words += BARRIER_SLOTS * steps;
}

BARRIER_PLUGIN(barrier_dissemination, "Workers notify partners at growing distances; no word has two writers",
	       plan_dissemination, rows)
