/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of workloads, generated or from a list of edges, and a breadth-first search for comparison. */
#ifndef WORKLOAD_GRAPH_H
#define WORKLOAD_GRAPH_H

#include <stdint.h>

/* Compressed rows: an edge is two arcs, one in each direction. */
struct graph {
	uint64_t vertices, arcs;
	uint64_t *first; /* [vertices + 1]: where the arcs of a vertex start; free() it */
	uint32_t *arc;	 /* [arcs]: the vertices to which they lead; free() it */
};

struct graph_edges {
	uint32_t (*end)[2]; /* free() it */
	uint64_t n, room;
};

/* Adds an edge; loops are left out. All functions return 0, or -1 if there is no memory. */
int graph_add(struct graph_edges *e, uint64_t a, uint64_t b);
int graph_make(struct graph *g, uint64_t vertices, const struct graph_edges *e);
/* Makes 2^scale vertices with `degree` edges each, placed recursively as in Graph500: few vertices have most arcs. */
int graph_rmat(struct graph *g, uint32_t scale, uint32_t degree, uint64_t seed);
/* Makes a square of `side` * `side` vertices, each with an edge to its neighbours. */
int graph_grid(struct graph *g, uint64_t side);

#define GRAPH_UNREACHED UINT32_MAX
struct graph_found {
	uint64_t reached, followed; /* number of vertices; number of arcs */
	uint32_t levels;
};
/* Breadth-first search with a queue of [vertices]. level[v] is GRAPH_UNREACHED if there is no path to v. */
struct graph_found graph_search(const struct graph *g, uint32_t start, uint32_t *level, uint32_t *queue);

#endif
