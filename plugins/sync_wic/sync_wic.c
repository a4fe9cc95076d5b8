/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sync_wic: a page fault interrupts a consumer. The consumer resumes when the data are on the page. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../sync_common/gpu_wait.dev.h"
#include "wic.h"
#include "lib/align.h"
#include "lib/fd.h"

static const char *const mode_choices[] = {"copy", "in_place", NULL};
static const char *const activate_choices[] = {"producer", "monitor", NULL};

static const struct loom_opt rows[] = {
    LOOM_OPT(struct wic_opts, pages, LOOM_OPT_U32, "16384",
	     "Most 4 KiB pages of the communication medium (PCM) of a device, a power of two; the channels take as "
	     "many as they need. Each slot of a channel takes the pages of its item and one per companion; with mode = "
	     "copy it takes the item's pages once per companion.",
	     .min = 64, .max = 1 << 20),
    LOOM_OPT(struct wic_opts, companions, LOOM_OPT_U32, "auto",
	     "Pages that alternate when rounds of a slot stall, a power of two; with more pages, more are recycled at "
	     "once. auto: as many as there is memory for, up to 16. The paper has 2.",
	     .max = WIC_COMPANIONS_MAX, .flags = LOOM_OPT_AUTO),
    LOOM_OPT(struct wic_opts, shards, LOOM_OPT_U32, "auto",
	     "userfaultfd descriptors that share the pages of a device, a power of two. The more consumers a "
	     "descriptor has, the longer a release takes. auto: one for each 8 workers, within the limit of open "
	     "files.",
	     .max = WIC_SHARDS_MAX, .flags = LOOM_OPT_AUTO),
    LOOM_OPT(struct wic_opts, mode, LOOM_OPT_ENUM, "in_place",
	     "in_place: producers write to the memory of the page, and resuming a consumer maps it. copy: resuming a "
	     "consumer copies the data to a page of its own.",
	     .choices = mode_choices),
    LOOM_OPT(struct wic_opts, eager, LOOM_OPT_BOOL, "yes",
	     "Whether a consumer takes data that are there without a fault. The paper's WIC faults."),
    LOOM_OPT(struct wic_opts, activate, LOOM_OPT_ENUM, "producer",
	     "Thread that resumes a waiting consumer. producer: the thread of its producer. monitor: the monitor "
	     "thread of its device, as in the paper.",
	     .choices = activate_choices),
    LOOM_OPT(struct wic_opts, notify, LOOM_OPT_ENUM, "poll", LISTENER_HELP, .choices = listener_choices),
    {.name = NULL},
};

/* Frees the memory and files that need() has made for a layout, because need() may be called with another layout. */
static void drop_layout(struct wic *w)
{
	const struct loom_host *host = w->sync.host;
	for (uint32_t d = 0; w->space && d < w->devices; d++) {
		struct wic_space *sp = &w->space[d];
		host->free(host, sp->uffd);
		host->free(host, sp->stall);
		host->free(host, sp->pfq);
		host->free(host, sp->forwarded);
		host->free(host, sp->route[0].fd); /* the array with the descriptors of all routes */
	}
	host->free(host, w->space);
	w->space = NULL;
	wic_close_sockets(w);
	if (w->file >= 0)
		close(w->file);
	w->file = -1;
}

static void destroy(void *self)
{
	struct wic *w = self;
	if (!w)
		return;
	const struct loom_host *host = w->sync.host;
	drop_layout(w);
	sync_finish(&w->sync);
	host->free(host, w);
}

static int check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct wic_opts *o = opts;
	if (o->shards & (o->shards - 1))
		return LOOM_REFUSE(host, err, "shards", "shards = %u: must be a power of two, or auto", o->shards);
	if (o->companions == 1 || (o->companions & (o->companions - 1)))
		return LOOM_REFUSE(host, err, "companions", "companions = %u: must be 2, 4, 8, 16 or auto",
				   o->companions);
	return 0;
}

/* Called when a GPU has published an item. Wakes the Monitor of the consumers' device, which forwards the item. */
static void published(struct sync *s, const struct sync_channel *k, uint32_t slot, uint32_t *word)
{
	const struct wic *w = (const struct wic *)s;
	(void)slot, (void)word;
	if (!wic_is_gpu(w, k->to))
		wic_wake_monitor(w, k->to);
}

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct wic_opts *o = opts;
	int fd = uffd_open(o->mode == WIC_IN_PLACE ? UFFD_MINOR : UFFD_MISSING);
	if (fd < 0)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "sync_wic needs userfaultfd, which is not permitted here (%s): %s; or set use = futex "
				 "in [sync]",
				 strerror(-fd), uffd_advice(-fd));
	close(fd);
	struct wic *w = host->alloc(host, sizeof(*w));
	if (!w)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sync_wic: out of memory");
	w->o = o;
	w->file = -1;
	for (uint32_t d = 0; d < LOOM_MAX_DEVICES; d++)
		w->monitor_fd[d] = w->socket[d][0] = w->socket[d][1] = -1;
	w->needs_messages = !o->eager || o->activate == WIC_BY_MONITOR;
	w->sync.wic = 1;
	sync_init_instance(&w->sync, host, "sync_wic");
	w->listener = (struct listener){.s = &w->sync, .notify = w->o->notify, .published = published};
	w->sync.listener = &w->listener;
	*self = w;
	return 0;
}

