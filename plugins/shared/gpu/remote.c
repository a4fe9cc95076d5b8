/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of isolation = process. */
#include "remote.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../child/child.h"
#include "lib/align.h"
#include "lib/fd.h"

#define ANSWER_MS 120000 /* longer than anything takes; a call that hangs is ended with its process */
#define REMOTE_DIED (INT_MIN + 1) /* in place of the driver's codes */

struct remote {
	struct gpu_driver table; /* d->driver: the vendor's, with the calls below */
	const struct gpu_driver *vendor;
	struct child process;
	int was;     /* its number */
	int socket;
	char *shared; /* REMOTE_ROOM */
	char end[160]; /* how it ended */
};

static struct remote *of(const struct gpu *d)
{
	return d->remote;
}

int remote_pid(const struct gpu *d)
{
	return of(d)->was;
}

/* Waits for its end, which is near. */
static void bury(struct remote *r)
{
	char how[120];
	if (!r->process.pid)
		return;
	child_end_text(child_wait(&r->process, NULL), how, sizeof(how));
	snprintf(r->end, sizeof(r->end), "its process (pid %d) %s", r->was, how);
}

void remote_kill(struct gpu *d)
{
	child_signal(&of(d)->process, SIGKILL);
	bury(of(d));
}

static int await_answer(struct remote *r)
{
	struct pollfd on = {.fd = r->socket, .events = POLLIN};
	int n;
	while ((n = poll(&on, 1, ANSWER_MS)) < 0 && errno == EINTR)
		;
	return n > 0;
}

/* The answer's code, or REMOTE_DIED. */
static int ask_with(struct gpu *d, const struct remote_ask *q, int fd, struct remote_answer *a, int *came)
{
	struct remote *r = of(d);
	int none;
	memset(a, 0, sizeof(*a));
	if (!came)
		came = &none;
	*came = -1;
	if (!r->process.pid)
		return REMOTE_DIED;
	if (remote_send(r->socket, q, sizeof(*q), fd) != 0 || !await_answer(r) ||
	    remote_receive(r->socket, a, sizeof(*a), came) != 0) {
		remote_kill(d);
		return gpu_called(d, REMOTE_DIED, "a call in another process");
	}
	if (a->rc != 0)
		gpu_called(d, a->rc, a->call);
	return a->rc;
}

static int ask(struct gpu *d, const struct remote_ask *q, struct remote_answer *a)
{
	return ask_with(d, q, -1, a, NULL);
}

/* ---- the GPU ---- */

static int in_words(struct gpu *d, const struct remote_ask *q, struct remote_answer *a, struct loom_error *err)
{
	int code = ask(d, q, a);
	if (code == REMOTE_DIED)
		return LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: %s", d->name, of(d)->end);
	if (code)
		return LOOM_FAIL(d->host, err, code, "%s", a->text);
	return 0;
}

static int open_driver(struct gpu *d, struct loom_error *err)
{
	struct remote_answer a;
	int code = in_words(d, &(struct remote_ask){.op = REMOTE_OPEN}, &a, err);
	snprintf(d->version, sizeof(d->version), "%s", a.version);
	return code;
}

static int count_gpus(struct gpu *d, int *count)
{
	struct remote_answer a;
	int rc = ask(d, &(struct remote_ask){.op = REMOTE_COUNT}, &a);
	*count = a.value;
	return rc;
}

static int find(struct gpu *d, int number, struct loom_error *err)
{
	struct remote_answer a;
	int code = in_words(d, &(struct remote_ask){.op = REMOTE_FIND, .a = number}, &a, err);
	if (code)
		return code;
	memcpy(d->arch, a.facts.arch, sizeof(d->arch));
	memcpy(d->bus, a.facts.bus, sizeof(d->bus));
	memcpy(d->model, a.facts.model, sizeof(d->model));
	memcpy(d->defines, a.facts.defines, sizeof(d->defines));
	d->memory = a.facts.memory;
	d->limits = a.facts.limits;
	return 0;
}

static void host_atomics(const struct gpu *d, struct gpu_atomics *out)
{
	struct remote_answer a;
	ask((struct gpu *)d, &(struct remote_ask){.op = REMOTE_ATOMICS}, &a);
	*out = a.atomics;
}

