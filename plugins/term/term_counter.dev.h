/* SPDX-License-Identifier: Apache-2.0 */
/* Termination by one counter of idle workers (MGWS thesis, 5.6.1). Device code.
 *
 * Proof: each task is held by a worker that is not idle, or is on its way from a victim to a thief. The victim cannot become
 * idle before the thief marks the steal as complete, and the thief calls busy() before that. So while a task exists the
 * counter is below the number of workers. When it reaches this number it stays there, because idle workers make no tasks. */
#ifndef TERM_COUNTER_DEV_H
#define TERM_COUNTER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/term.h>
#endif

/* The stack's block, which has a cache line of its own. */
struct term_counter {
	uint64_t idle; /* number of idle workers */
	uint64_t pad[7];
};

LOOM_FN struct term_counter *term_counter(const struct loom_ctx *c)
{
	return (struct term_counter *)c->global[LOOM_TERM];
}

LOOM_FN void term_counter_idle(struct loom_ctx *c)
{
	/* Release: pairs with the acquire in done(), for all earlier writes of this worker. */
	if (c->lane == 0)
		LOOM_JOB(loom_fetch_add_acq_rel)(&term_counter(c)->idle, (uint64_t)1);
}

LOOM_FN void term_counter_busy(struct loom_ctx *c)
{
	/* After this add the scheduler marks the steal as complete, with a release. The victim acquires this mark before it
	 * calls idle(). So this add precedes the victim's idle(). */
	if (c->lane == 0)
		LOOM_JOB(loom_fetch_add_acq_rel)(&term_counter(c)->idle, ~(uint64_t)0);
}

#ifdef LOOM_DEVICE_COMPILE
#define LOOM_TERM_COUNTS /* done() does not use `stolen_out` */
#endif
LOOM_FN int term_counter_done(struct loom_ctx *c, uint64_t stolen_out)
{
	(void)stolen_out;
	uint64_t all = 0;
	if (c->lane == 0)
		all = LOOM_JOB(loom_load_acquire)(&term_counter(c)->idle) == c->workers;
	return (int)loom_from_lane0(c, all);
}

#endif
