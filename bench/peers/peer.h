/* SPDX-License-Identifier: Apache-2.0 */
/* The programs for other runtimes share this code. A program times and verifies one job, and prints a JSON line that
 * workload_exec reads.
 *   PROGRAM memset|fib|join|uts [-w WORKERS] [-n SIZE] [-t TREE] [-d DEPTH]
 *
 * memset: SIZE tasks (default 1048576), of which task x writes x into slot x. fib: fib(SIZE) (default 30) as a tree of
 * tasks that do not wait for their children. join: the same number by fork-join. uts: the tree TREE (default T1) with
 * gpuloom's SHA-1, a task for each node. With -d, nodes from this depth on are no tasks: a task searches all of its subtree, as the
 * authors of these runtimes advise for small tasks. */
#ifndef PEER_H
#define PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A task has 64 bytes, as in gpuloom. `slot` is the address of the slot that the task writes. */
struct peer_task {
	uint64_t tag, join, x, param[3];
	uint64_t *slot;
	uint64_t bytes;
};

struct peer {
	const char *job, *tree;
	uint32_t workers;
	uint64_t n;
	struct peer_task *task; /* the tasks of the job memset */
	uint64_t *slot;
};

struct peer_node {
	uint32_t digest[5], depth;
};

void peer_root(struct peer_node *root);
uint32_t peer_children(const struct peer_node *node);
void peer_child(struct peer_node *child, const struct peer_node *parent, uint32_t i);
int peer_is_deep(const struct peer_node *node); /* from DEPTH on */
uint64_t peer_search(const struct peer_node *node); /* the number of nodes of the subtree, by a recursion */

static inline void peer_memset(const struct peer_task *t)
{
	*t->slot = t->x;
}

/* The runtime implements these functions. Each job function runs the job once, with all workers awake, and returns its
 * result. The result of memset is ignored. The result of fib and join is fib(n), and the result of uts is the number of
 * nodes. A function is NULL if the runtime cannot do the job. */
struct peer_runtime {
	void (*begin)(uint32_t workers);
	uint64_t (*memset)(const struct peer *p);
	uint64_t (*fib)(uint64_t n);
	uint64_t (*join)(uint64_t n);
	uint64_t (*uts)(void);
	void (*end)(void);
};

/* Runs the job twice, verifies each result, reports the second run, and returns the exit status. */
int peer_main(int argc, char **argv, const struct peer_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif
