// SPDX-License-Identifier: Apache-2.0
#include "bench/embed.h"

#if __has_include(<oneapi/tbb/task_arena.h>)
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

using arena_t = oneapi::tbb::task_arena;

void *embed_tbb_open(int threads)
{
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
