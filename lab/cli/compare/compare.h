/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of `gpuloom compare`. */
#ifndef LOOM_CLI_COMPARE_H
#define LOOM_CLI_COMPARE_H

#include "cli/conf/conf.h"
#include "cli/report/report.h"
#include "compare/rules.h"
#include "compare/vary.h"

#define LOOM__WARMUP_OF_CONF UINT32_MAX

struct loom__compare_args {
	struct loom__conf_args conf; /* the files of `conf` are confs or results */
	uint32_t blocks, openings, samples_per_block, warmup, rewarm, order, per_block, width, log;
	uint64_t seed, budget, spread;
	double margin, confidence;
	struct loom__factor *factor;
	size_t factors;
	struct loom__compare_metric *metric;
	size_t metrics; /* the array has room for one more */
	int usual_metrics; /* 1: the user has named no metric, so the usual metrics are judged */
	struct loom__gate_rule *rule;
	size_t rules;
	struct loom__bar *bar;
	size_t bars;
	struct loom__words allowed; /* words of --allow-mismatch */
	const char *json, *derive;
	struct loom__words output; /* reports */
	struct loom__derived derived;
	uint8_t aa, strict, quiet;
	int from_results;
};
extern const struct loom__option loom__compare_options[];
void loom__compare_begin(struct loom__cli *cli, void *args);
/* Checks the options. Returns 0 or an exit code. */
int loom__compare_ready(const struct loom__cli *cli, struct loom__compare_args *a);
void loom__compare_end(void *args);
/* Returns the entry of a metric, and adds it if there is none. The pointer is valid until the next call. */
struct loom__compare_metric *loom__compare_want(struct loom__compare_args *a, const char *name);
/* Moves the metric to place `at`, unless it is before that, and adds it if there is none. Returns the next place. */
size_t loom__compare_lead(struct loom__compare_args *a, const char *name, size_t at);

/* An open variant: a conf with the levels of one configuration. */
struct loom__opened {
	char *name, *label;
	cJSON *varied;
	struct loom_config *cfg;
	struct loom_stack *stack;
	uint32_t warmup;      /* the value of `warmup` in its section [run] */
	uint64_t time_limit;
};
/* Returns the number of variants, or SIZE_MAX if it overflows. */
size_t loom__variant_count(const struct loom__compare_args *a);
/* Opens, prepares and launches variant `index`. Prints errors, and returns an exit code. */
int loom__variant_open(const struct loom__cli *cli, const struct loom__compare_args *a, size_t index,
		       struct loom__opened *v);
void loom__variant_close(struct loom__opened *v);
/* loom__variant_shut() closes the stack only; loom__variant_again() opens it again from the same conf. */
void loom__variant_shut(struct loom__opened *v);
int loom__variant_again(const struct loom__cli *cli, const struct loom__compare_args *a, struct loom__opened *v);

/* Checks the document of variant `index`, which was read from a file, and moves its result to *result. Returns an exit
 * code. */
int loom__variant_take(const struct loom__cli *cli, const struct loom__compare_args *a, size_t index,
		       struct loom__doc *doc, struct loom__opened *v, cJSON **result);

#endif
