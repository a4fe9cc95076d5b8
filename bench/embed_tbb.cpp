// SPDX-License-Identifier: Apache-2.0
#include "bench/embed.h"

void embed_omp_run(void (*work)(uint64_t i), uint64_t n)
{
#pragma omp parallel for schedule(dynamic) num_threads(2)
	for (uint64_t i = 0; i < n; i++)
		work(i);
}

#if __has_include(<oneapi/tbb/task_arena.h>)
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

using arena_t = oneapi::tbb::task_arena;

void *embed_tbb_open(int threads)
{
	/* On a machine with more cores, other threads would look for tasks, too. */
	static oneapi::tbb::global_control control(oneapi::tbb::global_control::max_allowed_parallelism, (size_t)threads);
	return new arena_t(threads);
}

void embed_tbb_run(void *arena, void (*work)(uint64_t i), uint64_t n)
{
	static_cast<arena_t *>(arena)->execute([=] {
		oneapi::tbb::task_group group;
		for (uint64_t i = 0; i < n; i++)
			group.run([=] { work(i); });
		group.wait();
	});
}

void embed_tbb_close(void *arena)
{
	delete static_cast<arena_t *>(arena);
}
#else
void *embed_tbb_open(int)
{
	return nullptr;
}
void embed_tbb_run(void *, void (*)(uint64_t), uint64_t) {}
void embed_tbb_close(void *) {}
#endif
