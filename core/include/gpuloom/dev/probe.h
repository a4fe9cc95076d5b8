/* SPDX-License-Identifier: Apache-2.0 */
/* The coherence probe (MGWS thesis, 5.9): does each device see the atomics of another device, and are none lost? In
 * listing C10 of the thesis, a device spins for ever, because it never sees an atomic of the other device. One worker
 * of each device of a pair takes part. In each round, `a` adds 1 to `word` and waits until `b` has added 1. After the
 * rounds, both devices add to `sum` and change `swaps` at the same time; both words must have exact values at the end.
 * Non-coherent devices instead store the number of the round, each to its own word. The host sets the stop word after
 * the deadline, which ends every wait. */
#ifndef GPULOOM_DEV_PROBE_H
#define GPULOOM_DEV_PROBE_H

#include "dev.h"

#define LOOM_PROBE_ROUNDS 16u
#define LOOM_PROBE_ADDS 4096u

struct loom_probe {
	uint64_t word; /* number of adds so far; if it is even, `a` adds next, else `b`. If devices are non-coherent: the round
		        * that `a` has stored */
	uint64_t pad0[7];
	uint64_t back; /* the round that `b` has stored, if devices are non-coherent; else unused */
	uint64_t pad3[7];
	uint64_t sum; /* both devices add to this word at the same time */
	/* both devices raise this word by compare-and-swap; it has 32 bits, because a link may support only one
	 * width */
	uint32_t swaps, pad1[13];
	uint32_t a, b;    /* indices of the two devices, set by the host */
	uint32_t reached; /* number of finished rounds, set at the end by device b */
	uint32_t noncoherent;   /* loom_layout.noncoherent, set by the host; if 1, each word has one writer */
	uint32_t pad2[12];
};

/* Waits until the word has the value. Returns 1, or 0 if the run was stopped. */
LOOM_FN int loom_probe_await(struct loom_ctx *c, const uint64_t *word, uint64_t value)
{
	/* Acquire: pairs with the add or the release store of the other device. */
	while (loom_load_acquire_sys(word) != value) {
		if (loom_stopped(c))
			return 0;
		loom_yield(c); /* the other worker may need this core */
	}
	return 1;
}

LOOM_FN void loom_probe_noncoherent(struct loom_ctx *c, struct loom_probe *p, int mine)
{
	for (uint64_t round = 1; round <= LOOM_PROBE_ROUNDS; round++) {
		if (!mine)
			loom_store_release_sys(&p->word, round);
		if (!loom_probe_await(c, mine ? &p->word : &p->back, round))
			return;
		if (mine)
			loom_store_release_sys(&p->back, round);
	}
	if (mine)
		loom_store_release_sys(&p->reached, LOOM_PROBE_ROUNDS);
}

LOOM_FN void loom_probe_run(struct loom_ctx *c, struct loom_probe *p)
{
	if (c->lane != 0 || (c->device != p->a && c->device != p->b) || c->worker != c->first)
		return;
	uint64_t mine = c->device == p->b;
	if (p->noncoherent) {
		loom_probe_noncoherent(c, p, mine != 0);
		return;
	}
	for (uint64_t turn = mine; turn < 2 * LOOM_PROBE_ROUNDS; turn += 2) {
		if (!loom_probe_await(c, &p->word, turn))
			return;
		loom_fetch_add_acq_rel_sys(&p->word, (uint64_t)1);
	}
	for (uint32_t i = 0, was = 0; i < LOOM_PROBE_ADDS; i++, was++) {
		loom_fetch_add_relaxed_sys(&p->sum, (uint64_t)1);
		while (!loom_cas_acq_rel_sys(&p->swaps, &was, was + 1) && !loom_stopped(c))
			;
	}
	if (mine)
		loom_store_release_sys(&p->reached, LOOM_PROBE_ROUNDS);
}

#endif
