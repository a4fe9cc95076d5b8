/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a wait on the CPU: spin first, then yield, nap or sleep. Plug-ins set the policy from their options. */
#ifndef GPULOOM_WAIT_H
#define GPULOOM_WAIT_H

#include <gpuloom/dev/dev.h>

enum wait_end { WAIT_SPIN = 0, WAIT_YIELD, WAIT_NAP, WAIT_SLEEP };

struct wait_policy {
	uint32_t spin;   /* number of polls, each with a pause, before the next step */
	uint32_t end;    /* the step after spinning, of enum wait_end */
	uint64_t nap_ns; /* length of the shortest nap; loom_nap() makes naps longer as the wait goes on */
};

/* Executes the step that follows poll number `polls`, counted from 0, if that poll had no success. *since is the time
 * of the first nap, or 0 before the first call. Returns 1 if the caller must sleep on its eventcount (WAIT_SLEEP). */
LOOM_FN int wait_step(const struct loom_ctx *c, const struct wait_policy *p, uint32_t polls, uint64_t *since)
{
	if (polls < p->spin || p->end == WAIT_SPIN) {
		loom_pause(c); /* yields on an oversubscribed device */
	} else if (p->end == WAIT_YIELD) {
		loom_yield(c);
	} else if (p->end == WAIT_NAP) {
		uint64_t now = loom_clock_ns(c);
		*since = *since ? *since : now;
		loom_nap(now - *since, p->nap_ns);
	} else {
		return 1;
	}
	return 0;
}

#endif
