/* SPDX-License-Identifier: Apache-2.0 */
/* Which cells are left out, and why: "k=a|b,k2=c: reason", or the reason as its name. */
#ifndef LOOM_CONSTRAINT_H
#define LOOM_CONSTRAINT_H

#include "compare/vary.h"

struct loom__constraint {
	char *text, *reason; /* as given; the reason, or the text when there is none */
	int only;            /* 1: cells that do not match are left out; 0: those that do */
	size_t terms;
	struct loom__constraint_term {
		size_t factor;
		unsigned char *match; /* [factor's values] 1: one of the term's */
	} * term;
};

/* Terms are joined by commas, the values of one by bars; all terms must hold. Keys and values are
 * those of the factors, and quotes around a value keep its commas, bars and colons. Without a reason
 * of its own it is for `name`; NULL: for its text. */
int loom__constraint_parse(const char *text, const char *name, int only, const struct loom__factor *factor,
			   size_t factors, struct loom__constraint *out, struct loom_error *err);
void loom__constraint_free(struct loom__constraint *c); /* an empty one is legal */

/* The first constraint that leaves the cell out, or NULL. */
const struct loom__constraint *loom__constraint_of(const struct loom__constraint *list, size_t n,
						   const size_t *pick);

#endif
