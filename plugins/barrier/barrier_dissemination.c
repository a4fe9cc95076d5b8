/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_dissemination.dev.h"
/* rounds.dev.h needs BARRIER_OP and barrier_signal(), which the file above defines */
#include "barrier_common.h"
#include "rounds.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

static void plan_dissemination(const struct loom_layout *layout, const struct barrier_opts *o,
			       struct barrier_plan *plan)
{
	(void)o;
	while (1u << plan->nodes < barrier_most_workers(layout))
		plan->nodes++;
	plan->worker_words = BARRIER_SLOTS * plan->nodes + barrier_device_words(layout);
}

BARRIER_PLUGIN(barrier_dissemination, "Workers notify partners at growing distances; no word has two writers",
	       plan_dissemination, rows)
