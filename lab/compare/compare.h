/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons of new runs or of result files. All functions operate on a document of schema gpuloom.compare/1
 * (docs/results.md). */
#ifndef LOOM_COMPARE_H
#define LOOM_COMPARE_H

#include "compare/interleave.h"

#define LOOM__COMPARE_SCHEMA "gpuloom.compare/1"

/* Room for the name of a metric. Results of other programs name metrics after benchmarks. */
#define LOOM__COMPARE_NAME 200

/* A metric to judge. If `better` is LOOM_BETTER_NONE, the results give the direction. */
struct loom__compare_metric {
	char name[LOOM__COMPARE_NAME];
	enum loom_better better;
	int gate; /* 1: a rule of --fail-on uses the metric */
};
/* Parses a metric with an optional direction: "seconds" or "steals:less". */
int loom__compare_metric_parse(const char *text, struct loom__compare_metric *out, struct loom_error *err);

/* ---- document.c: creating documents ---------------------------------------------------------- */

struct loom__compare_about {
	int argc;
	char *const *argv; /* the command line, without the program's name */
	double confidence, margin;
	int best; /* 1: the best sample represents a block; 0: the median */
};
/* Returns a comparison without variants, whose start time is the present. */
cJSON *loom__compare_document(const struct loom__compare_about *about);
/* Adds to "design" how blocks are judged. */
void loom__compare_add_rule(cJSON *design, const struct loom__compare_about *about);
/* Adds a variant, and takes ownership of `result`. `varied` has the levels of --vary, or is NULL. */
void loom__compare_add_variant(cJSON *doc, const char *name, const char *label, const cJSON *varied, cJSON *result);
/* Adds design, schedule, status, environment and "quiet" of an interleaved run that ended with `code`. */
void loom__compare_add_run(cJSON *doc, const struct loom__interleave *x, int code, const struct loom_error *error);
/* Adds design, status and environment for results that were read from files. */
void loom__compare_add_files(cJSON *doc);
/* Copies the warnings of results of other programs, such as one that has only means, and those about throttled devices.
 */
void loom__compare_add_warnings(cJSON *doc);
/* Adds the noise floor that a comparison of `blocks` blocks would have. `same` is an A/A comparison of the baseline. */
void loom__compare_add_noise(cJSON *doc, const cJSON *same, uint32_t blocks);
void loom__compare_warn(cJSON *doc, const char *id, const char *fmt, ...) LOOM_PRINTF(3, 4);

/* ---- judge.c ------------------------------------------------------------------------------------ */

/* Adds "comparisons": each metric of each variant against the first variant. Holm's correction covers all comparisons.
 * Also adds warnings about unusual samples. */
int loom__compare_judge(cJSON *doc, const struct loom__compare_metric *metric, size_t metrics, struct loom_error *err);

/* Replaces the verdicts of a saved comparison by those on other metrics. The document is untrusted. about: confidence,
 * margin and the rule for blocks; with it the outcomes of rules and bars are removed. NULL: as the document says.
 * Returns LOOM_EINVAL if the document has no verdicts, as after a wrong result. */
int loom__compare_again(cJSON *doc, const struct loom__compare_about *about, const struct loom__compare_metric *metric,
			size_t metrics, struct loom_error *err);

/* Adds "warnings" to a result: about other load on the machine, and unusual samples. */
void loom__result_warn(cJSON *result);

/* ---- values.c: reading documents ------------------------------------------------------------- */

/* List the values of a metric in the counted samples of a result or of a variant, in run order. They return their
 * number. The caller frees *values. */
size_t loom__compare_samples(const cJSON *metric, double **values);
size_t loom__compare_values(const cJSON *doc, size_t variant, const char *metric, double **values);
/* Lists one value for each complete block. Several blocks that share an opening of the stack count as one block. The
 * value is the median of the block, because a sample that another program interrupts takes a time slice longer. If
 * "per_block" of the design is "best" and the metric has a direction, the value is the best sample instead, which shows
 * the undisturbed performance. Returns LOOM_ENOENT if a sample lacks the metric, and LOOM_EINVAL if a value is not
 * positive or the run was not interleaved. The caller frees *figure. */
int loom__compare_blocks(const cJSON *doc, size_t variant, const char *metric, enum loom_better better, double **figure,
			 size_t *blocks);
/* Returns the direction of a metric, taken from the first variant that gives a direction. */
enum loom_better loom__compare_better(const cJSON *doc, const char *metric);
/* loom__compare_variants() returns the number of variants. loom__compare_variant() returns a variant by its index. */
size_t loom__compare_variants(const cJSON *doc);
const cJSON *loom__compare_variant(const cJSON *doc, size_t variant);
const char *loom__compare_label(const cJSON *doc, size_t variant);
/* Returns the entry of a metric in the result of a variant, or NULL. */
const cJSON *loom__compare_metric_of(const cJSON *doc, size_t variant, const char *metric);

/* ---- comparable.c -------------------------------------------------------------------------------- */

/* Compares the environments of all variants with the environment of the first variant, with the facts that devices
 * report. A fact that only one of two results has differs if both jobs have used a GPU. A difference in a fact that
 * `allowed` names becomes a warning. If there is any other difference, returns LOOM_EINVAL with a description. */
int loom__compare_same_environment(cJSON *doc, const char *const *allowed, size_t n, struct loom_error *err);
/* Warns if a plug-in made another choice in a variant than in the first variant (`choices` of results). */
void loom__compare_choices(cJSON *doc);

/* The job of a variant: its description and metrics in gpuloom.result/1, and the values of --vary (may be NULL). */
struct loom__job {
	const char *label;
	const cJSON *about, *metrics, *varied;
};
/* Checks that all variants have the same job, because times of different jobs, inputs or sizes cannot be compared. So
 * all variants must agree with the first variant in the workload and its options. Exceptions are options that --vary
 * varies and options that `allowed` names ("workload", "workload.memset.tasks"). The command of an external program and
 * its options may also differ, because such a comparison compares them. Returns LOOM_EINVAL with the difference and how
 * to allow it. */
int loom__compare_same_job(const struct loom__job *job, size_t jobs, const char *const *allowed, size_t n,
			   struct loom_error *err);
/* Checks that metrics can be compared. A requested metric must exist in at least one variant, and in all variants if a
 * rule of --fail-on uses it. Unit and direction must agree, because nothing is converted. If the jobs must be the same,
 * the verified answers must also be the same. */
int loom__compare_figures(const struct loom__job *job, size_t jobs, const struct loom__compare_metric *metric,
			  size_t metrics, const char *const *allowed, size_t n, struct loom_error *err);

#endif
