/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/align.h"


const struct loom_opt app_rows[] = {
	LOOM_OPT(struct app_opts, size, LOOM_OPT_U64, "20000",
			 "Size of the input: vertices, rows, leaves or grid points.",
			 .min = 16, .max = 1e8, .section = "workload.requests"),
	LOOM_OPT(struct app_opts, lookups, LOOM_OPT_U64, "20000",
			 "Look-ups of a device's workers together per round, in bpt and xsbench.",
			 .min = 1, .max = 1e12, .section = "workload.requests"),
	LOOM_OPT(struct app_opts, frames, LOOM_OPT_U64, "0",
			 "GPUs: pages of the input that fit into its memory at a time; without a victim. 0: all.",
			 .max = 1e8, .section = "workload.requests"),
	SSR_ROWS(struct app_opts),
	{.name = NULL},
};

int app_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct app_opts *o = opts;
	if (o->frames && *o->common.victim)
		return LOOM_REFUSE(host, err, "frames",
				 "frames = %llu: workers that release pages send requests even while the victim is to run alone: set frames = 0",
				 (unsigned long long)o->frames);
	return ssr_check(host, &o->common, err);
}

uint64_t app_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

int app_room(struct app *x, uint64_t bytes)
{
	x->in.bytes = loom__align(bytes, SSR_PAGE_BYTES);
	x->content = x->host->alloc(x->host, x->in.bytes);
	return x->content ? 0 : LOOM_ENOMEM;
}

/* Of one worker. */
static uint64_t wants_bytes(const struct loom_device_shape *has)
{
	return sizeof(struct ssr_wants) + loom__align(has->lanes * sizeof(struct ssr_want), 64);
}

void app_destroy(void *self)
{
	struct app *x = self;
	if (!x)
		return;
	ssr_job_free(&x->job);
	x->host->free(x->host, x->content);
	x->host->free(x->host, x);
}

int app_create(const struct loom_host *host, const void *opts, const struct app_kind *kind, void **self,
	       struct loom_error *err)
{
	struct app *x = host->alloc(host, sizeof(*x));
	if (!x)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", kind->name);
	x->host = host;
	x->opts = opts;
	x->kind = kind;
	x->in.lookups = x->opts->lookups;
	int rc = 0;
	ssr_job_create(&x->job, host, &x->opts->common, kind->name);
	if (kind->build(x) || kind->answer(x, &x->answer))
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory for the input", kind->name);
	/* The whole buffer is emptied at once. */
	if (!rc && x->in.bytes > LOOM_REQUEST_BYTES_MAX)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s: an input of %llu bytes is too large", kind->name,
			       (unsigned long long)x->in.bytes);
	if (rc)
		app_destroy(x);
	else
		*self = x;
	return rc;
}

/* Where everything of a device's block is, into *in: its size. */
static uint64_t lay_out(const struct app *x, const struct loom_layout *layout, uint32_t device, struct ssr_input *in)
{
	const struct loom_device_shape *has = &layout->device[device];
	uint64_t pages = x->in.bytes / SSR_PAGE_BYTES;
	*in = x->in;
	in->device = has->kind == LOOM_ON_GPU;
	in->frames = in->device && x->opts->frames && x->opts->frames < pages ? x->opts->frames : pages;
	in->table = sizeof(struct ssr_plan) + sizeof(struct ssr_input) + sizeof(struct ssr_team);
	in->wants = loom__align(in->table + pages * sizeof(uint64_t), 64);
	in->scratch = in->wants + has->workers * wants_bytes(has);
	uint64_t end = loom__align(in->scratch + in->n * x->kind->scratch * sizeof(uint32_t), 64);
	if (!in->device)
		return end;
	in->data = end;
	return end + in->frames * SSR_PAGE_BYTES;
}

