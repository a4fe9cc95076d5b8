/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons. All functions operate on a document gpuloom.compare/1 (docs/results.md), so that new runs and files are
 * judged in the same way. */
#ifndef LOOM_COMPARE_H
#define LOOM_COMPARE_H

#include "compare/interleave.h"

#define LOOM__COMPARE_SCHEMA "gpuloom.compare/1"

/* A metric to judge; better = LOOM_BETTER_NONE: take the direction from the results. */
struct loom__compare_metric {
	char name[48];
	enum loom_better better;
	int gate; /* used by a rule of --fail-on */
};
/* "seconds" or "steals:less". */
int loom__compare_metric_parse(const char *text, struct loom__compare_metric *out,
			       struct loom_error *err);

/* ---- document.c: creating documents ---------------------------------------------------------- */

struct loom__compare_about {
	int argc;
	char *const *argv; /* of the command, without the program's name */
	double confidence, margin;
	int best; /* the best sample represents a block, not the median */
};
/* An empty comparison that starts now. */
cJSON *loom__compare_document(const struct loom__compare_about *about);
/* Adds a variant; takes ownership of `result`. varied may be NULL. */
void loom__compare_add_variant(cJSON *doc, const char *name, const char *label,
			       const cJSON *varied, cJSON *result);
/* Adds design, schedule, status, environment and quiet of an interleaved run that ended with `code`. */
void loom__compare_add_run(cJSON *doc, const struct loom__interleave *x, int code,
			   const struct loom_error *error);
/* The same for results read from files. */
void loom__compare_add_files(cJSON *doc);
/* The noise floor from a run of the baseline against itself, for `blocks` blocks. */
void loom__compare_add_noise(cJSON *doc, const cJSON *same, uint32_t blocks);
void loom__compare_warn(cJSON *doc, const char *id, const char *fmt, ...) LOOM_PRINTF(3, 4);

/* ---- judge.c ------------------------------------------------------------------------------------ */

/* Adds "comparisons": each metric of each variant against the first one, with Holm's correction over all; and warnings
 * about unusual samples. */
int loom__compare_judge(cJSON *doc, const struct loom__compare_metric *metric, size_t metrics,
			struct loom_error *err);

/* Adds "warnings" to a result: other load on the machine, unusual samples. */
void loom__result_warn(cJSON *result);

/* ---- values.c: reading documents ------------------------------------------------------------- */

/* The values of a metric in the counted samples of a variant, in run order; free(*values). */
size_t loom__compare_values(const cJSON *doc, size_t variant, const char *metric, double **values);
/* One value for each complete block, or for each opening if several blocks share one; free(*figure). The median,
 * because a sample that another program interrupts is late by a time slice; or the best, for metrics with a direction:
 * the undisturbed performance. LOOM_ENOENT: some sample lacks the metric; LOOM_EINVAL: a value is not positive, or the
 * run was not interleaved. */
int loom__compare_blocks(const cJSON *doc, size_t variant, const char *metric,
			 enum loom_better better, double **figure, size_t *blocks);
/* The direction of a metric, from the first variant that gives one. */
enum loom_better loom__compare_better(const cJSON *doc, const char *metric);
/* Variants, and one by its index. */
size_t loom__compare_variants(const cJSON *doc);
const cJSON *loom__compare_variant(const cJSON *doc, size_t variant);
const char *loom__compare_label(const cJSON *doc, size_t variant);
/* The metric's entry in the result, or NULL. */
const cJSON *loom__compare_metric_of(const cJSON *doc, size_t variant, const char *metric);

/* ---- comparable.c -------------------------------------------------------------------------------- */

/* Finds differences between the environments of variants. LOOM_EINVAL describes those that are not allowed by name;
 * allowed ones become warnings. */
int loom__compare_same_environment(cJSON *doc, const char *const *allowed, size_t n,
				   struct loom_error *err);
/* Warns of plug-ins that chose differently (`choices` of results). */
void loom__compare_choices(cJSON *doc);

/* The job of a variant: the description in its result, its metrics as in gpuloom.result/1, and the values of --vary
 * (may be NULL). */
struct loom__job {
	const char *label;
	const cJSON *about, *metrics, *varied;
};
/* Times of different jobs, or of other inputs or sizes, cannot be compared: the workload and its options must agree
 * with the first variant, except for those that --vary varies or `allowed` names ("workload", "workload.memset.tasks").
 * The command of an external program and its options may differ, since such comparisons are about them. LOOM_EINVAL
 * describes the difference and how to allow it. */
int loom__compare_same_job(const struct loom__job *job, size_t jobs, const char *const *allowed, size_t n,
			   struct loom_error *err);
/* Checks that metrics can be compared. A requested metric must exist in one variant, or in all if a gate uses it. Unit
 * and direction must agree; nothing is converted. The verified answers must agree unless the jobs may differ. */
int loom__compare_figures(const struct loom__job *job, size_t jobs, const struct loom__compare_metric *metric,
			  size_t metrics, const char *const *allowed, size_t n, struct loom_error *err);

/* ---- table.c ------------------------------------------------------------------------------------- */

void loom__compare_table(const cJSON *doc, struct loom__text *out);

#endif
