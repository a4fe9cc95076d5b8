/* SPDX-License-Identifier: Apache-2.0 */
/* workload_memset_loop: what workload_memset does, without tasks being scheduled. */
#include "memset_host.h"
#include "workload_memset_loop.dev.h"

LOOM_EMBED_CODE(memset_loop_text,
		LOOM_CODE_FILE("memset_slot.dev.h") LOOM_CODE_FILE("workload_memset_loop.dev.h"));

static const struct loom_workload_dev memset_loop_cpu = {
	.size = sizeof(struct loom_workload_dev),
	.kernel = workload_memset_loop_kernel,
};
static const struct loom_device_code memset_loop_code = {
	.size = sizeof(struct loom_device_code),
	.cpu = &memset_loop_cpu,
	.source_name = "workload_memset_loop.dev.h",
	.source = memset_loop_text,
	.source_end = memset_loop_text_end,
};

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_memset_loop", "0.1.0", "Apache-2.0",
		   "memset as a plain loop over the task array: the floor for schedulers",
		   .opts = memset_rows, .opts_size = sizeof(struct memset_opts), .ops = &memset_ops,
		   .dev = &memset_loop_code)
