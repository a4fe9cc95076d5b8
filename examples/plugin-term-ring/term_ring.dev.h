/* SPDX-License-Identifier: Apache-2.0 */
/* Device half of term_ring, which detects termination with a token in a ring of workers. See Dijkstra, Feijen and van
 * Gasteren, "Derivation of a termination detection algorithm for distributed computations", 1983.
 *
 * The token is white or black. An idle worker that has the token passes it to the next worker. The worker makes it
 * black if it was busy or its stolen_out has changed since it last passed the token. In both cases this worker may have
 * made another one busy, after the token had passed the other one. Worker 0 starts each round with a white token. No
 * task exists if the token comes back white and worker 0 itself would not make it black. */
#ifndef TERM_RING_DEV_H
#define TERM_RING_DEV_H

#include <gpuloom/dev/dev.h>

/* The memory block that the detector has in the stack. */
struct term_ring {
	uint32_t holder; /* index of the worker that has the token */
	uint32_t black;  /* 1: the token is black; written only by the worker that has it */
	uint32_t done;   /* 1: no task exists; set once, by worker 0 */
	uint32_t pad[13];
};

/* The memory block of a worker, on its own cache line. Only lane 0 uses it. */
struct term_ring_own {
	uint64_t stolen_out; /* the argument stolen_out of term_ring_done() when the worker last passed the token */
	uint32_t black;  /* 1: the worker was busy since then */
	uint32_t asked;  /* worker 0: a round is in progress */
	uint32_t pad[12];
};

LOOM_FN void term_ring_idle(struct loom_ctx *c)
{
	(void)c; /* nothing to do, because only idle workers call term_ring_done() */
}

LOOM_FN void term_ring_busy(struct loom_ctx *c)
{
	struct term_ring_own *own = (struct term_ring_own *)c->own[LOOM_TERM];
	if (c->lane == 0)
		own->black = 1;
}

LOOM_FN int term_ring_done(struct loom_ctx *c, uint64_t stolen_out)
{
	struct term_ring *ring = (struct term_ring *)c->global[LOOM_TERM];
	struct term_ring_own *own = (struct term_ring_own *)c->own[LOOM_TERM];
	uint64_t done = 0;
	if (c->lane == 0) {
		done = loom_load_acquire_sys(&ring->done); /* Acquire: pairs with the release store to `done` below. */
		/* Acquire: pairs with the release store to `holder` below, so that `black` has the value that the
		 * previous worker wrote. */
		if (!done && loom_load_acquire_sys(&ring->holder) == c->worker) {
			uint32_t mine = own->black | (own->stolen_out != stolen_out);
			uint32_t black = loom_load_relaxed_sys(&ring->black) | mine;
			if (c->worker == 0 && own->asked && !black) {
				done = 1;
				loom_store_release_sys(&ring->done, 1u);
			} else {
				own->black = 0;
				own->stolen_out = stolen_out;
				own->asked = 1;
				/* Worker 0 starts each round with a white token. */
				loom_store_relaxed_sys(&ring->black, c->worker == 0 ? 0u : black);
				loom_store_release_sys(&ring->holder,
						       c->worker + 1 == c->workers ? 0u : c->worker + 1);
			}
		}
	}
	return (int)loom_from_lane0(c, done);
}

#endif
