/* SPDX-License-Identifier: Apache-2.0 */
/* sync_poll: host half. */
#include "sync_poll.dev.h"
/* needs SYNC_OP and sync_await */
#include "channel.dev.h"
#include "host.h"

struct poll_opts {
	uint32_t probe;
};

static const char *const probe_choices[] = {"load", "atomic", NULL};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct poll_opts, probe, LOOM_OPT_ENUM, "load",
		 "How the flag is looked at. load: an acquiring load. atomic: an atomic addition of 0, as in "
		 "the paper's algorithm 1.",
		 .choices = probe_choices),
	{.name = NULL},
};

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct poll_opts *o = opts;
	struct sync *s;
	int rc = sync_create(host, "sync_poll", &s, err);
	if (rc)
		return rc;
	s->setting[SYNC_POLL_PROBE] = o->probe;
	*self = s;
	return 0;
}

SYNC_OPS_TABLE(sync_poll);
SYNC_DEV_TABLE(sync_poll);

LOOM_EMBED_CODE(sync_poll_text, LOOM_CODE_FILE("slot.dev.h") LOOM_CODE_FILE("sync_poll.dev.h")
		LOOM_CODE_FILE("channel.dev.h"));

static const struct loom_device_code code = {
	.size = sizeof(code),
	.cpu = &sync_poll_cpu,
	.source_name = "sync_poll.dev.h",
	.source = sync_poll_text,
	.source_end = sync_poll_text_end,
};

LOOM_PLUGIN_DEFINE(SYNC, "sync_poll", "0.1.0", "Apache-2.0",
		   "Waits by looking again and again (WIC, algorithm 1)", .opts = rows,
		   .opts_size = sizeof(struct poll_opts), .ops = &sync_poll_ops, .dev = &code)
