/* SPDX-License-Identifier: Apache-2.0 */
/* Which experts the tokens of workload_experts choose, for each value of the option `skew`, and files of such choices. */
#ifndef EXPERTS_ROUTING_H
#define EXPERTS_ROUTING_H

#include <gpuloom/plugin.h>

/* X(NAME, text, what): the constant, the option's value, and its help. A token chooses no expert twice. `equal` and the cases from
 * HOT_SET on are those of a benchmark for Megatron-LM (pull request 7488); their random numbers are gpuloom's. */
#define EXPERTS_SKEWS(X)                                                                                               \
	X(EQUAL, "equal", "in turn: all experts get the same number, or one more")                                     \
	X(UNIFORM, "uniform", "any, with equal probability")                                                           \
	X(SQRT, "sqrt", "the i-th with a probability in proportion to 1 / sqrt(i)")                                    \
	X(ZIPF, "zipf", "the same with 1 / i")                                                                         \
	X(HOT_EIGHTH, "hot_eighth", "half of the choices go to one of eight experts, at least `top`, the others to any") \
	X(HOT_ONE, "hot_one", "all tokens choose the first expert, and any others")                                    \
	X(HOT_TOP, "hot_top", "all tokens choose the first `top` experts: neighbours, which a contiguous split gives to one worker") \
	X(HOT_SET, "hot_set", "half of the choices go to as many experts as a rank has, drawn among all, the others to any") \
	X(HOT_RANK, "hot_rank", "the same with the experts of the first rank")                                         \
	X(HOT_SPREAD, "hot_spread", "the same with experts that are evenly spread over the ranks")                     \
	X(RAGGED_SOURCE, "ragged_source", "as uniform; rank i sends a number of tokens in proportion to 1 / i")        \
	X(IDLE_RANK, "idle_rank", "any expert, but none of the last rank")                                             \
	X(ROTATING, "rotating", "as hot_rank, with the next rank in each step")                                        \
	X(BURST, "burst", "as equal, but as hot_rank in one of eight steps")                                           \
	X(TRACE, "trace", "as the file `trace` says")
enum experts_skew {
#define EXPERTS_SKEW(NAME, text, what) EXPERTS_##NAME,
	EXPERTS_SKEWS(EXPERTS_SKEW)
#undef EXPERTS_SKEW
};
#define EXPERTS_SKEW_TEXT(NAME, text, what) text,
#define EXPERTS_SKEW_HELP(NAME, text, what) text ": " what ". "

#define EXPERTS_MOST	    4096u
#define EXPERTS_TOP_MOST    64u
#define EXPERTS_TOKENS_MOST 65536u
#define EXPERTS_STEPS_MOST  1024u

/* The choices of some steps. Ranks have equal contiguous ranges of experts; they matter for some skews. */
struct routing {
	uint32_t experts, tokens, top, ranks, steps;
	uint32_t *choice; /* [steps][tokens][top] */
	uint32_t *source; /* [steps][tokens]: the rank that sends the token */
};

/* Draws one step: choice[tokens][top] and source[tokens], which may be NULL. Equal (skew, seed, step) give equal results. `top` is at
 * most routing_some(). */
void routing_draw(enum experts_skew skew, uint64_t seed, uint64_t step, const struct routing *shape, uint32_t *choice,
		  uint32_t *source);
/* Returns how many experts tokens may choose. */
uint32_t routing_some(enum experts_skew skew, const struct routing *shape);

uint64_t routing_checksum(const struct routing *r);

/* A file of choices is a text. Its first line is
 *   gpuloom-routing 1 experts 4 tokens 2 top 2 ranks 2 steps 1 checksum 0123456789abcdef
 * A line for each token of each step follows: its rank, and the experts that it chooses. The caller frees r->choice and r->source
 * by routing_free(). Messages call the text `name`. */
int routing_parse(const struct loom_host *host, const char *name, const char *text, struct routing *r, struct loom_error *err);
int routing_read(const struct loom_host *host, const char *path, struct routing *r, struct loom_error *err);
/* Makes the choices for `skew`: reads the file `trace`, which must have the experts, tokens and choices of `shape`; with any other
 * skew, allocates room for one step, which routing_draw() fills. Freed by routing_free(). */
int routing_create(const struct loom_host *host, enum experts_skew skew, const char *trace, const struct routing *shape,
		   struct routing *r, struct loom_error *err);
/* Implements inputs() of workloads with these options. */
int routing_inputs(const struct loom_host *host, enum experts_skew skew, const char *trace, struct loom_error *err);
int routing_write(const struct loom_host *host, const char *path, const struct routing *r, struct loom_error *err);
void routing_free(struct routing *r);

#endif
