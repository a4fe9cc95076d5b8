/* SPDX-License-Identifier: Apache-2.0 */
/* Termination by votes that travel up binary trees, in rounds (MGWS thesis, 5.6.2 and 5.6.3). Device code.
 *
 * The workers of a device form a tree in its memory. The root of this tree is also the device's node in a tree of devices,
 * which is in the stack's block. If ranks share tasks, the root of the tree of devices is also the rank's node in a tree of
 * ranks. Each rank writes only its own memory, and reads the memory of its neighbours in the tree. A worker votes once per
 * round, when it is idle and its children have voted. It votes "out of work" if all children have voted so and no task was
 * stolen from it since its last vote. The root ends the run or opens the next round, and each node passes that on to its
 * children. A worker with tasks does not vote, so the round waits for this worker.
 *
 * Proof: suppose that the root counts only votes "out of work" while a worker W has a task. W was idle when it voted,
 * so it took tasks from a worker V after that. If V had not voted in this round yet, a task was stolen from V between two
 * of its votes, so V does not vote "out of work". If V had voted, V was idle, too, when it voted. Since then V has taken
 * tasks from a third worker, at an earlier time than W; and so on without end. So there is no such W. */
#ifndef TERM_TREE_DEV_H
#define TERM_TREE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/term.h>
#include <gpuloom/trigger.h>
#endif

/* A node has a cache line of its own. A device's block has a node per worker. The stack's block has a node per device, and
 * one for the rank. */
struct term_tree_node {
	uint32_t vote; /* 2 * the round of the last vote, + 1 if there is work; the parent reads it */
	uint32_t open; /* the round in which the nodes below may vote, or TERM_TREE_DONE; the children read it */
	uint32_t pad[14];
};
#define TERM_TREE_DONE 0xffffffffu /* in place of a round: no task is left */

/* This rank's node in the tree of ranks, with its parent and its children. In the block for the stack it is stored after the
 * nodes of the devices. */
enum { TERM_TREE_UP, TERM_TREE_LEFT, TERM_TREE_RIGHT, TERM_TREE_NEIGHBOURS };
struct term_tree_ranks {
	struct term_tree_node own;
	struct {
		uint64_t at; /* node of that rank: an address or, with `rma`, a loom_ref; 0: there is no such neighbour */
		uint32_t rank, rma;
	} neighbour[TERM_TREE_NEIGHBOURS];
	uint64_t pad[2];
};

/* A worker's private state. */
struct term_tree_mine {
	uint64_t stolen_out; /* argument of done() at the last vote */
	uint32_t round;      /* the round in which this worker may vote, or TERM_TREE_DONE; 0: at the start */
	uint32_t voted; /* 1: the worker has voted in this round */
};

LOOM_FN struct term_tree_mine *term_tree_mine(const struct loom_ctx *c)
{
	return (struct term_tree_mine *)c->local[LOOM_TERM];
}

LOOM_FN struct term_tree_node *term_tree_workers(const struct loom_ctx *c)
{
	return (struct term_tree_node *)c->on_device[LOOM_TERM];
}

LOOM_FN struct term_tree_node *term_tree_devices(const struct loom_ctx *c)
{
	return (struct term_tree_node *)c->global[LOOM_TERM];
}

LOOM_FN struct term_tree_ranks *term_tree_ranks(const struct loom_ctx *c)
{
	return (struct term_tree_ranks *)&term_tree_devices(c)[c->devices];
}

/* Returns whether the rank has that neighbour. */
LOOM_FN int term_tree_has(const struct loom_ctx *c, uint32_t which)
{
#ifdef LOOM_RANKS_SHARE
	return term_tree_ranks(c)->neighbour[which].at != 0;
#else
	(void)c, (void)which;
	return 0;
#endif
}

/* Returns a copy of the neighbour's node. Its two words are in the first 8 bytes, which RMA reads at once. Acquire: pairs
 * with the releases in term_tree_open_round() and term_tree_step(). */
LOOM_FN struct term_tree_node term_tree_rank(struct loom_ctx *c, uint32_t which)
{
	struct term_tree_node seen = {0, 0, {0}};
#ifdef LOOM_RANKS_SHARE
	struct term_tree_ranks *ranks = term_tree_ranks(c);
	const struct term_tree_node *there = (const struct term_tree_node *)(uintptr_t)ranks->neighbour[which].at;
#ifdef LOOM_RANKS_RMA
	if (ranks->neighbour[which].rma) {
		/* Reads the word by adding 0, because a get is not atomic. */
		struct loom_rma add = {
		    .op = LOOM_NET_ADD, .rank = ranks->neighbour[which].rank, .remote = ranks->neighbour[which].at};
		uint64_t was = 0;
		if (!LOOM_CALL(trigger, rma, c, &add, &was))
			__builtin_memcpy(&seen, &was, sizeof(was));
		return seen;
	}
#endif
	seen.vote = loom_load_acquire_sys(&there->vote);
	seen.open = loom_load_acquire_sys(&there->open);
#else
	(void)c, (void)which;
#endif
	return seen;
}

