/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_auto.dev.h"
/* counter.dev.h needs BARRIER_HOW, which barrier_auto.dev.h defines */
#include "counter.dev.h"
#include "barrier_common.h"
/* rounds.dev.h needs BARRIER_OP and barrier_signal(), which the files above define */
#include "rounds.dev.h"

static const struct loom_opt rows[] = {
    LOOM_OPT(struct barrier_opts, counted, LOOM_OPT_U32, "1100",
	     "Workers of a GPU up to which waiting workers poll the counter itself. With more workers the last arriver "
	     "writes a release word. The default was measured on an H200: 8 for each of its 132 multiprocessors. A CPU "
	     "polls the counter if each worker has a core.",
	     .max = 1 << 30),
    BARRIER_ROWS,
    {.name = NULL},
};

static uint32_t how(const struct barrier_opts *o, const struct loom_device_shape *device, int oversubscribed)
{
	int counted = device->kind == LOOM_ON_GPU ? device->workers <= o->counted : !oversubscribed;
	return counted ? BARRIER_COUNTED : BARRIER_RELEASED;
}

static void plan_auto(const struct loom_layout *layout, const struct barrier_opts *o, struct barrier_plan *plan)
{
	barrier_counter_plan(layout, o, plan);
	plan->how = how;
	plan->chooses = 1;
}

BARRIER_PLUGIN(barrier_auto, "A counter that few workers poll; for many the last arriver writes a release word",
	       plan_auto, rows)
