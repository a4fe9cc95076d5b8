/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a run as OpenMetrics text, for collectors that read files. */
#ifndef LOOM_OPENMETRICS_H
#define LOOM_OPENMETRICS_H

#include "base/base.h"
#include "run/result.h"

/* Sums over the samples so far. Zero-initialise; free with loom__openmetrics_free. */
struct loom__openmetrics {
	struct loom_counters *sum; /* [workers] */
	uint32_t workers;
	size_t seen; /* samples of the result that are in it */
	uint64_t warmups, counted;
	double seconds; /* in counted samples */
};
/* Takes in the samples that are new. 0 or LOOM_ENOMEM. */
int loom__openmetrics_take(struct loom__openmetrics *m, const struct loom_result *r);
/* The whole text, "# EOF" included. */
void loom__openmetrics_text(const struct loom__openmetrics *m, const struct loom_result *r,
			    const char *workload, struct loom__text *out);
void loom__openmetrics_free(struct loom__openmetrics *m);

#endif
