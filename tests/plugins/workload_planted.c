/* SPDX-License-Identifier: Apache-2.0 */
/* A job with a known amount of work, by which tests plant differences. Each worker draws `turns` random numbers. */
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>

#ifndef PLANTED_NAME
#define PLANTED_NAME "workload_planted"
#define PLANTED_NEEDS 0
#endif

struct options {
	uint64_t turns;
	double luck;
	uint8_t wrong;
	uint64_t create_time, need_time;
	uint8_t asks;
};
static const struct loom_opt rows[] = {
	LOOM_OPT(struct options, turns, LOOM_OPT_U64, "1000000", "How often each worker turns."),
	LOOM_OPT(struct options, luck, LOOM_OPT_SHARE, "0",
		 "Not 0: samples claim to take 1 ms and up to this share of it more, which is drawn when the stack is "
		 "opened."),
	LOOM_OPT(struct options, wrong, LOOM_OPT_BOOL, "no", "Whether the third sample is wrong."),
	LOOM_OPT(struct options, create_time, LOOM_OPT_TIME, "0", "How long create() lasts, which polls nothing."),
	LOOM_OPT(struct options, need_time, LOOM_OPT_TIME, "0", "The same of need()."),
	LOOM_OPT(struct options, asks, LOOM_OPT_BOOL, "no", "Whether need() lasts until progress() tells it to end."),
	{.name = NULL},
};

/* Returns the next number from 0 to 1 of a sequence that is the same in each process. */
static double draw(void)
{
	static uint64_t state = 88172645463325252u;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 11) / 0x1p53;
}

/* The block of a worker, which fills a cache line of its own. */
struct own {
	uint64_t turns, state;
} __attribute__((aligned(64)));

static void last(const struct loom_host *host, uint64_t ns)
{
	if (ns)
		LOOM_LOG(host, LOOM_LOG_WARN, "planted", "takes its time");
	for (uint64_t end = host->now_ns(host) + ns; ns && host->now_ns(host) < end;)
		;
}

#define BORN(x)                                                                                                        \
	(last(host, (x)->options->create_time), (x)->drawn = (x)->options->luck > 0 ? (x)->options->luck * draw() : 0)
#include "instance.h"

static int need(void *self, const struct loom_layout *layout, struct loom_need *n, struct loom_error *err)
{
	const struct instance *x = self;
	int rc = 0;
	(void)layout;
	last(x->host, x->options->need_time);
	if (x->options->asks)
		LOOM_LOG(x->host, LOOM_LOG_WARN, "planted", "takes its time");
	while (x->options->asks && !(rc = x->host->progress(x->host, 0.5, err)))
		;
	n->worker = sizeof(struct own);
	return rc;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	const struct instance *x = self;
	(void)err;
	for (uint32_t w = 0; w < layout->workers; w++)
		*(struct own *)view->worker[w] = (struct own){x->options->turns, w + 1};
	return 0;
}

static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	struct instance *x = self;
	for (uint32_t w = 0; w < layout->workers; w++)
		if (((struct own *)view->worker[w])->turns)
			return LOOM_FAIL(x->host, err, LOOM_EWRONG, "worker %u did not turn to the end", w);
	if (x->options->wrong && ++x->samples == 3)
		return LOOM_FAIL(x->host, err, LOOM_EWRONG, "planted: a wrong result");
	x->host->metric(x->host, report, "turns", "", LOOM_BETTER_NONE, (double)x->options->turns);
	if (x->options->luck > 0)
		x->host->metric(x->host, report, "seconds", "s", LOOM_BETTER_LESS,
				1e-3 * (1 + x->drawn) * (1 + 1e-3 * draw()));
	return 0;
}

static void turn(struct loom_ctx *c)
{
	struct own *o = c->own[LOOM_WORKLOAD];
	uint64_t state = o->state, left = o->turns;
	for (; left && (left % 4096 || !loom_stopped(c)); left--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	o->state = state;
	o->turns = left;
}

ODD_PLUGIN(PLANTED_NAME, "work of a known amount", turn, .needs = PLANTED_NEEDS)
