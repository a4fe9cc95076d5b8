/* SPDX-License-Identifier: Apache-2.0 */
/* Unbalanced Tree Search (Olivier et al., LCPC 2006): counts the nodes of a tree that SHA-1 generates. A node is a
 * 20-byte digest. Child i is the digest of its parent's digest and i. The last word of a digest determines the number
 * of children. Device code.
 *
 * The benchmark defines the number of children with logarithms and powers. The host converts them to integer bounds
 * once, so that every device generates exactly the same tree. */
#ifndef UTS_NODE_DEV_H
#define UTS_NODE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "sha1.dev.h"
#include "task.dev.h"
#endif

#define UTS_MOST_CHILDREN 100u /* limit on the children of a node below the root, from the benchmark */

/* The global block. `rows` rows of bounds follow. A node at depth d whose number is at least bound[d][k] has more
 * than k children. */
struct uts_tree {
	uint32_t rows;          /* number of depths with a geometric number of children */
	uint32_t root_children; /* 0: the root is like any other node */
	uint32_t binomial;      /* at depth `rows` and deeper, nodes whose number is below this have children */
	uint32_t branches;      /* number of these children */
	uint32_t keep;          /* entries of a lane's stack (uts_lazy.h); 0: no stack */
	uint32_t pad0;
	uint64_t pad[5];
};

/* The worker's block. */
struct uts_count {
	uint64_t nodes, leaves, depth;
	uint64_t pad[5];
};

/* A node. It fits into param[0] to param[2] of a task. */
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
	/* Bounds ascend, so halve the range. Lanes with different numbers take the same steps. */
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