static int peers(struct gpu *d, int from, int to, int *can)
{
	struct remote_answer a;
	int rc = ask(d, &(struct remote_ask){.op = REMOTE_PEERS, .a = from, .b = to}, &a);
	*can = a.value;
	return rc;
}

static int attach(struct gpu *d)
{
	struct remote_answer a;
	return ask(d, &(struct remote_ask){.op = REMOTE_ATTACH}, &a);
}

static void detach(struct gpu *d)
{
	struct remote_answer a;
	ask(d, &(struct remote_ask){.op = REMOTE_DETACH}, &a);
}

static const char *text(const struct gpu *d, int rc)
{
	static __thread char words[sizeof(((struct remote_answer *)0)->text)];
	struct remote_answer a = {.rc = 0};
	if (rc == REMOTE_DIED || ask((struct gpu *)d, &(struct remote_ask){.op = REMOTE_TEXT, .a = rc}, &a) != 0)
		return of(d)->end;
	memcpy(words, a.text, sizeof(words));
	return words;
}

/* Each call enters the context by itself. */
static int enter(struct gpu *d)
{
	return of(d)->process.pid ? 0 : gpu_called(d, REMOTE_DIED, "a call in another process");
}

static void leave(struct gpu *d)
{
	(void)d;
}

/* ---- memory ---- */

static int allocate(struct gpu *d, uint64_t bytes, uint64_t *at)
{
	struct remote_answer a;
	int rc = ask(d, &(struct remote_ask){.op = REMOTE_ALLOC, .bytes = bytes}, &a);
	*at = a.at;
	return rc;
}

static void release(struct gpu *d, uint64_t at)
{
	struct remote_answer a;
	ask(d, &(struct remote_ask){.op = REMOTE_FREE, .at = at}, &a);
}

static int share(struct gpu *d, uint64_t *bytes, uint64_t *at, int *fd)
{
	struct remote_answer a;
	int rc = ask_with(d, &(struct remote_ask){.op = REMOTE_SHARE, .bytes = *bytes}, -1, &a, fd);
	*bytes = a.bytes;
	*at = a.at;
	return rc;
}

static int import(struct gpu *d, int fd, uint64_t *bytes, uint64_t *at)
{
	struct remote_answer a;
	int rc = ask_with(d, &(struct remote_ask){.op = REMOTE_IMPORT, .bytes = *bytes}, fd, &a, NULL);
	*bytes = a.bytes;
	*at = a.at;
	return rc;
}

static void unshare(struct gpu *d, uint64_t at, uint64_t bytes)
{
	struct remote_answer a;
	ask(d, &(struct remote_ask){.op = REMOTE_UNSHARE, .at = at, .bytes = bytes}, &a);
}

static int host_map(struct gpu *d, void *host, int fd, uint64_t bytes, uint64_t *view, int *ours)
{
	struct remote_answer a;
	int rc = ask_with(d, &(struct remote_ask){.op = REMOTE_HOST_MAP, .at = (uintptr_t)host, .bytes = bytes}, fd, &a,
			  NULL);
	*view = a.at;
	*ours = rc == 0; /* it is to be unmapped there */
	return rc;
}

static void host_unmap(struct gpu *d, void *host)
{
	struct remote_answer a;
	ask(d, &(struct remote_ask){.op = REMOTE_HOST_UNMAP, .at = (uintptr_t)host}, &a);
}

/* Its length is in front of it, for host_free(). */
static int host_alloc(struct gpu *d, uint64_t bytes, void **host, uint64_t *view)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), all = page + loom__align(bytes, page);
	int ours, fd = loom_fd(memfd_create("gpuloom", MFD_CLOEXEC));
	char *at = fd >= 0 && ftruncate(fd, (off_t)all) == 0 ?
			   mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	int rc = at == MAP_FAILED ? gpu_called(d, d->driver->out_of_memory, "mmap") :
				    host_map(d, at, fd, all, view, &ours);
	if (rc != 0 && at != MAP_FAILED)
		munmap(at, all);
	if (fd >= 0)
		close(fd);
	if (rc != 0)
		return rc;
	memcpy(at, &all, sizeof(all));
	*host = at + page;
	*view += page;
	return 0;
}

