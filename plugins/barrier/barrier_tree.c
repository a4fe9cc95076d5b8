/* SPDX-License-Identifier: Apache-2.0 */
#include "barrier_tree.dev.h"
/* rounds.dev.h needs BARRIER_OP and barrier_signal(), which the file above defines */
#include "barrier_common.h"
#include "rounds.dev.h"

static const struct loom_opt rows[] = {
    LOOM_OPT(struct barrier_opts, arity, LOOM_OPT_U32, "auto",
	     "Workers, or counters, that share a counter; a power of two. auto: 4 on a CPU; 256 on a GPU, where a "
	     "level takes as long as several hundred adds to one word.",
	     .max = 1024, .flags = LOOM_OPT_AUTO),
    BARRIER_ROWS,
    {.name = NULL},
};

static int check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct barrier_opts *o = opts;
	if (o->arity & (o->arity - 1) || o->arity == 1)
		return LOOM_REFUSE(host, err, "arity", "arity = %u: must be a power of two, at least 2", o->arity);
	return 0;
}

/* Returns log2 of the arity of the tree on that device. */
static uint32_t shift_of(const struct barrier_opts *o, const struct loom_device_shape *device, int oversubscribed)
{
	uint32_t arity = o->arity ? o->arity : device->kind == LOOM_ON_GPU ? 256 : 4, shift = 1;
	(void)oversubscribed;
	while (1u << shift < arity)
		shift++;
	return shift;
}

static void plan_tree(const struct loom_layout *layout, const struct barrier_opts *o, struct barrier_plan *plan)
{
	plan->nodes = 1;
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint32_t nodes = barrier_tree_nodes(layout->device[d].workers, shift_of(o, &layout->device[d], 0));
		plan->nodes = nodes > plan->nodes ? nodes : plan->nodes;
	}
	plan->worker_words = barrier_device_words(layout);
	plan->how = shift_of;
}

BARRIER_PLUGIN(barrier_tree, "A combining tree of counters, whose last worker releases a word", plan_tree, rows,
	       .check = check)