static uint64_t line(uint64_t at)
{
	return loom__align(at, 64);
}

static uint32_t item_pages(const struct loom_channel *k)
{
	return (uint32_t)((k->item_bytes + UFFD_PAGE - 1) / UFFD_PAGE);
}

/* Returns the number of pages from one companion to the next. */
static uint32_t item_step(const struct wic *w, const struct loom_channel *k)
{
	return w->o->mode == WIC_IN_PLACE ? 1 : item_pages(k);
}

static uint32_t slot_run(const struct wic *w, const struct loom_channel *k)
{
	return (w->companions - 1) * item_step(w, k) + item_pages(k);
}

static uint32_t channel_groups(const struct loom_channel *k)
{
	return (k->slots + WIC_BATCH - 1) / WIC_BATCH;
}

/* Computes the offsets in the stack's block. Only need() calls this function, because Monitors read the offsets while they
 * work. */
static void lay_out(struct wic *w)
{
	uint64_t at = sync_lay_out(&w->sync, NULL);
	w->groups = w->slots = 0;
	for (uint32_t i = 0; i < w->sync.channels; i++) {
		w->groups += channel_groups(&w->sync.channel[i]);
		w->slots += w->sync.channel[i].slots;
	}
	w->file_bytes = (uint64_t)w->devices * w->pages * UFFD_PAGE;
	w->devices_at = line(at);
	w->groups_at = w->devices_at + w->devices * sizeof(struct wic_device);
	w->owners_at = line(w->groups_at + w->groups * sizeof(struct wic_group));
	w->trees_at = line(w->owners_at + (uint64_t)w->devices * w->pages * sizeof(uint32_t));
	w->dab_at = line(w->trees_at + w->devices * pcm_bytes(w->pages));
	w->bytes = w->dab_at + wic_words(w) * 8;
}

static void write_channels(const struct wic *w, struct sync_head *h)
{
	uint32_t group = 0, slot = 0;
	h->channels = w->sync.channels;
	sync_lay_out(&w->sync, h);
	for (uint32_t i = 0; i < h->channels; i++) {
		struct sync_channel *k = sync_channel(h, i);
		k->pages = item_pages(&w->sync.channel[i]);
		k->companions = w->companions;
		k->step = item_step(w, &w->sync.channel[i]);
		k->run = slot_run(w, &w->sync.channel[i]);
		k->group_at = group;
		k->bit_at = slot;
		group += channel_groups(&w->sync.channel[i]);
		slot += 2 * k->slots;
	}
}

/* Returns a number of pages that is large enough for all allocations for channels to the device. Each shard may waste a run of
 * free pages at its end that is shorter than the largest request. */
static uint64_t pages_for(const struct wic *w, uint32_t device)
{
	uint64_t want = 0, largest = 0;
	for (uint32_t i = 0; i < w->sync.channels; i++) {
		const struct loom_channel *k = &w->sync.channel[i];
		uint64_t slots = k->slots < WIC_BATCH ? k->slots : WIC_BATCH;
		uint64_t n = slot_run(w, k) * slots;
		if (k->to != device || wic_is_gpu(w, device))
			continue;
		want += n * channel_groups(k);
		largest = n > largest ? n : largest;
	}
	return want + (largest ? (largest - 1) * w->shards[device] : 0);
}

/* Reduces options that are auto, companions and then shards, until the pages suffice. Then sets w->pages to the number of
 * pages that are needed. */
static int choose_pages(struct wic *w, struct loom_error *err)
{
	uint64_t most = loom__power_of_two(w->o->pages), want = 0;
	w->companions = w->o->companions ? w->o->companions : WIC_COMPANIONS_MAX;
	w->pages = 1;
	for (uint32_t d = 0; d < w->devices; d++) {
		while (!w->o->companions && w->companions > 2 && pages_for(w, d) > most)
			w->companions /= 2;
		while (!w->o->shards && w->shards[d] > 1 && pages_for(w, d) > most)
			w->shards[d] /= 2;
		want = pages_for(w, d);
		if (want > most)
			return LOOM_FAIL(w->sync.host, err, LOOM_EINVAL,
					 "sync_wic: the channels to device %u need up to %llu pages, and "
					 "PCM has %u: raise pages in [sync.wic], or lower companions or shards",
					 d, (unsigned long long)want, (uint32_t)most);
	}
	for (uint32_t d = 0; d < w->devices; d++) {
		want = pages_for(w, d);
		while (w->pages < want || w->pages < w->shards[d])
			w->pages *= 2;
	}
	return 0;
}

