/* SPDX-License-Identifier: Apache-2.0 */
/* Demand buffers and heaps of GPUs. A GPU's driver keeps the pages of the host that it was shown, so nothing is taken away from
 * under it: pages lie in frames of its own memory, which are filled beside the workers. Which frame is free is known here, where
 * no worker writes. Which page is in which frame workers note in a table of their own, from the answers.
 *
 * What the services of a turn copy is awaited once, and their answers wait for that. A worker that has its answer therefore
 * finds the page in the frame. It says that it needs a page no longer (EVICT) when none of its kind uses it. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "service.h"

/* Of a demand buffer, which several tenants may be granted. */
struct ssr_frames {
	uint32_t users; /* grants */
	uint32_t pages, left;
	uint32_t *of;	 /* [pages]: 1 plus the frame that has it; 0: none */
	uint32_t *free;	 /* [frames]: `left` of them */
	uint64_t *moved; /* a bit per page: the host's has what the workers wrote */
	char *home;	 /* the host's pages: zeroes, until they are moved there */
};

static struct loom_interrupt *line_of(const struct service *s, const struct ssr_grant *g)
{
	return s->line[g->is.device - 1];
}

static void reset(struct ssr_frames *f, uint32_t frames)
{
	memset(f->of, 0, f->pages * sizeof(*f->of));
	memset(f->moved, 0, (f->pages / 64 + 1) * sizeof(*f->moved));
	for (f->left = 0; f->left < frames; f->left++)
		f->free[f->left] = frames - 1 - f->left;
}

void ssr_near_reset(struct ssr_grant *g)
{
	if (g->frames)
		reset(g->frames, g->is.frames);
}

void ssr_near_close(struct service *s, struct ssr_grant *g)
{
	struct ssr_frames *f = g->frames;
	g->frames = NULL;
	if (!f || --f->users)
		return;
	if (f->home)
		munmap(f->home, (uint64_t)f->pages * SSR_PAGE);
	s->host->free(s->host, f->of);
	s->host->free(s->host, f->free);
	s->host->free(s->host, f->moved);
	s->host->free(s->host, f);
}

