/* SPDX-License-Identifier: Apache-2.0 */
/* Selects combinations of factor values so that each pair of values of two factors occurs in at least one combination.
 * Most faults depend on at most two factors (Kuhn, Wallace and Gallo 2004). All combinations (COMPOSE_ALL=1) would take
 * one core an hour to compile. */
#ifndef LOOM_TEST_COMPOSE_MATRIX_H
#define LOOM_TEST_COMPOSE_MATRIX_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATRIX_FACTORS = 8, MATRIX_VALUES = 16 };

struct factor {
	const char *name, *value[MATRIX_VALUES];
	size_t values;
};

struct matrix {
	struct factor factor[MATRIX_FACTORS];
	size_t factors;
	size_t left; /* the number of pairs of values that are not tried yet */
	unsigned char missing[MATRIX_FACTORS][MATRIX_FACTORS][MATRIX_VALUES][MATRIX_VALUES]; /* 1: not tried yet */
};

static inline size_t matrix_cells(const struct matrix *m)
{
	size_t n = 1;
	for (size_t f = 0; f < m->factors; f++)
		n *= m->factor[f].values;
	return n;
}

/* Stores in `pick` the index of each factor's value in combination n. */
static inline void matrix_pick(const struct matrix *m, size_t n, size_t *pick)
{
	for (size_t f = 0; f < m->factors; f++) {
		pick[f] = n % m->factor[f].values;
		n /= m->factor[f].values;
	}
}

static inline void matrix_open(struct matrix *m)
{
	m->left = 0;
	for (size_t f = 0; f < m->factors; f++)
		for (size_t g = f + 1; g < m->factors; g++)
			m->left += m->factor[f].values * m->factor[g].values;
	memset(m->missing, 1, sizeof(m->missing));
}

/* Returns the number of untried pairs in a combination. If `take` is 1, marks these pairs as tried. */
static inline size_t matrix_gain(struct matrix *m, const size_t *pick, int take)
{
	size_t gain = 0;
	for (size_t f = 0; f < m->factors; f++)
		for (size_t g = f + 1; g < m->factors; g++) {
			unsigned char *missing = &m->missing[f][g][pick[f]][pick[g]];
			gain += *missing;
			if (take)
				*missing = 0;
		}
	return gain;
}

/* Stores the combination with the most untried pairs in `pick`. Returns 0 if no pair is left. */
static inline int matrix_next(struct matrix *m, size_t *pick)
{
	size_t most = 0, best = 0, cells = matrix_cells(m);
	for (size_t n = 0; m->left && n < cells; n++) {
		matrix_pick(m, n, pick);
		size_t gain = matrix_gain(m, pick, 0);
		if (gain > most) {
			most = gain;
			best = n;
		}
	}
	if (!most)
		return 0;
	matrix_pick(m, best, pick);
	m->left -= matrix_gain(m, pick, 1);
	return 1;
}

/* Returns 1 if a value of the combination has not been seen yet. If so, marks its values as seen. */
static inline int matrix_new_value(const struct matrix *m, unsigned char (*seen)[MATRIX_VALUES], const size_t *pick)
{
	int some = 0;
	for (size_t f = 0; f < m->factors; f++)
		some |= !seen[f][pick[f]];
	for (size_t f = 0; some && f < m->factors; f++)
		seen[f][pick[f]] = 1;
	return some;
}

/* The parts of the combinations of pairs. MATRIX_VALUE: those that have a value for the first time, so each value of a
 * factor is in one of them. MATRIX_REST: the others. */
enum { MATRIX_VALUE = 1, MATRIX_REST = 2 };

/* Calls run() for each selected combination of the parts, and returns their number. The environment can select other
 * combinations: COMPOSE_ALL=1 selects all, and COMPOSE_ALL=I/N selects every N-th, beginning with combination I (from
 * 0). */
static inline size_t matrix_each(struct matrix *m, int parts,
				 void (*run)(void *arg, const struct matrix *m, const size_t *pick), void *arg)
{
	unsigned char seen[MATRIX_FACTORS][MATRIX_VALUES] = {{0}};
	const char *all = getenv("COMPOSE_ALL");
	size_t pick[MATRIX_FACTORS], count = 0, i = 0, n = 1;
	if (all && sscanf(all, "%zu/%zu", &i, &n) != 2)
		i = 0, n = 1;
	for (size_t cell = i; all && cell < matrix_cells(m); cell += n, count++) {
		matrix_pick(m, cell, pick);
		run(arg, m, pick);
	}
	matrix_open(m);
	while (!all && matrix_next(m, pick))
		if (parts & (matrix_new_value(m, seen, pick) ? MATRIX_VALUE : MATRIX_REST)) {
			run(arg, m, pick);
			count++;
		}
	return count;
}

#endif
