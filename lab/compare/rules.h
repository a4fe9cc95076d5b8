/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for comparisons: --fail-on for CI, --bar for benchmarks. */
#ifndef LOOM_RULES_H
#define LOOM_RULES_H

#include "compare/compare.h"

/* A rule of --fail-on, such as "seconds: slower > 3%". The rule fails if the whole confidence interval is beyond the
 * limit and p is below alpha. */
struct loom__gate_rule {
	const char *text;
	char metric[LOOM__COMPARE_NAME]; /* "*": each metric that is judged */
	int faster;
	double limit;
};
int loom__gate_rule_parse(const char *text, struct loom__gate_rule *out, struct loom_error *err);
/* Checks the rules, and adds the results as "gate". *failed is the number of failed rules. *undecided is the number of
 * other rules for which a difference beyond the limit is likely but not certain, or for which the difference is
 * unknown. */
void loom__compare_gate(cJSON *doc, const struct loom__gate_rule *rule, size_t rules, size_t *failed,
		       size_t *undecided);

/* A bar, such as "name: seconds(loop) / seconds(static) >= 0.9" or "name: latency_ns(wic) <= 500": the median of a
 * variant, which its label names, or the ratio of two medians. In an interleaved run, the ratio is the median of the
 * ratios of the blocks. "seconds(tbb | gomp)" is the better of the two. Without a target it is a figure. */
#define LOOM__BAR_LABELS 256
struct loom__bar {
	char figure[64], metric[LOOM__COMPARE_NAME];
	char of[LOOM__BAR_LABELS], by[LOOM__BAR_LABELS]; /* labels of the variants; by is "" without a ratio */
	const char *relation;				 /* ">=", "<=", or "" without a target */
	double target;
};
int loom__bar_parse(const char *text, struct loom__bar *out, struct loom_error *err);
/* Adds "bars" to doc, with the values of the blocks and the 95 % interval of their median. Adds a line "bar NAME VALUE >=
 * TARGET ok" or "figure NAME VALUE" per bar to out. A metric or label that does not exist is an error. */
int loom__compare_bars(cJSON *doc, const struct loom__bar *bar, size_t bars, struct loom__text *out,
		       struct loom_error *err);

#endif
