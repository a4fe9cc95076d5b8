/* SPDX-License-Identifier: Apache-2.0 */
/* oneTBB: parallel_for, and task_group. In the environment, PARTITIONER=static selects static_partitioner for memset; the default is
 * auto_partitioner. */
#include "peer.h"

#include <cstdlib>
#include <oneapi/tbb.h>

namespace
{
oneapi::tbb::global_control *control;
oneapi::tbb::enumerable_thread_specific<uint64_t> sums;

uint64_t collect()
{
	uint64_t sum = 0;
	for (uint64_t &one : sums) {
		sum += one;
		one = 0;
	}
	return sum;
}

void begin(uint32_t workers)
{
	control = new oneapi::tbb::global_control(oneapi::tbb::global_control::max_allowed_parallelism, workers);
}

void end()
{
	delete control;
}

uint64_t tbb_memset(const peer *p)
{
	static const char *const partitioner = std::getenv("PARTITIONER");
	const oneapi::tbb::blocked_range<uint64_t> all(0, p->n);
	auto some = [p](const oneapi::tbb::blocked_range<uint64_t> &r) {
		for (uint64_t x = r.begin(); x != r.end(); x++)
			peer_memset(&p->task[x]);
	};
	if (partitioner)
		oneapi::tbb::parallel_for(all, some, oneapi::tbb::static_partitioner());
	else
		oneapi::tbb::parallel_for(all, some);
	return 0;
}

/* Of the two children one is a task, and the caller executes the other one. */
void spawn(oneapi::tbb::task_group &group, uint64_t n)
{
	static thread_local uint64_t *const own = &sums.local();
	for (; n >= 2; n--)
		group.run([&group, n] { spawn(group, n - 2); });
	*own += n;
}

uint64_t fib(uint64_t n)
{
	oneapi::tbb::task_group group;
	group.run_and_wait([&group, n] { spawn(group, n); });
	return collect();
}

/* As in oneTBB's own example, one of the two recursive calls is a task, and the caller executes the other call. */
uint64_t join(uint64_t n)
{
	if (n < 2)
		return n;
	uint64_t a, b;
	oneapi::tbb::task_group group;
	group.run([&a, n] { a = join(n - 1); });
	group.run_and_wait([&b, n] { b = join(n - 2); });
	return a + b;
}

void node(oneapi::tbb::task_group &group, const peer_node parent)
{
	const int deep = peer_is_deep(&parent);
	sums.local() += deep ? peer_search(&parent) : 1;
	for (uint32_t i = 0, n = deep ? 0 : peer_children(&parent); i < n; i++) {
		peer_node child;
		peer_child(&child, &parent, i);
		group.run([&group, child] { node(group, child); });
	}
}

uint64_t uts()
{
	oneapi::tbb::task_group group;
	peer_node root;
	peer_root(&root);
	group.run_and_wait([&group, root] { node(group, root); });
	return collect();
}
}

int main(int argc, char **argv)
{
	static const peer_runtime runtime = {begin, tbb_memset, fib, join, uts, end};
	return peer_main(argc, argv, &runtime);
}
