/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_dissemination: host half. */
#include "barrier_dissemination.dev.h"
/* needs BARRIER_OP and barrier_come */
#include "host.h"
#include "ops.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

static void plan_dissemination(const struct loom_layout *layout,
				       const struct barrier_opts *o, struct barrier_plan *plan)
{
	(void)o;
	while (1u << plan->nodes < layout->workers)
		plan->nodes++;
	plan->seat_words = BARRIER_SLOTS * plan->nodes;
}

BARRIER_PLUGIN(barrier_dissemination,
	       "Pairs at growing distances notify each other; each word has one writer", plan_dissemination,
	       rows)
