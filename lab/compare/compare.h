/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons of new runs and files alike: all functions operate on a document gpuloom.compare/1 (docs/results.md). */
#ifndef LOOM_COMPARE_H
#define LOOM_COMPARE_H

#include "compare/interleave.h"

#define LOOM__COMPARE_SCHEMA "gpuloom.compare/1"

/* A metric to judge. With better = LOOM_BETTER_NONE the direction is that of the results. */
struct loom__compare_metric {
	char name[48];
	enum loom_better better;
	int gate; /* a rule of --fail-on uses it */
};
/* Parses "seconds" or "steals:less". */
int loom__compare_metric_parse(const char *text, struct loom__compare_metric *out,
			       struct loom_error *err);

/* ---- document.c: creating documents ---------------------------------------------------------- */

struct loom__compare_about {
	int argc;
	char *const *argv; /* the command line, without the program's name */
	double confidence, margin;
	int best; /* the best sample represents a block, in place of the median */
};
/* Returns an empty comparison that starts now. */
cJSON *loom__compare_document(const struct loom__compare_about *about);
/* Adds a variant, and takes ownership of `result`. `varied` may be NULL. */
void loom__compare_add_variant(cJSON *doc, const char *name, const char *label,
			       const cJSON *varied, cJSON *result);
/* Adds design, schedule, status, environment and quiet of an interleaved run that ended with `code`. */
void loom__compare_add_run(cJSON *doc, const struct loom__interleave *x, int code,
			   const struct loom_error *error);
/* Adds design, status and environment for results read from files. */
void loom__compare_add_files(cJSON *doc);
/* Adds the noise floor for `blocks` blocks, from a run of the baseline against itself. */
void loom__compare_add_noise(cJSON *doc, const cJSON *same, uint32_t blocks);
void loom__compare_warn(cJSON *doc, const char *id, const char *fmt, ...) LOOM_PRINTF(3, 4);

/* ---- judge.c ------------------------------------------------------------------------------------ */

/* Adds "comparisons": each metric of each variant against the first one, with Holm's correction over all. Also adds
 * warnings about unusual samples. */
int loom__compare_judge(cJSON *doc, const struct loom__compare_metric *metric, size_t metrics,
			struct loom_error *err);

/* Adds "warnings" to a result: other load on the machine, unusual samples. */
void loom__result_warn(cJSON *result);

/* ---- values.c: reading documents ------------------------------------------------------------- */

/* Lists the values of a metric in the counted samples of a variant, in run order. The caller frees *values. */
size_t loom__compare_values(const cJSON *doc, size_t variant, const char *metric, double **values);
/* Lists one value for each complete block, or for each opening if several blocks share one. The caller frees *figure.
 * The value is the median, because a sample that another program interrupts is late by a time slice. For metrics with a
 * direction it may be the best sample instead: the undisturbed performance. LOOM_ENOENT: some sample lacks the metric.
 * LOOM_EINVAL: a value is not positive, or the run was not interleaved. */
int loom__compare_blocks(const cJSON *doc, size_t variant, const char *metric,
			 enum loom_better better, double **figure, size_t *blocks);
/* Returns the direction of a metric, from the first variant that gives one. */
enum loom_better loom__compare_better(const cJSON *doc, const char *metric);
/* Returns the number of variants; a variant by its index. */
size_t loom__compare_variants(const cJSON *doc);
const cJSON *loom__compare_variant(const cJSON *doc, size_t variant);
const char *loom__compare_label(const cJSON *doc, size_t variant);
/* Returns the metric's entry in the result, or NULL. */
const cJSON *loom__compare_metric_of(const cJSON *doc, size_t variant, const char *metric);

/* ---- comparable.c -------------------------------------------------------------------------------- */

/* Finds differences between the environments of variants. Differences that `allowed` names become warnings. Others
 * return LOOM_EINVAL with a description. */
int loom__compare_same_environment(cJSON *doc, const char *const *allowed, size_t n,
				   struct loom_error *err);
/* Warns of plug-ins that chose differently (`choices` of results). */
void loom__compare_choices(cJSON *doc);

/* The job of a variant: its description and metrics in gpuloom.result/1, and the values of --vary (may be NULL). */
struct loom__job {
	const char *label;
	const cJSON *about, *metrics, *varied;
};
/* Times of different jobs, inputs or sizes cannot be compared. So the workload and its options must agree with the
 * first variant, unless --vary varies them or `allowed` names them ("workload", "workload.memset.tasks"). The command
 * of an external program and its options may differ, since such comparisons are about them. LOOM_EINVAL comes with the
 * difference and how to allow it. */
int loom__compare_same_job(const struct loom__job *job, size_t jobs, const char *const *allowed, size_t n,
			   struct loom_error *err);
/* Checks that metrics can be compared. A requested metric must exist in one variant, or in all if a gate uses it. Unit
 * and direction must agree; nothing is converted. The verified answers must agree unless the jobs may differ. */
int loom__compare_figures(const struct loom__job *job, size_t jobs, const struct loom__compare_metric *metric,
			  size_t metrics, const char *const *allowed, size_t n, struct loom_error *err);

/* ---- table.c ------------------------------------------------------------------------------------- */

void loom__compare_table(const cJSON *doc, struct loom__text *out);

#endif
