/* SPDX-License-Identifier: Apache-2.0 */
/* sync_futex: host half. */
#include "sync_futex.dev.h"
/* needs SYNC_OP and sync_await */
#include "../shared/sync/channel.dev.h"
#include "../shared/sync/listen.h"

struct futex_opts {
	uint32_t polls, notify;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct futex_opts, polls, LOOM_OPT_U32, "0",
			 "Polls of the flag before a consumer sleeps.", .max = 1e9),
	LOOM_OPT(struct futex_opts, notify, LOOM_OPT_ENUM, "poll", LISTEN_HELP, .choices = listen_choices),
	{.name = NULL},
};

struct futex {
	struct sync sync; /* first */
	const struct futex_opts *o;
	struct listen listen;
};

static void published(struct sync *s, const struct sync_channel *k, uint32_t slot, uint32_t *word)
{
	park_wake_sleepers(word, &sync_slot(s->listen->head, k, slot)->sleepers);
}

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct futex *f = host->alloc(host, sizeof(*f));
	if (!f)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sync_futex: out of memory");
	f->o = opts;
	sync_init_instance(&f->sync, host, "sync_futex");
	f->sync.setting[SYNC_FUTEX_SPIN] = f->o->polls;
	f->sync.setting[WAVE_COUNTS] = f->o->notify == LISTEN_INTERRUPT;
	f->listen = (struct listen){.s = &f->sync, .notify = f->o->notify, .published = published};
	f->sync.listen = &f->listen;
	*self = f;
	return 0;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need_, struct loom_error *err)
{
	struct futex *f = self;
	f->sync.crosses = sync_has_gpu(layout);
	return sync_need(self, layout, need_, err);
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct futex *f = self;
	listen_shut(&f->listen);
	int rc = sync_init(self, layout, view, err);
	listen_open(&f->listen);
	return rc;
}

static void interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view, int code,
		      uint32_t device)
{
	struct futex *f = self;
	if (f->sync.crosses)
		listen_over(&f->listen); /* a word has one writer */
	else
		sync_poison_all(layout, view->global, code, device);
}

static const struct loom_sync_ops ops = {
	.size = sizeof(ops),
	.create = create,
	.destroy = sync_destroy,
	.need = need,
	.init = init,
	.collect = listen_collect,
	.start = listen_start,
	.stop = listen_stop,
	.channels = sync_channels,
	.interrupt = interrupt,
};
SYNC_WAVE_CODE(sync_futex);

LOOM_PLUGIN_DEFINE(SYNC, "sync_futex", "0.1.0", "Apache-2.0",
		   "Sleeps on a futex", .opts = rows,
		   .opts_size = sizeof(struct futex_opts), .ops = &ops, .dev = &code)
