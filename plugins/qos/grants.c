/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves grants before the first request: finds the host addresses of memory, and checks descriptors. A request then
 * names a grant by its index. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "service.h"
#include "lib/fd.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* Opens a userfaultfd with UFFD_FEATURE_SIGBUS. With this feature, an access to a page that no FAULT request has made present
 * fails with SIGBUS, instead of waiting without end. A system call on such a page returns EFAULT. */
static int open_faults(struct service *s, struct loom_error *err)
{
	if (s->fault_fd >= 0)
		return 0;
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};
	s->fault_fd = loom_fd((int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
	if (s->fault_fd >= 0 && !ioctl(s->fault_fd, UFFDIO_API, &api))
		return 0;
	return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL,
			 "%s: page faults need userfaultfd, which the system rejects: %s", s->name,
			 strerror(errno));
}

static int resolve_memory(struct service *s, struct qos_grant *g, const struct loom_layout *layout,
			  const struct loom_segments *segments, struct loom_error *err)
{
	if (g->is.device)
		return qos_frames_open(s, g, layout, err);
	uint32_t segment = LOOM_REF_SEGMENT(g->is.at);
	uint64_t offset = LOOM_REF_OFFSET(g->is.at);
	if (!segment || segment >= segments->count || offset > segments->bytes[segment] ||
	    g->is.bytes > segments->bytes[segment] - offset)
		return LOOM_FAIL(s->host, err, LOOM_EPLUGIN, "%s: a buffer is in no segment", s->name);
	if (!segments->at[segment])
		return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL,
				 "%s: a buffer is in memory that the host cannot access: use another transport",
				 s->name);
	g->at = (char *)segments->at[segment] + offset;
	if (g->is.kind == LOOM_GRANT_BUFFER)
		return 0;
	if (((uintptr_t)g->at | g->is.bytes) & (QOS_PAGE - 1))
		return LOOM_FAIL(s->host, err, LOOM_EPLUGIN, "%s: a heap or demand buffer is not page aligned",
				 s->name);
	if (g->is.kind == LOOM_GRANT_HEAP)
		return qos_heap_open(s->host, &g->heap, g->is.bytes) ?
			       LOOM_FAIL(s->host, err, LOOM_ENOMEM, "%s: out of memory", s->name) :
			       0;
	int rc = open_faults(s, err);
	if (rc)
		return rc;
	struct uffdio_register range = {.range = {(uintptr_t)g->at, g->is.bytes},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	if (ioctl(s->fault_fd, UFFDIO_REGISTER, &range))
		return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL,
				 "%s: userfaultfd does not accept this memory: %s", s->name,
				 strerror(errno));
	return 0;
}

static int resolve_descriptor(struct service *s, const struct qos_grant *g, struct loom_error *err)
{
	struct stat st;
	int ok = !fstat(g->is.fd, &st);
	/* Checks the type of the descriptor, because a read of another type may block the path without end. */
	if (g->is.kind == LOOM_GRANT_FILE)
		ok = ok && S_ISREG(st.st_mode);
	else if (g->is.kind == LOOM_GRANT_SOCKET)
		ok = ok && S_ISSOCK(st.st_mode);
	else
		ok = ok && !syscall(SYS_pidfd_send_signal, g->is.fd, 0, NULL, 0);
	if (ok)
		return 0;
	return LOOM_FAIL(s->host, err, LOOM_EPLUGIN, "%s: descriptor %d is not a %s", s->name, g->is.fd,
			 g->is.kind == LOOM_GRANT_FILE	 ? "regular file" :
			 g->is.kind == LOOM_GRANT_SOCKET ? "socket" :
							   "pidfd of a running process");
}

int qos_grants_resolve(struct service *s, const struct loom_layout *layout, const struct loom_segments *segments,
		       struct loom_error *err)
{
	int rc = 0;
	for (uint32_t i = 0; i < s->granted_count && !rc; i++) {
		const struct loom_grant *want = &s->granted[i];
		struct qos_grant *g = s->host->alloc(s->host, sizeof(*g));
		struct qos_tenant *t = want->tenant < s->tenants ? &s->tenant[want->tenant] : NULL;
		if (!g || !t || want->kind < LOOM_GRANT_BUFFER || want->kind > LOOM_GRANT_PROCESS) {
			int code = g ? LOOM_EPLUGIN : LOOM_ENOMEM;
			s->host->free(s->host, g);
			return LOOM_FAIL(s->host, err, code, "%s: grant %u %s", s->name, i,
					 code == LOOM_ENOMEM ? "lacks memory" : "is invalid");
		}
		g->is = *want;
		rc = want->kind <= LOOM_GRANT_HEAP ? resolve_memory(s, g, layout, segments, err) :
						     resolve_descriptor(s, g, err);
		g->next = s->grants;
		s->grants = g;
		t->grant[t->grants++] = g; /* qos_grants() has allocated the array for all grants */
	}
	return rc;
}

void qos_grants_free(struct service *s)
{
	while (s->grants) {
		struct qos_grant *g = s->grants;
		s->grants = g->next;
		qos_heap_close(s->host, &g->heap);
		qos_frames_close(s, g);
		s->host->free(s->host, g);
	}
	for (uint32_t d = 0; d < LOOM_MAX_DEVICES; d++) {
		if (s->line[d])
			s->line[d]->close(s->line[d]);
		s->line[d] = NULL;
	}
	for (uint32_t i = 0; i < s->tenants; i++)
		s->tenant[i].grants = 0;
	if (s->fault_fd >= 0)
		close(s->fault_fd);
	s->fault_fd = -1;
}
