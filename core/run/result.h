/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a run: its samples in order, and what a reader needs to repeat the run. */
#ifndef LOOM_RESULT_H
#define LOOM_RESULT_H

#include "base/json.h"
#include <gpuloom/dev/ctx.h>
#include <gpuloom/gpuloom.h>
#include <time.h>

#include "stack/host.h"

#define LOOM__RESULT_SCHEMA "gpuloom.result/1"

struct loom__sample {
	int warmup;
	uint64_t start_ns; /* ns since the beginning of the run */
	double seconds;
	uint64_t stop; /* LOOM__* of all ranks, as below */
	struct loom_report report;       /* metrics of the core, then metrics of plug-ins */
	struct loom_counters *counters;  /* [workers]; counters of each worker */
};

/* STOPPED: by request. LATE: after [run] time_limit. STALLED: a rank was stopped or had no core. THROTTLED: a device was. */
enum { LOOM__STOPPED = 1, LOOM__LATE = 2, LOOM__STALLED = 4, LOOM__THROTTLED = 8 };

/* Numbers of samples that were disturbed: those that do not count and were repeated, and those that count. */
struct loom__disturbed {
	uint32_t repeated, counted;
};

struct loom_result {
	const char *status; /* "ok", "interrupted", "timeout", "wrong", "failed" */
	struct loom_error error; /* its code is 0 if `status` is "ok" */
	struct loom__sample *sample; /* in the order of execution, with warm-ups */
	size_t samples;
	struct loom__disturbed stalled, throttled;
	int watched; /* 1: samples during which a device was throttled are marked, and some are repeated */
	uint32_t workers; /* number of workers of all ranks that share tasks */
	uint32_t *rank;	  /* [workers]; the rank of each worker; NULL: ranks share no tasks */
	uint64_t began_ns;
	time_t began;
	/* Fixed parts of the document: config, plugins, devices and others. Parts may be added if no other result
	 * shares them. */
	cJSON *about;
	struct loom__about *shared; /* the owner of `about` */
	uint32_t choices;	    /* value of fact_changes of the stack when `about` was filled */
};

/* The description of a stack. Results share it, because making it would lengthen a run of microseconds. */
struct loom__about {
	cJSON *about;
	uint32_t users; /* number of references: the stack and each of its results hold one */
};
void loom__about_drop(void *shared);

/* Lists each metric once, in order of first appearance, with its name, unit and direction. The caller frees *list.
 * Returns 0 or LOOM_ENOMEM. */
int loom__result_metrics(const struct loom_result *r, struct loom__metric **list, size_t *n);

/* Lists the values of a metric in the counted samples. The caller frees *values. Returns 0 or LOOM_ENOMEM. */
int loom__result_values(const struct loom_result *r, const char *metric, double **values, size_t *n);

double loom__median_of(double *values, size_t n); /* sorts the values; n must not be 0 */

/* Returns the document, which the caller deletes, or NULL if memory ran out. */
cJSON *loom__result_document(const struct loom_result *r);

const char *loom__better_name(enum loom_better better); /* returns "more", "less" or "" */

#endif
