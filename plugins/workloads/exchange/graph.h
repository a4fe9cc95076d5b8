/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of workloads, which are generated or made from a list of edges, and a breadth-first search to verify
 * results. */
#ifndef WORKLOAD_GRAPH_H
#define WORKLOAD_GRAPH_H

#include <stdint.h>

/* A graph in compressed sparse rows. Each edge is stored as two arcs, one in each direction. */
struct graph {
	uint64_t vertices, arcs;
	uint64_t *first; /* [vertices + 1]: index in `arc` of the first arc of a vertex; the caller calls free() */
	uint32_t *arc;	 /* [arcs]: the vertex to which an arc leads; the caller calls free() */
};

struct graph_edges {
	uint32_t (*end)[2]; /* [n]: the two vertices of an edge; the caller calls free() */
	uint64_t n, room;   /* number of edges; number of edges for which `end` has room */
};

/* Adds an edge between two vertices; an edge from a vertex to itself is left out. The functions that return int return
 * 0, or -1 if there is no memory. */
int graph_add(struct graph_edges *e, uint64_t a, uint64_t b);
int graph_make(struct graph *g, uint64_t vertices, const struct graph_edges *e);
/* Makes a graph of 2^scale vertices with `degree` edges per vertex on average, as in Graph500 (R-MAT). A few vertices
 * have most of the arcs. */
int graph_rmat(struct graph *g, uint32_t scale, uint32_t degree, uint64_t seed);

#define GRAPH_UNREACHED UINT32_MAX
struct graph_found {
	uint64_t reached, followed; /* number of vertices reached; number of arcs followed */
	uint32_t levels; /* number of levels */
};
/* Searches breadth-first from `start`. queue: room for all vertices. level[v]: set to the distance of v, or to
 * GRAPH_UNREACHED if no path leads to v. */
struct graph_found graph_search(const struct graph *g, uint32_t start, uint32_t *level, uint32_t *queue);

#endif
