/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_requests_storm, a storm of requests for one service. Makes the grants of each worker. */
#include "workload_requests_storm.dev.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "lib/child.h"
#include "requests.h"
#include "lib/align.h"
#include "lib/fd.h"

struct storm_opts {
	struct request_opts common;
	uint32_t service;
	uint64_t requests, bytes, room, file, pace;
};

struct storm {
	struct request_job job;
	const struct loom_host *host;
	const struct storm_opts *opts;
	uint64_t room; /* bytes of each worker's buffer; 0: requests name no memory */
	int file, sender, receiver;
	struct child listener;
};

static const char *const services[] = {
#define STORM_SERVICE(NAME, name, text) #name,
    LOOM_SERVICE_MAP(STORM_SERVICE)
#undef STORM_SERVICE
	NULL};

static const struct loom_opt rows[] = {
    LOOM_OPT(struct storm_opts, service, LOOM_OPT_ENUM, "read",
	     "Service of all requests. fault and alloc also release their memory. On a GPU migrate faults "
	     "pages and moves them to the host.",
	     .choices = services),
    LOOM_OPT(struct storm_opts, requests, LOOM_OPT_U64, "20000",
	     "Requests of all workers together, divided evenly; used if there is neither victim nor "
	     "duration.",
	     .min = 1, .max = 1e12),
    LOOM_OPT(struct storm_opts, bytes, LOOM_OPT_SIZE, "4KiB", "Size of a request.", .min = 1, .max = 1 << 20),
    LOOM_OPT(struct storm_opts, room, LOOM_OPT_SIZE, "auto",
	     "Buffer of a worker in whole pages, at least `bytes`. auto: 1 MiB, and less if the buffers of "
	     "all workers would take more than 64 MiB.",
	     .min = 0, .max = 1 << 30, .flags = LOOM_OPT_AUTO),
    LOOM_OPT(struct storm_opts, file, LOOM_OPT_SIZE, "16MiB", "Size of the file that read and write use, in memory.",
	     .min = 4096, .max = 1ll << 34),
    LOOM_OPT(struct storm_opts, pace, LOOM_OPT_TIME, "0",
	     "Time between two requests of the last tenant's workers, while the others send without "
	     "pause. 0: none.",
	     .min = 0, .max = 1e10),
    REQUEST_ROWS(struct storm_opts),
    {.name = NULL},
};

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void destroy(void *self)
{
	struct storm *x = self;
	if (!x)
		return;
	request_job_free(&x->job);
	child_signal(&x->listener, SIGKILL);
	child_wait(&x->listener, NULL);
	shut(&x->file);
	shut(&x->sender);
	shut(&x->receiver);
	x->host->free(x->host, x);
}

/* ---- files, sockets and processes of requests ---- */

static int make_file(struct storm *x)
{
	char page[4096];
	x->file = loom_fd(memfd_create("requests_storm", MFD_CLOEXEC));
	for (uint64_t at = 0; x->file >= 0 && at < x->opts->file; at += sizeof(page)) {
		memset(page, (int)(at / sizeof(page)), sizeof(page));
		if (write(x->file, page, sizeof(page)) != (ssize_t)sizeof(page))
			return -1;
	}
	return x->file < 0 ? -1 : 0;
}

enum { MOST_SENT = 65507 }; /* bytes of a datagram of UDP over IPv4 */

/* Datagrams go to a socket without a reader. The kernel delivers them, and then drops them. */
static int make_sockets(struct storm *x)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(to);
	int least = 1;
	x->receiver = loom_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	x->sender = loom_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (x->receiver < 0 || x->sender < 0 || setsockopt(x->receiver, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)) ||
	    bind(x->receiver, (struct sockaddr *)&to, size) || getsockname(x->receiver, (struct sockaddr *)&to, &size))
		return -1;
	return connect(x->sender, (struct sockaddr *)&to, size);
}

/* Makes a process that receives SIGUSR1. The process sleeps after each signal, and a signal that is already pending
 * is not queued again. Once a second the process checks whether its parent still exists. PR_SET_PDEATHSIG would end
 * it too early, because the thread that opens a stack may end before the host's process does. */
