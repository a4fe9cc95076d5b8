/* SPDX-License-Identifier: Apache-2.0 */
/* sync_backoff: host half. */
#include "sync_backoff.dev.h"
/* needs SYNC_OP and sync_await */
#include "channel.dev.h"
#include "host.h"

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

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct backoff_opts *o = opts;
	struct sync *s;
	int rc = sync_create(host, "sync_backoff", &s, err);
	if (rc)
		return rc;
	s->setting[SYNC_BACKOFF_HOW] = o->how;
	s->setting[SYNC_BACKOFF_PAUSES] = o->pauses;
	s->setting[SYNC_BACKOFF_FIRST_NS] = (uint32_t)o->first;
	s->setting[SYNC_BACKOFF_LAST_NS] = (uint32_t)o->last;
	*self = s;
	return 0;
}

SYNC_OPS_TABLE(sync_backoff);
SYNC_DEV_TABLE(sync_backoff);

LOOM_EMBED_CODE(sync_backoff_text, LOOM_CODE_FILE("slot.dev.h") LOOM_CODE_FILE("sync_backoff.dev.h")
		LOOM_CODE_FILE("channel.dev.h"));

static const struct loom_device_code code = {
	.size = sizeof(code),
	.cpu = &sync_backoff_cpu,
	.source_name = "sync_backoff.dev.h",
	.source = sync_backoff_text,
	.source_end = sync_backoff_text_end,
};

LOOM_PLUGIN_DEFINE(SYNC, "sync_backoff", "0.1.0", "Apache-2.0",
		   "Waits by looking, with pauses, yields or sleeps in between", .opts = rows,
		   .opts_size = sizeof(struct backoff_opts), .ops = &sync_backoff_ops, .dev = &code)
