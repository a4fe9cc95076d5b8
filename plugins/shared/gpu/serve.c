/* SPDX-License-Identifier: Apache-2.0 */
/* The process of a device with isolation = process: makes the driver's calls that the host asks for. */
#include "remote.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/fd.h"


int remote_send(int socket, const void *packet, size_t bytes, int fd)
{
	struct iovec part = {.iov_base = (void *)packet, .iov_len = bytes};
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.room = {0}};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	if (fd >= 0) {
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(socket, &m, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : -1;
}

int remote_receive(int socket, void *packet, size_t bytes, int *fd)
{
	struct iovec part = {.iov_base = packet, .iov_len = bytes};
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = sizeof(control.room)};
	*fd = -1;
	ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC); /* signals are blocked: no EINTR */
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	*fd = loom_fd(*fd);
	return n == (ssize_t)bytes ? 0 : -1;
}

/* The host's memory here, by its address there. */
struct window {
	struct window *next;
	uint64_t key, bytes;
	void *at;
	int ours;
};

struct server {
	struct gpu *d;
	char *shared;
	struct window *windows;
};

static int host_map(struct server *s, const struct remote_ask *q, int fd, uint64_t *view)
{
	struct gpu *d = s->d;
	struct window *w = d->host->alloc(d->host, sizeof(*w));
	void *at = w ? mmap(NULL, q->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (at == MAP_FAILED) {
		d->host->free(d->host, w);
		return gpu_called(d, d->driver->out_of_memory, "mmap");
	}
	*w = (struct window){.next = s->windows, .key = q->at, .bytes = q->bytes, .at = at};
	int rc = d->driver->host_map(d, at, fd, q->bytes, view, &w->ours);
	if (rc != 0) {
		munmap(at, q->bytes);
		d->host->free(d->host, w);
		return rc;
	}
	s->windows = w;
	return 0;
}

static void host_unmap(struct server *s, uint64_t key)
{
	struct gpu *d = s->d;
	struct window **at = &s->windows, *w;
	while (*at && (*at)->key != key)
		at = &(*at)->next;
	w = *at;
	if (!w)
		return;
	if (w->ours)
		d->driver->host_unmap(d, w->at);
	munmap(w->at, w->bytes);
	*at = w->next;
	d->host->free(d->host, w);
}

static int load(struct server *s, const struct remote_ask *q, struct gpu_kernel *k)
{
	const struct cached code = {.resources = q->resources, .code = s->shared, .bytes = q->bytes};
	*k = q->kernel;
	return s->d->driver->load(s->d, &code, k);
}

/* What remote.c put there; `ir` is of this process. */
static void unpack(struct server *s, const struct remote_ask *q, struct gpu_program *program,
		  struct loom_program_ir *ir, const struct loom_program_ir **list)
{
	uint64_t at = REMOTE_ALIGN((uint64_t)q->b + 1);
	*program = (struct gpu_program){.text = {.at = s->shared, .length = (size_t)q->b},
					.ir = list,
					.irs = (uint32_t)q->a};
	for (int i = 0; i < q->a; i++) {
		struct remote_ir head;
		memcpy(&head, s->shared + at, sizeof(head));
		at += sizeof(head);
		ir[i] = (struct loom_program_ir){
			.file = s->shared + at, .data = s->shared + at + head.name + 1, .bytes = head.bytes};
		at += REMOTE_ALIGN(head.name + 1 + head.bytes + 1);
		list[i] = &ir[i];
	}
}

/* Here, not in the host's process: NVRTC starts CUDA, which no fork of that process could use then. */
static int compile(struct server *s, const struct remote_ask *q, struct remote_answer *a, struct loom_error *err)
{
	struct gpu *d = s->d;
	struct gpu_program program;
	struct cached code = {0};
	size_t irs = (size_t)q->a + 1;
	struct loom_program_ir *ir = d->host->alloc(d->host, irs * (sizeof(*ir) + sizeof(ir)));
	int rc = ir ? 0 : LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	if (!rc && !d->compiler.so)
		rc = rtc_open(d->host, d->name, d->driver->compiler, d->options->compiler, &d->compiler, err);
	if (!rc) {
		unpack(s, q, &program, ir, (const struct loom_program_ir **)(ir + irs));
		snprintf(d->arch, sizeof(d->arch), "%s", q->shape.arch);
		d->bound = q->shape.bound;
		d->lanes = q->shape.lanes;
		d->per_block = q->shape.per_block;
		d->watch = q->shape.watch;
		rc = d->driver->compile(d, &program, &code, err);
	}
	if (!rc && code.bytes > REMOTE_ROOM)
		rc = LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: a program of more than %u MiB", d->name, REMOTE_ROOM >> 20);
	if (!rc) {
		memcpy(s->shared, code.code, code.bytes);
		a->bytes = code.bytes;
		a->resources = code.resources;
	}
	d->host->free(d->host, code.code);
	d->host->free(d->host, ir);
	return rc;
}

/* The calls that a context must be current for. */
static int answer_inside(struct server *s, const struct remote_ask *q, int *fd, struct remote_answer *a)
{
	struct gpu *d = s->d;
	const struct gpu_driver *v = d->driver;
	struct gpu_kernel k = q->kernel;
	switch (q->op) {
	case REMOTE_ALLOC:
		return v->alloc(d, q->bytes, &a->at);
	case REMOTE_FREE:
		v->free(d, q->at);
		return 0;
	case REMOTE_SHARE:
		a->bytes = q->bytes;
		return v->share(d, &a->bytes, &a->at, fd);
	case REMOTE_IMPORT:
		a->bytes = q->bytes;
		return v->import(d, *fd, &a->bytes, &a->at);
	case REMOTE_UNSHARE:
		v->unshare(d, q->at, q->bytes);
		return 0;
	case REMOTE_HOST_MAP:
		return host_map(s, q, *fd, &a->at);
	case REMOTE_HOST_UNMAP:
		host_unmap(s, q->at);
		return 0;
	case REMOTE_WRITE:
		return v->write(d, q->at, s->shared, q->bytes);
	case REMOTE_READ:
		return v->read(d, s->shared, q->at, q->bytes);
	case REMOTE_CLEAR:
		return v->clear(d, q->at, q->bytes);
	case REMOTE_LOAD:
		return load(s, q, &a->kernel);
	case REMOTE_UNLOAD:
		v->unload(d, &k);
		return 0;
	case REMOTE_OCCUPANCY:
		return v->occupancy(d, &k, (int)q->threads, q->bytes, &a->value);
	case REMOTE_LAUNCH:
		return v->launch(d, &k, q->blocks, q->threads, q->shared, q->value);
	case REMOTE_SET_WORD:
		return v->set_word(d, q->at, q->value);
	case REMOTE_AWAIT_WORD:
		return v->await_word(d, q->at, q->value);
	case REMOTE_RUNNING:
		return v->running(d, &a->value);
	default:
		return gpu_called(d, -1, "a question that nobody asks");
	}
}

static void tell_facts(const struct gpu *d, struct remote_facts *f)
{
	memcpy(f->arch, d->arch, sizeof(f->arch));
	memcpy(f->bus, d->bus, sizeof(f->bus));
	memcpy(f->model, d->model, sizeof(f->model));
	memcpy(f->defines, d->defines, sizeof(f->defines));
	f->memory = d->memory;
	f->limits = d->limits;
}

static int answer(struct server *s, const struct remote_ask *q, int *fd, struct remote_answer *a)
{
	struct gpu *d = s->d;
	const struct gpu_driver *v = d->driver;
	struct loom_error err = {0};
	int rc;
	switch (q->op) {
	case REMOTE_OPEN:
		rc = v->open(d, &err);
		break;
	case REMOTE_COUNT:
		return v->count(d, &a->value);
	case REMOTE_FIND:
		rc = v->find(d, q->a, &err);
		tell_facts(d, &a->facts);
		break;
	case REMOTE_ATOMICS:
		v->host_atomics(d, &a->atomics);
		return 0;
	case REMOTE_PEERS:
		return v->peers(d, q->a, q->b, &a->value);
	case REMOTE_ATTACH:
		return v->attach(d);
	case REMOTE_DETACH:
		v->detach(d);
		return 0;
	case REMOTE_COMPILE:
		rc = compile(s, q, a, &err);
		break;
	case REMOTE_TEXT:
		snprintf(a->text, sizeof(a->text), "%s", v->text(d, q->a));
		return 0;
	default:
		rc = v->enter(d);
		if (rc == 0) {
			rc = answer_inside(s, q, fd, a);
			v->leave(d);
		}
		return rc;
	}
	snprintf(a->version, sizeof(a->version), "%s", d->version);
	snprintf(a->text, sizeof(a->text), "%.*s", (int)sizeof(a->text) - 1, err.text);
	return rc;
}

/* Others that the host has forked hold its end of the connection, too: that is no sign of its life. */
#define LOOK_MS 1000
static int await_question(int socket, pid_t host)
{
	struct pollfd on = {.fd = socket, .events = POLLIN};
	int n;
	while ((n = poll(&on, 1, LOOK_MS)) == 0 && getppid() == host)
		;
	return n == 1;
}

void remote_serve(struct gpu *d, int socket, pid_t host, char *shared)
{
	struct server s = {.d = d, .shared = shared};
	struct remote_ask q;
	int fd;
	while (await_question(socket, host) && remote_receive(socket, &q, sizeof(q), &fd) == 0) {
		struct remote_answer a = {.rc = 0};
		int came = fd;
		a.rc = answer(&s, &q, &fd, &a);
		snprintf(a.call, sizeof(a.call), "%s", d->call);
		int gone = remote_send(socket, &a, sizeof(a), fd != came ? fd : -1);
		if (came >= 0)
			close(came);
		if (fd >= 0 && fd != came)
			close(fd);
		if (gone)
			break;
	}
}
