/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the configurations that a sweep runs, out of all combinations of the levels of its factors. */
#ifndef LOOM_DESIGN_H
#define LOOM_DESIGN_H

#include "compare/vary.h"

/* A constraint leaves configurations out. Its text is "k=a|b,k2=c: reason". A constraint in a conf may give the reason
 * as the name of the option instead. */
struct loom__constraint {
	char *text, *reason; /* text: as given; reason: the reason, or the text if it has none */
	int only;            /* 1: configurations that do not match are left out; 0: configurations that match are left out */
	size_t terms;
	struct loom__constraint_term {
		size_t factor;
		unsigned char *match; /* [number of values of the factor] 1: the term matches this value */
	} * term;
};

/* Parses a constraint. Commas separate terms, and bars separate the values of a term. A configuration matches if all
 * terms match. Keys and values must be keys and values of the factors. The last part of a key is enough if no other
 * factor has the same last part. Quotes around a value protect commas, bars and colons. The default of the reason is
 * `name`, or the text if `name` is NULL. If it is "", the factors may lack values, and one value of a term suffices. */
int loom__constraint_parse(const char *text, const char *name, int only, const struct loom__factor *factor,
			   size_t factors, struct loom__constraint *out, struct loom_error *err);
void loom__constraint_free(struct loom__constraint *c); /* *c may be zero-initialised */

/* Returns the first constraint that leaves the configuration `pick` out, or NULL. */
const struct loom__constraint *loom__constraint_of(const struct loom__constraint *list, size_t n,
						   const size_t *pick);

#define LOOM__CONFIGS_MOST 100000 /* the largest number of configurations */

/* All combinations of levels. */
struct loom__configs {
	size_t factors, count;
	size_t *pick; /* [count][factors] index of the level of each factor */
};

int loom__configs_make(const struct loom__factor *factor, size_t factors, struct loom__configs *out,
		       struct loom_error *err);
void loom__configs_free(struct loom__configs *configs);

#endif
