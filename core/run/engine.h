/* SPDX-License-Identifier: Apache-2.0 */
/* The run engine: executes and verifies warm-ups and samples on a stack. */
#ifndef LOOM_ENGINE_H
#define LOOM_ENGINE_H

#include "run/result.h"
#include "stack/stack.h"

/* Functions that the thread that runs the stack calls. Each may be NULL. begin() is called before the first execution.
 * beat() is called at least once a second during an execution, with the time since its start. */
struct loom__run_hooks {
	void (*begin)(void *arg, const struct loom_stack *s, struct loom_result *r);
	/* Called after each execution, which is the last sample of r. An error ends the run. */
	int (*sample)(void *arg, const struct loom_stack *s, struct loom_result *r, struct loom_error *err);
	void (*beat)(void *arg, const struct loom_stack *s, uint64_t since_ns);
	/* Called during a verification. `done` is the finished part, from 0 to 1. */
	void (*progress)(void *arg, const struct loom_stack *s, uint64_t since_ns, double done);
	void *arg;
};

/* Runs a workload as loom_stack_run() does, but a stop request from before the call ends the run. `hooks` may be
 * NULL. */
int loom__stack_run(struct loom_stack *s, const struct loom__run_hooks *hooks,
		    struct loom_result **result, struct loom_error *err);

/* Executes, measures and verifies one sample on a launched stack, and appends it to r. The compare command uses this
 * for runs that alternate between stacks. Returns 0 or an error with a message in err, such as LOOM_EWRONG,
 * LOOM_ETIMEDOUT, LOOM_EDIED or LOOM_EINTR. */
int loom__stack_sample(struct loom_stack *s, struct loom_result *r, int warmup,
		       struct loom_error *err);

/* Each returns an empty result with the description of the stack: options with their origins, plug-ins, devices. The
 * first makes a new description. Results of the second share the description that the stack has. */
struct loom_result *loom__result_create(const struct loom_stack *s);
struct loom_result *loom__result_share(struct loom_stack *s);

/* Updates the choices of plug-ins in the result. The result must come from loom__result_create(). */
void loom__result_choices(struct loom_result *r, const struct loom_stack *s);

/* Sets the status and the error of a result from `code`. */
void loom__result_end(struct loom_result *r, int code, const struct loom_error *err);
/* Returns "ok", "interrupted", "timeout", "wrong" or "failed". */
const char *loom__status_name(int code);

/* energy.c. Reads the energy counters of all devices, and sets *joules to their sum. A counter that devices share counts
 * once. Differences of two sums are consumption. */
int loom__energy(const struct loom_stack *s, double *joules, struct loom_error *err);
/* Calls the op throttled() of all devices. Returns 1 if one of them returned 1. */
int loom__throttled(const struct loom_stack *s, uint64_t ns);

/* enqueue.c: runs in a stream of the program. Returns LOOM_EINTR if loom_stack_stop() has ended the runs of graphs of this
 * launch. The caller must retire the stack. */
int loom__graphs_stopped(struct loom_stack *s, struct loom_error *err);

/* Waits until all runs in streams have ended. Returns 0, and the duration of the last run in *ns. Returns LOOM_EAGAIN
 * if some have not ended at `until`. After another error, the caller must retire the stack. */
int loom__enqueued_wait(struct loom_stack *s, uint64_t until, uint64_t *ns, struct loom_error *err);

#endif
