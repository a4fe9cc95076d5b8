/* SPDX-License-Identifier: Apache-2.0 */
#include "sync_futex.dev.h"
/* channel.dev.h needs SYNC_OP and sync_await(), which the file above defines */
#include "../sync_common/channel.dev.h"
#include "../sync_common/listener.h"

struct futex_opts {
	uint32_t polls, notify;
};

static const struct loom_opt rows[] = {
    LOOM_OPT(struct futex_opts, polls, LOOM_OPT_U32, "0", "Polls of the flag before a consumer sleeps.", .max = 1e9),
    LOOM_OPT(struct futex_opts, notify, LOOM_OPT_ENUM, "poll", LISTENER_HELP, .choices = listener_choices),
    {.name = NULL},
};

struct futex {
	struct sync sync; /* the first member, because common code gets `self` as a struct sync * */
	const struct futex_opts *o;
	struct listener listener;
};

static void published(struct sync *s, const struct sync_channel *k, uint32_t slot, uint32_t *word)
{
	eventcount_notify(NULL, word, &sync_slot(s->listener->head, k, slot)->sleepers);
}

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct futex *f = host->alloc(host, sizeof(*f));
	if (!f)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sync_futex: out of memory");
	f->o = opts;
	sync_init_instance(&f->sync, host, "sync_futex");
	f->sync.setting[SYNC_FUTEX_SPIN] = f->o->polls;
	f->sync.setting[SYNC_COUNTS] = f->o->notify == LISTENER_INTERRUPT;
	f->listener = (struct listener){.s = &f->sync, .notify = f->o->notify, .published = published};
	f->sync.listener = &f->listener;
	*self = f;
	return 0;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need_, struct loom_error *err)
{
	struct futex *f = self;
	f->sync.crosses_link = sync_has_gpu(layout);
	return sync_need(self, layout, need_, err);
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct futex *f = self;
	listener_pause(&f->listener);
	int rc = sync_init(self, layout, view, err);
	listener_resume(&f->listener);
	return rc;
}

static void interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view, int code,
		      uint32_t device)
{
	struct futex *f = self;
	if (f->sync.crosses_link)
		listener_stop_waits(&f->listener); /* the host must not write words that have another writer */
	else
		sync_poison_all(layout, view->global, code, device);
}

SYNC_TABLE(sync_futex, .destroy = sync_destroy, .need = need, .init = init, .collect = listener_collect,
	   .start = listener_start, .stop = listener_stop, .interrupt = interrupt);
SYNC_GPU_WAIT_CODE(sync_futex);

LOOM_PLUGIN_DEFINE(SYNC, "sync_futex", "0.1.0", "Apache-2.0", "Sleeps in the kernel, on a futex", .opts = rows,
		   .opts_size = sizeof(struct futex_opts), .ops = &sync_futex_ops, .dev = &code)
