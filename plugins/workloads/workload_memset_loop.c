/* SPDX-License-Identifier: Apache-2.0 */
/* workload_memset_loop: what workload_memset does, without tasks being scheduled. */
#include "memset_host.h"
#include "workload_memset_loop.dev.h"

static const struct loom_workload_dev memset_loop_cpu = {
	.size = sizeof(struct loom_workload_dev),
	.kernel = workload_memset_loop_kernel,
};
LOOM_DEVICE_CODE(memset_loop_code, memset_loop_cpu, "workload_memset_loop.dev.h", LOOM_CODE_FILE("memset_slot.dev.h")
		 LOOM_CODE_FILE("workload_memset_loop.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_memset_loop", "0.1.0", "Apache-2.0",
		   "memset as a plain loop over the task array: the floor for schedulers",
		   .opts = memset_rows, .opts_size = sizeof(struct memset_opts), .ops = &memset_ops,
		   .dev = &memset_loop_code)
