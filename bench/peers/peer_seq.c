/* SPDX-License-Identifier: Apache-2.0 */
/* One thread with plain loops and calls and without a runtime: the lower bound. */
#include "peer.h"

static void begin(uint32_t workers)
{
	(void)workers;
}

static void end(void)
{
}

static uint64_t seq_memset(const struct peer *p)
{
	for (uint64_t x = 0; x < p->n; x++)
		peer_memset(&p->task[x]);
	return 0;
}

static __attribute__((noinline)) uint64_t fib(uint64_t n)
{
	if (n < 2)
		return n;
	return fib(n - 1) + fib(n - 2);
}

static uint64_t uts(void)
{
	struct peer_node root;
	peer_root(&root);
	return peer_search(&root);
}

int main(int argc, char **argv)
{
	static const struct peer_runtime runtime = {begin, seq_memset, fib, fib, uts, end};
	return peer_main(argc, argv, &runtime);
}
