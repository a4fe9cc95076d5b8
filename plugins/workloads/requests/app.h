/* SPDX-License-Identifier: Apache-2.0 */
/* The host half of the applications: an input is built and its answer computed in another way than the
 * workers do. */
#ifndef WORKLOAD_SSR_APP_H
#define WORKLOAD_SSR_APP_H

#include "jobs.dev.h"
#include "ssr.h"

struct app_opts {
	struct ssr_opts common;
	uint64_t size, lookups, frames;
};

struct app;
struct app_kind {
	const char *name;
	uint32_t scratch; /* words per vertex */
	/* Fills x->in and x->content. */
	int (*build)(struct app *x);
	int (*answer)(const struct app *x, uint64_t *answer); /* 0, or LOOM_ENOMEM */
};

struct app {
	const struct loom_host *host;
	const struct app_opts *opts;
	const struct app_kind *kind;
	struct ssr_job job;
	struct ssr_input in; /* but for what depends on the device */
	char *content;	     /* in.bytes */
	uint64_t answer;
};

int app_create(const struct loom_host *host, const void *opts, const struct app_kind *kind, void **self,
	       struct loom_error *err);
extern const struct loom_opt app_rows[];
int app_check(const struct loom_host *host, const void *opts, struct loom_error *err);

/* app_graph.c, app_table.c */
extern const struct app_kind app_bfs, app_sssp, app_spmv, app_bpt, app_xsbench;

/* Zeroed room for the input: 0, or LOOM_ENOMEM. */
int app_room(struct app *x, uint64_t bytes);
uint64_t app_random(uint64_t *state);

#define APP_PLUGIN(app, summary)                                                                   \
	static int create(const struct loom_host *host, const void *opts, void **self,             \
			  struct loom_error *err)                                                  \
	{                                                                                          \
		return app_create(host, opts, &app_##app, self, err);                              \
	}                                                                                          \
	SSR_APP_HALF(app)                                                                          \
	static const struct loom_workload_dev table = {.size = sizeof(table),                      \
						       .kernel = workload_ssr_##app##_kernel};     \
	LOOM_DEVICE_CODE(code, table, "jobs.dev.h", LOOM_CODE_FILE("ssr.dev.h") LOOM_CODE_FILE("app.dev.h") \
			 LOOM_CODE_FILE("jobs.dev.h") ".ascii \"SSR_APP_HALF(" #app ")\\n\"\n");   \
	static const struct loom_workload_ops ops = APP_OPS(create);                               \
	LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_ssr_" #app, "0.1.0", "Apache-2.0", summary,         \
			   .opts = app_rows, .opts_size = sizeof(struct app_opts),                 \
			   .check = app_check, .ops = &ops, .dev = &code)

#define APP_OPS(create_)                                                                           \
	{.size = sizeof(struct loom_workload_ops),                                                 \
	 .create = create_,                                                                        \
	 .destroy = app_destroy,                                                                   \
	 .need = app_need,                                                                         \
	 .init = app_init,                                                                         \
	 .start = app_start,                                                                       \
	 .stop = app_stop,                                                                         \
	 .tasks = workload_no_tasks,                                                                       \
	 .verify = app_verify,                                                                     \
	 .work = "requests",                                                                       \
	 .tenants = app_tenants,                                                                   \
	 .grants = app_grants}

void app_destroy(void *self);
int app_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err);
int app_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	     struct loom_error *err);
int app_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
	      const struct loom_segments *segments, struct loom_error *err);
void app_stop(void *self);
int app_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
	       struct loom_report *report, struct loom_error *err);
int app_tenants(void *self, const struct loom_layout *layout, const struct loom_tenant **tenant,
		uint32_t *n, struct loom_error *err);
int app_grants(void *self, const struct loom_layout *layout, const struct loom_view *view,
	       loom_ref global, const struct loom_grant **grant, uint32_t *n, struct loom_error *err);

#endif
