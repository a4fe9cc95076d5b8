/* SPDX-License-Identifier: Apache-2.0 */
/* The coherence probe: do atomics of one device become visible to another, and are none lost?
 * (MGWS thesis, 5.9 and listing C10: a spinning device that never sees the other's atomic.)
 *
 * One worker per device. Round r of a pair: `a` adds 1 to `word` and waits for `b` to add 1, and so on;
 * then all devices add to `sum` and swap `swaps` at once: both must come out exact. Where devices are non-coherent
 * each has a word of its own instead, and stores the round there. Every wait ends: by the stop word that the
 * host sets after the deadline. */
#ifndef GPULOOM_DEV_PROBE_H
#define GPULOOM_DEV_PROBE_H

#include "dev.h"

#define LOOM_PROBE_ROUNDS 16u
#define LOOM_PROBE_ADDS 4096u

struct loom_probe {
	uint64_t word; /* passed between the pair: even: a's turn, odd: b's. Non-coherent: a's word ... */
	uint64_t pad0[7];
	uint64_t back; /* ... and b's */
	uint64_t pad3[7];
	uint64_t sum; /* all devices add at once ... */
	uint32_t swaps, pad1[13]; /* ... and raise this by compare-and-swap: a link may support one width only */
	uint32_t a, b;    /* devices of the pair, set by the host */
	uint32_t reached; /* rounds done, written by b's device */
	uint32_t noncoherent;   /* loom_layout.noncoherent, set by the host: no word is changed by both */
	uint32_t pad2[12];
};

/* 0 when the run was stopped instead. */
LOOM_FN int loom_probe_await(struct loom_ctx *c, const uint64_t *word, uint64_t value)
{
	/* Acquire: pairs with the other side's add or store. */
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
