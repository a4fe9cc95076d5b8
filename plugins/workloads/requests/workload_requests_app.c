/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_requests_app, which runs one of five applications (HISS, IISWC 2018) whose input faults in
 * through the host. Makes the input, memory and grants. Compares the answer with one that was computed in another
 * way. */
#include "app.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "lib/align.h"

static const char *const app_names[] = {"bfs", "spmv", "sssp", "bpt", "xsbench", NULL}; /* as enum request_app */
static const struct app_kind *const app_kinds[] = {&app_bfs, &app_spmv, &app_sssp, &app_bpt, &app_xsbench};

static const struct loom_opt app_rows[] = {
    LOOM_OPT(
	struct app_opts, app, LOOM_OPT_ENUM, "bfs",
	"bfs: breadth-first search of a graph; spmv: a sparse matrix times a vector; sssp: shortest paths in a graph; "
	"bpt: look-ups in a B+ tree; xsbench: look-ups of cross sections in a grid of energies.",
	.choices = app_names),
    LOOM_OPT(struct app_opts, size, LOOM_OPT_U64, "20000", "Size of the input: vertices, rows, leaves or grid points.",
	     .min = 16, .max = 1e8, .section = "workload.requests"),
    LOOM_OPT(struct app_opts, lookups, LOOM_OPT_U64, "20000",
	     "app = bpt or xsbench: look-ups per round, of all workers of a device together.",
	     .min = 1, .max = 1e12, .section = "workload.requests"),
    LOOM_OPT(struct app_opts, frames, LOOM_OPT_U64, "0",
	     "GPUs: number of pages of the input that fit into the GPU's memory at a time. Not with a victim. 0: all.",
	     .max = 1e8, .section = "workload.requests"),
    REQUEST_ROWS(struct app_opts),
    {.name = NULL},
};

static int app_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct app_opts *o = opts;
	if (o->frames && *o->common.victim && strcmp(o->common.victim, "@idle"))
		return LOOM_REFUSE(host, err, "frames",
				   "frames = %llu: workers that evict pages post requests even while the victim runs "
				 "alone: set frames = 0",
				 (unsigned long long)o->frames);
	return request_check(host, &o->common, err);
}

/* Returns the size of a worker's struct request_claims with the claims of its lanes. */
static uint64_t claims_bytes(const struct loom_device_shape *has)
{
	return sizeof(struct request_claims) + loom__align(has->lanes * sizeof(struct request_claim), 64);
}

static void app_destroy(void *self)
{
	struct app *x = self;
	if (!x)
		return;
	request_job_free(&x->job);
	x->host->free(x->host, x->content);
	x->host->free(x->host, x);
}

static int app_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct app *x = host->alloc(host, sizeof(*x));
	if (!x)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "requests_app: out of memory");
	x->host = host;
	x->opts = opts;
	x->name = app_names[x->opts->app];
	x->kind = app_kinds[x->opts->app];
	x->in.app = x->opts->app;
	x->in.lookups = x->opts->lookups;
	int rc = 0;
	request_job_create(&x->job, host, &x->opts->common, x->name);
	if (x->kind->build(x) || x->kind->answer(x, &x->answer))
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory for the input", x->name);
	/* One EVICT request empties the whole buffer, so the buffer must not exceed the largest request. */
	if (!rc && x->in.bytes > LOOM_REQUEST_BYTES_MAX)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s: an input of %llu bytes is too large", x->name,
			       (unsigned long long)x->in.bytes);
	if (rc)
		app_destroy(x);
	else
		*self = x;
	return rc;
}

/* Computes the layout of a device's block. Returns its size. */
static uint64_t lay_out(const struct app *x, const struct loom_layout *layout, uint32_t device,
			struct request_input *in)
{
	const struct loom_device_shape *has = &layout->device[device];
	uint64_t pages = x->in.bytes / REQUEST_PAGE_BYTES;
	*in = x->in;
	in->device = has->kind == LOOM_ON_GPU;
	in->frames = in->device && x->opts->frames && x->opts->frames < pages ? x->opts->frames : pages;
	in->table = sizeof(struct request_plan) + sizeof(struct request_input) + sizeof(struct request_team);
	in->claims = loom__align(in->table + pages * sizeof(uint64_t), 64);
	in->scratch = in->claims + has->workers * claims_bytes(has);
	uint64_t end = loom__align(in->scratch + in->n * x->kind->scratch * sizeof(uint32_t), 64);
	if (!in->device)
		return end;
	in->data = end;
	return end + in->frames * REQUEST_PAGE_BYTES;
}

