/* SPDX-License-Identifier: Apache-2.0 */
/* Lazy task creation (Mohr, Kranz and Halstead, 1991) for UTS. A worker searches depth-first on a stack of its own,
 * as a sequential program does. It makes tasks only when the scheduler requests some. These are the nodes nearest to
 * the root, because they have the largest subtrees.
 *
 * Only CPUs do this. Lanes of a GPU run in lock-step, and their next tasks start when all lanes have ended. So a lane
 * that searches would delay the other lanes of its worker. Also, thousands of stacks would take memory that the
 * queues need. */
#ifndef UTS_LAZY_H
#define UTS_LAZY_H

#include "uts_node.dev.h"

#ifdef GPULOOM_DEV_CPU_H

#define UTS_ASK 16u     /* nodes between two calls of the scheduler: about a microsecond */
#define UTS_AT_ONCE 8u  /* most tasks that are made at a time, because thieves take half of what they find */

/* A node whose children from `next` on have not been visited. */
struct uts_open {
	struct uts_node node;
	uint32_t next, children;
};

/* The stack of a lane, in the worker's scratchpad memory. tree->keep entries follow. A task that runs within the spawn
 * of another task uses the entries above those of the other task. */
struct uts_stack {
	uint64_t used;
	uint64_t pad[7];
};
#define UTS_STACK_BYTES(keep) (sizeof(struct uts_stack) + ((uint64_t)(keep) + 1) * sizeof(struct uts_open))

struct uts_search {
	struct loom_ctx *c;
	const struct uts_tree *tree;
	struct uts_stack *stack;
	struct uts_open *low, *top; /* the oldest and the newest open node; equal if only one is open */
	struct uts_count found;
	uint32_t tag;
};

LOOM_FN int uts_spawn(struct uts_search *s, const struct uts_node *n)
{
	struct loom_task task;
	workload_task(&task, s->tag);
	uts_pack(&task, n);
	s->stack->used = (uint64_t)(s->top + 1 - (struct uts_open *)(s->stack + 1));
	return LOOM_CALL(sched, spawn, s->c, &task);
}

LOOM_FN void uts_visit(struct uts_count *found, uint32_t depth, uint32_t children)
{
	found->nodes++;
	found->leaves += !children;
	if (found->depth < depth)
		found->depth = depth;
}

/* Makes tasks of the children of the oldest nodes. A child that is a leaf is only counted. Returns 0 or an error. */
static __attribute__((noinline)) int uts_hand_off(struct uts_search *s)
{
	uint32_t keep = (s->top->children - s->top->next + 1) / 2;
	for (uint32_t n = 0; n < UTS_AT_ONCE;) {
		struct uts_open *o = s->low;
		struct uts_node child;
		if (o->children - o->next <= (o < s->top ? 0 : keep)) {
			if (o == s->top)
				break;
			s->low++;
			continue;
		}
		uts_child(&child, &o->node, o->next++);
		uint32_t children = uts_children(s->tree, &child);
		if (!children) {
			uts_visit(&s->found, child.depth, 0);
			continue;
		}
		int rc = uts_spawn(s, &child);
		if (rc)
			return rc;
		n++;
	}
	return 0;
}

/* Makes tasks if the scheduler wants some. Returns 0, or an error, which ends the run. */
static __attribute__((noinline)) int uts_ask(struct uts_search *s)
{
	int rc = LOOM_CALL(sched, wanted, s->c);
	if (rc > 0) {
		rc = uts_hand_off(s);
		if (!rc) /* the second call publishes the tasks */
			rc = LOOM_CALL(sched, wanted, s->c);
	}
	return rc < 0 ? rc : 0;
}

/* Searches the subtree of the open node at `top`. If the stack is full, which ends at `end`, a node becomes a task. */
LOOM_FN void uts_descend(struct uts_search *s, const struct uts_open *end)
{
	struct uts_count found = {0};
	struct uts_open *o = s->top, *child;
	uint32_t children, ask = UTS_ASK;
	for (;;) {
		while (o->next == o->children && o != s->low)
			o--;
		if (o->next == o->children)
			break;
		child = o + 1; /* written in place, because a copy would wait for the stores to reach the cache */
		uts_child(&child->node, &o->node, o->next++);
		children = uts_children(s->tree, &child->node);
		if (children && child == end) {
			s->top = o;
			if (uts_spawn(s, &child->node))
				break;
			continue;
		}
		uts_visit(&found, child->node.depth, children);
		if (children) {
			child->next = 0;
			child->children = children;
			o = child;
		}
		if (!--ask) {
			ask = UTS_ASK;
			s->top = o;
			if (uts_ask(s))
				break;
		}
	}
	s->found.nodes += found.nodes;
	s->found.leaves += found.leaves;
	if (s->found.depth < found.depth)
		s->found.depth = found.depth;
}

/* Searches the subtree of a task's node. Returns 0 without searching if there is no stack, or the stack is full. */
static __attribute__((noinline)) int uts_search_lazily(struct loom_ctx *c, const struct uts_tree *tree,
							const struct loom_task *t)
{
	if (!tree->keep || !LOOM_HAS(c->sched, wanted))
		return 0;
	char *stacks = (char *)c->local[LOOM_WORKLOAD];
	struct uts_stack *stack = (struct uts_stack *)(stacks + c->lane * UTS_STACK_BYTES(tree->keep));
	struct uts_open *places = (struct uts_open *)(stack + 1);
	uint64_t used = stack->used;
	struct uts_search s = {.c = c, .tree = tree, .stack = stack, .tag = t->tag};
	struct uts_node n = uts_node(t);
	uint32_t children = uts_children(tree, &n);

	if (used == tree->keep)
		return 0;
	s.low = s.top = &places[used];
	uts_visit(&s.found, n.depth, children);
	*s.top = (struct uts_open){n, 0, children};
	uts_descend(&s, &places[tree->keep]);
	stack->used = used;
	if (c->lane == 0) {
		struct uts_count *count = (struct uts_count *)c->own[LOOM_WORKLOAD];
		loom_own_add(c, &count->nodes, s.found.nodes);
		loom_own_add(c, &count->leaves, s.found.leaves);
		loom_own_max(c, &count->depth, s.found.depth);
	}
	return 1;
}

#endif
#endif
