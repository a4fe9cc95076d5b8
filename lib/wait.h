/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a wait on the CPU: spin, then yield, nap or sleep. Plug-ins fill in the policy from their options. */
#ifndef GPULOOM_WAIT_H
#define GPULOOM_WAIT_H

#include <gpuloom/dev/dev.h>

enum wait_end { WAIT_SPIN = 0, WAIT_YIELD, WAIT_NAP, WAIT_SLEEP };

struct wait_policy {
	uint32_t spin;   /* polls, each with a pause, before the next step */
	uint32_t end;    /* the next step: enum wait_end */
	uint64_t nap_ns; /* the shortest nap; naps grow with the wait: loom_nap() */
};

/* The step after poll number `polls`, counted from 0, without success. *since is the time of the first nap; 0 before
 * the first call. Returns 1 when the caller must sleep on its eventcount (WAIT_SLEEP). */
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
