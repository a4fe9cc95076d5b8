/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run.h"

#include <stdlib.h>

#include "cli/base/session.h"
#include "facts/must.h"

enum { END, SAMPLE, WARM_UP }; /* commands that rank 0 sends to the other ranks */

struct loom__rank_threads {
	uint32_t ranks;
	enum loom__rank_threads_mode mode;
	struct loom__plan *plan;   /* [ranks] plans of the ranks; element 0 is not used */
	struct loom_stack **stack; /* [ranks] open stacks, which stop_all() stops */
	struct loom__threads *threads;
};

/* Sends the command `what` of rank 0 to all ranks. *command receives it, or END if the exchange fails. */
static int broadcast(struct loom__rank_threads *c, const struct loom_ranks *me, uint8_t what, uint8_t *command,
		     struct loom_error *err)
{
	uint8_t *all = loom__must(malloc(c->ranks));
	int rc = me->allgather(me->self, &what, all, 1, err);
	*command = rc ? END : all[0];
	free(all);
	return rc;
}

static int follow_samples(struct loom__rank_threads *c, const struct loom_ranks *me, struct loom_stack *s,
			  struct loom_result **result, struct loom_error *err)
{
	uint8_t command = END;
	int rc = loom__stack_prepare(s, err);
	if (rc)
		return rc;
	*result = loom__must(loom__result_create(s));
	rc = loom__stack_launch(s, err);
	while (!rc && !(rc = broadcast(c, me, END, &command, err)) && command != END)
		rc = loom__stack_sample(s, *result, command == WARM_UP, err);
	return rc;
}

/* Main function of the ranks other than 0. */
static int follow(void *arg, const struct loom_ranks *me, struct loom_error *err)
{
	struct loom__rank_threads *c = arg;
	struct loom_stack_params params = {
		.size = sizeof(params), .log = loom__log_line, .log_level = LOOM_LOG_ERROR, .ranks = me};
	struct loom_stack *stack = NULL;
	struct loom_result *result = NULL;
	int rc = loom__stack_open(&c->plan[me->rank], &params, &stack, err);
	/* Release: pairs with the acquire in stop_all(), which runs in a signal handler. The stack stays open until all
	 * ranks have ended. */
	__atomic_store_n(&c->stack[me->rank], stack, __ATOMIC_RELEASE);
	if (!rc && c->mode == LOOM__RANK_THREADS_RUN)
		rc = loom__stack_run(stack, NULL, &result, err);
	else if (!rc)
		rc = follow_samples(c, me, stack, &result, err);
	loom_result_destroy(result);
	return rc;
}

static void rank_threads_free(struct loom__rank_threads *c)
{
	for (uint32_t r = 1; r < c->ranks; r++) {
		loom_stack_close(c->stack[r]);
		loom__plan_free(&c->plan[r]);
	}
	free(c->stack);
	free(c->plan);
	free(c);
}

int loom__rank_threads_start(struct loom_config *cfg, uint32_t ranks, enum loom__rank_threads_mode mode,
			     struct loom__rank_threads **others, struct loom_error *err)
{
	struct loom__rank_threads *c = loom__must(calloc(1, sizeof(*c)));
	struct loom__diag diag = {0};
	int rc = 0;
	*c = (struct loom__rank_threads){.ranks = ranks,
				  .mode = mode,
				  .plan = loom__must(calloc(ranks, sizeof(*c->plan))),
				  .stack = loom__must(calloc(ranks, sizeof(*c->stack)))};
	for (uint32_t r = 1; r < ranks && !rc; r++)
		rc = loom__plan_create(cfg, NULL, &c->plan[r], &diag);
	loom__diag_free(&diag);
	if (rc)
		rc = LOOM__FAIL(err, rc, "the plan of another rank cannot be made");
	else
		rc = loom__threads_begin(ranks, follow, c, &c->threads, err);
	if (rc)
		rank_threads_free(c);
	else
		*others = c;
	return rc;
}

const struct loom_ranks *loom__rank_threads_ranks(const struct loom__rank_threads *c)
{
	return loom__threads_first(c->threads);
}

static void stop(void *stack)
{
	loom_stack_stop(stack);
}

static void stop_all(void *others)
{
	const struct loom__rank_threads *c = others;
	for (uint32_t r = 0; r < c->ranks; r++) {
		struct loom_stack *s = __atomic_load_n(&c->stack[r], __ATOMIC_ACQUIRE);
		if (s)
			loom_stack_stop(s);
	}
}

void loom__rank_threads_on_stop(struct loom__rank_threads *c, struct loom_stack *stack, const char *text)
{
	if (c)
		__atomic_store_n(&c->stack[0], stack, __ATOMIC_RELEASE); /* Release: pairs with stop_all() */
	loom__on_stop(c ? stop_all : stop, c ? (void *)c : stack, text);
}

int loom__rank_threads_sample(struct loom__rank_threads *c, struct loom_stack *stack, struct loom_result *result,
			      int warmup, struct loom_error *err)
{
	uint8_t command;
	int rc = c ? broadcast(c, loom__rank_threads_ranks(c), warmup ? WARM_UP : SAMPLE, &command, err) : 0;
	return rc ? rc : loom__stack_sample(stack, result, warmup, err);
}

int loom__rank_threads_finish(struct loom__rank_threads *c, int code, struct loom_error *err)
{
	struct loom_error late;
	uint8_t command;
	if (!c)
		return code;
	if (!code && c->mode == LOOM__RANK_THREADS_SAMPLE)
		/* loom__threads_end() reports a failed exchange. */
		(void)broadcast(c, loom__rank_threads_ranks(c), END, &command, &late);
	code = loom__threads_end(c->threads, code, err);
	rank_threads_free(c);
	return code;
}