/* As term_tree_children(), for the ranks below this rank. */
LOOM_FN int term_tree_rank_children(struct loom_ctx *c, uint32_t round, uint32_t *work)
{
	for (uint32_t i = TERM_TREE_LEFT; i <= TERM_TREE_RIGHT; i++) {
		if (!term_tree_has(c, i))
			continue;
		uint32_t vote = term_tree_rank(c, i).vote;
		if (vote >> 1 != round)
			return 0;
		*work |= vote & 1;
	}
	return 1;
}

/* Returns whether both children of node `at` have voted in this round. *work: set to 1 if one of them voted that there is
 * work. Acquire: pairs with the release of the vote, so the root acquires the writes of all workers. */
LOOM_FN int term_tree_children(const struct term_tree_node *node, uint32_t at, uint32_t n, uint32_t round,
			       uint32_t *work)
{
	for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++) {
		uint32_t vote = loom_load_acquire_sys(&node[child].vote);
		if (vote >> 1 != round)
			return 0;
		*work |= vote & 1;
	}
	return 1;
}

/* Opens a round for this worker and for the nodes below it. round: may be TERM_TREE_DONE. */
LOOM_FN void term_tree_open_round(struct loom_ctx *c, uint32_t round)
{
	struct term_tree_mine *mine = term_tree_mine(c);
	if (c->worker == 0)
		loom_store_release_sys(&term_tree_ranks(c)->own.open, round);
	if (c->worker == c->first)
		loom_store_release_sys(&term_tree_devices(c)[c->device].open, round);
	loom_store_release_sys(&term_tree_workers(c)[c->worker - c->first].open, round);
	mine->round = round;
	mine->voted = 0;
}

/* Called by lane 0. Opens a round if the parent has opened it, and votes if all children have voted. The root does not vote,
 * but ends the run or opens the next round. Returns 1 if no task is left. */
LOOM_FN int term_tree_step(struct loom_ctx *c, uint64_t stolen_out)
{
	struct term_tree_mine *mine = term_tree_mine(c);
	struct term_tree_node *workers = term_tree_workers(c), *devices = term_tree_devices(c);
	uint32_t at = c->worker - c->first;
	int top = c->worker == 0, root = top && !term_tree_has(c, TERM_TREE_UP);
	if (mine->round == 0)
		term_tree_open_round(c, 1);
	if (!root) {
		struct term_tree_node *up = at ? &workers[(at - 1) / 2] : &devices[(c->device - 1) / 2];
		uint32_t open = top ? term_tree_rank(c, TERM_TREE_UP).open : loom_load_acquire_sys(&up->open);
		if (open > mine->round)
			term_tree_open_round(c, open);
	}
	if (mine->round == TERM_TREE_DONE)
		return 1;
	if (mine->voted)
		return 0;
	uint32_t work = stolen_out != mine->stolen_out;
	if (!term_tree_children(workers, at, c->count, mine->round, &work) ||
	    (at == 0 && !term_tree_children(devices, c->device, c->devices, mine->round, &work)) ||
	    (top && !term_tree_rank_children(c, mine->round, &work)))
		return 0;
	mine->stolen_out = stolen_out;
	if (root) {
		term_tree_open_round(c, work ? mine->round + 1 : TERM_TREE_DONE);
		return !work;
	}
	mine->voted = 1;
	/* Release: covers the writes of this worker, and the writes of workers below it, which it has acquired. */
	loom_store_release_sys(at    ? &workers[at].vote
			       : top ? &term_tree_ranks(c)->own.vote
				     : &devices[c->device].vote,
			       2 * mine->round + work);
	return 0;
}

LOOM_FN void term_tree_idle(struct loom_ctx *c)
{
	(void)c; /* done() votes */
}

LOOM_FN void term_tree_busy(struct loom_ctx *c)
{
	(void)c; /* not needed, because the victim of the steal votes that there is work */
}

LOOM_FN int term_tree_done(struct loom_ctx *c, uint64_t stolen_out)
{
	uint64_t all = c->lane == 0 ? (uint64_t)term_tree_step(c, stolen_out) : 0;
	return (int)loom_from_lane0(c, all);
}

#endif
