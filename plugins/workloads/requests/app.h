/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_requests_app: what its files share. */
#ifndef WORKLOAD_REQUESTS_APP_H
#define WORKLOAD_REQUESTS_APP_H

#include "requests.h"
#include "workload_requests_app.dev.h"
#include "lib/align.h"

struct app_opts {
	struct request_opts common;
	uint64_t size, lookups, frames;
	uint32_t app; /* enum request_app */
};

struct app;
struct app_kind {
	uint32_t scratch; /* words of 4 bytes per vertex in `scratch` */
	int (*build)(struct app *x); /* fills x->in and x->content; returns 0 or LOOM_ENOMEM */
	int (*answer)(const struct app *x, uint64_t *answer); /* computes the expected answer; 0 or LOOM_ENOMEM */
};

struct app {
	struct request_job job;
	const struct loom_host *host;
	const struct app_opts *opts;
	const struct app_kind *kind;
	const char *name;
	struct request_input in; /* the input; lay_out() adds the members that depend on a device */
	char *content;		 /* [in.bytes] */
	uint64_t answer;
};

/* app_graph.c, app_table.c */
extern const struct app_kind app_bfs, app_sssp, app_spmv, app_bpt, app_xsbench;

/* Allocates x->content, zeroed: `bytes` rounded up to whole pages. Returns 0 or LOOM_ENOMEM. */
static inline int app_room(struct app *x, uint64_t bytes)
{
	x->in.bytes = loom__align(bytes, REQUEST_PAGE_BYTES);
	x->content = x->host->alloc(x->host, x->in.bytes);
	return x->content ? 0 : LOOM_ENOMEM;
}

#endif
