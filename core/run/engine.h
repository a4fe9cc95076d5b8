/* SPDX-License-Identifier: Apache-2.0 */
/* The run engine: warm-ups and samples on a stack, each verified. */
#ifndef LOOM_ENGINE_H
#define LOOM_ENGINE_H

#include "run/result.h"
#include "stack/stack.h"

/* Callbacks of the thread that runs the stack; each may be NULL. begin() comes before the first execution. beat() comes
 * many times a second during an execution, with the time since it began. */
struct loom__run_hooks {
	void (*begin)(void *arg, struct loom_result *r);
	/* After each execution, which is the last of r. An error ends the run. */
	int (*sample)(void *arg, const struct loom_stack *s, struct loom_result *r, struct loom_error *err);
	void (*beat)(void *arg, const struct loom_stack *s, uint64_t since_ns);
	/* During the verification: `done`, from 0 to 1, is the finished part. */
	void (*progress)(void *arg, const struct loom_stack *s, uint64_t since_ns, double done);
	void *arg;
};

/* Runs a workload as loom_stack_run() does. Hooks may be NULL. Earlier stop requests count. */
int loom__stack_run(struct loom_stack *s, const struct loom__run_hooks *hooks,
		    struct loom_result **result, struct loom_error *err);

/* Executes, measures and verifies one sample on a launched stack, and appends it to r, for runs that interleave stacks
 * (compare). Returns 0, LOOM_EWRONG, LOOM_ETIMEDOUT, LOOM_EDIED, LOOM_EINTR or others, worded in err. */
int loom__stack_sample(struct loom_stack *s, struct loom_result *r, int warmup,
		       struct loom_error *err);

/* Returns an empty result with the description of the stack (config with origins, plug-ins, devices): one of its own,
 * or one that results share. */
struct loom_result *loom__result_create(const struct loom_stack *s);
struct loom_result *loom__result_share(struct loom_stack *s);

/* Puts the choices of the plug-ins so far into the result, which must share nothing. */
void loom__result_choices(struct loom_result *r, const struct loom_stack *s);

/* Sets status and error from a code. */
void loom__result_end(struct loom_result *r, int code, const struct loom_error *err);
/* Returns "ok", "interrupted", "timeout", "wrong" or "failed". */
const char *loom__status_name(int code);

#endif