static int make_listener(struct storm *x)
{
	const struct timespec nap = {.tv_nsec = 1000000}, look = {.tv_sec = 1};
	pid_t host = getpid();
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	int inside = child_fork(&x->listener, "requests_storm", 0); /* the signal is blocked in the child */
	if (inside > 0) {
		while (getppid() == host)
			if (sigtimedwait(&set, NULL, &look) > 0)
				nanosleep(&nap, NULL);
		_exit(0);
	}
	return inside < 0 || x->listener.fd < 0 ? -1 : 0;
}

static int make_handle(struct storm *x)
{
	switch (x->opts->service) {
	case LOOM_SERVICE_READ:
	case LOOM_SERVICE_WRITE:
		return make_file(x);
	case LOOM_SERVICE_SEND:
		return make_sockets(x);
	case LOOM_SERVICE_SIGNAL:
		return make_listener(x);
	default:
		return 0;
	}
}

#define ROOM     (1ull << 20)
#define ALL_ROOM (64ull << 20)

static uint64_t pages(uint64_t bytes)
{
	return loom__align(bytes, REQUEST_PAGE_BYTES);
}

/* Returns the bytes of memory that the requests in flight of one worker need. */
static uint64_t least_room(const struct storm_opts *o)
{
	return pages(o->bytes) * (o->service == LOOM_SERVICE_ALLOC ? o->common.outstanding : 1);
}

static uint64_t room_of(const struct storm_opts *o, uint32_t workers)
{
	uint64_t share = ALL_ROOM / workers & ~(REQUEST_PAGE_BYTES - 1), least = least_room(o);
	if (o->service == LOOM_SERVICE_NOTHING || o->service == LOOM_SERVICE_SIGNAL)
		return 0;
	if (o->room)
		return o->room;
	share = share < ROOM ? share : ROOM;
	return share > least ? share : least;
}

static int check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct storm_opts *o = opts;
	int rc = request_check(host, &o->common, err);
	if (rc)
		return rc;
	uint64_t room = o->room ? o->room : ROOM, most = least_room(o);
	if (room % REQUEST_PAGE_BYTES || o->bytes > room || o->bytes > o->file)
		return LOOM_REFUSE(host, err, "room", "room must be whole pages, and bytes fit into room and file");
	if (o->service == LOOM_SERVICE_ALLOC && most > room)
		return LOOM_REFUSE(host, err, "service",
				   "service = alloc: with outstanding = %u requests of whole pages a worker may hold "
				   "%llu bytes, but room is %llu: raise room, or reduce outstanding or bytes",
				   o->common.outstanding, (unsigned long long)most, (unsigned long long)room);
	if (o->service == LOOM_SERVICE_EVICT || o->service == LOOM_SERVICE_FREE)
		return LOOM_REFUSE(host, err, "service",
				   "service = %s: there is nothing to release; service = %s posts both in turn",
				   services[o->service], o->service == LOOM_SERVICE_FREE ? "alloc" : "fault");
	if (o->service == LOOM_SERVICE_SEND && o->bytes > MOST_SENT)
		return LOOM_REFUSE(host, err, "bytes", "bytes = %llu: a datagram holds at most %d",
				   (unsigned long long)o->bytes, MOST_SENT);
	return 0;
}

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct storm *x = host->alloc(host, sizeof(*x));
	if (!x)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "requests_storm: out of memory");
	x->host = host;
	x->opts = opts;
	x->file = x->sender = x->receiver = -1;
	x->listener = CHILD_NONE;
	int rc = 0;
	request_job_create(&x->job, host, &x->opts->common, "requests_storm");
	if (make_handle(x))
		rc = LOOM_FAIL(host, err, LOOM_EUNAVAIL, "requests_storm: cannot prepare '%s': %s",
			       services[x->opts->service], strerror(errno));
	if (rc)
		destroy(x);
	else
		*self = x;
	return rc;
}

/* ---- memory ---- */

