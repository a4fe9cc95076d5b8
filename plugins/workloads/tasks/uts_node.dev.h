/* SPDX-License-Identifier: Apache-2.0 */
/* Unbalanced Tree Search (Olivier et al., LCPC 2006): counts the nodes of a tree that unfolds from
 * SHA-1. A node is a 20-byte digest; child i is the digest of its parent and i; the digest's last
 * word decides how many children there are. Device code.
 *
 * The benchmark defines the number of children with logarithms and powers. The host turns them into
 * integer bounds once, so that every device gets the same tree to the node. */
#ifndef UTS_NODE_DEV_H
#define UTS_NODE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "sha1.dev.h"
#include "task.dev.h"
#endif

#define UTS_MOST_CHILDREN 100u /* of a node below the root, by definition of the benchmark */

/* The global block. `rows` rows of bounds follow: at depth d a node whose number is at least
 * bound[d][k] has more than k children. */
struct uts_tree {
	uint32_t rows;          /* depths with a geometric number of children */
	uint32_t root_children; /* 0: the root is like any other node */
	uint32_t binomial;      /* below `rows`: a node whose number is smaller ... */
	uint32_t branches;      /* ... has this many children, others none */
	uint32_t keep;          /* nodes that a worker keeps to itself, see uts_lazy.h; 0: none */
	uint32_t pad0;
	uint64_t pad[5];
};

/* The worker's block. */
struct uts_count {
	uint64_t nodes, leaves, depth;
	uint64_t pad[5];
};

/* param[0..2] of a task: the node. */
struct uts_node {
	uint32_t digest[5];
	uint32_t depth;
};

LOOM_FN uint32_t uts_children(const struct uts_tree *tree, const struct uts_node *n)
{
	uint32_t number = n->digest[4] & 0x7fffffffu;
	if (n->depth == 0 && tree->root_children)
		return tree->root_children;
	if (n->depth >= tree->rows)
		return number < tree->binomial ? tree->branches : 0;
	const uint32_t *bound = (const uint32_t *)(tree + 1) + n->depth * UTS_MOST_CHILDREN;
	uint32_t k = 0;
#ifdef LOOM_DEVICE_COMPILE
	/* Bounds ascend. Lanes with different numbers take the same steps. */
	for (uint32_t half = 64; half; half /= 2)
		if (k + half <= UTS_MOST_CHILDREN && number >= bound[k + half - 1])
			k += half;
#else
	while (k < UTS_MOST_CHILDREN && number >= bound[k])
		k++;
#endif
	return k;
}

#ifndef UTS_CHILD_FN
#define UTS_CHILD_FN LOOM_FN
#endif
UTS_CHILD_FN void uts_child(struct uts_node *child, const struct uts_node *parent, uint32_t i)
{
	uint32_t message[6];
	for (uint32_t k = 0; k < 5; k++)
		message[k] = parent->digest[k];
	message[5] = i;
	sha1_block(child->digest, message, 6);
	child->depth = parent->depth + 1;
}

LOOM_FN struct uts_node uts_node(const struct loom_task *t)
{
	struct uts_node n;
	for (uint32_t k = 0; k < 5; k++)
		n.digest[k] = (uint32_t)(t->param[k / 2] >> 32 * (k % 2));
	n.depth = (uint32_t)(t->param[2] >> 32);
	return n;
}

LOOM_FN void uts_pack(struct loom_task *t, const struct uts_node *n)
{
	t->param[0] = n->digest[0] | (uint64_t)n->digest[1] << 32;
	t->param[1] = n->digest[2] | (uint64_t)n->digest[3] << 32;
	t->param[2] = n->digest[4] | (uint64_t)n->depth << 32;
}

#endif