int app_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct app *x = self;
	struct ssr_input in;
	uint64_t here = 0; /* devices whose pages are where they belong */
	(void)err;
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint64_t bytes = lay_out(x, layout, d, &in);
		need->device = bytes > need->device ? bytes : need->device;
		here += !in.device;
	}
	need->device_place = LOOM_PLACE_DEVICE;
	need->worker = sizeof(struct ssr_tally);
	need->worker_place = LOOM_PLACE_HOST;
	need->global = sizeof(struct ssr_control) + (here ? SSR_PAGE_BYTES + layout->devices * x->in.bytes : 0);
	need->global_place = LOOM_PLACE_HOST; /* what requests name */
	return 0;
}

int app_tenants(void *self, const struct loom_layout *layout, const struct loom_tenant **tenant,
		uint32_t *n, struct loom_error *err)
{
	return ssr_job_tenants(&((struct app *)self)->job, layout, tenant, n, err);
}

/* Of the block for the stack, for a device whose pages are there. */
static uint64_t pages_at(const struct app *x, const void *global, uint32_t device)
{
	uint64_t from = (uintptr_t)global + sizeof(struct ssr_control);
	return loom__align(from, SSR_PAGE_BYTES) - (uintptr_t)global + device * x->in.bytes;
}

int app_grants(void *self, const struct loom_layout *layout, const struct loom_view *view,
	       loom_ref global, const struct loom_grant **grant, uint32_t *n, struct loom_error *err)
{
	struct app *x = self;
	struct ssr_job *j = &x->job;
	uint32_t tenants = x->opts->common.tenants;
	x->host->free(x->host, j->grant);
	*n = tenants * layout->devices;
	*grant = j->grant = x->host->alloc(x->host, *n * sizeof(*j->grant));
	if (!j->grant)
		return LOOM_FAIL(x->host, err, LOOM_ENOMEM, "%s: out of memory", x->kind->name);
	for (uint32_t i = 0; i < *n; i++) {
		struct ssr_input in;
		uint32_t device = i % layout->devices;
		struct loom_grant *g = &j->grant[i];
		lay_out(x, layout, device, &in);
		*g = (struct loom_grant){
			.tenant = i / layout->devices, .kind = LOOM_GRANT_DEMAND, .bytes = x->in.bytes, .content = x->content};
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
					 x->kind->name, strerror(errno));
	}
	return 0;
}

int app_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	     struct loom_error *err)
{
	struct app *x = self;
	(void)err;
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct ssr_input in;
		char *block = view->device[d];
		uint64_t end = lay_out(x, layout, d, &in);
		if (!in.device)
			in.data = pages_at(x, view->global, d);
		memset(block, 0, in.device ? in.data : end);
		*(struct ssr_input *)(void *)(block + sizeof(struct ssr_plan)) = in;
	}
	struct ssr_plan plan = {0};
	ssr_job_arm(&x->job, layout, view, &plan);
	for (uint32_t d = 0; d < layout->devices; d++)
		((struct ssr_plan *)view->device[d])->own_bytes = wants_bytes(&layout->device[d]);
	return 0;
}

int app_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
	      const struct loom_segments *segments, struct loom_error *err)
{
	(void)layout, (void)view, (void)segments;
	return ssr_job_start(&((struct app *)self)->job, err);
}

void app_stop(void *self)
{
	ssr_job_stop(&((struct app *)self)->job);
}

int app_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
	       struct loom_report *report, struct loom_error *err)
{
	struct app *x = self;
	int rc = ssr_job_report(&x->job, report, err); /* answers to requests */
	for (uint32_t d = 0; d < layout->devices && !rc; d++) {
		const struct ssr_tally *t = view->worker[layout->device[d].first_worker];
		if (!t->rounds || t->sum != x->answer)
			rc = LOOM_FAIL(x->host, err, LOOM_EWRONG, "%s: %s computed %#llx in %llu rounds; %#llx is right",
				       x->kind->name, layout->device[d].name, (unsigned long long)t->sum,
				       (unsigned long long)t->rounds, (unsigned long long)x->answer);
	}
	return rc;
}
