/* SPDX-License-Identifier: Apache-2.0 */
/* A device's address space: its PCM pages under userfaultfd, and the way by which producers in other
 * processes get its descriptors. UFFDIO_COPY and UFFDIO_CONTINUE act on the space that opened the
 * descriptor, from whichever process they are called; so each device sends its descriptors through a
 * socket pair that the host made before any fork. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "wic.h"

#define TABLE (2u << 20) /* bytes that one page table covers */
#define FDS_PER_MAIL 64u

struct mail {
	uint32_t device, generation, first, count;
};

int wic_open_mail(struct wic *w)
{
	for (uint32_t d = 0; d < w->devices; d++) {
		w->bell[d] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (w->bell[d] < 0 ||
		    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, w->mail[d]) != 0)
			return errno;
	}
	return 0;
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void wic_close_mail(struct wic *w)
{
	for (uint32_t d = 0; d < LOOM_MAX_DEVICES; d++) {
		shut(&w->bell[d]);
		shut(&w->mail[d][0]);
		shut(&w->mail[d][1]);
	}
}

static int send_mail(const struct wic_space *sp, uint32_t to, struct mail m)
{
	union {
		char bytes[CMSG_SPACE(FDS_PER_MAIL * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
			     .msg_controllen = CMSG_SPACE(m.count * sizeof(int))};
	memset(&control, 0, sizeof(control));
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(m.count * sizeof(int));
	memcpy(CMSG_DATA(c), sp->uffd + m.first, m.count * sizeof(int));
	return sendmsg(sp->wic->mail[to][1], &msg, MSG_NOSIGNAL) < 0 ? errno : 0;
}

static int send_all(const struct wic_space *sp, uint32_t generation)
{
	const struct wic *w = sp->wic;
	uint32_t shards = w->shards[sp->device];
	for (uint32_t to = 0; to < w->devices; to++)
		for (uint32_t at = 0; to != sp->device && at < shards; at += FDS_PER_MAIL) {
			uint32_t n = shards - at < FDS_PER_MAIL ? shards - at : FDS_PER_MAIL;
			int code = send_mail(sp, to, (struct mail){sp->device, generation, at, n});
			if (code)
				return code;
		}
	return 0;
}

/* One message from another device into its route; 0 when there is none. */
static int receive(struct wic_space *sp)
{
	struct mail m;
	union {
		char bytes[CMSG_SPACE(FDS_PER_MAIL * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	if (recvmsg(sp->wic->mail[sp->device][0], &msg, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(m))
		return 0;
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	struct wic_route *r = &sp->route[m.device];
	int fds[FDS_PER_MAIL];
	if (!c)
		return 1;
	memcpy(fds, CMSG_DATA(c), m.count * sizeof(int));
	if (r->incoming != m.generation) /* of a launch that is over */
		for (; r->shards > 0; r->shards--)
			close(r->fd[r->shards - 1]);
	memcpy(r->fd + m.first, fds, m.count * sizeof(int));
	r->incoming = m.generation;
	r->shards = m.first + m.count;
	/* Release: pairs with the acquire in wic_route. */
	if (r->shards == sp->wic->shards[m.device])
		__atomic_store_n(&r->generation, m.generation, __ATOMIC_RELEASE);
	return 1;
}

static void forget_routes(struct wic_space *sp)
{
	while (receive(sp))
		;
	for (uint32_t d = 0; d < sp->wic->devices; d++)
		for (; sp->route[d].shards > 0; sp->route[d].shards--)
			close(sp->route[d].fd[sp->route[d].shards - 1]);
}

const struct wic_route *wic_route(struct wic_space *sp, uint32_t device)
{
	const struct wic *w = sp->wic;
	const struct wic_device *d = wic_device(w, sp->head, device);
	struct wic_route *r = &sp->route[device];
	if (__atomic_load_n(&r->generation, __ATOMIC_ACQUIRE) == d->generation)
		return r;
	wic_lock(sp->ctl, &sp->route_lock);
	uint32_t generation = r->generation;
	if (generation != d->generation && d->pid == (uint64_t)getpid()) {
		/* The same space: its descriptors serve as they are, and are not ours to close. */
		const struct wic_space *other = &w->space[device];
		memcpy(r->fd, other->uffd, w->shards[device] * sizeof(int));
		__atomic_store_n(&r->generation, d->generation, __ATOMIC_RELEASE);
	} else {
		while (r->generation != d->generation && receive(sp))
			;
	}
	generation = r->generation;
	wic_unlock(&sp->route_lock);
	return generation == d->generation ? r : NULL;
}

static int map(struct wic_space *sp)
{
	const struct wic *w = sp->wic;
	uint64_t bytes = (uint64_t)w->pages * UFFD_PAGE;
	int in_place = w->o->mode == WIC_IN_PLACE;
	/* The file has all its pages; here they are mapped before anybody counts time. */
	sp->staging = mmap(NULL, w->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, w->file, 0);
	if (sp->staging == MAP_FAILED) {
		sp->staging = NULL;
		return errno;
	}
	sp->pcm = in_place ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, w->file,
				  (off_t)(sp->device * bytes)) :
			     mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sp->pcm == MAP_FAILED) {
		sp->pcm = NULL;
		return errno;
	}
	/* One fault is one page; and a forked child, in which nothing is armed, faults for good instead of
	 * reading zeroes. */
	if (madvise(sp->pcm, bytes, MADV_NOHUGEPAGE) != 0 && errno != EINVAL)
		return errno;
	return madvise(sp->pcm, bytes, MADV_DONTFORK) != 0 ? errno : 0;
}

/* Each shard has a descriptor of its own: a wake walks over all who wait at one. */
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
		/* Page tables are made now, not by the first stalls; wic_ready arms these pages again. */
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
	forget_routes(sp);
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
		/* Shut until the first sample, whatever a launch before left there. */
		__atomic_store_n(&d->open, 0u, __ATOMIC_RELAXED);
		__atomic_store_n(&d->inside, 0u, __ATOMIC_RELAXED);
		what = "send its descriptors";
		code = send_all(sp, d->generation);
	}
	if (!code) {
		what = "start the Monitor";
		code = wic_monitor_start(sp);
	}
	if (!code)
		return 0;
	release(sp);
	return LOOM_FAIL(w->sync.host, err, LOOM_EUNAVAIL, "sync_wic: device %u cannot %s (%s): %s",
			 space->device, what, strerror(code), uffd_advice(code));
}

/* All pages. In steps below what one page table covers: of a longer range the kernel would free the tables, too,
 * and the next stalls would have to make them anew. */
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
	if (wic_shut_out(d)) /* is so already: here for those who see nothing of the host, race detectors */
		return;
	arm_again(sp);
	memset(sp->pfq, 0, sp->pfq_words * sizeof(*sp->pfq));
	wic_let_in(w, device, d);
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
