/* SPDX-License-Identifier: Apache-2.0 */
/* The host's part of allreduce.dev.h. In need(): allreduce_shape, allreduce_place. In init(): allreduce_init. In wire():
 * allreduce_wire. */
#ifndef WORKLOAD_NET_ALLREDUCE_H
#define WORKLOAD_NET_ALLREDUCE_H

#include "allreduce.dev.h"
#include "poster.h"

extern const char *const allreduce_algorithms[];
#define ALLREDUCE_ROW(type, field)                                                                 \
	LOOM_OPT(type, field, LOOM_OPT_ENUM, "auto",                                               \
		 "ring: pieces go round by posted operations, under any trigger. oneshot: each rank stores its vector into " \
		 "all others, each word with a mark; for small vectors. twoshot: reduce-scatter and gather; for large ones. " \
		 "pull: each rank reads the vectors of all others; for large ones of two GPUs. "   \
		 "The last three need a trigger whose workers reach the memory of other ranks: peer. auto: with such a trigger " \
		 "oneshot up to 256 bytes, on GPUs up to 1.5 MiB to all others; above, twoshot, or pull between two GPUs; " \
		 "without, and with late or chained posts, ring.", .choices = allreduce_algorithms)

#define ALLREDUCE_PIECE (4u << 20) /* bytes, where a workload has no option for it */
/* How a vector of `bytes`, rounded up, is cut for all workers; `piece`: bytes that are sent at once. */
struct allreduce allreduce_shape(const struct loom_host *host, const struct loom_layout *layout, uint32_t algorithm,
				 uint64_t bytes, uint64_t piece);
/* Gives it memory from `at` on, and tags from `first`; `inputs`: vectors that rounds of a ring take in turn, else rounds begin
 * `stride` bytes further each, modulo 64 strides. Returns where its memory ends. */
uint64_t allreduce_place(struct allreduce *a, const struct loom_layout *layout, uint64_t at, uint32_t first, uint32_t inputs,
			 uint64_t stride);
/* All but the input. `all`: the workload's block for the stack. */
void allreduce_init(const struct allreduce *a, const struct loom_layout *layout, void *all);
/* Chooses for auto; posts, by `poster` if there is one, or finds out where the block of the other ranks is, all `bytes` of it. */
int allreduce_wire(struct allreduce *a, const struct loom_host *host, const struct loom_layout *layout,
		   const struct loom_view *view, loom_ref global, uint64_t bytes, const struct loom_trigger *trigger,
		   struct net_poster *poster, struct loom_error *err);
/* Whether the sums of a round are those of allreduce_element((i + turned) % of, rank), made in this algorithm's order. */
int allreduce_compare(const struct allreduce *a, const struct loom_host *host, const struct loom_layout *layout, const void *all,
		      uint64_t round, uint64_t turned, uint64_t of, struct loom_error *err);

/* As NET_CODE, of a workload that uses this. */
#define ALLREDUCE_CODE(NAME, ...)                                                                  \
	NET_CODE_IN(NAME, LOOM_CODE_FILE("allreduce.dev.h") LOOM_CODE_FILE(#NAME ".dev.h"), __VA_ARGS__)

#endif
