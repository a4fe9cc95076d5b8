/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_flags: host half. */
#include "barrier_flags.dev.h"
/* needs BARRIER_OP and barrier_come */
#include "host.h"
#include "ops.dev.h"

static const struct loom_opt rows[] = {BARRIER_ROWS, {.name = NULL}};

static void plan_flags(const struct loom_layout *layout, const struct barrier_opts *o,
			       struct barrier_plan *plan)
{
	(void)o;
	plan->flags = 1;
	plan->seat_words = barrier_speakers(layout);
}

BARRIER_PLUGIN(barrier_flags, "Each worker sets a flag and polls those of all others", plan_flags, rows)
