/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for comparisons: --fail-on for CI, --bar for benchmarks. */
#ifndef LOOM_RULES_H
#define LOOM_RULES_H

#include "compare/compare.h"

/* "seconds: slower > 3%": the rule fails if the whole interval is beyond the limit and p agrees. */
struct loom__gate_rule {
	const char *text;
	char metric[48];
	int faster;
	double limit;
};
int loom__gate_rule_parse(const char *text, struct loom__gate_rule *out, struct loom_error *err);
/* Adds "gate". *failed counts failed rules, *undecided those whose effect exceeds the limit without certainty. */
void loom__compare_gate(cJSON *doc, const struct loom__gate_rule *rule, size_t rules, size_t *failed,
		       size_t *undecided);

/* "name: seconds(loop) / seconds(static) >= 0.9" or "name: latency_ns(wic) <= 500": medians of the variants with these
 * labels. A ratio within one interleaved run is taken per block. */
struct loom__bar {
	char figure[64], metric[48], of[96], by[96]; /* by: "" without a ratio */
	int at_most;
	double target;
};
int loom__bar_parse(const char *text, struct loom__bar *out, struct loom_error *err);
/* Adds "bars" to doc and a line per bar to out: "bar NAME VALUE >= TARGET ok". Unknown names are errors. */
int loom__compare_bars(cJSON *doc, const struct loom__bar *bar, size_t bars, struct loom__text *out,
		       struct loom_error *err);

#endif
