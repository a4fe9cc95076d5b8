/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a run: its samples in order, and what is needed to repeat it. */
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
	uint64_t start_ns; /* since the beginning of the run */
	double seconds;
	struct loom_report report;       /* metrics of the core, then those of plug-ins */
	struct loom_counters *counters;  /* [workers] */
};

struct loom_result {
	const char *status; /* "ok", "interrupted", "timeout", "wrong", "failed" */
	struct loom_error error; /* code 0 with status "ok" */
	struct loom__sample *sample; /* in run order, with warm-ups */
	size_t samples;
	uint32_t workers; /* number of workers of all ranks that share tasks */
	uint32_t *rank;	  /* [workers]: the rank of each worker; NULL: ranks share no tasks */
	uint64_t began_ns;
	time_t began;
	/* Fixed parts of the document: config, plugins, devices, ... More may be added if the result does not share
	 * them. */
	cJSON *about;
	struct loom__about *shared; /* the owner of these parts; NULL: this result */
	uint32_t choices;	    /* fact_changes of the stack when `about` was filled */
};

/* Made once per stack, to keep a run of microseconds short. */
struct loom__about {
	cJSON *about;
	uint32_t users; /* references: the stack and its results, or one result */
};
void loom__about_drop(void *shared);

/* Lists each metric once, in order of first appearance, with the name, unit and direction found there. The caller frees
 * *list. Returns 0 or LOOM_ENOMEM. */
int loom__result_metrics(const struct loom_result *r, struct loom__metric **list, size_t *n);

/* Lists a metric's values over the counted samples. The caller frees *values. Returns 0 or LOOM_ENOMEM. */
int loom__result_values(const struct loom_result *r, const char *metric, double **values, size_t *n);

double loom__median_of(double *values, size_t n); /* sorts the values; n > 0 */

/* Returns the document, which the caller deletes, or NULL when memory ran out. */
cJSON *loom__result_document(const struct loom_result *r);

const char *loom__better_name(enum loom_better better); /* "more", "less", "" */

#endif
