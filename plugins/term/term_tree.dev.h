/* SPDX-License-Identifier: Apache-2.0 */
/* Termination by votes that travel up binary trees, in rounds (MGWS thesis, 5.6.2 and 5.6.3). Device code.
 *
 * The workers of a device form a tree in its memory; its root is also the device's node of a tree over
 * devices, in memory of the stack. Where ranks share tasks, the root of that is the rank's node of a tree over ranks: each
 * writes in its own memory, and reads its neighbours'. A worker votes once per round, when it is idle and its children have
 * voted: "out of work" if they all said so and nobody took a task from it since its last vote. The root
 * ends the run or opens the next round, and each node passes that on to its children. A worker that has
 * work does not vote: the round waits for it, as the run has to.
 *
 * Why it is right: suppose that the root counts only votes "out of work" while a worker W has a task. W
 * was idle when it voted, so it took tasks from a worker V after that. V had not voted in this round: then
 * somebody took from it between two of its votes, and it votes otherwise. Or V had voted: then it was idle
 * too at that time and has taken tasks since, from a third worker, at an earlier time than W. There is no
 * end to that, so there is no such W. */
#ifndef TERM_TREE_DEV_H
#define TERM_TREE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/term.h>
#include <gpuloom/trigger.h>
#endif

/* One per worker of a device; one per device in the stack's block, and one more, the rank's; a line each. */
struct term_tree_node {
	uint32_t vote; /* 2 round + 1 if there is work; the node writes, its parent reads */
	uint32_t turn; /* the round that is open below the node; the node writes, its children read */
	uint32_t pad[14];
};
#define TERM_TREE_DONE 0xffffffffu

/* Where the rank's node is in the trees of ranks: behind the nodes of the stack's block. */
enum { TERM_TREE_UP, TERM_TREE_LEFT, TERM_TREE_RIGHT, TERM_TREE_AROUND };
struct term_tree_ranks {
	struct term_tree_node own;
	struct {
		uint64_t at; /* that rank's node: an address or, where `asks`, a reference; 0: there is none */
		uint32_t rank, rma;
	} around[TERM_TREE_AROUND];
	uint64_t pad[2];
};

/* A worker's own. */
struct term_tree_mine {
	uint64_t stolen_out; /* as of its last vote */
	uint32_t round;
	uint32_t voted; /* in this round */
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

/* A rank has such a neighbour. */
LOOM_FN int term_tree_has(const struct loom_ctx *c, uint32_t which)
{
#ifdef LOOM_RANKS_SHARE
	return term_tree_ranks(c)->around[which].at != 0;
#else
	(void)c, (void)which;
	return 0;
#endif
}

/* Its node. Both words are in the first 8 bytes. Acquire: see below. */
LOOM_FN struct term_tree_node term_tree_rank(struct loom_ctx *c, uint32_t which)
{
	struct term_tree_node seen = {0, 0, {0}};
#ifdef LOOM_RANKS_SHARE
	struct term_tree_ranks *ranks = term_tree_ranks(c);
	const struct term_tree_node *there = (const struct term_tree_node *)(uintptr_t)ranks->around[which].at;
#ifdef LOOM_RANKS_RMA
	if (ranks->around[which].rma) {
		/* An addition of nothing: what is copied may come in halves. */
		struct loom_rma ask = {.op = LOOM_NET_ADD, .rank = ranks->around[which].rank, .remote = ranks->around[which].at};
		uint64_t was = 0;
		if (!LOOM_CALL(trigger, rma, c, &ask, &was))
			__builtin_memcpy(&seen, &was, sizeof(was));
		return seen;
	}
#endif
	seen.vote = loom_load_acquire_sys(&there->vote);
	seen.turn = loom_load_acquire_sys(&there->turn);
#else
	(void)c, (void)which;
#endif
	return seen;
}

/* As below, of the ranks under this one. */
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

/* Both children of node `at` have voted in this round; *work: one of them said that there is work.
 * Acquire: pairs with the release of the vote; the root has then seen what all did. */
LOOM_FN int term_tree_children(const struct term_tree_node *node, uint32_t at, uint32_t n,
			       uint32_t round, uint32_t *work)
{
	for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++) {
		uint32_t vote = loom_load_acquire_sys(&node[child].vote);
		if (vote >> 1 != round)
			return 0;
		*work |= vote & 1;
	}
	return 1;
}

/* Opens a round, or tells that there is none any more, to whom looks up to this worker. */
LOOM_FN void term_tree_tell(struct loom_ctx *c, uint32_t round)
{
	struct term_tree_mine *mine = term_tree_mine(c);
	if (c->worker == 0)
		loom_store_release_sys(&term_tree_ranks(c)->own.turn, round);
	if (c->worker == c->first)
		loom_store_release_sys(&term_tree_devices(c)[c->device].turn, round);
	loom_store_release_sys(&term_tree_workers(c)[c->worker - c->first].turn, round);
	mine->round = round;
	mine->voted = 0;
}

/* Lane 0: what the worker can do for the tree now. */
LOOM_FN int term_tree_step(struct loom_ctx *c, uint64_t stolen_out)
{
	struct term_tree_mine *mine = term_tree_mine(c);
	struct term_tree_node *workers = term_tree_workers(c), *devices = term_tree_devices(c);
	uint32_t at = c->worker - c->first;
	int top = c->worker == 0, root = top && !term_tree_has(c, TERM_TREE_UP);
	if (mine->round == 0)
		term_tree_tell(c, 1); /* the first round is open from the start */
	if (!root) {
		struct term_tree_node *up =
			at ? &workers[(at - 1) / 2] : &devices[(c->device - 1) / 2];
		uint32_t turn = top ? term_tree_rank(c, TERM_TREE_UP).turn : loom_load_acquire_sys(&up->turn);
		if (turn > mine->round)
			term_tree_tell(c, turn);
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
		term_tree_tell(c, work ? mine->round + 1 : TERM_TREE_DONE);
		return !work;
	}
	mine->voted = 1;
	/* Release: this worker's tasks, and those of all below it. */
	loom_store_release_sys(at  ? &workers[at].vote :
			       top ? &term_tree_ranks(c)->own.vote :
				     &devices[c->device].vote,
			       2 * mine->round + work);
	return 0;
}

LOOM_FN void term_tree_idle(struct loom_ctx *c)
{
	(void)c; /* it votes in done() */
}

LOOM_FN void term_tree_busy(struct loom_ctx *c)
{
	(void)c; /* its victim votes that there is work */
}

LOOM_FN int term_tree_done(struct loom_ctx *c, uint64_t stolen_out)
{
	uint64_t all = c->lane == 0 ? (uint64_t)term_tree_step(c, stolen_out) : 0;
	return (int)loom_from_lane0(c, all);
}

#endif
