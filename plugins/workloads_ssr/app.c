/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

const struct loom_opt app_rows[] = {
	LOOM_OPT(struct app_opts, size, LOOM_OPT_U64, "20000",
		 "Vertices, rows, leaves or grid points: how large the input is.", .min = 16, .max = 1e8),
	LOOM_OPT(struct app_opts, lookups, LOOM_OPT_U64, "20000",
		 "Look-ups of each worker per round, in bpt and xsbench.", .min = 1, .max = 1e12),
	SSR_ROWS(struct app_opts),
	{.name = NULL},
};

uint64_t app_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

int app_room(struct app *x, uint64_t bytes)
{
	x->in.bytes = (bytes + SSR_PAGE_BYTES - 1) & ~(SSR_PAGE_BYTES - 1);
	x->content = x->host->alloc(x->host, x->in.bytes);
	return x->content ? 0 : LOOM_ENOMEM;
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
	if (kind->build(x))
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory for the input", kind->name);
	/* The whole buffer is asked for at once in a quiet round. */
	if (!rc && x->in.bytes > LOOM_REQUEST_BYTES_MAX)
		rc = LOOM_FAIL(host, err, LOOM_EINVAL, "%s: an input of %llu bytes is too large", kind->name,
			       (unsigned long long)x->in.bytes);
	if (rc)
		app_destroy(x);
	else
		*self = x;
	return rc;
}

int app_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct app *x = self;
	(void)err;
	need->device = sizeof(struct ssr_plan);
	need->device_place = LOOM_PLACE_NEAR;
	need->worker_place = LOOM_PLACE_HOST; /* tallies */
	need->global = sizeof(struct ssr_control) + sizeof(struct ssr_input) + SSR_PAGE_BYTES +
		       layout->workers * x->in.bytes;
	need->global_place = LOOM_PLACE_HOST; /* what requests name */
	need->worker = sizeof(struct ssr_tally) + (x->in.bytes / SSR_PAGE_BYTES / 64 + 1) * 8 +
		       x->in.n * x->kind->scratch * sizeof(uint32_t);
	return 0;
}

int app_tenants(void *self, const struct loom_layout *layout, const struct loom_tenant **tenant,
		uint32_t *n, struct loom_error *err)
{
	return ssr_job_tenants(&((struct app *)self)->job, layout, tenant, n, err);
}

int app_grants(void *self, const struct loom_layout *layout, const struct loom_view *view,
	       loom_ref global, const struct loom_grant **grant, uint32_t *n, struct loom_error *err)
{
	struct app *x = self;
	struct ssr_job *j = &x->job;
	uint64_t from = (uintptr_t)view->global + sizeof(struct ssr_control) + sizeof(struct ssr_input);
	x->in.at = ((from + SSR_PAGE_BYTES - 1) & ~(SSR_PAGE_BYTES - 1)) - (uintptr_t)view->global;
	x->host->free(x->host, j->grant);
	j->grant = x->host->alloc(x->host, layout->workers * sizeof(*j->grant));
	if (!j->grant)
		return LOOM_FAIL(x->host, err, LOOM_ENOMEM, "%s: out of memory", x->kind->name);
	for (uint32_t w = 0; w < layout->workers; w++)
		j->grant[w] = (struct loom_grant){.tenant = ssr_job_tenant_of(j, w),
						  .kind = LOOM_GRANT_DEMAND,
						  .at = global + x->in.at + w * x->in.bytes,
						  .bytes = x->in.bytes,
						  .content = x->content};
	if (madvise((char *)view->global + x->in.at, layout->workers * x->in.bytes, MADV_REMOVE))
		return LOOM_FAIL(x->host, err, LOOM_EUNAVAIL, "%s: cannot make this memory absent: %s",
				 x->kind->name, strerror(errno));
	*grant = j->grant;
	*n = layout->workers;
	return 0;
}

int app_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	     struct loom_error *err)
{
	struct app *x = self;
	struct ssr_plan plan = {0};
	(void)err;
	*(struct ssr_input *)((struct ssr_control *)view->global + 1) = x->in;
	ssr_job_arm(&x->job, layout, view, &plan);
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
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct ssr_tally *t = view->worker[w];
		uint64_t want = x->kind->answer(x, w);
		if (!t->wrong && (!t->rounds || t->sum != want))
			return LOOM_FAIL(x->host, err, LOOM_EWRONG,
					 "%s: worker %u computed %#llx in %llu rounds; %#llx is right",
					 x->kind->name, w, (unsigned long long)t->sum,
					 (unsigned long long)t->rounds, (unsigned long long)want);
	}
	return ssr_job_report(&x->job, report, err);
}