/* Returns the number of shards of a device if the option is auto. A process opens its own descriptors and receives the
 * descriptors of other devices. Together these should be at most half of the files that the process may open, because
 * descriptors that are sent but not yet received also count against this limit. */
static uint32_t auto_shards(const struct wic *w, uint32_t workers)
{
	struct rlimit files = {.rlim_cur = 1024};
	uint32_t want = (uint32_t)loom__power_of_two((workers + WIC_SHARD_WORKERS - 1) / WIC_SHARD_WORKERS);
	(void)getrlimit(RLIMIT_NOFILE, &files);
	uint64_t each = w->devices > 2 ? 2ull * w->devices * (w->devices - 1) : 4ull * w->devices;
	while (want > 1 && (want > WIC_SHARDS_MAX || each * want > files.rlim_cur))
		want /= 2;
	return want;
}

static int make_spaces(struct wic *w, const struct loom_layout *layout)
{
	const struct loom_host *host = w->sync.host;
	w->space = host->alloc(host, w->devices * sizeof(*w->space));
	if (!w->space)
		return LOOM_ENOMEM;
	uint32_t all = 0;
	for (uint32_t d = 0; d < w->devices; d++)
		all += w->shards[d];
	for (uint32_t d = 0; d < w->devices; d++) {
		struct wic_space *sp = &w->space[d];
		sp->wic = w;
		sp->device = d;
		sp->first = layout->device[d].first_worker;
		sp->workers = layout->device[d].workers;
		sp->pfq_words = wic_words(w);
		sp->uffd = host->alloc(host, w->shards[d] * sizeof(int));
		sp->stall = host->alloc(host, sp->workers * sizeof(*sp->stall));
		sp->pfq = host->alloc(host, (sp->pfq_words + 1) * sizeof(uint64_t));
		sp->forwarded = host->alloc(host, (w->slots + 1) * sizeof(uint32_t));
		int *fd = host->alloc(host, all * sizeof(int));
		for (uint32_t e = 0, at = 0; e < w->devices; at += w->shards[e++])
			sp->route[e].fd = fd ? fd + at : NULL;
		if (!sp->uffd || !sp->stall || !sp->pfq || !sp->forwarded || !fd)
			return LOOM_ENOMEM;
	}
	return 0;
}

static int is_made_for(const struct wic *w, const struct loom_layout *layout)
{
	int same = w->space && w->file >= 0 && w->devices == layout->devices;
	for (uint32_t d = 0; same && d < w->devices; d++)
		same = w->space[d].workers == layout->device[d].workers;
	return same;
}

static void fill_need(const struct wic *w, const struct loom_layout *layout, struct loom_need *need_)
{
	need_->worker = sizeof(struct sync_counters);
	need_->global = w->bytes;
	if (w->sync.crosses_link)
		(void)sync_lay_out_flags(&w->sync, layout, NULL, need_);
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need_, struct loom_error *err)
{
	struct wic *w = self;
	const struct loom_host *host = w->sync.host;
	if (is_made_for(w, layout)) { /* need() is called with the same layout again, perhaps while the Monitors work */
		fill_need(w, layout, need_);
		return 0;
	}
	drop_layout(w);
	w->devices = layout->devices;
	w->sync.crosses_link = sync_has_gpu(layout);
	w->gpus = 0;
	for (uint32_t d = 0; d < w->devices; d++) {
		int gpu = layout->device[d].kind == LOOM_ON_GPU;
		w->gpus |= (uint64_t)gpu << d;
		w->shards[d] = gpu ? 1 : w->o->shards ? w->o->shards : auto_shards(w, layout->device[d].workers);
	}
	int rc = choose_pages(w, err);
	if (rc)
		return rc;
	lay_out(w);
	fill_need(w, layout, need_);
	rc = make_spaces(w, layout);
	if (rc)
		return LOOM_FAIL(host, err, rc, "sync_wic: out of memory");
	w->file = loom_fd(memfd_create("gpuloom-wic", MFD_CLOEXEC));
	/* The file gets all of its pages, because a load from a page that the file lacks would not stall. */
	int code = w->file < 0 || ftruncate(w->file, (off_t)w->file_bytes) != 0 ||
			   fallocate(w->file, 0, 0, (off_t)w->file_bytes) != 0
		       ? errno
		       : wic_open_sockets(w);
	if (code)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL, "sync_wic: cannot make its files: %s", strerror(code));
	return 0;
}

