/* SPDX-License-Identifier: Apache-2.0 */
/* A greedy cover of all pairs of values, in the manner of AETG (Cohen, Dalal, Fredman and Patton
 * 1997): each new cell is the best of some that begin with a pair still missing. */
#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "sweep/design.h"

#define CANDIDATES  40  /* tried for each cell */
#define TRIES       400 /* before a pair is looked for in every cell, or given up */
#define SEARCH_MOST ((size_t)1 << 20)

struct cover {
	const struct loom__factor *factor;
	const struct loom__constraint *constraint;
	size_t factors, constraints;
	size_t *first; /* [factors] number of a factor's first value when all are counted */
	size_t values;
	unsigned char *missing; /* [values][values], upper half: this pair has not met yet */
	size_t left;
	struct loom__stats_rng rng;
	size_t *pick, *best, *order; /* [factors] */
};

static unsigned char *pair(const struct cover *c, size_t f, size_t v, size_t g, size_t w)
{
	size_t a = c->first[f] + v, b = c->first[g] + w;
	return &c->missing[a < b ? a * c->values + b : b * c->values + a];
}

static size_t gain(const struct cover *c, const size_t *pick)
{
	size_t n = 0;
	for (size_t f = 0; f < c->factors; f++)
		for (size_t g = f + 1; g < c->factors; g++)
			n += *pair(c, f, pick[f], g, pick[g]);
	return n;
}

/* The pair number `skip` of those that are missing. */
static int find_missing(const struct cover *c, size_t skip, size_t at[4])
{
	for (size_t f = 0; f < c->factors; f++)
		for (size_t g = f + 1; g < c->factors; g++)
			for (size_t v = 0; v < c->factor[f].values; v++)
				for (size_t w = 0; w < c->factor[g].values; w++)
					if (*pair(c, f, v, g, w) && skip-- == 0) {
						memcpy(at, (size_t[4]){f, v, g, w},
						       4 * sizeof(*at));
						return 1;
					}
	return 0;
}

/* Fills c->pick around a pair: the other factors in random order, each with the value that meets
 * most missing partners among those already chosen; one in `wild` values is left to chance. */
static void candidate(struct cover *c, const size_t at[4], uint64_t wild)
{
	size_t set = 2;
	c->order[0] = at[0];
	c->order[1] = at[2];
	c->pick[at[0]] = at[1];
	c->pick[at[2]] = at[3];
	for (size_t f = 0; f < c->factors; f++)
		if (f != at[0] && f != at[2])
			c->order[set++] = f;
	for (size_t i = c->factors; i > 3; i--) {
		size_t k = 2 + loom__stats_below(&c->rng, i - 2), f = c->order[k];
		c->order[k] = c->order[i - 1];
		c->order[i - 1] = f;
	}
	for (size_t i = 2; i < c->factors; i++) {
		size_t f = c->order[i], most = 0;
		size_t start = loom__stats_below(&c->rng, c->factor[f].values);
		c->pick[f] = start;
		if (loom__stats_below(&c->rng, wild) == 0)
			continue;
		for (size_t k = 0; k < c->factor[f].values; k++) {
			size_t v = (start + k) % c->factor[f].values, n = 0;
			for (size_t j = 0; j < i; j++)
				n += *pair(c, f, v, c->order[j], c->pick[c->order[j]]);
			if (n > most) {
				most = n;
				c->pick[f] = v;
			}
		}
	}
}

static int allowed(const struct cover *c, const size_t *pick)
{
	return !loom__constraint_of(c->constraint, c->constraints, pick);
}

/* Every cell with the pair, when they can be counted. 1: c->pick is an allowed one. */
static int search(struct cover *c, const size_t at[4])
{
	size_t n = loom__factor_cells(c->factor, c->factors);
	for (size_t i = 0; n <= SEARCH_MOST && i < n; i++) {
		loom__factor_pick(c->factor, c->factors, i, c->pick);
		if (c->pick[at[0]] == at[1] && c->pick[at[2]] == at[3] && allowed(c, c->pick))
			return 1;
	}
	return 0;
}

/* The best of some cells into c->best; 0: the pair can meet in none. */
static int next_cell(struct cover *c, size_t at[4])
{
	size_t most = 0;
	for (int i = 0; i < (most ? CANDIDATES : TRIES); i++) {
		/* A try that failed for long begins to look elsewhere. */
		find_missing(c, i < CANDIDATES ? loom__stats_below(&c->rng, c->left) : 0, at);
		candidate(c, at, i < CANDIDATES ? 64 : 2);
		size_t n = allowed(c, c->pick) ? gain(c, c->pick) : 0;
		if (n > most) {
			most = n;
			memcpy(c->best, c->pick, c->factors * sizeof(*c->best));
		}
	}
	if (!most && search(c, at)) {
		memcpy(c->best, c->pick, c->factors * sizeof(*c->best));
		return 1;
	}
	return most > 0;
}

static int run(struct cover *c, struct loom__cells *out, struct loom_error *err)
{
	size_t at[4];
	int rc = 0;
	for (size_t f = 0; f < c->factors; f++)
		for (size_t g = f + 1; g < c->factors; g++)
			for (size_t v = 0; v < c->factor[f].values; v++)
				for (size_t w = 0; w < c->factor[g].values; w++, c->left++)
					*pair(c, f, v, g, w) = 1;
	while (c->left && !rc) {
		find_missing(c, 0, at);
		if (!next_cell(c, at)) {
			*pair(c, at[0], at[1], at[2], at[3]) = 0;
			c->left--;
			out->apart++;
			continue;
		}
		c->left -= gain(c, c->best);
		for (size_t f = 0; f < c->factors; f++)
			for (size_t g = f + 1; g < c->factors; g++)
				*pair(c, f, c->best[f], g, c->best[g]) = 0;
		rc = loom__cells_add(out, c->best, err);
	}
	return rc;
}

int loom__cells_pairwise(const struct loom__factor *factor, size_t factors,
			 const struct loom__constraint *constraint, size_t constraints,
			 uint64_t seed, struct loom__cells *out, struct loom_error *err)
{
	struct cover c = {.factor = factor,
			  .constraint = constraint,
			  .factors = factors,
			  .constraints = constraints,
			  .rng = {seed},
			  .first = calloc(factors, sizeof(size_t)),
			  .pick = calloc(factors, sizeof(size_t)),
			  .best = calloc(factors, sizeof(size_t)),
			  .order = calloc(factors, sizeof(size_t))};
	int rc = LOOM_ENOMEM;
	for (size_t f = 0; c.first && f < factors; f++) {
		c.first[f] = c.values;
		c.values += factor[f].values;
	}
	if (c.values > 10000)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "more than 10000 values to vary");
	else if (c.first && c.pick && c.best && c.order && (c.missing = calloc(c.values, c.values)))
		rc = run(&c, out, err);
	else
		LOOM__FAIL(err, rc, "out of memory");
	free(c.first);
	free(c.pick);
	free(c.best);
	free(c.order);
	free(c.missing);
	return rc;
}
