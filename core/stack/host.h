/* SPDX-License-Identifier: Apache-2.0 */
/* The host table that plug-ins receive, and the report they fill. */
#ifndef LOOM_HOST_H
#define LOOM_HOST_H

#include <gpuloom/gpuloom.h>
#include <gpuloom/plugin.h>

/* As the host table's choice(). */
struct loom__fact {
	char name[64], text[120];
};
enum { LOOM__FACTS = 64 };

struct loom__host {
	struct loom_host table; /* table.ctx points back here */
	loom_log_fn *log;       /* NULL: silent */
	void *log_arg;
	int log_level;
	const struct loom_ranks *ranks; /* NULL: alone */
	struct loom__fact choice[LOOM__FACTS];
	uint32_t facts, fact_changes; /* fact_changes: how often one was new, or got another text */
	/* Receives the progress of a verification. May be NULL. */
	int (*progress)(void *arg, double done, struct loom_error *err);
	void *verifying_arg;
};
void loom__host_init(struct loom__host *h, const struct loom_stack_params *params);

/* One sample's figures as plug-ins add them. */
struct loom__metric {
	char name[48], unit[16];
	enum loom_better better;
	double value;
	int answer; /* added as LOOM_BETTER_SAME; better is NONE then */
};
struct loom_report {
	struct loom__metric *list;
	size_t count;
	int unread; /* metrics are not wanted: they are dropped */
	int failed; /* out of memory */
	int retime; /* the workload may put its own "seconds" in the place of the core's */
};
/* As the host table's metric(): the same name twice is LOOM_EPLUGIN, NaN LOOM_EINVAL. */
int loom__report_add(struct loom_report *r, const char *name, const char *unit,
		     enum loom_better better, double value);
/* Makes a metric the second, after the time. */
void loom__report_lead(struct loom_report *r, const char *name);
void loom__report_clear(struct loom_report *r);

#endif
