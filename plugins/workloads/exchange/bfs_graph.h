/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for G_BFS: R-MAT, or who depends on whom among Debian packages. */
#ifndef BFS_GRAPH_H
#define BFS_GRAPH_H

#include <stdint.h>

struct bfs_graph {
	uint32_t n;
	uint32_t *row;    /* [n + 1] */
	uint32_t *column; /* neighbours, both ways */
};

/* 2^scale vertices with 8 edges each. 0, or -1: out of memory. */
int bfs_rmat(struct bfs_graph *g, uint32_t scale, uint64_t seed);
/* From a file in the format of dpkg's status file: 0, -1: out of memory, -2: cannot be read, -3: no packages
 * in it. */
int bfs_packages(struct bfs_graph *g, const char *path);

#endif
