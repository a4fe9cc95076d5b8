/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/host.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "lib/align.h"

static int host_log_on(const struct loom_host *host, int level)
{
	const struct loom__host *h = host->ctx;
	return h->log && level <= h->log_level;
}

static void host_log(const struct loom_host *host, int level, const char *who, const char *fmt, ...)
{
	const struct loom__host *h = host->ctx;
	if (!host_log_on(host, level))
		return;
	int saved = errno; /* logging must not change the caller's errno */
	char text[1000];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	h->log(h->log_arg, level, who, text);
	errno = saved;
}

static int host_fail(const struct loom_host *host, struct loom_error *err, int code, const char *file, int line,
		     const char *fmt, ...)
{
	(void)host;
	va_list args;
	va_start(args, fmt);
	loom__vfail(err, code, file, line, fmt, args);
	va_end(args);
	return code;
}

static void *host_alloc(const struct loom_host *host, size_t bytes)
{
	(void)host;
	size_t rounded = loom__align(bytes, 64);
	if (rounded < bytes)
		return NULL;
	void *p = aligned_alloc(64, rounded ? rounded : 64);
	if (p)
		memset(p, 0, rounded ? rounded : 64);
	return p;
}

static void host_free(const struct loom_host *host, void *p)
{
	(void)host;
	free(p);
}

static uint64_t host_now_ns(const struct loom_host *host)
{
	(void)host;
	return loom__now_ns();
}

static int host_metric(const struct loom_host *host, struct loom_report *report, const char *name, const char *unit,
		       enum loom_better better, double value)
{
	(void)host;
	if (report->retime && report->count && name && !strcmp(name, "seconds") && value > 0) {
		report->retime = 0;
		/* the metrics of the core precede all others, and the time is the first of them */
		report->list[0].value = value;
		return 0;
	}
	return loom__report_add(report, name, unit, better, value);
}

static int host_allgather(const struct loom_host *host, const void *mine, void *all, size_t bytes,
			  struct loom_error *err)
{
	struct loom__host *h = host->ctx;
	return loom__exchange(&h->exchange, mine, all, bytes, err);
}

static void host_fact(const struct loom_host *host, const char *name, const char *text)
{
	struct loom__host *h = host->ctx;
	struct loom__fact one = {0};
	uint32_t i = 0;
	snprintf(one.name, sizeof(one.name), "%s", name);
	snprintf(one.text, sizeof(one.text), "%s", text);
	while (i < h->facts && strcmp(h->choice[i].name, one.name))
		i++;
	if (i == LOOM__FACTS || (i < h->facts && !strcmp(h->choice[i].text, one.text)))
		return;
	h->facts += i == h->facts;
	h->choice[i] = one;
	h->fact_changes++;
}

static int host_progress(const struct loom_host *host, double done, struct loom_error *err)
{
	const struct loom__host *h = host->ctx;
	return h->progress ? h->progress(h->verifying_arg, done, err) : 0;
}

/* 1 if the caller's version of the params has the member `ranks`, and the member is set. */
#define HAS_RANKS(params)                                                                                              \
	((params) && (params)->size >= offsetof(struct loom_stack_params, ranks) + sizeof(void *) && (params)->ranks)

void loom__host_init(struct loom__host *h, const struct loom_stack_params *params)
{
	*h = (struct loom__host){
	    .table = {.size = sizeof(struct loom_host),
		      .abi = LOOM_ABI,
		      .ctx = h,
		      .log_on = host_log_on,
		      .log = host_log,
		      .fail = host_fail,
		      .alloc = host_alloc,
		      .free = host_free,
		      .now_ns = host_now_ns,
		      .metric = host_metric,
		      .ranks = 1,
		      .allgather = host_allgather,
		      .choice = host_fact,
		      .progress = host_progress},
	    .log = params ? params->log : NULL,
	    .log_arg = params ? params->log_arg : NULL,
	    .log_level = params ? params->log_level : 0,
	};
}

int loom__host_join(struct loom__host *h, const struct loom_stack_params *params, struct loom_error *err)
{
	int rc = loom__exchange_create(&h->exchange, HAS_RANKS(params) ? params->ranks : NULL, err);
	if (rc || !h->exchange.ranks)
		return rc;
	h->table.rank = params->ranks->rank;
	h->table.ranks = params->ranks->ranks;
	if (LOOM_HAS(params->ranks, job))
		h->table.job = params->ranks->job;
	return 0;
}

int loom__report_add(struct loom_report *r, const char *name, const char *unit, enum loom_better better, double value)
{
	if (!name || !*name || isnan(value))
		return LOOM_EINVAL;
	if (r->unread)
		return 0;
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->list[i].name, name))
			return LOOM_EPLUGIN;
	struct loom__metric *list = loom__more(r->list, r->count, sizeof(*list));
	if (!list) {
		r->failed = 1;
		return LOOM_ENOMEM;
	}
	r->list = list;
	struct loom__metric *m = &list[r->count++];
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->unit, sizeof(m->unit), "%s", unit ? unit : "");
	m->answer = better == LOOM_BETTER_SAME;
	m->better = m->answer ? LOOM_BETTER_NONE : better;
	m->value = value;
	return 0;
}

void loom__report_lead(struct loom_report *r, const char *name)
{
	size_t at = 0;
	while (at < r->count && strcmp(r->list[at].name, name))
		at++;
	if (at < 2 || at == r->count)
		return;
	struct loom__metric first = r->list[at];
	memmove(r->list + 2, r->list + 1, (at - 1) * sizeof(first));
	r->list[1] = first;
}

void loom__report_clear(struct loom_report *r)
{
	free(r->list);
	*r = (struct loom_report){0};
}
