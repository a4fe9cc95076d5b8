/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics made of others: "gb_s = bytes / seconds / 1e9 [GB/s, more], b = ...". In brackets, which may be left out, the
 * unit and which direction is better. Numbers, metrics, + - * / ^, parentheses, abs, exp, log, log2, max, min, sqrt. */
#ifndef LOOM_DERIVE_H
#define LOOM_DERIVE_H

#include "report/view.h"

#define LOOM__DERIVED_MOST 16

struct loom__derived {
	size_t n;
	struct loom__derived_one {
		char name[48], unit[16], text[160];
		enum loom_better better;
	} one[LOOM__DERIVED_MOST];
};

/* NULL or "": none. LOOM_EINVAL words what is wrong in the form; which metrics there are is not known yet. */
int loom__derived_read(const char *list, struct loom__derived *out, struct loom_error *err);
/* Adds them to a sample. A metric that the sample does not have is LOOM_EINVAL with those that are like it. Where the
 * result is no number, as 0 / 0, the sample has none. */
int loom__derived_sample(const struct loom__derived *d, struct loom__sample *sample, struct loom_error *err);
/* Adds them to what a file holds. A sample without the metrics has none; if no sample has them, LOOM_EINVAL. */
int loom__derived_view(const struct loom__derived *d, struct loom__view *view, struct loom_error *err);
int loom__derived_result(const struct loom__derived *d, cJSON *result, struct loom_error *err);

#endif
