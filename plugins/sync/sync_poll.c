/* SPDX-License-Identifier: Apache-2.0 */
#include "sync_poll.dev.h"
/* channel.dev.h needs SYNC_OP and sync_await(), which the file above defines */
#include "../sync_common/channel.dev.h"
#include "../sync_common/channels.h"

struct poll_opts {
	uint32_t probe, transfer;
};

static const char *const probe_choices[] = {"load", "atomic", NULL};
static const char *const transfer_choices[] = {"in_place", "demand", "push", NULL}; /* as enum sync_poll_transfer */

static const struct loom_opt rows[] = {
    LOOM_OPT(struct poll_opts, probe, LOOM_OPT_ENUM, "load",
	     "How the flag is polled. load: by an acquiring load. atomic: by an atomic add of 0, as in algorithm 1 of "
	     "the paper.",
	     .choices = probe_choices),
    LOOM_OPT(struct poll_opts, transfer, LOOM_OPT_ENUM, "in_place",
	     "How an item with one reader reaches it. in_place: the consumer reads where the producer wrote. demand: "
	     "the consumer copies the item when it is there. push: the producer copies it before it publishes.",
	     .choices = transfer_choices),
    {.name = NULL},
};

SYNC_CREATE("sync_poll", poll_opts, s->setting[SYNC_POLL_PROBE] = o->probe;
	    s->setting[SYNC_POLL_TRANSFER] = o->transfer; s->copies = o->transfer != SYNC_POLL_IN_PLACE)

SYNC_OPS_TABLE(sync_poll);
SYNC_CODE(sync_poll);

LOOM_PLUGIN_DEFINE(SYNC, "sync_poll", "0.1.0", "Apache-2.0", "Waits by polling (WIC, algorithm 1)", .opts = rows,
		   .opts_size = sizeof(struct poll_opts), .ops = &sync_poll_ops, .dev = &code)
