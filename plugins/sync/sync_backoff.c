/* SPDX-License-Identifier: Apache-2.0 */
/* sync_backoff: host half. */
#include "sync_backoff.dev.h"
/* needs SYNC_OP and sync_await */
#include "../shared/sync/channel.dev.h"
#include "../shared/sync/channel_host.h"

struct backoff_opts {
	uint32_t how;
	uint32_t pauses;
	uint64_t first, last;
};

static const char *const how_choices[] = {"pause", "yield", "sleep", NULL};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct backoff_opts, how, LOOM_OPT_ENUM, "sleep",
		 "What a consumer does between two looks. pause: a number of pause instructions. yield: gives "
		 "its core to whoever else can run (a GPU sleeps instead). sleep: sleeps, twice as long "
		 "each time.",
		 .choices = how_choices),
	LOOM_OPT(struct backoff_opts, pauses, LOOM_OPT_U32, "64",
		 "With how = pause: pause instructions between two looks.", .min = 1, .max = 1e6),
	LOOM_OPT(struct backoff_opts, first, LOOM_OPT_TIME, "1us", "The first sleep.", .min = 1,
		 .max = 1e8),
	LOOM_OPT(struct backoff_opts, last, LOOM_OPT_TIME, "50us",
		 "The longest sleep. A GPU sleeps at most 1 ms.", .min = 1, .max = 1e8),
	{.name = NULL},
};

SYNC_CREATE("sync_backoff", backoff_opts, s->setting[SYNC_BACKOFF_HOW] = o->how;
	    s->setting[SYNC_BACKOFF_PAUSES] = o->pauses;
	    s->setting[SYNC_BACKOFF_FIRST_NS] = (uint32_t)o->first;
	    s->setting[SYNC_BACKOFF_LAST_NS] = (uint32_t)o->last)

SYNC_OPS_TABLE(sync_backoff);
SYNC_CODE(sync_backoff);

LOOM_PLUGIN_DEFINE(SYNC, "sync_backoff", "0.1.0", "Apache-2.0",
		   "Waits by looking, with pauses, yields or sleeps in between", .opts = rows,
		   .opts_size = sizeof(struct backoff_opts), .ops = &sync_backoff_ops, .dev = &code)
