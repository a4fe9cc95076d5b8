/* SPDX-License-Identifier: Apache-2.0 */
/* workload_memset_loop: workload_memset without a scheduler. */
#include "memset_host.h"

WORKLOAD_KERNEL(workload_memset_loop, LOOM_CODE_FILE("memset.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_memset_loop", "0.1.0", "Apache-2.0",
		   "memset as a plain loop over the task array: the floor for schedulers",
		   .opts = memset_rows, .opts_size = sizeof(struct memset_opts), .ops = &memset_ops,
		   .dev = &workload_memset_loop_code)
