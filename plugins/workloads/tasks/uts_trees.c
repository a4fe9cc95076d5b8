/* SPDX-License-Identifier: Apache-2.0 */
#include "uts_trees.h"

#include <math.h>
#include <stdlib.h>

#define GEO UTS_GEOMETRIC, UTS_FIXED
#define BIN UTS_BINOMIAL, UTS_FIXED

/* Parameters and counts as published with the benchmark. */
const struct uts_known uts_known[] = {
	{"T1", {GEO, 4, 19, 10, 0, 0, 0}, 4130071, 3305118, 10},
	{"T2", {UTS_GEOMETRIC, UTS_CYCLIC, 6, 502, 16, 0, 0, 0}, 4117769, 2342762, 81},
	{"T3", {BIN, 2000, 42, 0, 0.124875, 8, 0}, 4112897, 3599034, 1572},
	{"T4", {UTS_HYBRID, UTS_LINEAR, 6, 1, 16, 0.234375, 4, 0.5}, 4132453, 3108986, 134},
	{"T5", {UTS_GEOMETRIC, UTS_LINEAR, 4, 34, 20, 0, 0, 0}, 4147582, 2181318, 20},
	{"T1L", {GEO, 4, 29, 13, 0, 0, 0}, 102181082, 81746377, 13},
	{"T3L", {BIN, 2000, 7, 0, 0.200014, 5, 0}, 111345631, 89076904, 17844},
	{"T1XL", {GEO, 4, 29, 15, 0, 0, 0}, 1635119272, 1308100063, 15},
	{"T1XXL", {GEO, 4, 19, 15, 0, 0, 0}, 4230646601, 0, 15},
	{"T3XXL", {BIN, 2000, 316, 0, 0.499995, 2, 0}, 2793220501, 0, 0},
	{.name = NULL},
};

/* Returns the expected number of children at this depth. */
static double branching(const struct uts_params *p, uint32_t depth)
{
	if (depth == 0)
		return p->b0;
	switch (p->shape) {
	case UTS_LINEAR:
		return p->b0 * (1.0 - (double)depth / (double)p->depth);
	case UTS_CYCLIC:
		return pow(p->b0, sin(2.0 * 3.141592653589793 * (double)depth / (double)p->depth));
	default:
		return p->b0;
	}
}

uint32_t uts_rows(const struct uts_params *p)
{
	if (p->type == UTS_BINOMIAL)
		return 0;
	if (p->type == UTS_HYBRID)
		return (uint32_t)ceil(p->shift * p->depth);
	return p->shape == UTS_CYCLIC ? 5 * p->depth + 1 : p->depth;
}

/* Returns the number of children by the benchmark's formula: a geometric distribution from a number in [0, 2^31). */
static uint32_t geometric(uint32_t number, double b)
{
	double p = 1.0 / (1.0 + b), u = (double)number / 2147483648.0;
	double k = floor(log(1 - u) / log(1 - p));
	return k < UTS_MOST_CHILDREN ? (uint32_t)k : UTS_MOST_CHILDREN;
}

/* Returns the smallest number for which the formula gives more than k children, or 2^31 if there is none. The formula
 * is monotonic. */
static uint32_t bound(double b, uint32_t k)
{
	uint32_t low = 0, high = 1u << 31;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (geometric(middle, b) > k)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void uts_define(struct uts_tree *tree, const struct uts_params *p)
{
	uint32_t *row = (uint32_t *)(tree + 1);
	*tree = (struct uts_tree){.rows = uts_rows(p)};
	if (p->type == UTS_BINOMIAL)
		tree->root_children = (uint32_t)p->b0;
	if (p->type != UTS_GEOMETRIC) {
		/* The test is number / 2^31 < q, in integers, whose two sides are exact. */
		tree->binomial = (uint32_t)ceil(p->q * 2147483648.0);
		tree->branches = p->m;
	}
	for (uint32_t d = 0; d < tree->rows; d++, row += UTS_MOST_CHILDREN)
		for (uint32_t k = 0; k < UTS_MOST_CHILDREN; k++)
			row[k] = bound(branching(p, d), k);
}

void uts_root(struct uts_node *root, uint32_t seed)
{
	uint32_t message[5] = {0, 0, 0, 0, seed};
	sha1_block(root->digest, message, 5);
	root->depth = 0;
}

int uts_search(const struct uts_tree *tree, uint32_t seed, struct uts_count *count)
{
	size_t room = 4096, n = 1;
	struct uts_node *stack = malloc(room * sizeof(*stack));
	if (!stack)
		return LOOM_ENOMEM;
	*count = (struct uts_count){0};
	uts_root(&stack[0], seed);
	while (n) {
		struct uts_node node = stack[--n];
		uint32_t children = uts_children(tree, &node);
		count->nodes++;
		count->leaves += !children;
		if (count->depth < node.depth)
			count->depth = node.depth;
		if (n + children > room) {
			room = 2 * (n + children);
			struct uts_node *more = realloc(stack, room * sizeof(*stack));
			if (!more) {
				free(stack);
				return LOOM_ENOMEM;
			}
			stack = more;
		}
		for (uint32_t i = 0; i < children; i++)
			uts_child(&stack[n++], &node, i);
	}
	free(stack);
	return 0;
}