static int app_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct app *x = self;
	struct request_input in;
	uint64_t in_place = 0; /* number of devices that read pages in place, in host memory */
	(void)err;
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint64_t bytes = lay_out(x, layout, d, &in);
		need->device = bytes > need->device ? bytes : need->device;
		in_place += !in.device;
	}
	need->device_place = LOOM_PLACE_DEVICE;
	need->worker = sizeof(struct request_counters);
	need->worker_place = LOOM_PLACE_HOST;
	need->global =
	    sizeof(struct request_control) + (in_place ? REQUEST_PAGE_BYTES + layout->devices * x->in.bytes : 0);
	need->global_place = LOOM_PLACE_HOST; /* requests name this memory, and the host accesses it */
	return 0;
}

/* Returns the offset of a device's pages in the stack's block. */
static uint64_t pages_at(const struct app *x, const void *global, uint32_t device)
{
	uint64_t from = (uintptr_t)global + sizeof(struct request_control);
	return (loom__align(from, REQUEST_PAGE_BYTES)) - (uintptr_t)global + device * x->in.bytes;
}

static int app_grants(void *self, const struct loom_layout *layout, const struct loom_view *view,
	       loom_ref global, const struct loom_grant **grant, uint32_t *n, struct loom_error *err)
{
	struct app *x = self;
	struct request_job *j = &x->job;
	uint32_t tenants = x->opts->common.tenants;
	x->host->free(x->host, j->grant);
	*n = tenants * layout->devices;
	*grant = j->grant = x->host->alloc(x->host, *n * sizeof(*j->grant));
	if (!j->grant)
		return LOOM_FAIL(x->host, err, LOOM_ENOMEM, "%s: out of memory", x->name);
	for (uint32_t i = 0; i < *n; i++) {
		struct request_input in;
		uint32_t device = i % layout->devices;
		struct loom_grant *g = &j->grant[i];
		lay_out(x, layout, device, &in);
		*g = (struct loom_grant){.tenant = i / layout->devices,
					 .kind = LOOM_GRANT_DEMAND,
					 .bytes = x->in.bytes,
					 .content = x->content};
		if (in.device) {
			g->at = in.data;
			g->device = device + 1;
			g->frames = (uint32_t)in.frames;
			continue;
		}
		uint64_t at = pages_at(x, view->global, device);
		g->at = global + at;
		if (madvise((char *)view->global + at, x->in.bytes, MADV_REMOVE))
			return LOOM_FAIL(x->host, err, LOOM_EUNAVAIL, "%s: cannot make this memory absent: %s",
					 x->name, strerror(errno));
	}
	return 0;
}

static int app_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	     struct loom_error *err)
{
	struct app *x = self;
	(void)err;
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct request_input in;
		char *block = view->device[d];
		uint64_t end = lay_out(x, layout, d, &in);
		if (!in.device)
			in.data = pages_at(x, view->global, d);
		memset(block, 0, in.device ? in.data : end);
		*(struct request_input *)(void *)(block + sizeof(struct request_plan)) = in;
	}
	struct request_plan plan = {0};
	request_job_arm(&x->job, layout, view, &plan);
	for (uint32_t d = 0; d < layout->devices; d++)
		((struct request_plan *)view->device[d])->own_bytes = claims_bytes(&layout->device[d]);
	return 0;
}

static int app_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
	       struct loom_report *report, struct loom_error *err)
{
	struct app *x = self;
	int rc = request_job_report(&x->job, report, err);
	for (uint32_t d = 0; d < layout->devices && !rc; d++) {
		const struct request_counters *t = view->worker[layout->device[d].first_worker];
		if (!t->rounds || t->sum != x->answer)
			rc =
			    LOOM_FAIL(x->host, err, LOOM_EWRONG, "%s: %s computed %#llx in %llu rounds instead of "
			    	"%#llx",
				      x->name, layout->device[d].name, (unsigned long long)t->sum,
				      (unsigned long long)t->rounds, (unsigned long long)x->answer);
	}
	return rc;
}

static int app_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err)
{
	(void)layout, (void)err;
	snprintf(text, room, "#define REQUEST_APP %u\n", ((struct app *)self)->opts->app);
	return 0;
}

WORKLOAD_OPS(app, .create = app_create, .destroy = app_destroy, .start = request_start_phases,
	     .stop = request_stop_phases, .tasks = workload_no_tasks, .work = "requests", .tenants = request_tenants,
	     .grants = app_grants, .constants = app_constants);

WORKLOAD_KERNEL(workload_requests_app, LOOM_CODE_FILE("requests.dev.h") LOOM_CODE_FILE("pages.dev.h")
		LOOM_CODE_FILE("workload_requests_app.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_requests_app", "0.1.0", "Apache-2.0",
		   "An application whose input faults in: graph searches, sparse matrix, look-ups", .opts = app_rows,
		   .opts_size = sizeof(struct app_opts), .check = app_check, .ops = &app_ops,
		   .dev = &workload_requests_app_code)
