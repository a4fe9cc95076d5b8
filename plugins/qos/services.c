/* SPDX-License-Identifier: Apache-2.0 */
/* The services (table I of the HISS paper), which the worker thread executes for checked requests. Each service makes the
 * system call that a program on the CPU would make, and returns the result of the call, or minus an errno. */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "service.h"

static int64_t outcome(int64_t rc)
{
	return rc < 0 ? -errno : rc;
}

static uint64_t offset_of(const struct qos_call *call)
{
	return (uint64_t)(call->at - call->grant->at);
}

/* Makes the pages of the range present, and returns the number of bytes that it has made present. One ioctl handles the whole
 * range if no page in it is present. If it meets a page that is already present, the next ioctl continues behind this page. */
static int64_t fault(struct service *s, const struct qos_call *call)
{
	const char *content = call->grant->is.content;
	int64_t made = 0;
	for (uint64_t at = 0; at < call->bytes;) {
		int64_t done;
		if (content) {
			struct uffdio_copy copy = {.dst = (uintptr_t)call->at + at,
						   .src = (uintptr_t)content + offset_of(call) + at,
						   .len = call->bytes - at};
			done = ioctl(s->fault_fd, UFFDIO_COPY, &copy) ? copy.copy : (int64_t)copy.len;
		} else {
			struct uffdio_zeropage zero = {.range = {(uintptr_t)call->at + at,
								 call->bytes - at}};
			done = ioctl(s->fault_fd, UFFDIO_ZEROPAGE, &zero) ? zero.zeropage :
									    (int64_t)zero.range.len;
		}
		if (done > 0) { /* the whole range, or the pages before a page that is present */
			at += (uint64_t)done;
			made += done;
		} else if (done == -EEXIST || (!done && errno == EEXIST)) {
			at += QOS_PAGE;
		} else if (done != -EAGAIN) {
			return done ? done : -errno;
		}
	}
	return made;
}

#define MIGRATE_PAGES 256u
int64_t qos_migrate_pages(const struct qos_call *call)
{
	void *page[MIGRATE_PAGES];
	int node[MIGRATE_PAGES], status[MIGRATE_PAGES];
	uint64_t at = (uintptr_t)call->at & ~(uint64_t)(QOS_PAGE - 1);
	uint64_t end = (uintptr_t)call->at + call->bytes;
	int64_t moved = 0;
	while (at < end) {
		unsigned long n = 0;
		for (; at < end && n < MIGRATE_PAGES; at += QOS_PAGE, n++) {
			page[n] = (void *)(uintptr_t)at;
			node[n] = (int)call->argument;
			status[n] = -1;
		}
		/* Pid 0: moves the pages of this process, whose mapping the service uses. */
		if (syscall(SYS_move_pages, 0, n, page, node, status, 2 /* MPOL_MF_MOVE */) < 0)
			return -errno;
		for (unsigned long i = 0; i < n; i++)
			moved += status[i] == (int)call->argument;
	}
	return moved;
}

int64_t qos_execute(struct service *s, const struct qos_call *call)
{
	struct qos_grant *g = call->grant;
	if (g && g->is.kind == LOOM_GRANT_HEAP && call->at &&
	    !qos_heap_owns(&g->heap, offset_of(call), call->bytes))
		return -EFAULT; /* the range is not allocated, and an access would make its pages present */
	switch (call->service) {
	case LOOM_SERVICE_NOTHING:
		return 0;
	case LOOM_SERVICE_SIGNAL:
		return outcome(syscall(SYS_pidfd_send_signal, call->fd, (int)call->argument, NULL, 0));
	case LOOM_SERVICE_FAULT:
		return fault(s, call);
	case LOOM_SERVICE_EVICT:
		return outcome(madvise(call->at, call->bytes, MADV_REMOVE));
	case LOOM_SERVICE_ALLOC:
		return qos_heap_alloc(&g->heap, g->at, call->bytes);
	case LOOM_SERVICE_FREE:
		return qos_heap_free(&g->heap, g->at, call->argument);
	case LOOM_SERVICE_READ:
		return outcome(pread(call->fd, call->at, call->bytes, (off_t)call->argument));
	case LOOM_SERVICE_WRITE:
		return outcome(pwrite(call->fd, call->at, call->bytes, (off_t)call->argument));
	case LOOM_SERVICE_MIGRATE:
		return qos_migrate_pages(call);
	case LOOM_SERVICE_SEND:
		return outcome(send(call->fd, call->at, call->bytes, MSG_DONTWAIT | MSG_NOSIGNAL));
	default:
		return -ENOSYS;
	}
}
