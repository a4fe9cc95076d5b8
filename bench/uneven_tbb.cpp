/* SPDX-License-Identifier: Apache-2.0 */
/* oneTBB's parallel_for. The schedule names a partitioner: "simple" (a task per iteration), "auto", "static". */
#include "uneven.h"

#include <oneapi/tbb.h>
#include <string.h>

static oneapi::tbb::task_arena *arena;
static const char *partitioner;

void uneven_begin(uint32_t workers, const char *schedule)
{
	new oneapi::tbb::global_control(oneapi::tbb::global_control::max_allowed_parallelism, workers);
	arena = new oneapi::tbb::task_arena((int)workers);
	partitioner = schedule;
}

void uneven_loop(uint64_t n, uneven_body *body, void *job)
{
	oneapi::tbb::blocked_range<uint64_t> all(0, n, 1);
	auto part = [=](const oneapi::tbb::blocked_range<uint64_t> &r) {
		uint32_t thread = (uint32_t)oneapi::tbb::this_task_arena::current_thread_index();
		for (uint64_t i = r.begin(); i != r.end(); i++)
			body(job, i, thread);
	};
	arena->execute([&] {
		if (!strcmp(partitioner, "static"))
			oneapi::tbb::parallel_for(all, part, oneapi::tbb::static_partitioner());
		else if (!strcmp(partitioner, "simple"))
			oneapi::tbb::parallel_for(all, part, oneapi::tbb::simple_partitioner());
		else
			oneapi::tbb::parallel_for(all, part, oneapi::tbb::auto_partitioner());
	});
}

int main(int argc, char **argv)
{
	return uneven_main(argc, argv);
}
