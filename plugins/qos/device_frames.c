/* SPDX-License-Identifier: Apache-2.0 */
/* Demand buffers and heaps in the memory of GPUs. A GPU's driver keeps a mapping of host pages, so host pages cannot be
 * removed while the GPU runs. Therefore the pages are in frames, which are pages of device memory. The host copies pages to
 * frames while workers run. The host records the free frames in memory that no worker can write. Workers have a table of
 * their own with the frame of each page, which they fill in from the answers.
 *
 * The path waits for all copies of a round before it sends the answers. So a worker that has its answer finds the page in
 * the frame. A worker evicts a page only when no lane reads it. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "service.h"

/* The frames of a demand buffer. Several grants, one per tenant, may name the same buffer. */
struct qos_frames {
	uint32_t users; /* number of grants of this buffer */
	uint32_t pages, left; /* number of pages of the buffer; number of free frames */
	uint32_t *of;	 /* [page]: its frame + 1; 0: the page is in no frame */
	uint32_t *free;	 /* [frames]: the first `left` entries are the numbers of the free frames */
	uint64_t *moved; /* a bit per page; 1: MIGRATE has moved its content to the host's copy */
	char *home;	 /* the host's copy of the buffer; a page of it is zero until MIGRATE has moved the page to this copy */
};

static struct loom_interrupt *line_of(const struct service *s, const struct qos_grant *g)
{
	return s->line[g->is.device - 1];
}

static void reset(struct qos_frames *f, uint32_t frames)
{
	memset(f->of, 0, f->pages * sizeof(*f->of));
	memset(f->moved, 0, (f->pages / 64 + 1) * sizeof(*f->moved));
	for (f->left = 0; f->left < frames; f->left++)
		f->free[f->left] = frames - 1 - f->left;
}

void qos_frames_reset(struct qos_grant *g)
{
	if (g->frames)
		reset(g->frames, g->is.frames);
}

void qos_frames_close(struct service *s, struct qos_grant *g)
{
	struct qos_frames *f = g->frames;
	g->frames = NULL;
	if (!f || --f->users)
		return;
	if (f->home)
		munmap(f->home, (uint64_t)f->pages * QOS_PAGE);
	s->host->free(s->host, f->of);
	s->host->free(s->host, f->free);
	s->host->free(s->host, f->moved);
	s->host->free(s->host, f);
}