/* Initialises the stack's block, except the records of devices, which wic_attach() fills in once per launch. Pauses the
 * Monitors first, because they may still handle late faults of the previous sample. wic_ready() resumes them. */
static int init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct wic *w = self;
	struct sync_head *h = view->global;
	for (uint32_t d = 0; d < w->devices; d++) {
		struct wic_device *at = (struct wic_device *)((char *)h + w->devices_at) + d;
		int rc = wic_pause_monitor(at);
		if (rc)
			return LOOM_FAIL(w->sync.host, err, rc, "sync_wic: the Monitor of device %u does not answer",
					 d);
		at->lock = 0; /* a process that was killed may have held the lock */
		__atomic_store_n(&at->monitor_ns, 0, __ATOMIC_RELAXED);
	}
	listener_pause(&w->listener);
	h->setting[0] = (uint32_t)(w->devices_at / 64);
	h->setting[SYNC_PAUSE_NS] = 0;
	h->setting[SYNC_COUNTS] = w->o->notify == LISTENER_INTERRUPT;
	write_channels(w, h);
	memset((char *)h + w->groups_at, 0, w->trees_at - w->groups_at);
	memset((char *)h + w->dab_at, 0, w->bytes - w->dab_at);
	for (uint32_t i = 0; i < h->channels; i++) {
		struct sync_channel *k = sync_channel(h, i);
		memset(sync_slot(h, k, 0), 0, k->slots * sizeof(struct sync_slot));
		for (uint32_t s = 0; s < k->slots; s += WIC_BATCH) {
			struct wic_group *g = wic_group(w, h, k->group_at + s / WIC_BATCH);
			g->channel = i;
			g->first = s;
			/* also for the last group of a channel, some of whose pages may be unused */
			g->slots = k->slots < WIC_BATCH ? k->slots : WIC_BATCH;
		}
	}
	for (uint32_t d = 0; d < w->devices; d++)
		pcm_init(wic_tree(w, h, d), w->pages);
	for (uint32_t i = 0; i < layout->workers; i++)
		memset(view->worker[i], 0, sizeof(struct sync_counters));
	if (w->sync.crosses_link)
		sync_init_flags(&w->sync, layout, view, w->bytes);
	listener_resume(&w->listener);
	return 0;
}

static int collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   struct loom_report *report, struct loom_error *err)
{
	struct wic *w = self;
	const struct loom_host *host = w->sync.host;
	uint64_t ns = 0;
	int rc = listener_collect(self, layout, view, report, err);
	for (uint32_t d = 0; d < w->devices; d++)
		ns += __atomic_load_n(&wic_device(w, view->global, d)->monitor_ns, __ATOMIC_RELAXED);
	host->metric(host, report, "sync_monitor_ns", "ns", LOOM_BETTER_NONE, (double)ns);
	return rc;
}

static void interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view, int code,
		      uint32_t device)
{
	struct wic *w = self;
	sync_poison_all(layout, view->global, code, device);
	for (uint32_t d = 0; d < w->devices; d++)
		wic_wake_monitor(w, d);
	listener_stop_waits(&w->listener);
}

static int explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct wic *w = self;
	(void)info;
	if (code != LOOM_EUNAVAIL || !w->sync.channels)
		return 0;
	return LOOM_FAIL(w->sync.host, err, code,
			 "sync_wic: worker %u cannot receive the descriptors of another device: %s", worker,
			 uffd_advice(EMFILE));
}

SYNC_TABLE(sync_wic, .destroy = destroy, .explain = explain, .need = need, .init = init, .collect = collect,
	   .start = listener_start, .stop = listener_stop, .interrupt = interrupt, .attach = wic_attach,
	   .ready = wic_ready, .detach = wic_detach);

SYNC_DEV_TABLE(wic);
LOOM_DEVICE_CODE(code, wic_cpu, "sync_wic.dev.h",
		 LOOM_CODE_FILE("slot.dev.h") LOOM_CODE_FILE("sync_wic.dev.h") LOOM_CODE_FILE("gpu_wait.dev.h")
		     LOOM_CODE_FILE("channel.dev.h"),
		 .flags = LOOM_CODE_WATCHES);

LOOM_PLUGIN_DEFINE(SYNC, "sync_wic", "0.1.0", "Apache-2.0",
		   "Consumers are interrupted by a page fault and resumed with the data (WIC)", .opts = rows,
		   .opts_size = sizeof(struct wic_opts), .check = check, .ops = &sync_wic_ops, .dev = &code)
