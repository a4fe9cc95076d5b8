/* SPDX-License-Identifier: Apache-2.0 */
/* A graph for G_BFS: Debian packages and what they depend on. */
#ifndef BFS_PACKAGES_H
#define BFS_PACKAGES_H

#include "../../shared/workload/graph.h"

/* From a file in the format of dpkg's status file. 0, -1: out of memory, -2: cannot be read, -3: no packages in it. */
int bfs_packages(struct graph *g, const char *path);

#endif
