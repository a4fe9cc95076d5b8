/* SPDX-License-Identifier: Apache-2.0 */
/* Any file as the list of packages that bfs walks: a graph whose edges lead to vertices, and back. */
#include <stdlib.h>

#include "input.h"

#include "plugins/workloads/exchange/bfs_graph.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bfs_graph g = {0};
	if (!bfs_packages(&g, fuzz_file(0, data, size))) {
		uint64_t sum = 0;
		FUZZ_CHECK(g.n && !g.row[0]);
		for (uint32_t v = 0; v < g.n; v++) {
			FUZZ_CHECK(g.row[v] <= g.row[v + 1]);
			for (uint32_t i = g.row[v]; i < g.row[v + 1]; i++) {
				FUZZ_CHECK(g.column[i] < g.n);
				sum += v;
				sum -= g.column[i];
			}
		}
		FUZZ_CHECK(!sum); /* each edge stands once in either direction */
	}
	free(g.row);
	free(g.column);
	return 0;
}
