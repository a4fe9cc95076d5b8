/* SPDX-License-Identifier: Apache-2.0 */
/* Which cells of the product of the factors are run. */
#ifndef LOOM_DESIGN_H
#define LOOM_DESIGN_H

#include "sweep/constraint.h"

enum loom__design_kind {
	LOOM__DESIGN_FULL, /* every cell */
	LOOM__DESIGN_ONE,  /* the first values of all factors, and each other value on its own */
};
extern const char *const loom__design_name[3]; /* NULL-terminated */

#define LOOM__DESIGN_MOST 100000 /* cells */

struct loom__cells {
	size_t factors, count, room;
	size_t *pick; /* [count][factors]: cells that are left out are among them */
};

int loom__cells_make(enum loom__design_kind kind, const struct loom__factor *factor, size_t factors,
		     struct loom__cells *out, struct loom_error *err);
void loom__cells_free(struct loom__cells *cells);

#endif
