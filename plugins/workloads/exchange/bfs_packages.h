/* SPDX-License-Identifier: Apache-2.0 */
/* A graph for G_BFS: Debian packages and their dependencies. */
#ifndef BFS_PACKAGES_H
#define BFS_PACKAGES_H

#include "graph.h"

/* Reads a file in the format of dpkg's status file. Returns 0; -1: out of memory; -2: unreadable, and
 * *why has the cause; -3: no packages. */
int bfs_packages(struct graph *g, const char *path, const char **why);

#endif
