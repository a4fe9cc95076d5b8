/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of tasks that check a scheduler: every task must run exactly once and arrive complete. A task owns the ids [id,
 * id + size): param[0] is its own, its children share the others. */
#ifndef LOOM_RIG_TREE_H
#define LOOM_RIG_TREE_H

#include "rig/rig.h"
#include "lib/random.h"

/* LOOM__COMB is a chain with a leaf at each link. A test may give LOOM__OTHER a shape of its own. */
enum loom__shape { LOOM__STAR, LOOM__CHAIN, LOOM__BINARY, LOOM__COMB, LOOM__RANDOM, LOOM__OTHER };

static inline struct loom_task loom__tree_task(uint64_t id, uint64_t size, enum loom__shape shape, uint64_t seed)
{
	return (struct loom_task){.tag = id & 1,
				  .param = {id, size, shape, seed},
				  .data = {.ref = loom__mix64(id + size), .bytes = loom__mix64(id) >> 8}};
}

static inline int loom__tree_whole(const struct loom_task *t)
{
	return t->data.bytes == loom__mix64(t->param[0]) >> 8 && t->data.ref == loom__mix64(t->param[0] + t->param[1]) &&
	       t->tag == (t->param[0] & 1);
}

/* A walk over the children of a task; initially zero. */
struct loom__tree_walk {
	uint64_t children, at, next, rest;
};

/* Returns 1 with the next child, or 0 when none is left. */
static inline int loom__tree_child(const struct loom_task *t, struct loom__tree_walk *w, struct loom_task *child)
{
	enum loom__shape shape = (enum loom__shape)t->param[2];
	if (!w->at) {
		w->rest = t->param[1] - 1;
		w->next = t->param[0] + 1;
		uint64_t most = shape == LOOM__STAR    ? w->rest
				: shape == LOOM__CHAIN ? 1
				: shape < LOOM__RANDOM ? 2
						       : 40;
		w->children = w->rest < most ? w->rest : most;
		if (shape >= LOOM__RANDOM && w->children)
			w->children = 1 + loom__mix64(t->param[0] ^ t->param[3]) % w->children;
	}
	if (w->at == w->children)
		return 0;
	uint64_t part = w->rest / (w->children - w->at);
	if (shape == LOOM__COMB && w->at == 0 && w->children == 2)
		part = 1;
	*child = loom__tree_task(w->next, part, shape, t->param[3]);
	w->at++;
	w->next += part;
	w->rest -= part;
	return 1;
}

/* Makes the roots of `n` trees that share `size` ids. */
static inline void loom__tree_roots(struct loom_task *root, uint32_t n, uint32_t size, enum loom__shape shape,
				    uint64_t seed)
{
	for (uint32_t i = 0, next = 0; i < n; i++) {
		uint32_t part = (size - next) / (n - i);
		root[i] = loom__tree_task(next, part, shape, seed);
		next += part;
	}
}

#endif
