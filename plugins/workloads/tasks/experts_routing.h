/* SPDX-License-Identifier: Apache-2.0 */
/* Which experts the tokens of workload_experts choose, for each value of the option `skew`. */
#ifndef EXPERTS_ROUTING_H
#define EXPERTS_ROUTING_H

#include <stdint.h>

/* X(NAME, text, what): the constant, the option's value, and its help. A token chooses no expert twice. */
#define EXPERTS_SKEWS(X)                                                                                               \
	X(EQUAL, "equal", "in turn: all experts get the same number, or one more")                                     \
	X(UNIFORM, "uniform", "any, with equal probability")                                                           \
	X(SQRT, "sqrt", "the i-th with a probability in proportion to 1 / sqrt(i)")                                    \
	X(ZIPF, "zipf", "the same with 1 / i")                                                                         \
	X(HOT_EIGHTH, "hot_eighth", "half of the choices go to one of eight experts, at least `top`, the others to any") \
	X(HOT_ONE, "hot_one", "all tokens choose the first expert, and any others")                                    \
	X(HOT_TOP, "hot_top", "all tokens choose the first `top` experts: neighbours, which a contiguous split gives to one worker") \
	X(DRIFT, "drift", "as zipf, but with each sample another expert is the first")
enum experts_skew {
#define EXPERTS_SKEW(NAME, text, what) EXPERTS_##NAME,
	EXPERTS_SKEWS(EXPERTS_SKEW)
#undef EXPERTS_SKEW
};

/* Fills choice[tokens][top]. Equal seeds give equal choices; for drift, `sample` must be equal, too. `top` is at most
 * `experts`. */
void experts_route(enum experts_skew skew, uint64_t seed, uint64_t sample, uint32_t experts, uint32_t tokens, uint32_t top,
		   uint32_t *choice);

#endif
