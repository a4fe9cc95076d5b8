/* SPDX-License-Identifier: Apache-2.0 */
/* sync_futex: host half. */
#include "sync_futex.dev.h"
/* needs SYNC_OP and sync_await */
#include "channel.dev.h"
#include "host.h"

struct futex_opts {
	uint32_t spin;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct futex_opts, spin, LOOM_OPT_U32, "0",
		 "Looks at the flag before a consumer goes to sleep.", .max = 1e9),
	{.name = NULL},
};

SYNC_CREATE("sync_futex", futex_opts, s->setting[SYNC_FUTEX_SPIN] = o->spin)

SYNC_OPS_TABLE(sync_futex);
SYNC_DEV_TABLE(sync_futex);

static const struct loom_device_code code = {
	.size = sizeof(code),
	.cpu = &sync_futex_cpu,
	.source_name = "sync_futex.dev.h",
};

LOOM_PLUGIN_DEFINE(SYNC, "sync_futex", "0.1.0", "Apache-2.0",
		   "Waits asleep in the kernel, on a futex", .opts = rows,
		   .opts_size = sizeof(struct futex_opts), .ops = &sync_futex_ops, .dev = &code)