/* Returns the size of a worker's part of its device's block. */
static uint64_t own_bytes(const struct storm *x)
{
	uint64_t window = x->opts->common.outstanding;
	return window * (sizeof(struct request_pending) + sizeof(uint64_t));
}

/* Returns whether a worker's buffer is in device memory. On a GPU it is, if the service makes memory present or
 * absent. */
static int is_on_device(const struct storm *x, const struct loom_device_shape *has)
{
	return has->kind == LOOM_ON_GPU &&
	       (x->opts->service == LOOM_SERVICE_FAULT || x->opts->service == LOOM_SERVICE_ALLOC ||
		x->opts->service == LOOM_SERVICE_MIGRATE);
}

/* Returns the offset of the workers' buffers in a device's block. */
static uint64_t room_at(const struct storm *x, const struct loom_device_shape *has)
{
	return loom__align(sizeof(struct request_plan) + has->workers * own_bytes(x), 64);
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *n, struct loom_error *err)
{
	struct storm *x = self;
	uint32_t here = 0; /* number of devices whose workers' buffers are in host memory */
	(void)err;
	x->room = room_of(x->opts, layout->workers);
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		uint64_t bytes = room_at(x, has) + (is_on_device(x, has) ? has->workers * x->room : 0);
		n->device = bytes > n->device ? bytes : n->device;
		here += !is_on_device(x, has);
	}
	/* The block for the stack has one page more than the buffers, so that these can start at a page. */
	n->global_place = LOOM_PLACE_HOST; /* requests name this memory, and the host accesses it */
	n->global = sizeof(struct request_control) + (here ? REQUEST_PAGE_BYTES + layout->workers * x->room : 0);
	n->worker = sizeof(struct request_counters);
	n->worker_place = LOOM_PLACE_HOST;
	n->device_place = LOOM_PLACE_DEVICE;
	return 0;
}

static uint64_t buffer_at(const struct storm *x, const void *global, uint32_t worker)
{
	uint64_t from = (uintptr_t)global + sizeof(struct request_control);
	uint64_t page = loom__align(from, REQUEST_PAGE_BYTES);
	return page - (uintptr_t)global + worker * x->room;
}

/* Makes two grants for each worker: its memory and its handle. If the service has no handle, the second grant is a
 * buffer. */
