/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/crowd.h"

#include <stdlib.h>

#include "cli/session.h"
#include "facts/must.h"

enum { END, SAMPLE, WARM_UP }; /* what rank 0 tells */

struct loom__crowd {
	uint32_t ranks;
	enum loom__crowd_way way;
	struct loom__plan *plan;   /* [ranks]; not of rank 0 */
	struct loom_stack **stack; /* [ranks] */
	struct loom__threads *threads;
};

/* What rank 0 has to say, to all. */
static int tell(struct loom__crowd *c, const struct loom_ranks *me, uint8_t what, uint8_t *told, struct loom_error *err)
{
	uint8_t *all = loom__must(malloc(c->ranks));
	int rc = me->allgather(me->self, &what, all, 1, err);
	*told = rc ? END : all[0];
	free(all);
	return rc;
}

static int follow_samples(struct loom__crowd *c, const struct loom_ranks *me, struct loom_stack *s,
			  struct loom_result **result, struct loom_error *err)
{
	uint8_t told = END;
	int rc = loom__stack_prepare(s, err);
	if (rc)
		return rc;
	*result = loom__must(loom__result_create(s));
	rc = loom__stack_launch(s, err);
	while (!rc && !(rc = tell(c, me, END, &told, err)) && told != END)
		rc = loom__stack_sample(s, *result, told == WARM_UP, err);
	return rc;
}

/* What a rank but the first does. */
static int follow(void *arg, const struct loom_ranks *me, struct loom_error *err)
{
	struct loom__crowd *c = arg;
	struct loom_stack_params params = {
		.size = sizeof(params), .log = loom__log_line, .log_level = LOOM_LOG_ERROR, .ranks = me};
	struct loom_stack *stack = NULL;
	struct loom_result *result = NULL;
	int rc = loom__stack_open(&c->plan[me->rank], &params, &stack, err);
	/* Release: for a signal handler. It is closed when all have ended. */
	__atomic_store_n(&c->stack[me->rank], stack, __ATOMIC_RELEASE);
	if (!rc && c->way == LOOM__CROWD_RUNS)
		rc = loom__stack_run(stack, NULL, &result, err);
	else if (!rc)
		rc = follow_samples(c, me, stack, &result, err);
	loom_result_destroy(result);
	return rc;
}

static void crowd_free(struct loom__crowd *c)
{
	for (uint32_t r = 1; r < c->ranks; r++) {
		loom_stack_close(c->stack[r]);
		loom__plan_free(&c->plan[r]);
	}
	free(c->stack);
	free(c->plan);
	free(c);
}

int loom__crowd_begin(struct loom_config *cfg, uint32_t ranks, enum loom__crowd_way way, struct loom__crowd **crowd,
		      struct loom_error *err)
{
	struct loom__crowd *c = loom__must(calloc(1, sizeof(*c)));
	struct loom__diag diag = {0};
	int rc = 0;
	*c = (struct loom__crowd){.ranks = ranks,
				  .way = way,
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
		crowd_free(c);
	else
		*crowd = c;
	return rc;
}

const struct loom_ranks *loom__crowd_ranks(const struct loom__crowd *c)
{
	return loom__threads_first(c->threads);
}

static void stop(void *stack)
{
	loom_stack_stop(stack);
}

static void stop_all(void *crowd)
{
	const struct loom__crowd *c = crowd;
	for (uint32_t r = 0; r < c->ranks; r++) {
		struct loom_stack *s = __atomic_load_n(&c->stack[r], __ATOMIC_ACQUIRE);
		if (s)
			loom_stack_stop(s);
	}
}

void loom__crowd_on_stop(struct loom__crowd *c, struct loom_stack *stack, const char *text)
{
	if (c)
		__atomic_store_n(&c->stack[0], stack, __ATOMIC_RELEASE); /* as in follow() */
	loom__on_stop(c ? stop_all : stop, c ? (void *)c : stack, text);
}

int loom__crowd_sample(struct loom__crowd *c, struct loom_stack *stack, struct loom_result *result, int warmup,
		       struct loom_error *err)
{
	uint8_t told;
	int rc = c ? tell(c, loom__crowd_ranks(c), warmup ? WARM_UP : SAMPLE, &told, err) : 0;
	return rc ? rc : loom__stack_sample(stack, result, warmup, err);
}

int loom__crowd_end(struct loom__crowd *c, int code, struct loom_error *err)
{
	struct loom_error late;
	uint8_t told;
	if (!c)
		return code;
	if (!code && c->way == LOOM__CROWD_SAMPLES)
		(void)tell(c, loom__crowd_ranks(c), END, &told, &late); /* one that has failed says so below */
	code = loom__threads_end(c->threads, code, err);
	crowd_free(c);
	return code;
}