static void host_free(struct gpu *d, void *host)
{
	char *at = (char *)host - sysconf(_SC_PAGESIZE);
	uint64_t all;
	memcpy(&all, at, sizeof(all));
	host_unmap(d, at);
	munmap(at, all);
}

/* Addresses of other processes' GPUs mean nothing here: import(). */
static int owner(struct gpu *d, uint64_t at, int *number)
{
	(void)at;
	*number = -1;
	return gpu_called(d, -1, "owner");
}

static int reach(struct gpu *d, uint64_t at, int number, int *can)
{
	(void)d, (void)at, (void)number;
	*can = 0;
	return 0;
}

static int write_part(struct gpu *d, uint64_t to, const void *from, uint64_t bytes)
{
	struct remote_answer a;
	memcpy(of(d)->shared, from, bytes);
	return ask(d, &(struct remote_ask){.op = REMOTE_WRITE, .at = to, .bytes = bytes}, &a);
}

static int write_gpu(struct gpu *d, uint64_t to, const void *from, uint64_t bytes)
{
	int rc = 0;
	for (uint64_t done = 0, n; done < bytes && rc == 0; done += n) {
		n = bytes - done < REMOTE_ROOM ? bytes - done : REMOTE_ROOM;
		rc = write_part(d, to + done, (const char *)from + done, n);
	}
	return rc;
}

static int read_gpu(struct gpu *d, void *to, uint64_t from, uint64_t bytes)
{
	struct remote_answer a;
	int rc = 0;
	for (uint64_t done = 0, n; done < bytes && rc == 0; done += n) {
		n = bytes - done < REMOTE_ROOM ? bytes - done : REMOTE_ROOM;
		rc = ask(d, &(struct remote_ask){.op = REMOTE_READ, .at = from + done, .bytes = n}, &a);
		if (rc == 0)
			memcpy((char *)to + done, of(d)->shared, n);
	}
	return rc;
}

static int clear(struct gpu *d, uint64_t at, uint64_t bytes)
{
	struct remote_answer a;
	return ask(d, &(struct remote_ask){.op = REMOTE_CLEAR, .at = at, .bytes = bytes}, &a);
}

/* ---- programs ---- */

static uint64_t pack_ir(char *to, const struct loom_program_ir *ir)
{
	const struct remote_ir head = {.name = strlen(ir->file), .bytes = ir->bytes};
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), ir->file, head.name + 1);
	memcpy(to + sizeof(head) + head.name + 1, ir->data, ir->bytes + 1);
	return sizeof(head) + REMOTE_ALIGN(head.name + 1 + ir->bytes + 1);
}

static int compile(struct gpu *d, const struct gpu_program *program, struct cached *out, struct loom_error *err)
{
	struct remote_ask q = {.op = REMOTE_COMPILE, .a = (int)program->irs, .b = (int)program->text.length,
			       .shape = {.bound = d->bound, .lanes = d->lanes, .per_block = d->per_block, .watch = d->watch}};
	struct remote_answer a;
	uint64_t at = REMOTE_ALIGN(program->text.length + 1), all = at;
	for (uint32_t i = 0; i < program->irs; i++)
		all += strlen(program->ir[i]->file) + program->ir[i]->bytes + 64;
	if (all > REMOTE_ROOM)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: source and IR of more than %u MiB", d->name, REMOTE_ROOM >> 20);
	memcpy(q.shape.arch, d->arch, sizeof(q.shape.arch));
	memcpy(of(d)->shared, program->text.at, program->text.length + 1);
	for (uint32_t i = 0; i < program->irs; i++)
		at += pack_ir(of(d)->shared + at, program->ir[i]);
	int code = in_words(d, &q, &a, err);
	if (code)
		return code;
	*out = (struct cached){.resources = a.resources, .bytes = a.bytes, .code = d->host->alloc(d->host, a.bytes)};
	if (!out->code)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	memcpy(out->code, of(d)->shared, a.bytes);
	return 0;
}

static int load(struct gpu *d, const struct cached *code, struct gpu_kernel *k)
{
	struct remote_answer a;
	if (code->bytes > REMOTE_ROOM)
		return gpu_called(d, d->driver->out_of_memory, "a program that is too large");
	memcpy(of(d)->shared, code->code, code->bytes);
	int rc = ask(d, &(struct remote_ask){.op = REMOTE_LOAD, .bytes = code->bytes, .resources = code->resources, .kernel = *k},
		     &a);
	*k = a.kernel; /* as far as it came */
	return rc;
}

