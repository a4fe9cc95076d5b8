/* SPDX-License-Identifier: Apache-2.0 */
/* Makes C++ of a preprocessed CUDA source: replaces inline PTX, variables in shared memory and launches by calls of
 * gpuloom/explore/, and the words of CUDA that are not C++. */
#ifndef LOOM_EXPLORE_REWRITE_H
#define LOOM_EXPLORE_REWRITE_H

#include <stddef.h>
#include <stdio.h>

/* text: the output of `c++ -E` with its line markers, NUL-terminated. Each statement keeps its file and line. Code of
 * system headers is copied without changes. The macros of CUDA's headers must not replace __device__, __constant__,
 * __managed__ and __shared__. Returns 0, or -1 with the reason in `why`: FILE:LINE, the name, and what to do. */
int explore_rewrite(const char *text, size_t bytes, FILE *out, char *why, size_t room);

#endif
