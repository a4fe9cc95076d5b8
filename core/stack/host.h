/* SPDX-License-Identifier: Apache-2.0 */
/* The host table that plug-ins receive, and the report that they fill. */
#ifndef LOOM_HOST_H
#define LOOM_HOST_H

#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

/* An entry of choice() of the host table. */
struct loom__fact {
	char name[64], text[120];
};
enum { LOOM__FACTS = 64 };

struct loom__host {
	struct loom_host table; /* table.ctx points to this struct */
	loom_log_fn *log;       /* NULL: silent */
	void *log_arg;
	int log_level;
	const struct loom_ranks *ranks; /* NULL: a single process */
	struct loom__fact choice[LOOM__FACTS];
	uint32_t facts, fact_changes; /* fact_changes: how often an entry was new or changed */
	/* Receives the progress of a verification; may be NULL. */
	int (*progress)(void *arg, double done, struct loom_error *err);
	void *verifying_arg;
};
void loom__host_init(struct loom__host *h, const struct loom_stack_params *params);

/* The metrics of one sample, as plug-ins add them. */
struct loom__metric {
	char name[48], unit[16];
	enum loom_better better;
	double value;
	int answer; /* added as LOOM_BETTER_SAME; `better` is then NONE */
};
struct loom_report {
	struct loom__metric *list;
	size_t count;
	int unread; /* the metrics are not needed and are dropped */
	int failed; /* out of memory */
	int retime; /* "seconds" of the workload may replace that of the core */
};
/* Adds a metric as metric() of the host table does. Returns LOOM_EPLUGIN for a repeated name, LOOM_EINVAL for NaN. */
int loom__report_add(struct loom_report *r, const char *name, const char *unit,
		     enum loom_better better, double value);
/* Moves a metric to the second place, after the time. */
void loom__report_lead(struct loom_report *r, const char *name);
void loom__report_clear(struct loom_report *r);

#endif
