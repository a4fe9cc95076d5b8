/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of workloads, and a breadth-first search to verify results. */
#ifndef WORKLOAD_GRAPH_H
#define WORKLOAD_GRAPH_H

#include <stdint.h>

/* A graph in compressed sparse rows. Each edge is stored as two arcs, one in each direction. */
struct graph {
	uint64_t vertices, arcs;
	uint64_t *first; /* [vertices + 1]: index in `arc` of the first arc of a vertex; the caller calls free() */
	uint32_t *arc;	 /* [arcs]: the vertex to which an arc leads; the caller calls free() */
};

/* Makes a graph of 2^scale vertices with `degree` edges per vertex on average, as in Graph500 (R-MAT). A few vertices
 * have most of the arcs. Returns 0, or -1 if there is no memory. */
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
