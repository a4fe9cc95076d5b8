/* SPDX-License-Identifier: Apache-2.0 */
/* The host table that plug-ins receive, and the report that they fill. */
#ifndef LOOM_HOST_H
#define LOOM_HOST_H

#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

#include "stack/exchange.h"

/* A choice that a plug-in has reported by choice() of the host table. */
struct loom__fact {
	char name[64], text[120];
};
enum { LOOM__FACTS = 64 };

struct loom__host {
	struct loom_host table; /* table.ctx points to this struct */
	loom_log_fn *log;       /* NULL: messages are dropped */
	void *log_arg;
	int log_level;
	struct loom__exchange exchange;
	struct loom__fact choice[LOOM__FACTS];
	uint32_t facts, fact_changes; /* number of entries in `choice`; how many times an entry was added or changed */
	/* Receives the progress of the set-up or of a verification. NULL if neither is in progress. */
	int (*progress)(void *arg, double done, struct loom_error *err);
	void *verifying_arg;
};
void loom__host_init(struct loom__host *h, const struct loom_stack_params *params);
/* Adds the ranks of `params`. Returns LOOM_EINVAL if they are wrong, or LOOM_ENOMEM. */
int loom__host_join(struct loom__host *h, const struct loom_stack_params *params, struct loom_error *err);

/* A metric of one sample, as a plug-in or the core has added it. */
struct loom__metric {
	char name[48], unit[16];
	enum loom_better better;
	double value;
	int answer; /* 1: it was added as LOOM_BETTER_SAME, for which `better` is stored as LOOM_BETTER_NONE */
};
struct loom_report {
	struct loom__metric *list;
	size_t count;
	int unread; /* 1: the metrics are not needed, and are dropped */
	int failed; /* 1: memory ran out, and some metrics are missing */
	int retime; /* 1: the workload may replace the value of "seconds" */
};
/* Adds a metric, as metric() of the host table does. Returns LOOM_EPLUGIN for a repeated name, and LOOM_EINVAL for NaN
 * or an empty name. */
int loom__report_add(struct loom_report *r, const char *name, const char *unit,
		     enum loom_better better, double value);
/* Moves the metric to the second place, after the time. */
void loom__report_lead(struct loom_report *r, const char *name);
void loom__report_clear(struct loom_report *r);

#endif