static int open_frames(struct service *s, struct qos_grant *g)
{
	for (struct qos_grant *other = s->tenants > 1 ? s->grants : NULL; other; other = other->next)
		if (other->frames && other->is.device == g->is.device && other->is.at == g->is.at) {
			g->frames = other->frames;
			g->frames->users++;
			return 0;
		}
	struct qos_frames *f = g->frames = s->host->alloc(s->host, sizeof(*f));
	if (!f)
		return LOOM_ENOMEM;
	f->users = 1;
	f->pages = (uint32_t)(g->is.bytes / QOS_PAGE);
	f->of = s->host->alloc(s->host, f->pages * sizeof(*f->of));
	f->free = s->host->alloc(s->host, g->is.frames * sizeof(*f->free));
	f->moved = s->host->alloc(s->host, (f->pages / 64 + 1) * sizeof(*f->moved));
	void *home =
	    mmap(NULL, g->is.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	f->home = home == MAP_FAILED ? NULL : home;
	if (!f->of || !f->free || !f->moved || !f->home)
		return LOOM_ENOMEM;
	reset(f, g->is.frames);
	return 0;
}

int qos_frames_open(struct service *s, struct qos_grant *g, const struct loom_layout *layout, struct loom_error *err)
{
	uint32_t device = g->is.device - 1;
	if (device >= layout->devices || g->is.bytes % QOS_PAGE || !g->is.bytes ||
	    (g->is.kind == LOOM_GRANT_DEMAND && !g->is.frames) || g->is.kind == LOOM_GRANT_BUFFER)
		return LOOM_FAIL(s->host, err, LOOM_EPLUGIN, "%s: a grant in device memory is invalid", s->name);
	if (!s->line[device]) {
		struct loom_error why = {0};
		const struct loom_interrupts *alarms = LOOM_HAS(layout, interrupts) ? layout->interrupts : NULL;
		int rc = alarms ? alarms->open(alarms, device, LOOM_WORKLOAD, 0, &s->line[device], &why) : LOOM_ENOTSUP;
		if (rc)
			return LOOM_FAIL(s->host, err, rc,
					 "%s: fault, evict, alloc, free and migrate need copies into the memory of %s "
					 "while its workers run%s%s",
					 s->name, layout->device[device].name, *why.text ? ": " : "", why.text);
	}
	int rc = g->is.kind == LOOM_GRANT_HEAP ? qos_heap_open(s->host, &g->heap, g->is.bytes) : open_frames(s, g);
	if (rc)
		return LOOM_FAIL(s->host, err, rc, "%s: out of memory", s->name);
	g->at = g->frames ? g->frames->home : NULL;
	return 0;
}

/* ---- the services ----------------------------------------------------------------------------------- */

static int64_t write_page(const struct service *s, const struct qos_grant *g, uint64_t offset, const void *from)
{
	struct loom_error err;
	struct loom_interrupt *line = line_of(s, g);
	return line->copy(line, g->is.at + offset, NULL, from, QOS_PAGE, &err) ? -EIO : 0;
}

static int is_moved(const struct qos_frames *f, uint64_t page)
{
	return (int)(f->moved[page / 64] >> page % 64 & 1);
}

static int64_t fault(const struct service *s, const struct qos_call *call)
{
	struct qos_grant *g = call->grant;
	struct qos_frames *f = g->frames;
	uint64_t page = (uint64_t)(call->at - g->at) / QOS_PAGE;
	const char *content = g->is.content;
	if (call->bytes != QOS_PAGE)
		return -EINVAL;
	if (f->of[page])
		return (int64_t)(f->of[page] - 1) * QOS_PAGE;
	if (!f->left)
		return -ENOMEM;
	uint32_t frame = f->free[f->left - 1];
	int64_t rc = write_page(s, g, (uint64_t)frame * QOS_PAGE,
				content && !is_moved(f, page) ? content + page * QOS_PAGE : call->at);
	if (rc)
		return rc;
	f->left--;
	f->of[page] = frame + 1;
	return (int64_t)frame * QOS_PAGE;
}

static void give_back(struct qos_frames *f, uint64_t page)
{
	f->free[f->left++] = f->of[page] - 1;
	f->of[page] = 0;
}

static int64_t evict(const struct qos_call *call)
{
	struct qos_grant *g = call->grant;
	struct qos_frames *f = g->frames;
	uint64_t page = (uint64_t)(call->at - g->at) / QOS_PAGE, end = page + call->bytes / QOS_PAGE;
	for (; page < end; page++) {
		f->moved[page / 64] &= ~(1ull << page % 64);
		if (f->of[page])
			give_back(f, page);
	}
	return 0;
}

/* Copies pages from their frames to the host's copy, and then moves the host's pages to the NUMA node. */
static int64_t migrate(struct service *s, const struct qos_call *call)
{
	struct qos_grant *g = call->grant;
	struct qos_frames *f = g->frames;
	struct loom_interrupt *line = line_of(s, g);
	struct loom_error err;
	uint64_t first = (uint64_t)(call->at - g->at) / QOS_PAGE;
	uint64_t end = ((uint64_t)(call->at - g->at) + call->bytes + QOS_PAGE - 1) / QOS_PAGE;
	int rc = 0;
	for (uint64_t page = first; page < end && !rc; page++)
		if (f->of[page])
			rc = line->copy(line, g->is.at + (f->of[page] - 1ull) * QOS_PAGE, g->at + page * QOS_PAGE, NULL,
					QOS_PAGE, &err);
	if (rc || line->flush(line, &err))
		return -EIO;
	for (uint64_t page = first; page < end; page++)
		if (f->of[page]) {
			f->moved[page / 64] |= 1ull << page % 64;
			give_back(f, page);
		}
	return qos_migrate_pages(call);
}

static int64_t allocate(const struct service *s, const struct qos_call *call)
{
	static const char zeroes[QOS_PAGE];
	struct qos_grant *g = call->grant;
	int64_t at = qos_heap_alloc(&g->heap, NULL, call->bytes), rc = 0;
	for (uint64_t done = 0; at >= 0 && done < call->bytes && !rc; done += QOS_PAGE)
		rc = write_page(s, g, (uint64_t)at + done, zeroes);
	return rc ? rc : at;
}

static int64_t serve(struct service *s, const struct qos_call *call)
{
	switch (call->service) {
	case LOOM_SERVICE_FAULT:
		return fault(s, call);
	case LOOM_SERVICE_EVICT:
		return evict(call);
	case LOOM_SERVICE_MIGRATE:
		return migrate(s, call);
	case LOOM_SERVICE_ALLOC:
		return allocate(s, call);
	default:
		return qos_heap_free(&call->grant->heap, NULL, call->argument);
	}
}

int qos_frames_add(struct service *s, struct qos_call *call)
{
	if (!call->grant || !call->grant->is.device)
		return 0;
	s->deferred[s->deferred_count++] = (struct qos_deferred){call, serve(s, call)};
	return 1;
}

void qos_frames_flush(struct service *s, struct qos_tenant *tenant)
{
	uint64_t used = 0;
	int failed = 0;
	struct loom_error err;
	for (uint32_t i = 0; i < s->deferred_count; i++)
		used |= 1ull << (s->deferred[i].call->grant->is.device - 1);
	for (; used; used &= used - 1) {
		struct loom_interrupt *line = s->line[__builtin_ctzll(used)];
		failed |= line->flush(line, &err) != 0;
	}
	for (uint32_t i = 0; i < s->deferred_count; i++)
		qos_complete(s, tenant, s->deferred[i].call, failed ? -EIO : s->deferred[i].result, qos_now());
	s->deferred_count = 0;
}
