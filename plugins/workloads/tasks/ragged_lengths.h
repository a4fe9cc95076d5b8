/* SPDX-License-Identifier: Apache-2.0 */
/* The lengths of the sequences of workload_ragged, for each value of the option `law`. */
#ifndef RAGGED_LENGTHS_H
#define RAGGED_LENGTHS_H

#include <gpuloom/plugin.h>

/* X(NAME, text, what): the constant, the option's value, and its help. */
#define RAGGED_LAWS(X)                                                                                                 \
	X(EQUAL, "equal", "all have `length` tokens")                                                                  \
	X(UNIFORM, "uniform", "evenly drawn from 1 to twice `length`")                                                 \
	X(ZIPF, "zipf", "the i-th longest is in proportion to 1 / i")                                        \
	X(TWO, "two", "one of eight has 4.5 times `length`, the others half of it")                                     \
	X(TRACE, "trace", "as the file `trace` lists them")
enum ragged_law {
#define RAGGED_LAW(NAME, text, what) RAGGED_##NAME,
	RAGGED_LAWS(RAGGED_LAW)
#undef RAGGED_LAW
};

#define RAGGED_LONGEST (1u << 22) /* upper limit on the tokens of a sequence */

/* Draws the lengths of n sequences, from 1 to RAGGED_LONGEST, in random order by the seed. Their mean is about
 * `mean`. */
void ragged_draw(enum ragged_law law, uint32_t mean, uint64_t seed, uint32_t n, uint32_t *length);

void ragged_shuffle(uint32_t *length, uint32_t n, uint64_t seed);

/* Reads lengths from a text with one number per line; '#' starts a comment. The caller frees *length with free().
 * Messages call the text `name`. */
int ragged_parse(const struct loom_host *host, const char *name, const char *text, uint32_t **length, uint32_t *n,
		 struct loom_error *err);
int ragged_read(const struct loom_host *host, const char *path, uint32_t **length, uint32_t *n, struct loom_error *err);

#endif
