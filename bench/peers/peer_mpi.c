/* SPDX-License-Identifier: Apache-2.0 */
/* Unbalanced Tree Search over MPI with two-sided messages. A busy rank polls for requests, and answers each request
 * with the older half of its nodes. An idle rank sends requests to random ranks, one at a time. Safra's token detects
 * termination. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define POLL 16u   /* the number of nodes between two polls for requests */
#define MOST 4096u /* the largest number of nodes in an answer */

enum { ASK, WORK, TOKEN, STOP };

struct token {
	int64_t messages; /* the number of sent messages with work, minus the received ones */
	int64_t black;
};

static struct peer_node *stack;
static size_t used, room;
static int rank, ranks;
static struct token mine, token; /* `mine` has the counts of this rank; `token` is valid while has_token is 1 */
static int has_token, stopped;

static void reserve(size_t nodes)
{
	if (nodes <= room)
		return;
	while (room < nodes)
		room = room ? 2 * room : MOST;
	stack = realloc(stack, room * sizeof(*stack));
	if (!stack)
		exit(1);
}

static void push(const struct peer_node *node)
{
	reserve(used + 1);
	stack[used++] = *node;
}

/* Sends the older half of the nodes to a rank that requested work. */
static void answer(int to)
{
	size_t n = used / 2 < MOST ? used / 2 : MOST;
	MPI_Recv(NULL, 0, MPI_BYTE, to, ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Send(stack, (int)(n * sizeof(*stack)), MPI_BYTE, to, WORK, MPI_COMM_WORLD);
	memmove(stack, stack + n, (used - n) * sizeof(*stack));
	used -= n;
	mine.messages += n != 0;
}

static void answer_all(void)
{
	int there = 1;
	MPI_Status s;
	while (MPI_Iprobe(MPI_ANY_SOURCE, ASK, MPI_COMM_WORLD, &there, &s), there)
		answer(s.MPI_SOURCE);
}

/* Handles received messages. Returns 1 if this rank's own request was answered. */
static int receive(void)
{
	int there, bytes;
	MPI_Status s;
	if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &s), !there)
		return 0;
	switch (s.MPI_TAG) {
	case ASK:
		answer(s.MPI_SOURCE);
		return 0;
	case TOKEN:
		MPI_Recv(&token, sizeof(token), MPI_BYTE, s.MPI_SOURCE, TOKEN, MPI_COMM_WORLD, &s);
		has_token = 1;
		return 0;
	case STOP:
		MPI_Recv(NULL, 0, MPI_BYTE, s.MPI_SOURCE, STOP, MPI_COMM_WORLD, &s);
		stopped = 1;
		return 0;
	default: /* WORK: the answer to this rank's request; it is empty if the victim had no work */
		MPI_Get_count(&s, MPI_BYTE, &bytes);
		reserve((size_t)bytes / sizeof(*stack));
		MPI_Recv(stack, bytes, MPI_BYTE, s.MPI_SOURCE, WORK, MPI_COMM_WORLD, &s);
		used = (size_t)bytes / sizeof(*stack);
		if (used) {
			mine.messages--;
			mine.black = 1;
		}
		return 1;
	}
}

/* Passes the token on. Only an idle rank calls this function. When the token returns to rank 0, either all ranks are
 * done, or rank 0 starts another round. */
static void pass(void)
{
	struct token next = {token.messages + mine.messages, token.black | mine.black};
	has_token = 0;
	if (rank == 0) {
		if (!next.black && !next.messages) {
			for (int r = 0; r < ranks; r++)
				MPI_Send(NULL, 0, MPI_BYTE, r, STOP, MPI_COMM_WORLD);
			return;
		}
		next = (struct token){0};
	}
	mine.black = 0;
	MPI_Send(&next, sizeof(next), MPI_BYTE, (rank + 1) % ranks, TOKEN, MPI_COMM_WORLD);
}

static uint64_t search(void)
{
	uint64_t nodes = 0;
	struct peer_node node, child;
	while (used) {
		node = stack[--used];
		nodes++;
		for (uint32_t i = 0, n = peer_children(&node); i < n; i++) {
			peer_child(&child, &node, i);
			push(&child);
		}
		if (nodes % POLL == 0 && ranks > 1)
			answer_all();
	}
	return nodes;
}

/* Requests work until some arrives, or all ranks are done. */
static void ask(uint64_t *x)
{
	int asked = 0;
	while (!(used || (stopped && !asked))) {
		if (!asked && has_token)
			pass();
		if (!asked && !stopped) {
			*x = *x * 6364136223846793005u + 1442695040888963407u;
			int victim = (int)((*x >> 33) % (uint64_t)(ranks - 1));
			MPI_Send(NULL, 0, MPI_BYTE, victim + (victim >= rank), ASK, MPI_COMM_WORLD);
			asked = 1;
		}
		if (receive())
			asked = 0;
	}
}

static void leave(void)
{
	MPI_Request all;
	int over = 0;
	MPI_Ibarrier(MPI_COMM_WORLD, &all);
	while (MPI_Test(&all, &over, MPI_STATUS_IGNORE), !over)
		answer_all();
}

static uint64_t uts(void)
{
	uint64_t nodes = 0, sum, x = (uint64_t)rank + 1;
	struct peer_node root;
	mine = token = (struct token){0};
	used = 0;
	stopped = 0;
	has_token = rank == 0;
	token.black = 1; /* a black token makes the first round inconclusive */
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		peer_root(&root);
		push(&root);
	}
	do {
		nodes += search();
		if (ranks > 1)
			ask(&x);
	} while (used);
	if (ranks > 1)
		leave();
	MPI_Allreduce(&nodes, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	return sum;
}

static void begin(uint32_t workers)
{
	(void)workers;
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank && !freopen("/dev/null", "w", stdout)) /* only rank 0 prints */
		exit(1);
}

static void end(void)
{
	MPI_Finalize();
	free(stack);
}

int main(int argc, char **argv)
{
	static const struct peer_runtime runtime = {.begin = begin, .uts = uts, .end = end};
	return peer_main(argc, argv, &runtime);
}
