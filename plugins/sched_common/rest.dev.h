/* SPDX-License-Identifier: Apache-2.0 */
/* A worker without tasks spins, yields, or sleeps between two polls. Sleepers wait on the stack's eventcount
 * (lib/eventcount.h). Every publication of tasks advances it. Device code.
 *
 * A publication wakes at most one worker. It wakes none, and saves the system call, while another wake-up is in
 * progress. The wake-up in progress may have been for tasks of another queue. So a worker that finds tasks polls all
 * queues once more, and wakes another worker if there are more tasks. */
#ifndef SCHED_REST_DEV_H
#define SCHED_REST_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "common.dev.h"
#include "lib/eventcount.h"
#endif

/* State of lane 0 of a worker that has no tasks. */
struct sched_rest {
	uint64_t since; /* time at which the worker ran out of tasks or was last woken */
	/* pauses: number of pauses between the next two polls. listed: 1 if the worker is registered at the eventcount
	 * as a waiter. seen: value of the eventcount when it was registered. */
	uint32_t pauses, listed, seen, pad;
};

/* Pauses, each time twice as long, up to SCHED_PAUSE_MAX pauses. */
#define SCHED_PAUSE_MAX 64u
LOOM_FN void sched_pause(struct loom_ctx *c, uint32_t *pauses)
{
#ifdef GPULOOM_DEV_CPU_H
	for (uint32_t i = 0; i < *pauses; i++)
		loom_pause(c);
#else
	(void)c;
	loom_nanosleep(*pauses * LOOM_PAUSE_NS); /* one long sleep in place of many pauses */
#endif
	if (*pauses < SCHED_PAUSE_MAX)
		*pauses *= 2;
}

#ifdef GPULOOM_DEV_CPU_H
/* If the detector lacks LOOM_TERM_MAY_SLEEP, workers must poll, so they sleep at most SCHED_NAP_NS. Much shorter sleeps
 * would delay other threads: loom_nap(). */
#define SCHED_NAP_NS 2000000u
#define SCHED_SLEEP_NS(c, cfg)                                                                                         \
	((LOOM_HAS((c)->term, flags) && ((c)->term->flags & LOOM_TERM_MAY_SLEEP)) || (cfg)->park_ns < SCHED_NAP_NS     \
	     ? (cfg)->park_ns                                                                                          \
	     : SCHED_NAP_NS)

LOOM_FN uint32_t sched_sleepers(const struct sched_event *e)
{
	return loom_load_relaxed_sys(&e->waiters);
}

/* Wakes up to `most` workers, after tasks were published. */
LOOM_FN void sched_wake(struct loom_ctx *c, struct sched_event *e, uint32_t most)
{
	if (most == 1)
		eventcount_advance_one(c, &e->word, &e->waiters, &e->waking);
	else
		eventcount_advance(c, &e->word, &e->waiters, most);
}

LOOM_FN void sched_unlist(struct sched_rest *r, struct sched_event *e)
{
	if (r->listed)
		eventcount_leave_one(&e->waiters, &e->waking);
	r->listed = 0;
}

/* Called by lane 0 between two polls. idle: 1 if this worker has reported idle. found: 1 if the search since the last
 * call found tasks. A worker sleeps only after it was listed and has then searched all queues once more. */
LOOM_FN void sched_rest(struct loom_ctx *c, const struct sched_config *cfg, struct sched_event *e, struct sched_rest *r,
			int idle, int found)
{
	if (cfg->wait == SCHED_YIELD) {
		loom_yield(c);
	} else if (cfg->wait == SCHED_SPIN || !idle) {
		sched_pause(c, &r->pauses);
	} else if (!r->listed) {
		uint64_t now = loom_clock_ns(c);
		r->since = r->since ? r->since : now;
		if (now - r->since < cfg->spin) {
			sched_pause(c, &r->pauses);
		} else {
			r->seen = eventcount_enter_one(&e->word, &e->waiters, &e->waking);
			r->listed = 1;
		}
	} else {
		if (found) /* the worker may be unable to take the task, for lack of room */
			loom_pause(c);
		else
			loom_sleep_on(c, &e->word, r->seen, SCHED_SLEEP_NS(c, cfg));
		/* A worker that was woken, and did not time out, spins again. */
		if (found || loom_load_relaxed_sys(&e->word) != r->seen) {
			r->since = loom_clock_ns(c);
			r->pauses = 1;
		}
		sched_unlist(r, e);
	}
}

#else /* A GPU's workers pause; they neither sleep nor wake threads */

LOOM_FN void sched_wake(struct loom_ctx *c, struct sched_event *e, uint32_t most)
{
	(void)c, (void)e, (void)most;
}

LOOM_FN uint32_t sched_sleepers(const struct sched_event *e)
{
	(void)e;
	return 0;
}

LOOM_FN void sched_unlist(struct sched_rest *r, struct sched_event *e)
{
	(void)r, (void)e;
}

LOOM_FN void sched_rest(struct loom_ctx *c, const struct sched_config *cfg, struct sched_event *e, struct sched_rest *r,
			int idle, int found)
{
	(void)cfg, (void)e, (void)idle, (void)found;
	sched_pause(c, &r->pauses);
}
#endif

#endif
