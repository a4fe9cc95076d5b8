/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons: everything below works on a document gpuloom.compare/1 (docs/results.md), so that what
 * was judged right after a run and what is read from files go the same way. */
#ifndef LOOM_COMPARE_H
#define LOOM_COMPARE_H

#include "compare/interleave.h"

#define LOOM__COMPARE_SCHEMA "gpuloom.compare/1"

/* A metric to judge; `better` LOOM_BETTER_NONE: as the results say. */
struct loom__compare_metric {
	char name[48];
	enum loom_better better;
	int gate; /* a rule of --fail-on judges by it */
};
/* "seconds" or "steals:less". */
int loom__compare_metric_parse(const char *text, struct loom__compare_metric *out,
			       struct loom_error *err);

/* ---- document.c: making documents --------------------------------------------------------------- */

struct loom__compare_about {
	int argc;
	char *const *argv; /* of the command, without the program's name */
	double confidence, margin;
	int best; /* the best sample of a block stands for it, not the median */
};
/* An empty comparison that began now. */
cJSON *loom__compare_document(const struct loom__compare_about *about);
/* Adds a variant; takes over `result`. varied NULL: nothing. */
void loom__compare_add_variant(cJSON *doc, const char *name, const char *label,
			       const cJSON *varied, cJSON *result);
/* design, schedule, status, environment, quiet: from an interleaved run that ended with `code`. */
void loom__compare_add_run(cJSON *doc, const struct loom__interleave *x, int code,
			   const struct loom_error *error);
/* The same for results read from files. */
void loom__compare_add_files(cJSON *doc);
/* The noise floor from a run of the baseline against itself, for `blocks` blocks. */
void loom__compare_add_noise(cJSON *doc, const cJSON *same, uint32_t blocks);
void loom__compare_warn(cJSON *doc, const char *id, const char *fmt, ...) LOOM_PRINTF(3, 4);

/* ---- judge.c ------------------------------------------------------------------------------------ */

/* Adds "comparisons": each metric of each variant against the first one, Holm over all. Also adds
 * warnings about samples that look odd. */
int loom__compare_judge(cJSON *doc, const struct loom__compare_metric *metric, size_t metrics,
			struct loom_error *err);

/* Adds "warnings" to a result: a machine that was not quiet, samples that look odd. */
void loom__look_at_result(cJSON *result);

/* ---- values.c: what a document holds ------------------------------------------------------------- */

/* The values of a metric over the counted samples of a variant, in run order; free(*values). */
size_t loom__compare_values(const cJSON *doc, size_t variant, const char *metric, double **values);
/* One figure for each complete block, or where several blocks share one of several openings, for each opening;
 * free(*figure). By design the median: a sample during which another
 * program ran is late by a whole time slice, and some of a block may be so. Or the best, of metrics
 * with a direction: what the machine can do when nobody disturbs it. LOOM_ENOENT: no such metric in
 * every sample; LOOM_EINVAL: a value is not positive, or nothing is interleaved. */
int loom__compare_blocks(const cJSON *doc, size_t variant, const char *metric,
			 enum loom_better better, double **figure, size_t *blocks);
/* The direction of a metric, from the first variant that says it. */
enum loom_better loom__compare_better(const cJSON *doc, const char *metric);
/* Variants, and one by its index. */
size_t loom__compare_variants(const cJSON *doc);
const cJSON *loom__compare_variant(const cJSON *doc, size_t variant);
const char *loom__compare_label(const cJSON *doc, size_t variant);
/* Its entry in the result's metrics, or NULL. */
const cJSON *loom__compare_metric_of(const cJSON *doc, size_t variant, const char *metric);

/* ---- comparable.c -------------------------------------------------------------------------------- */

/* Facts in which the environments of two variants differ and that are not allowed by name; they are
 * worded in err. Those that are allowed become warnings. */
int loom__compare_same_environment(cJSON *doc, const char *const *allowed, size_t n,
				   struct loom_error *err);
/* Warns of what plug-ins chose differently: `choices` of results. */
void loom__compare_choices(cJSON *doc);

/* One variant's job: what its result says of itself, its metrics as in gpuloom.result/1, and what --vary gave it
 * (NULL: nothing). */
struct loom__job {
	const char *label;
	const cJSON *about, *metrics, *varied;
};
/* Times of different jobs, or of the same job with other input or at another size, say nothing: the workload's name and
 * its options must agree with the first variant's, but for what --vary varies or `allowed` names
 * ("workload", "workload.memset.tasks"). The command of an external program and what goes with it may differ: it is what
 * such a comparison is about. LOOM_EINVAL words the difference and how to allow it. */
int loom__compare_same_job(const struct loom__job *job, size_t jobs, const char *const *allowed, size_t n,
			   struct loom_error *err);
/* Whether figures can be compared. A metric that was asked for must be there: in each variant when a gate judges by it,
 * else in one. Where it is, its unit and its direction must be the same; nothing is converted. The verified answers must
 * be the same, too, unless the jobs may differ. */
int loom__compare_figures(const struct loom__job *job, size_t jobs, const struct loom__compare_metric *metric, size_t metrics,
			  const char *const *allowed, size_t n, struct loom_error *err);

/* ---- table.c ------------------------------------------------------------------------------------- */

void loom__compare_table(const cJSON *doc, struct loom__text *out);

#endif
