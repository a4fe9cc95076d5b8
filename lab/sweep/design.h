/* SPDX-License-Identifier: Apache-2.0 */
/* Which configurations of the product of the factors are run. */
#ifndef LOOM_DESIGN_H
#define LOOM_DESIGN_H

#include "compare/vary.h"

/* b,k2=c: reason", or with the reason as the option's name.|A constraint leaves configurations out: "k=a|b,k2=c:
 * reason", or with the reason as the option's name.|b,k2=c: reason", or with the reason as the option's name. */
struct loom__constraint {
	char *text, *reason; /* text: as given; reason: the reason, or the text without one */
	int only;            /* 1: leaves out configurations that do not match; 0: those that match */
	size_t terms;
	struct loom__constraint_term {
		size_t factor;
		unsigned char *match; /* [values of the factor] 1: matches */
	} * term;
};

/* Parses a constraint. Commas separate terms, bars their values; all terms must hold. Keys, or their last parts if these
 * differ, and values are those of the factors; quotes around a value protect commas, bars and colons. The default reason is `name`, else the text. */
int loom__constraint_parse(const char *text, const char *name, int only, const struct loom__factor *factor,
			   size_t factors, struct loom__constraint *out, struct loom_error *err);
void loom__constraint_free(struct loom__constraint *c); /* an empty one is legal */

/* Returns the first constraint that leaves the configuration out, or NULL. */
const struct loom__constraint *loom__constraint_of(const struct loom__constraint *list, size_t n,
						   const size_t *pick);

/* Which configurations of the product of the factors are run. */
enum loom__design_kind {
	LOOM__DESIGN_FULL, /* every configuration */
	LOOM__DESIGN_ONE,  /* the first values of all factors, and each other value alone */
};
extern const char *const loom__design_name[3]; /* NULL-terminated */

#define LOOM__DESIGN_MOST 100000 /* the most configurations */

struct loom__configs {
	size_t factors, count, room;
	size_t *pick; /* [count][factors], with configurations that are left out */
};

int loom__configs_make(enum loom__design_kind kind, const struct loom__factor *factor, size_t factors,
		     struct loom__configs *out, struct loom_error *err);
void loom__configs_free(struct loom__configs *configs);

#endif
