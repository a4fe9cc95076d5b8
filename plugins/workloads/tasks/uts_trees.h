/* SPDX-License-Identifier: Apache-2.0 */
/* The trees of Unbalanced Tree Search, and their definition by integer bounds. */
#ifndef UTS_TREES_H
#define UTS_TREES_H

#include "uts_node.dev.h"

enum uts_type { UTS_GEOMETRIC, UTS_BINOMIAL, UTS_HYBRID };
enum uts_shape { UTS_FIXED, UTS_LINEAR, UTS_CYCLIC };

struct uts_params {
	enum uts_type type;
	enum uts_shape shape; /* how the expected number of children changes with depth */
	double b0;            /* expected children of the root; for a binomial tree the exact number */
	uint32_t seed, depth; /* depth: where the geometric part ends */
	double q;             /* binomial: probability that a node has children */
	uint32_t m;           /* binomial: number of these children */
	double shift;         /* hybrid: binomial from this share of `depth` on */
};

/* A published tree. Unknown counts are 0. */
struct uts_known {
	const char *name;
	struct uts_params p;
	uint64_t nodes, leaves, depth;
};
extern const struct uts_known uts_known[]; /* the last entry has .name == NULL */

/* Returns the number of depths that have bounds of their own. */
uint32_t uts_rows(const struct uts_params *p);
/* Fills in the tree and the rows of bounds behind it. */
void uts_define(struct uts_tree *tree, const struct uts_params *p);
void uts_root(struct uts_node *root, uint32_t seed);
/* Counts the nodes depth-first on one thread, without tasks. Returns 0 or LOOM_ENOMEM. */
int uts_search(const struct uts_tree *tree, uint32_t seed, struct uts_count *count);

#endif
