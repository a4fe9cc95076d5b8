/* SPDX-License-Identifier: Apache-2.0 */
/* Termination by a counter of idle workers per device and one of idle devices (MGWS thesis, 6.6, as
 * future work). Device code. Workers of a device meet in its memory; the link between devices carries one
 * add when the last worker of a device runs out of work, and one when the first finds some.
 *
 * Why it is right: the two counters change one after the other, so the outer one may lag. It never counts
 * a device too many when that matters. Say all devices are counted at some moment, and one of them has a
 * worker that is not idle: then a thief T of that device has lowered the inner counter and not yet the
 * outer one. T is inside busy(), so its victim V has been busy since T's claim. V's device then is counted
 * for the same reason: by a thief T' of that device inside busy(), which found the device full, V idle,
 * before T's claim. So T' came earlier than T, for it there is again an earlier one, and so on without
 * end. Hence all workers are idle, and the argument of term_counter ends the proof. */
#ifndef TERM_HCOUNTER_DEV_H
#define TERM_HCOUNTER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/term.h>
#endif

/* The stack's block counts devices, a device's block its workers: a line each. */
struct term_hcounter {
	uint64_t idle;
	uint64_t pad[7];
};

LOOM_FN struct term_hcounter *term_hcounter_devices(const struct loom_ctx *c)
{
	return (struct term_hcounter *)c->global[LOOM_TERM];
}

LOOM_FN struct term_hcounter *term_hcounter_workers(const struct loom_ctx *c)
{
	return (struct term_hcounter *)c->on_device[LOOM_TERM];
}

LOOM_FN void term_hcounter_idle(struct loom_ctx *c)
{
	/* Release and acquire: the last one passes on what all did, as in term_counter. */
	if (c->lane == 0 &&
	    loom_fetch_add_acq_rel_dev(&term_hcounter_workers(c)->idle, (uint64_t)1) + 1 == c->count)
		loom_fetch_add_acq_rel_sys(&term_hcounter_devices(c)->idle, (uint64_t)1);
}

LOOM_FN void term_hcounter_busy(struct loom_ctx *c)
{
	if (c->lane == 0 &&
	    loom_fetch_add_acq_rel_dev(&term_hcounter_workers(c)->idle, ~(uint64_t)0) == c->count)
		loom_fetch_add_acq_rel_sys(&term_hcounter_devices(c)->idle, ~(uint64_t)0);
}

LOOM_FN int term_hcounter_done(struct loom_ctx *c, uint64_t robbed)
{
	(void)robbed;
	uint64_t all = 0;
	/* The device's own counter first: while it is not full there is no need to ask the others. */
	if (c->lane == 0 && loom_load_relaxed_dev(&term_hcounter_workers(c)->idle) == c->count)
		all = loom_load_acquire_sys(&term_hcounter_devices(c)->idle) == c->devices;
	return (int)loom_from_lane0(c, all);
}

#endif
