/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a device's userfaultfd descriptors to producers in other processes. UFFDIO_COPY and UFFDIO_CONTINUE act on the
 * address space that opened the descriptor, even if another process calls them. So each device sends its descriptors to the
 * other devices, through socket pairs that the host made before any fork. This file also has the eventfd that wakes a
 * Monitor. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wic.h"
#include "lib/fd.h"

#define FDS_PER_MESSAGE 64u

/* A message with the descriptors of the shards from `first` to `first` + `count` - 1 of a device. */
struct message {
	uint32_t device, generation, first, count;
};

void wic_wake_monitor(const struct wic *w, uint32_t device)
{
	eventcount_fd_notify(w->monitor_fd[device]);
}

int wic_open_sockets(struct wic *w)
{
	for (uint32_t d = 0; d < w->devices; d++) {
		w->monitor_fd[d] = eventcount_fd_open();
		if (w->monitor_fd[d] < 0 ||
		    loom_fd_pair(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, w->socket[d]),
				 w->socket[d]) != 0)
			return errno;
	}
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void wic_close_sockets(struct wic *w)
{
	for (uint32_t d = 0; d < LOOM_MAX_DEVICES; d++) {
		close_fd(&w->monitor_fd[d]);
		close_fd(&w->socket[d][0]);
		close_fd(&w->socket[d][1]);
	}
}

static int send_message(const struct wic_space *sp, uint32_t to, struct message m)
{
	union {
		char bytes[CMSG_SPACE(FDS_PER_MESSAGE * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = CMSG_SPACE(m.count * sizeof(int))};
	memset(&control, 0, sizeof(control));
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(m.count * sizeof(int));
	memcpy(CMSG_DATA(c), sp->uffd + m.first, m.count * sizeof(int));
	return sendmsg(sp->wic->socket[to][1], &msg, MSG_NOSIGNAL) < 0 ? errno : 0;
}

int wic_send_descriptors(const struct wic_space *sp, uint32_t generation)
{
	const struct wic *w = sp->wic;
	uint32_t shards = w->shards[sp->device];
	for (uint32_t to = 0; to < w->devices; to++)
		for (uint32_t at = 0; to != sp->device && !wic_is_gpu(w, to) && at < shards; at += FDS_PER_MESSAGE) {
			uint32_t n = shards - at < FDS_PER_MESSAGE ? shards - at : FDS_PER_MESSAGE;
			int code = send_message(sp, to, (struct message){sp->device, generation, at, n});
			if (code)
				return code;
		}
	return 0;
}

/* Receives one message from another device, and stores the descriptors in the route of that device. If the process
 * cannot have so many descriptors, the kernel drops some of them; then the route stays incomplete. Returns 0 if there
 * is no message, else 1. */
static int receive(struct wic_space *sp)
{
	struct message m;
	union {
		char bytes[CMSG_SPACE(FDS_PER_MESSAGE * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr msg = {
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	if (recvmsg(sp->wic->socket[sp->device][0], &msg, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(m))
		return 0;
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	struct wic_route *r = &sp->route[m.device];
	int fds[FDS_PER_MESSAGE];
	uint32_t came = c ? (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;
	if (came)
		memcpy(fds, CMSG_DATA(c), came * sizeof(int));
	for (uint32_t i = 0; i < came; i++)
		fds[i] = loom_fd(fds[i]);
	if (came != m.count || msg.msg_flags & MSG_CTRUNC) {
		while (came > 0)
			close(fds[--came]);
		__atomic_store_n(&sp->truncated, 1u, __ATOMIC_RELAXED);
		return 1;
	}
	if (r->incoming != m.generation) /* fd[] has the descriptors of an earlier launch */
		for (; r->shards > 0; r->shards--)
			close(r->fd[r->shards - 1]);
	memcpy(r->fd + m.first, fds, m.count * sizeof(int));
	r->incoming = m.generation;
	r->shards = m.first + m.count;
	/* Release: pairs with the acquire in wic_route(). */
	if (r->shards == sp->wic->shards[m.device])
		__atomic_store_n(&r->generation, m.generation, __ATOMIC_RELEASE);
	return 1;
}

void wic_drop_descriptors(struct wic_space *sp)
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
	if (wic_lock(sp->ctl, &sp->route_lock))
		return NULL;
	uint32_t generation = r->generation;
	if (generation != d->generation && d->pid == (uint64_t)getpid()) {
		/* The device is in the same process. Its descriptors are copied, and r->shards stays 0: they are not
		 * closed here. */
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
