/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a run: samples in the order they ran, and what is needed to repeat it. */
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
	uint64_t start_ns; /* since the run began */
	double seconds;
	struct loom_report report;       /* the core's metrics first, then the plug-ins' */
	struct loom_counters *counters;  /* [workers] */
};

struct loom_result {
	const char *status; /* "ok", "interrupted", "timeout", "wrong", "failed" */
	struct loom_error error; /* code 0 with "ok" */
	struct loom__sample *sample; /* warm-ups included, in run order */
	size_t samples;
	uint32_t workers; /* of all ranks that share tasks */
	uint32_t *rank;	  /* [workers]: the rank of each; NULL: ranks share no tasks */
	uint64_t began_ns;
	time_t began;
	/* Fixed parts of the document: config, plugins, devices, ... Of a result that shares them with no other, more
	 * may be added. */
	cJSON *about;
	struct loom__about *shared; /* their owner; NULL: this result */
	uint32_t choices;	    /* the stack's fact_changes when `about` got them */
};

/* Made once for a stack, so that a run of microseconds need not. */
struct loom__about {
	cJSON *about;
	uint32_t users; /* the stack, and its results; or one result */
};
void loom__about_drop(void *shared);

/* Each metric once, in the order in which samples brought them: name, unit and direction from its
 * first appearance. *list is to be freed. 0 or LOOM_ENOMEM. */
int loom__result_metrics(const struct loom_result *r, struct loom__metric **list, size_t *n);

/* The values of a metric over the counted samples that have it; *values is to be freed. 0 or LOOM_ENOMEM. */
int loom__result_values(const struct loom_result *r, const char *metric, double **values, size_t *n);

double loom__median_of(double *values, size_t n); /* sorts them; n > 0 */

/* The document: the caller deletes it. NULL: out of memory. */
cJSON *loom__result_document(const struct loom_result *r);

const char *loom__better_name(enum loom_better better); /* "more", "less", "" */

#endif