static int grants(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		  const struct loom_grant **grant, uint32_t *n, struct loom_error *err)
{
	struct storm *x = self;
	struct request_job *j = &x->job;
	uint32_t kind = x->opts->service == LOOM_SERVICE_FAULT   ? LOOM_GRANT_DEMAND
			: x->opts->service == LOOM_SERVICE_ALLOC ? LOOM_GRANT_HEAP
								 : LOOM_GRANT_BUFFER;
	uint32_t device = 0;
	x->host->free(x->host, j->grant);
	j->grant = x->host->alloc(x->host, REQUEST_GRANTS * layout->workers * sizeof(*j->grant));
	if (!j->grant)
		return LOOM_FAIL(x->host, err, LOOM_ENOMEM, "requests_storm: out of memory");
	for (uint32_t w = 0; w < layout->workers; w++) {
		struct loom_grant *g = &j->grant[REQUEST_GRANTS * w];
		uint64_t at = buffer_at(x, view->global, w);
		while (w - layout->device[device].first_worker >= layout->device[device].workers)
			device++;
		const struct loom_device_shape *has = &layout->device[device];
		g[0] = (struct loom_grant){
		    .tenant = request_job_tenant_of(j, w), .kind = kind, .at = global + at, .bytes = x->room};
		/* A placeholder, which no request names. */
		g[1] = (struct loom_grant){.tenant = g->tenant,
					   .kind = LOOM_GRANT_BUFFER,
					   .at = global,
					   .bytes = sizeof(struct request_control)};
		if (!x->room)
			g[0] = g[1];
		if (is_on_device(x, has)) {
			g[0].kind = kind == LOOM_GRANT_HEAP ? kind : LOOM_GRANT_DEMAND;
			g[0].at = room_at(x, has) + (w - has->first_worker) * x->room;
			g[0].device = device + 1;
			g[0].frames = (uint32_t)(x->room / REQUEST_PAGE_BYTES);
		}
		if (x->file >= 0)
			g[1] = (struct loom_grant){.tenant = g->tenant,
						   .kind = LOOM_GRANT_FILE,
						   .fd = x->file,
						   .access = LOOM_READ | LOOM_WRITE};
		else if (x->sender >= 0)
			g[1] = (struct loom_grant){.tenant = g->tenant, .kind = LOOM_GRANT_SOCKET, .fd = x->sender};
		else if (x->listener.fd >= 0)
			g[1] = (struct loom_grant){.tenant = g->tenant,
						   .kind = LOOM_GRANT_PROCESS,
						   .fd = x->listener.fd,
						   .signals = 1ull << (SIGUSR1 - 1)};
		if (kind != LOOM_GRANT_BUFFER && !g->device && madvise((char *)view->global + at, x->room, MADV_REMOVE))
			return LOOM_FAIL(x->host, err, LOOM_EUNAVAIL,
					 "requests_storm: cannot make this memory absent: %s", strerror(errno));
	}
	*grant = j->grant;
	*n = REQUEST_GRANTS * layout->workers;
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct storm *x = self;
	struct request_plan plan = {.requests = x->opts->requests,
				    .pace_ns = x->opts->pace,
				    .service = x->opts->service,
				    .bytes = x->opts->bytes,
				    .room = x->room,
				    .file_bytes = x->opts->file,
				    .own_bytes = own_bytes(x)};
	(void)err;
	request_job_arm(&x->job, layout, view, &plan);
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		struct request_plan *own = view->device[d];
		char *at = (char *)view->global + buffer_at(x, view->global, has->first_worker);
		own->device = (uint32_t)is_on_device(x, has);
		own->room_at = room_at(x, has);
		if (own->device)
			continue;
		if (x->opts->service == LOOM_SERVICE_FAULT || x->opts->service == LOOM_SERVICE_ALLOC)
			madvise(at, has->workers * x->room, MADV_REMOVE);
		else
			memset(at, 1, has->workers * x->room);
	}
	return 0;
}

static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	struct storm *x = self;
	int endless = *x->job.runs.command || x->opts->common.duration;
	/* A signal to a process that has ended succeeds until the process is reaped. */
	if (x->opts->service == LOOM_SERVICE_SIGNAL && child_ended(&x->listener, 0))
		return LOOM_FAIL(
		    x->host, err, LOOM_EDIED,
		    "requests_storm: the process that receives the signals has ended, so no signal arrives");
	for (uint32_t w = 0; w < layout->workers && !endless; w++) {
		const struct request_counters *t = view->worker[w];
		uint64_t limit = request_share(x->opts->requests, w, layout->workers);
		if (t->done != limit && !t->wrong)
			return LOOM_FAIL(x->host, err, LOOM_EWRONG,
					 "requests_storm: worker %u has %llu answers to %llu requests", w,
					 (unsigned long long)t->done, (unsigned long long)limit);
	}
	return request_job_report(&x->job, report, err);
}

static const struct loom_workload_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .need = need,
    .init = init,
    .start = request_start_phases,
    .stop = request_stop_phases,
    .tasks = workload_no_tasks,
    .verify = verify,
    .work = "requests",
    .tenants = request_tenants,
    .grants = grants,
    .interrupt = request_interrupt,
};

static const struct loom_workload_dev table = {.size = sizeof(table), .kernel = workload_requests_storm_kernel};
LOOM_DEVICE_CODE(code, table, "workload_requests_storm.dev.h",
		 LOOM_CODE_FILE("requests.dev.h") LOOM_CODE_FILE("workload_requests_storm.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_requests_storm", "0.1.0", "Apache-2.0",
		   "Workers request one service as fast as it is served", .opts = rows,
		   .opts_size = sizeof(struct storm_opts), .check = check, .ops = &ops, .dev = &code)
