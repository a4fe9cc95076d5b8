/* SPDX-License-Identifier: Apache-2.0 */
/* Device half of term_ring: a token circulates in a ring of workers (Dijkstra, Feijen and van Gasteren, "Derivation of
 * a termination detection algorithm for distributed computations", 1983).
 *
 * The token has a colour. An idle worker that holds the token passes it on. The worker makes it black if, since its
 * last pass, it was busy or its stolen_out has changed: it may have made another worker busy behind the token. No task
 * exists when worker 0 gets a white token back after a round in which worker 0 was itself white and idle throughout. */
#ifndef TERM_RING_DEV_H
#define TERM_RING_DEV_H

#include <gpuloom/dev/dev.h>

/* The block of the stack. */
struct term_ring {
	uint32_t holder; /* worker that has the token */
	uint32_t black;  /* colour of the token; written by the holder only */
	uint32_t done;   /* set once, by worker 0 */
	uint32_t pad[13];
};

/* One per worker, on its own line. Only lane 0 uses it. */
struct term_ring_own {
	uint64_t stolen_out; /* the value at the last pass */
	uint32_t black;  /* busy since the last pass */
	uint32_t asked;  /* worker 0: the round is in progress */
	uint32_t pad[12];
};

LOOM_FN void term_ring_idle(struct loom_ctx *c)
{
	(void)c; /* done() is called only by idle workers */
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
		done = loom_load_acquire_sys(&ring->done); /* Acquire: pairs with the release of worker 0 below. */
		/* Acquire: pairs with the release when the token is passed, and orders the colour. */
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
