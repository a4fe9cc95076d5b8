/* SPDX-License-Identifier: Apache-2.0 */
/* What is varied: `section.key=a,b,c`, and the cells of the full product of several such factors. */
#ifndef LOOM_VARY_H
#define LOOM_VARY_H

#include "base/base.h"

struct loom__entry;

struct loom__factor {
	char *key;    /* "scheduler.use" */
	char **value; /* [values] */
	size_t values;
	/* Of named points, whose values are names; else NULL: [values] lists of what each sets,
	 * "section.key=value", ended by NULL. */
	char ***sets;
	const struct loom__entry **from; /* [values] where each stands; NULL: in no conf */
};

/* Appends the values of a list, each from malloc. A comma separates them; within double quotes, or after a
 * backslash, it is one of a value. */
void loom__values_read(const char *list, char ***value, size_t *values);

/* "section.key=value,value" */
int loom__factor_parse(const char *text, struct loom__factor *out, struct loom_error *err);
/* The same at the end of list[*n], which has room for it. A key that is there already is an error; *n counts the
 * new one even then, so that it is freed with the others. */
int loom__factor_add(const char *text, struct loom__factor *list, size_t *n, struct loom_error *err);
void loom__factor_free(struct loom__factor *f); /* an empty one is legal */

/* How many cells n factors have: 1 without any. SIZE_MAX: more than can be counted. */
size_t loom__factor_cells(const struct loom__factor *f, size_t n);
/* Which value each factor has in a cell; the last factor changes fastest. pick is [n]. */
void loom__factor_pick(const struct loom__factor *f, size_t n, size_t cell, size_t *pick);

#endif
