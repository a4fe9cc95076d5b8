/* SPDX-License-Identifier: Apache-2.0 */
/* A device's PCM pages in the address space of its workers, with userfaultfd descriptors. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wic.h"

#define TABLE (2u << 20) /* bytes of memory that one page table covers */
static int map(struct wic_space *sp)
{
	const struct wic *w = sp->wic;
	uint64_t bytes = (uint64_t)w->pages * UFFD_PAGE;
	int in_place = w->o->mode == WIC_IN_PLACE;
	/* MAP_POPULATE maps all pages of the file here, so that later accesses, which are measured, need no time for
	 * mapping. */
	sp->staging = mmap(NULL, w->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, w->file, 0);
	if (sp->staging == MAP_FAILED) {
		sp->staging = NULL;
		return errno;
	}
	sp->pcm = in_place
		      ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, w->file,
			     (off_t)(sp->device * bytes))
		      : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sp->pcm == MAP_FAILED) {
		sp->pcm = NULL;
		return errno;
	}
	/* No huge pages, so that each fault is for one page. A forked child does not inherit the mapping, because no page
	 * would be armed there and loads would read zeroes. */
	if (madvise(sp->pcm, bytes, MADV_NOHUGEPAGE) != 0 && errno != EINVAL)
		return errno;
	return madvise(sp->pcm, bytes, MADV_DONTFORK) != 0 ? errno : 0;
}

/* Opens a descriptor for each shard, and arms its pages. There are several shards, because a wake-up walks over all threads
 * that wait at the same descriptor. */
static int arm(struct wic_space *sp)
{
	const struct wic *w = sp->wic;
	enum uffd_kind kind = w->o->mode == WIC_IN_PLACE ? UFFD_MINOR : UFFD_MISSING;
	uint64_t bytes = (uint64_t)w->pages / w->shards[sp->device] * UFFD_PAGE;
	for (sp->opened = 0; sp->opened < w->shards[sp->device]; sp->opened++) {
		int fd = uffd_open(kind);
		if (fd < 0)
			return -fd;
		sp->uffd[sp->opened] = fd;
		int rc = uffd_register(fd, sp->pcm + sp->opened * bytes, bytes, kind);
		if (rc) {
			close(fd);
			return -rc;
		}
		/* Places one page per page table, so that the first stalls do not allocate page tables. wic_ready() arms
		 * these pages again. */
		for (uint64_t at = 0; kind == UFFD_MINOR && at < bytes; at += TABLE)
			(void)uffd_continue(fd, (uintptr_t)sp->pcm + sp->opened * bytes + at, UFFD_PAGE, 0);
	}
	return 0;
}

static void unmap(char **p, uint64_t bytes)
{
	if (*p)
		munmap(*p, bytes);
	*p = NULL;
}

static void release(struct wic_space *sp)
{
	const struct wic *w = sp->wic;
	while (sp->opened > 0)
		close(sp->uffd[--sp->opened]);
	unmap(&sp->pcm, (uint64_t)w->pages * UFFD_PAGE);
	unmap(&sp->staging, w->file_bytes);
	wic_drop_descriptors(sp);
	sp->head = NULL;
}

int wic_attach(void *self, const struct loom_space *space, struct loom_error *err)
{
	struct wic *w = self;
	struct wic_space *sp = &w->space[space->device];
	const char *what = "map its pages";
	if (!w->sync.channels)
		return 0;
	sp->head = space->global;
	sp->ctl = space->ctl;
	sp->route_lock = 0;
	sp->truncated = 0;
	int code = map(sp);
	if (!code) {
		what = "arm its pages";
		code = arm(sp);
	}
	if (!code) {
		struct wic_device *d = wic_device(w, sp->head, sp->device);
		d->base = (uintptr_t)sp->pcm;
		d->space = (uintptr_t)sp;
		d->pid = (uint64_t)getpid();
		d->generation++;
		/* The Monitor is paused until the first sample. An earlier launch may have left other values here. */
		__atomic_store_n(&d->allowed, 0u, __ATOMIC_RELAXED);
		__atomic_store_n(&d->working, 0u, __ATOMIC_RELAXED);
		what = "send its descriptors";
		code = wic_send_descriptors(sp, d->generation);
	}
	if (!code) {
		what = "start the Monitor";
		code = wic_monitor_start(sp);
	}
	if (!code)
		return 0;
	release(sp);
	return LOOM_FAIL(w->sync.host, err, LOOM_EUNAVAIL, "sync_wic: device %u cannot %s (%s): %s", space->device,
			 what, strerror(code), uffd_advice(code));
}

/* Arms all pages again, in steps that are shorter than the range of a page table. For a longer range the kernel would also
 * free the page table, and the next stall would allocate it again. */
static void arm_again(struct wic_space *sp)
{
	uint64_t bytes = (uint64_t)sp->wic->pages * UFFD_PAGE;
	for (uint64_t at = 0; at < bytes; at += TABLE / 2)
		madvise(sp->pcm + at, bytes - at < TABLE / 2 ? bytes - at : TABLE / 2, MADV_DONTNEED);
}

void wic_ready(void *self, uint32_t device)
{
	struct wic *w = self;
	struct wic_space *sp = &w->space[device];
	if (!sp->head)
		return;
	struct wic_device *d = wic_device(w, sp->head, device);
	/* The Monitor is paused already, but race detectors need this call, which orders the accesses. */
	if (wic_pause_monitor(d))
		return;
	arm_again(sp);
	memset(sp->pfq, 0, sp->pfq_words * sizeof(*sp->pfq));
	memset(sp->forwarded, 0, w->slots * sizeof(*sp->forwarded));
	wic_resume_monitor(w, device, d);
}

void wic_detach(void *self, uint32_t device)
{
	struct wic *w = self;
	struct wic_space *sp = &w->space[device];
	if (!sp->head)
		return;
	wic_monitor_stop(sp);
	release(sp);
}
