/* SPDX-License-Identifier: Apache-2.0 */
#include "pcm.h"

static void whole(struct pcm_node *n, uint32_t length, int is_free)
{
	uint32_t all = is_free ? length : 0;
	*n = (struct pcm_node){all, all, all, all};
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Computes a node from its two children, each over `half` pages. */
static void join(struct pcm_node *n, const struct pcm_node *l, const struct pcm_node *r, uint32_t half)
{
	n->sum = l->sum + r->sum;
	n->left_len = l->left_len == half ? half + r->left_len : l->left_len;
	n->right_len = r->right_len == half ? half + l->right_len : r->right_len;
	n->max_len = most(most(l->max_len, r->max_len), l->right_len + r->left_len);
}

/* Updates the children of node i before they are used. set() does not update the children of a node whose pages are all free or
 * all taken. */
static void split(struct pcm_node *tree, uint32_t i, uint32_t length)
{
	if (tree[i].sum != 0 && tree[i].sum != length)
		return;
	whole(&tree[2 * i], length / 2, tree[i].sum != 0);
	whole(&tree[2 * i + 1], length / 2, tree[i].sum != 0);
}

void pcm_init(struct pcm_node *tree, uint32_t pages)
{
	whole(&tree[1], pages, 1);
}

/* Frees or takes pages [first, first + k), all within node i, which covers `length` pages from `from` on. */
static void set(struct pcm_node *tree, uint32_t i, uint32_t from, uint32_t length, uint32_t first, uint32_t k,
		int is_free)
{
	if (k == length) {
		whole(&tree[i], length, is_free);
		return;
	}
	uint32_t half = length / 2, middle = from + half, end = first + k;
	split(tree, i, length);
	if (first < middle)
		set(tree, 2 * i, from, half, first, (end < middle ? end : middle) - first, is_free);
	if (end > middle) {
		uint32_t begin = first > middle ? first : middle;
		set(tree, 2 * i + 1, middle, half, begin, end - begin, is_free);
	}
	join(&tree[i], &tree[2 * i], &tree[2 * i + 1], half);
}

/* Returns the first page of a run of k free pages in node i, or PCM_NONE. Node i covers `length` pages from `from` on. */
static uint32_t find(const struct pcm_node *tree, uint32_t i, uint32_t from, uint32_t length, uint32_t k)
{
	if (tree[i].max_len < k)
		return PCM_NONE;
	while (tree[i].sum != length) {
		const struct pcm_node *l = &tree[2 * i], *r = l + 1;
		length /= 2;
		if (l->max_len >= k) {
			i = 2 * i;
		} else if (l->right_len + r->left_len >= k) {
			return from + length - l->right_len;
		} else {
			i = 2 * i + 1;
			from += length;
		}
	}
	return from;
}

uint32_t pcm_alloc(struct pcm_node *tree, uint32_t pages, uint32_t parts, uint32_t part, uint32_t k)
{
	uint32_t length = pages;
	for (uint32_t row = parts / 2; row > 0; row /= 2, length /= 2) /* ancestors of the part's node, from the root on */
		split(tree, (parts + part) / (2 * row), length);
	uint32_t first = find(tree, parts + part, part * length, length, k);
	if (first != PCM_NONE)
		set(tree, 1, 0, pages, first, k, 0);
	return first;
}

void pcm_free(struct pcm_node *tree, uint32_t pages, uint32_t first, uint32_t k)
{
	set(tree, 1, 0, pages, first, k, 1);
}
