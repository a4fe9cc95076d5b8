/* SPDX-License-Identifier: Apache-2.0 */
/* A segment tree over the pages of the communication medium, PCM (WIC, section 5.3). It finds k consecutive free pages in
 * O(log n). The tree is a complete binary tree: node 1 is the root, and the children of node i are 2i and 2i+1. */
#ifndef WIC_PCM_H
#define WIC_PCM_H

#include <stdint.h>

#define PCM_NONE UINT32_MAX

struct pcm_node {
	uint32_t sum;       /* number of free pages below this node */
	uint32_t max_len;   /* length of the longest run of free pages */
	uint32_t left_len;  /* number of consecutive free pages from the left end on */
	uint32_t right_len; /* number of consecutive free pages up to the right end */
};

/* Returns the bytes of the tree over `pages` pages, a power of two. */
static inline uint64_t pcm_bytes(uint32_t pages)
{
	return 2ull * pages * sizeof(struct pcm_node);
}

void pcm_init(struct pcm_node *tree, uint32_t pages);
/* Allocates k consecutive pages from one of `parts` equal parts of PCM; `parts` is a power of two. Returns the first page,
 * or PCM_NONE. */
uint32_t pcm_alloc(struct pcm_node *tree, uint32_t pages, uint32_t parts, uint32_t part, uint32_t k);
void pcm_free(struct pcm_node *tree, uint32_t pages, uint32_t first, uint32_t k);

#endif
