/* SPDX-License-Identifier: Apache-2.0 */
#include "bfs.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "graph.h"

static const struct loom_opt rows[] = {
	EX_ROWS("12", 4, 22, "2^size vertices of a random graph with few large vertices (R-MAT). Iterations follow from the graph: one per level.",
		"1"),
	{.name = NULL},
};

enum { MOST_WORKERS = 1024 };

struct bfs {
	struct graph g;
	uint32_t *want, levels;
	uint64_t *first, most;
};

/* Finds the largest number of edges from one worker's vertices to another worker's, which is the size of a bucket. */
static int find_most(struct ex *x, struct bfs *s, uint32_t workers)
{
	uint64_t *edges = ex_alloc(x, workers, 8);
	if (!edges)
		return -1;
	s->most = 1;
	for (uint32_t w = 0; w < workers; w++) {
		memset(edges, 0, 8ull * workers);
		for (uint64_t v = s->first[w]; v < s->first[w + 1]; v++)
			for (uint64_t e = s->g.first[v]; e < s->g.first[v + 1]; e++) {
				uint32_t to = (uint32_t)((uint64_t)s->g.arc[e] * workers / s->g.vertices);
				while (s->first[to] > s->g.arc[e])
					to--;
				while (s->first[to + 1] <= s->g.arc[e])
					to++;
				s->most = ++edges[to] > s->most ? edges[to] : s->most;
			}
	}
	return 0;
}

static int plan(struct ex *x)
{
	struct bfs *s = x->own;
	uint32_t workers = x->layout->workers, words = (workers + 63) / 64;
	if (workers > MOST_WORKERS)
		return LOOM_FAIL(x->host, x->err, LOOM_EINVAL, "workload_bfs: at most %d workers", MOST_WORKERS);
	int rc = graph_rmat(&s->g, x->o->size, 8, x->seed);
	x->memory[x->allocations++] = s->g.first;
	x->memory[x->allocations++] = s->g.arc;
	if (rc)
		return EX_NO_MEMORY;
	s->first = ex_alloc(x, workers + 1ull, 8);
	s->want = ex_alloc(x, s->g.vertices, 4);
	uint32_t *queue = ex_alloc(x, s->g.vertices, 4);
	if (!s->first || !s->want || !queue)
		return EX_NO_MEMORY;
	s->levels = graph_search(&s->g, 0, s->want, queue).levels;
	for (uint32_t w = 0; w <= workers; w++)
		s->first[w] = ex_share(s->g.vertices, w, workers);
	if (find_most(x, s, workers))
		return EX_NO_MEMORY;
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, LOOM_ANY_DEVICE, d, x->layout->device[d].workers * workers, 1, 4 * (s->most + 2));
	x->head.param[BFS_GATHER] =
		ex_channel(x, LOOM_ANY_DEVICE, 0, workers, 1, 8 * (words + 1));
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, 0, d, 1, x->layout->device[d].workers, 8 * ((uint64_t)workers * words + 1));
	x->head.param[BFS_N] = s->g.vertices;
	x->head.param[BFS_ROOM] = s->most;
	x->head.param[BFS_WORDS] = words;
	ex_copy(x, BFS_ROWS, s->g.first, 8 * (s->g.vertices + 1));
	ex_copy(x, BFS_COLUMNS, s->g.arc, 4 * s->g.arcs);
	ex_array(x, BFS_LEVEL, 4 * s->g.vertices, EX_POISON);
	ex_array(x, BFS_FRONTIER, 4 * s->g.vertices, EX_KEEP);
	ex_array(x, BFS_NEXT, 4 * s->g.vertices, EX_KEEP);
	ex_array(x, BFS_BUCKETS, 4ull * workers * workers * (s->most + 2), EX_ZERO);
	ex_array(x, BFS_MANIFEST, 8ull * workers * (words + 1) + 8ull * (workers * words + 1), EX_KEEP);
	ex_copy(x, BFS_FIRST, s->first, 8 * (workers + 1ull));
	ex_array(x, BFS_USED, 8ull * workers * workers, EX_ZERO);
	return ex_places(x, BFS_PLACES);
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct bfs *s = x->own;
	const uint32_t *got = ex_ptr(h, BFS_LEVEL);
	for (uint64_t v = 0; v < s->g.vertices; v++)
		if (got[v] != s->want[v])
			return EX_WRONG(x, err, "vertex %llu: expected level %d, found %d", (unsigned long long)v,
					(int)s->want[v], (int)got[v]);
	x->host->metric(x->host, x->report, "levels", "", LOOM_BETTER_NONE, s->levels - 1.0);
	x->host->metric(x->host, x->report, "vertices", "", LOOM_BETTER_NONE, (double)s->g.vertices);
	return 0;
}

EX_PLUGIN(bfs, struct bfs, rows, "vertices", "G_BFS: breadth-first search (probabilistic, random)", "")