static void unload(struct gpu *d, struct gpu_kernel *k)
{
	struct remote_answer a;
	ask(d, &(struct remote_ask){.op = REMOTE_UNLOAD, .kernel = *k}, &a);
}

static int occupancy(struct gpu *d, const struct gpu_kernel *k, int threads, uint64_t shared, int *blocks)
{
	struct remote_answer a;
	int rc = ask(d, &(struct remote_ask){.op = REMOTE_OCCUPANCY, .kernel = *k, .threads = (uint32_t)threads, .bytes = shared},
		     &a);
	*blocks = a.value;
	return rc;
}

static int launch(struct gpu *d, const struct gpu_kernel *k, uint32_t blocks, uint32_t threads, uint32_t shared,
		  uint64_t step)
{
	struct remote_answer a;
	return ask(d, &(struct remote_ask){.op = REMOTE_LAUNCH, .kernel = *k, .blocks = blocks, .threads = threads,
					   .shared = shared, .value = step},
		   &a);
}

static int set_word(struct gpu *d, uint64_t at, uint64_t value)
{
	struct remote_answer a;
	return ask(d, &(struct remote_ask){.op = REMOTE_SET_WORD, .at = at, .value = value}, &a);
}

static int await_word(struct gpu *d, uint64_t at, uint64_t value)
{
	struct remote_answer a;
	return ask(d, &(struct remote_ask){.op = REMOTE_AWAIT_WORD, .at = at, .value = value}, &a);
}

static int running(struct gpu *d, int *still)
{
	struct remote_answer a;
	int rc = ask(d, &(struct remote_ask){.op = REMOTE_RUNNING}, &a);
	*still = a.value;
	return rc;
}

/* ---- the process ---- */

/* The vendor's table, with the calls above. */
static struct gpu_driver table_for(const struct gpu_driver *vendor)
{
	struct gpu_driver t = {GPU_DRIVER_CALLS};
	memcpy(&t, vendor, offsetof(struct gpu_driver, open)); /* what it says of itself */
	t.identify = vendor->identify;
	t.share = vendor->share ? share : NULL;
	t.import = vendor->import ? import : NULL;
	t.unshare = vendor->unshare ? unshare : NULL;
	return t; /* without peer_atomics: asked for by `gpuloom doctor` alone */
}

int remote_start(struct gpu *d, struct loom_error *err)
{
	int pair[2] = {-1, -1};
	struct remote *r = d->host->alloc(d->host, sizeof(*r));
	char *shared = mmap(NULL, REMOTE_ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!r || shared == MAP_FAILED ||
	    loom_fd_pair(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), pair) != 0) {
		int failed = errno;
		if (shared != MAP_FAILED)
			munmap(shared, REMOTE_ROOM);
		d->host->free(d->host, r);
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: cannot start its process: %s", d->name, strerror(failed));
	}
	struct child process;
	pid_t host = getpid();
	int inside = child_fork(&process, d->name, 0); /* whichever thread opens a stack may end before it */
	if (inside > 0) {
		close(pair[0]);
		remote_serve(d, pair[1], host, shared);
		_exit(0);
	}
	int failed = errno;
	close(pair[1]);
	*r = (struct remote){.table = table_for(d->driver), .vendor = d->driver, .process = process, .was = (int)process.pid, .socket = pair[0],
			     .shared = shared};
	d->remote = r;
	d->driver = &r->table;
	if (inside == 0)
		return 0;
	return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: cannot start its process: %s", d->name, strerror(failed));
}

/* How long the driver may take to give its memory back: beyond that the kernel of the system does it. */
#define LEAVE_MS 5000

void remote_end(struct gpu *d)
{
	struct remote *r = of(d);
	struct pollfd on = {.fd = r->socket, .events = POLLIN};
	shutdown(r->socket, SHUT_WR); /* no more questions */
	if (r->process.pid && poll(&on, 1, LEAVE_MS) != 1)
		child_signal(&r->process, SIGKILL);
	bury(r);
	close(r->socket);
	munmap(r->shared, REMOTE_ROOM);
	d->driver = r->vendor;
	d->remote = NULL;
	d->host->free(d->host, r);
}
