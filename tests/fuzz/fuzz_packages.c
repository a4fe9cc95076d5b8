/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any file, as the list of packages that bfs reads. The edges of the graph must lead to vertices, in both
 * directions. */
#include <stdlib.h>

#include "input.h"

#include "plugins/workloads/exchange/graph.c"
#include "plugins/workloads/exchange/bfs_packages.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graph g = {0};
	const char *why;
	if (!bfs_packages(&g, fuzz_file(0, data, size), &why)) {
		uint64_t sum = 0;
		FUZZ_CHECK(g.vertices && !g.first[0]);
		for (uint64_t v = 0; v < g.vertices; v++) {
			FUZZ_CHECK(g.first[v] <= g.first[v + 1]);
			for (uint64_t i = g.first[v]; i < g.first[v + 1]; i++) {
				FUZZ_CHECK(g.arc[i] < g.vertices);
				sum += v;
				sum -= g.arc[i];
			}
		}
		FUZZ_CHECK(!sum); /* each edge has an arc in either direction */
	}
	free(g.first);
	free(g.arc);
	return 0;
}
