/* SPDX-License-Identifier: Apache-2.0 */
/* gpuloom explore KERNEL.cu: kernels of other people. docs/explore.md */
#ifndef LOOM_CLI_EXPLORE_KERNEL_H
#define LOOM_CLI_EXPLORE_KERNEL_H

#include "cli/cli.h"

/* Options of the command line; 0 or NULL: not given. */
struct loom__kernel_args {
	const char *harness, *define; /* define: NAME or NAME=VALUE, for the compiler */
	uint64_t ranks, grid, block, resident, seconds;
};

/* Returns 1 if the file is a CUDA or C++ source. */
int loom__is_kernel(const char *path);
/* Compiles the kernel with its harness, and runs `seeds` schedules from the seed `first` on. Returns an exit code. */
int loom__explore_kernel(struct loom__cli *cli, const char *path, const struct loom__kernel_args *args, uint64_t first,
			 uint64_t seeds);

#endif
