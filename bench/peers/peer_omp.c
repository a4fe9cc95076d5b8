/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP tasks: libgomp with gcc, libomp with clang. Each thread adds up a sum of its own, as a worker of gpuloom does. */
#include "peer.h"

#include <omp.h>
#include <stdlib.h>

static uint32_t threads;
static struct {
	uint64_t sum, pad[7];
} own[64];

static void begin(uint32_t workers)
{
	threads = workers > 64 ? 64 : workers;
	omp_set_num_threads((int)threads);
	omp_set_dynamic(0);
}

static void end(void)
{
}

static uint64_t collect(void)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < threads; i++) {
		sum += own[i].sum;
		own[i].sum = 0;
	}
	return sum;
}

static uint64_t omp_memset(const struct peer *p)
{
#pragma omp parallel for /* static shares, the fastest for equal elements */
	for (uint64_t x = 0; x < p->n; x++)
		peer_memset(&p->task[x]);
	return 0;
}

/* Of the two children one is a task, and the caller executes the other one. */
static void spawn(uint64_t n)
{
	for (; n >= 2; n--)
#pragma omp task firstprivate(n)
		spawn(n - 2);
	own[omp_get_thread_num()].sum += n;
}

static uint64_t fib(uint64_t n)
{
#pragma omp parallel
#pragma omp single
	spawn(n);
	return collect();
}

static uint64_t forked(uint64_t n)
{
	uint64_t a, b;
	if (n < 2)
		return n;
#pragma omp task shared(a) firstprivate(n)
	a = forked(n - 1);
	b = forked(n - 2);
#pragma omp taskwait
	return a + b;
}

static uint64_t join(uint64_t n)
{
	uint64_t result = 0;
#pragma omp parallel
#pragma omp single
	result = forked(n);
	return result;
}

static void node(struct peer_node parent)
{
	int deep = peer_is_deep(&parent);
	own[omp_get_thread_num()].sum += deep ? peer_search(&parent) : 1;
	for (uint32_t i = 0, n = deep ? 0 : peer_children(&parent); i < n; i++) {
		struct peer_node child;
		peer_child(&child, &parent, i);
#pragma omp task firstprivate(child)
		node(child);
	}
}

static uint64_t uts(void)
{
#pragma omp parallel
#pragma omp single
	{
		struct peer_node root;
		peer_root(&root);
		node(root);
	}
	return collect();
}

int main(int argc, char **argv)
{
	static const struct peer_runtime runtime = {begin, omp_memset, fib, join, uts, end};
	return peer_main(argc, argv, &runtime);
}
