/* SPDX-License-Identifier: Apache-2.0 */
#include "sync_backoff.dev.h"
/* channel.dev.h needs SYNC_OP and sync_await(), which the file above defines */
#include "../sync_common/channel.dev.h"
#include "../sync_common/channels.h"

struct backoff_opts {
	uint32_t wait;
	uint64_t nap, nap_most;
};

static const char *const wait_choices[] = {"spin", "yield", "nap", NULL};

static const struct loom_opt rows[] = {
    LOOM_OPT(struct backoff_opts, wait, LOOM_OPT_ENUM, "nap",
	     "How a consumer waits between two polls. spin: 64 pause instructions. yield: yields its core (a GPU "
	     "naps). nap: sleeps, each time twice as long.",
	     .choices = wait_choices),
    LOOM_OPT(struct backoff_opts, nap, LOOM_OPT_TIME, "1us", "wait = nap: duration of the first "
    	"sleep.", .min = 1, .max = 1e8),
    LOOM_OPT(struct backoff_opts, nap_most, LOOM_OPT_TIME, "50us",
	     "wait = nap: longest duration of a sleep; on a GPU at most 1 ms.", .min = 1, .max = 1e8),
    {.name = NULL},
};

SYNC_CREATE("sync_backoff", backoff_opts, s->setting[SYNC_BACKOFF_HOW] = o->wait; s->setting[SYNC_BACKOFF_PAUSES] = 64;
	    s->setting[SYNC_BACKOFF_FIRST_NS] = (uint32_t)o->nap;
	    s->setting[SYNC_BACKOFF_LAST_NS] = (uint32_t)o->nap_most)

SYNC_OPS_TABLE(sync_backoff);
SYNC_CODE(sync_backoff);

LOOM_PLUGIN_DEFINE(SYNC, "sync_backoff", "0.1.0", "Apache-2.0",
		   "Waits by polling, with pauses, yields or sleeps in between", .opts = rows,
		   .opts_size = sizeof(struct backoff_opts), .ops = &sync_backoff_ops, .dev = &code)
