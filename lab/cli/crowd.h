/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads of this command, for simulated devices: rank 0 is the caller's, the others follow it. */
#ifndef LOOM_CLI_CROWD_H
#define LOOM_CLI_CROWD_H

#include "ranks/boot.h"
#include "run/engine.h"
#include "stack/plan.h"

struct loom__crowd;

enum loom__crowd_way {
	LOOM__CROWD_RUNS,    /* the others call loom__stack_run(), as rank 0 does */
	LOOM__CROWD_SAMPLES, /* they wait for loom__crowd_sample() */
};
/* Starts `ranks` - 1 others, with plans from cfg. Rank 0 then opens its own stack, with these ranks. */
int loom__crowd_begin(struct loom_config *cfg, uint32_t ranks, enum loom__crowd_way way, struct loom__crowd **crowd,
		      struct loom_error *err);
const struct loom_ranks *loom__crowd_ranks(const struct loom__crowd *c);
/* From now on a signal asks all stacks to stop, of which `stack` is rank 0's; with crowd NULL that one. `text` as for
 * loom__on_stop(), which also ends it. */
void loom__crowd_on_stop(struct loom__crowd *c, struct loom_stack *stack, const char *text);
/* A sample of all ranks. With crowd NULL, of that stack alone. */
int loom__crowd_sample(struct loom__crowd *c, struct loom_stack *stack, struct loom_result *result, int warmup,
		       struct loom_error *err);
/* Rank 0 has ended with `code`, 0 or an error in *err; waits for the others and closes their stacks. Gives the first
 * error that was not another rank's end, in *err. With NULL: `code`. */
int loom__crowd_end(struct loom__crowd *c, int code, struct loom_error *err);

#endif
