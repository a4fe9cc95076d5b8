/* SPDX-License-Identifier: Apache-2.0 */
/* Which cells of the product of the factors are run. */
#ifndef LOOM_DESIGN_H
#define LOOM_DESIGN_H

#include "sweep/constraint.h"

enum loom__design_kind {
	LOOM__DESIGN_FULL, /* every cell */
	LOOM__DESIGN_ONE,  /* the first values of all factors, and each other value on its own */
	LOOM__DESIGN_PAIRWISE, /* few cells in which every two values of two factors meet */
};
extern const char *const loom__design_name[4]; /* NULL-terminated */

#define LOOM__DESIGN_MOST 100000 /* cells */

struct loom__cells {
	size_t factors, count, room;
	size_t
	    *pick; /* [count][factors]: cells that are left out are among them, but for pairwise */
	size_t apart; /* pairs that no allowed cell brings together */
};

/* Deterministic in `seed`. */
int loom__cells_make(enum loom__design_kind kind, const struct loom__factor *factor, size_t factors,
		     const struct loom__constraint *constraint, size_t constraints, uint64_t seed,
		     struct loom__cells *out, struct loom_error *err);
void loom__cells_free(struct loom__cells *cells);
/* For the designs: appends a copy. */
int loom__cells_add(struct loom__cells *cells, const size_t *pick, struct loom_error *err);
int loom__cells_pairwise(const struct loom__factor *factor, size_t factors,
			 const struct loom__constraint *constraint, size_t constraints,
			 uint64_t seed, struct loom__cells *out, struct loom_error *err);

#endif
