/* SPDX-License-Identifier: Apache-2.0 */
/* Factors, written `section.key=a,b,c`, and the configurations of the full product of several factors. */
#ifndef LOOM_VARY_H
#define LOOM_VARY_H

#include "base/base.h"

struct loom__entry;

struct loom__factor {
	char *key;    /* for example "scheduler.use" */
	char **value; /* [values] the levels as text */
	size_t values;
	/* [values] For a factor made of named points: a list of "section.key=value" per point, ended by NULL. Else
	 * NULL. */
	char ***sets;
	const struct loom__entry **from; /* [values] the conf entry that gives each level; NULL: not from a conf */
};

/* Appends the values of a list. Commas separate values. A comma within double quotes or after a backslash belongs to
 * the value. The caller frees each value and the array. */
void loom__values_read(const char *list, char ***value, size_t *values);

/* Parses "section.key=value,value". */
int loom__factor_parse(const char *text, struct loom__factor *out, struct loom_error *err);
/* Parses a factor into list[*n], which must have room, and increments *n. A repeated key is an error, but *n is
 * incremented, so that the caller frees the factor with all others. */
int loom__factor_add(const char *text, struct loom__factor *list, size_t *n, struct loom_error *err);
void loom__factor_free(struct loom__factor *f); /* *f may be zero-initialised */

/* Returns the number of configurations of n factors: 1 if n is 0, SIZE_MAX on overflow. */
size_t loom__factor_configs(const struct loom__factor *f, size_t n);
/* Sets pick[f] to the index of the level that factor f has in configuration number `config`. The last factor changes
 * fastest. */
void loom__factor_pick(const struct loom__factor *f, size_t n, size_t config, size_t *pick);

#endif