static int open_frames(struct service *s, struct ssr_grant *g)
{
	for (struct ssr_grant *other = s->tenants > 1 ? s->grants : NULL; other; other = other->next)
		if (other->frames && other->is.device == g->is.device && other->is.at == g->is.at) {
			g->frames = other->frames;
			g->frames->users++;
			return 0;
		}
	struct ssr_frames *f = g->frames = s->host->alloc(s->host, sizeof(*f));
	if (!f)
		return LOOM_ENOMEM;
	f->users = 1;
	f->pages = (uint32_t)(g->is.bytes / SSR_PAGE);
	f->of = s->host->alloc(s->host, f->pages * sizeof(*f->of));
	f->free = s->host->alloc(s->host, g->is.frames * sizeof(*f->free));
	f->moved = s->host->alloc(s->host, (f->pages / 64 + 1) * sizeof(*f->moved));
	void *home = mmap(NULL, g->is.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	f->home = home == MAP_FAILED ? NULL : home;
	if (!f->of || !f->free || !f->moved || !f->home)
		return LOOM_ENOMEM;
	reset(f, g->is.frames);
	return 0;
}

int ssr_near_open(struct service *s, struct ssr_grant *g, const struct loom_layout *layout, struct loom_error *err)
{
	uint32_t device = g->is.device - 1;
	if (device >= layout->devices || g->is.bytes % SSR_PAGE || !g->is.bytes ||
	    (g->is.kind == LOOM_GRANT_DEMAND && !g->is.frames) || g->is.kind == LOOM_GRANT_BUFFER)
		return LOOM_FAIL(s->host, err, LOOM_EPLUGIN, "%s: a grant near a device is impossible", s->name);
	if (!s->line[device]) {
		struct loom_error why = {0};
		const struct loom_interrupts *alarms = LOOM_HAS(layout, interrupts) ? layout->interrupts : NULL;
		int rc = alarms ? alarms->open(alarms, device, LOOM_WORKLOAD, 0, &s->line[device], &why) : LOOM_ENOTSUP;
		if (rc)
			return LOOM_FAIL(s->host, err, rc,
					 "%s: fault, evict, alloc, free and migrate need copies into the memory of %s while its workers run%s%s",
					 s->name, layout->device[device].name, *why.text ? ": " : "", why.text);
	}
	int rc = g->is.kind == LOOM_GRANT_HEAP ? ssr_heap_open(s->host, &g->heap, g->is.bytes) : open_frames(s, g);
	if (rc)
		return LOOM_FAIL(s->host, err, rc, "%s: out of memory", s->name);
	g->at = g->frames ? g->frames->home : NULL;
	return 0;
}

/* ---- the services ----------------------------------------------------------------------------------- */

static int64_t write_page(const struct service *s, const struct ssr_grant *g, uint64_t offset, const void *from)
{
	struct loom_error err;
	struct loom_interrupt *line = line_of(s, g);
	return line->copy(line, g->is.at + offset, NULL, from, SSR_PAGE, &err) ? -EIO : 0;
}

static int is_moved(const struct ssr_frames *f, uint64_t page)
{
	return (int)(f->moved[page / 64] >> page % 64 & 1);
}

static int64_t fault(const struct service *s, const struct ssr_call *call)
{
	struct ssr_grant *g = call->grant;
	struct ssr_frames *f = g->frames;
	uint64_t page = (uint64_t)(call->at - g->at) / SSR_PAGE;
	const char *content = g->is.content;
	if (call->bytes != SSR_PAGE)
		return -EINVAL;
	if (f->of[page])
		return (int64_t)(f->of[page] - 1) * SSR_PAGE;
	if (!f->left)
		return -ENOMEM;
	uint32_t frame = f->free[f->left - 1];
	int64_t rc = write_page(s, g, (uint64_t)frame * SSR_PAGE,
				content && !is_moved(f, page) ? content + page * SSR_PAGE : call->at);
	if (rc)
		return rc;
	f->left--;
	f->of[page] = frame + 1;
	return (int64_t)frame * SSR_PAGE;
}

static void give_back(struct ssr_frames *f, uint64_t page)
{
	f->free[f->left++] = f->of[page] - 1;
	f->of[page] = 0;
}

static int64_t evict(const struct ssr_call *call)
{
	struct ssr_grant *g = call->grant;
	struct ssr_frames *f = g->frames;
	uint64_t page = (uint64_t)(call->at - g->at) / SSR_PAGE, end = page + call->bytes / SSR_PAGE;
	for (; page < end; page++) {
		f->moved[page / 64] &= ~(1ull << page % 64);
		if (f->of[page])
			give_back(f, page);
	}
	return 0;
}

/* Into pages of the host, which then go to their node. */
static int64_t migrate(struct service *s, const struct ssr_call *call)
{
	struct ssr_grant *g = call->grant;
	struct ssr_frames *f = g->frames;
	struct loom_interrupt *line = line_of(s, g);
	struct loom_error err;
	uint64_t first = (uint64_t)(call->at - g->at) / SSR_PAGE;
	uint64_t end = ((uint64_t)(call->at - g->at) + call->bytes + SSR_PAGE - 1) / SSR_PAGE;
	int rc = 0;
	for (uint64_t page = first; page < end && !rc; page++)
		if (f->of[page])
			rc = line->copy(line, g->is.at + (f->of[page] - 1ull) * SSR_PAGE, g->at + page * SSR_PAGE, NULL, SSR_PAGE,
					&err);
	if (rc || line->flush(line, &err))
		return -EIO;
	for (uint64_t page = first; page < end; page++)
		if (f->of[page]) {
			f->moved[page / 64] |= 1ull << page % 64;
			give_back(f, page);
		}
	return ssr_migrate(call);
}

static int64_t allocate(const struct service *s, const struct ssr_call *call)
{
	static const char zeroes[SSR_PAGE];
	struct ssr_grant *g = call->grant;
	int64_t at = ssr_heap_alloc(&g->heap, NULL, call->bytes), rc = 0;
	for (uint64_t done = 0; at >= 0 && done < call->bytes && !rc; done += SSR_PAGE)
		rc = write_page(s, g, (uint64_t)at + done, zeroes);
	return rc ? rc : at;
}

static int64_t serve(struct service *s, const struct ssr_call *call)
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
		return ssr_heap_free(&call->grant->heap, NULL, call->argument);
	}
}

int ssr_near_add(struct service *s, struct ssr_call *call)
{
	if (!call->grant || !call->grant->is.device)
		return 0;
	s->later[s->laters++] = (struct ssr_later){call, serve(s, call)};
	return 1;
}

void ssr_near_flush(struct service *s, struct ssr_tenant *tenant)
{
	uint64_t used = 0;
	int failed = 0;
	struct loom_error err;
	for (uint32_t i = 0; i < s->laters; i++)
		used |= 1ull << (s->later[i].call->grant->is.device - 1);
	for (; used; used &= used - 1) {
		struct loom_interrupt *line = s->line[__builtin_ctzll(used)];
		failed |= line->flush(line, &err) != 0;
	}
	for (uint32_t i = 0; i < s->laters; i++)
		ssr_complete(s, tenant, s->later[i].call, failed ? -EIO : s->later[i].result, ssr_now());
	s->laters = 0;
}
