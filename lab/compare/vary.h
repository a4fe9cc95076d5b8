/* SPDX-License-Identifier: Apache-2.0 */
/* Factors: `section.key=a,b,c`, and the configurations of the full product of several factors. */
#ifndef LOOM_VARY_H
#define LOOM_VARY_H

#include "base/base.h"

struct loom__entry;

struct loom__factor {
	char *key;    /* "scheduler.use" */
	char **value; /* [values] */
	size_t values;
	/* [values] of named points: lists of "section.key=value", NULL-terminated. NULL: no named points. */
	char ***sets;
	const struct loom__entry **from; /* [values]: the place of each; NULL: not in a conf */
};

/* Appends the values of a list; the caller frees each. Commas separate values; a comma within double quotes or
 * after a backslash belongs to the value. */
void loom__values_read(const char *list, char ***value, size_t *values);

/* Parses "section.key=value,value". */
int loom__factor_parse(const char *text, struct loom__factor *out, struct loom_error *err);
/* Parses a factor into list[*n], which must have space. A repeated key is an error, but *n counts the factor, so that
 * it is freed with the others. */
int loom__factor_add(const char *text, struct loom__factor *list, size_t *n, struct loom_error *err);
void loom__factor_free(struct loom__factor *f); /* an empty one is legal */

/* Returns the number of configurations of n factors: 1 without factors, SIZE_MAX on overflow. */
size_t loom__factor_configs(const struct loom__factor *f, size_t n);
/* Sets pick[n] to the index of each factor's level in a configuration. The last factor changes fastest. */
void loom__factor_pick(const struct loom__factor *f, size_t n, size_t config, size_t *pick);

#endif
