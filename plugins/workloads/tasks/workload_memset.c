/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_memset: the smallest possible task, to measure the overhead of a scheduler. */
#include "memset_host.h"

static const struct loom_task_entry memset_entries[] = {
	{"workload_memset_task", workload_memset_task},
};
WORKLOAD_CODE(workload_memset, memset_entries, LOOM_CODE_FILE("memset.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_memset", "0.1.0", "Apache-2.0",
		   "Task x writes x at slot x: the overhead of a scheduler", .opts = memset_rows,
		   .opts_size = sizeof(struct memset_opts), .ops = &memset_ops,
		   .dev = &workload_memset_code)
