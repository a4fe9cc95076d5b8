/* SPDX-License-Identifier: Apache-2.0 */
/* The run engine: warm-ups and samples on a stack, each verified. */
#ifndef LOOM_ENGINE_H
#define LOOM_ENGINE_H

#include "run/result.h"
#include "stack/stack.h"

/* By the thread that runs the stack: before the first execution; after each one, warm-ups included; and many
 * times a second while one is in progress, which began so long ago. Each may be NULL. */
struct loom__run_hooks {
	void (*begin)(void *arg, struct loom_result *r);
	/* After each execution, which is the last of r; an error ends the run. */
	int (*sample)(void *arg, const struct loom_stack *s, struct loom_result *r, struct loom_error *err);
	void (*beat)(void *arg, const struct loom_stack *s, uint64_t since_ns);
	/* The same while it is verified, of which `done`, from 0 to 1, is over. */
	void (*progress)(void *arg, const struct loom_stack *s, uint64_t since_ns, double done);
	void *arg;
};

/* As loom_stack_run of a stack with a workload; hooks may be NULL. Earlier stop requests count. */
int loom__stack_run(struct loom_stack *s, const struct loom__run_hooks *hooks,
		    struct loom_result **result, struct loom_error *err);

/* One execution on a launched stack, measured and verified, appended to r. For runs that interleave
 * stacks (compare). LOOM_EWRONG, LOOM_ETIMEDOUT, LOOM_EDIED, LOOM_EINTR ... as worded in err. */
int loom__stack_sample(struct loom_stack *s, struct loom_result *r, int warmup,
		       struct loom_error *err);

/* An empty result with the description of the stack (config with origins, plug-ins, devices): for itself, or shared
 * with others. */
struct loom_result *loom__result_create(const struct loom_stack *s);
struct loom_result *loom__result_share(struct loom_stack *s);

/* Puts what plug-ins have chosen by now into the result, which shares nothing. */
void loom__result_choices(struct loom_result *r, const struct loom_stack *s);

/* Sets status and error from a code. */
void loom__result_end(struct loom_result *r, int code, const struct loom_error *err);
/* "ok", "interrupted", "timeout", "wrong" or "failed" */
const char *loom__status_name(int code);

#endif
