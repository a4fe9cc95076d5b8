/* SPDX-License-Identifier: Apache-2.0 */
/* The data that all reports show, independent of the schema of the documents: variants with their samples, comparisons,
 * factors. Numbers have been checked and are finite. Strings are still untrusted. */
#ifndef LOOM_VIEW_H
#define LOOM_VIEW_H

#include "run/result.h"
#include "report/view/document.h"
#include "report/view/arena.h"
#include "stats/stats.h"

struct loom__view_metric {
	const char *name, *unit, *unit_of; /* unit_of: the place in the documents that gives the unit first */
	enum loom_better better;
	/* 1: at least one sample is not 0; a metric without such a sample is not listed, because its mechanism took no
	 * part */
	int shown;
};

/* One metric of one variant. */
struct loom__series {
	double *value;  /* [rows] in run order; NaN: the sample has no value */
	size_t rows;    /* at most variant->rows */
	double *sorted; /* [n] the finite values, in ascending order */
	size_t n;
	struct loom__stats_interval median; /* the median with its 95 % interval; valid if n > 0 */
};

/* A result, a variant of a comparison, or a configuration of a sweep. */
struct loom__variant {
	const char *label;   /* a short name, never empty */
	const char *name;    /* the full name: the levels of the factors, or the file */
	const char *status;  /* "ok", "skipped", "failed", ... */
	const char *note;    /* the error or the reason for skipping; "": none */
	const char **level;  /* [factors] the level as text; NULL: not given */
	const cJSON *result; /* the variant's gpuloom.result/1, or NULL */
	size_t rows;
	double *order, *start_ns;    /* [rows] place in the run order, from 0; start time, may be NaN */
	struct loom__series *series; /* [metrics] */
	size_t warmups;              /* number of executions of this variant that do not count as samples */
};

enum loom__verdict {
	LOOM__V_FASTER,
	LOOM__V_SLOWER,
	LOOM__V_EQUIVALENT,
	LOOM__V_TRIVIAL,
	LOOM__V_INCONCLUSIVE,
	LOOM__V_OTHER, /* a verdict of another version of gpuloom */
};

struct loom__compared {
	size_t metric; /* LOOM__NO_NAME: no sample has the metric */
	const char *name, *unit;
	enum loom_better better;
	size_t baseline, variant; /* indices of variants, always valid */
	double effect, low, high; /* ratio to the baseline; NaN: not known, or unbounded */
	double p, p_holm, margin, blocks, more_blocks;
	enum loom__verdict verdict;
	const char *word, *notes;
	double *ratio; /* [ratios] one per block; NaN: missing */
	size_t ratios;
};

struct loom__view {
	struct loom__arena arena;
	enum loom__doc_kind kind;
	const struct loom__doc *doc; /* [docs]; belongs to the caller */
	size_t docs;
	const cJSON *head;           /* command, environment, warnings etc. of the first document */
	cJSON *own;                  /* the head of a sweep, assembled from its lines, or NULL */
	const char *title, *caption; /* caption: "" for none */
	struct loom__names metric_names, factor_names;
	struct loom__view_metric *metric; /* [metrics] */
	size_t metrics, metrics_left_out;
	const char **factor; /* [factors] */
	size_t factors;
	struct loom__variant *variant; /* [variants] */
	size_t variants;
	struct loom__compared *compared;
	size_t comparisons;
	size_t values;   /* number of values so far, at most LOOM__VIEW_VALUES */
	size_t repeated; /* number of samples of a sweep that the documents have more than once, and that count once */
	int too_large;   /* 1: there are more values than the limit allows */
	const char *clash; /* the error message for a metric with two units or directions, or NULL */
};

/* Limits. Metrics beyond the limit are counted, but not read. */
#define LOOM__VIEW_METRICS 200
#define LOOM__VIEW_FACTORS 32
/* Bounds the memory of a view. Counts samples times metrics, and the fixed part of each series. */
#define LOOM__VIEW_VALUES ((size_t)1 << 25)

/* Makes a view of one comparison, of one sweep or its shards, or of any number of results. The view points into the
 * documents. */
int loom__view_create(const struct loom__doc *doc, size_t docs, struct loom__view *view, struct loom_error *err);
void loom__view_free(struct loom__view *view);

/* Returns the levels of a factor as the head of a sweep lists them, or NULL. */
const cJSON *loom__view_values(const struct loom__view *view, size_t factor);

/* Lists the levels of a factor in the order of the sweep, at most `most`. Returns their number. */
size_t loom__factor_levels(const struct loom__view *view, size_t factor, const char **level, size_t most);

/* Returns 1 if the first device of a document is simulated, so that its samples are in virtual time. */
int loom__head_simulated(const cJSON *head);

double loom__view_value(const struct loom__variant *v, size_t metric, size_t row);

/* Returns the leading metric: `name` if not NULL, else the metric of the comparisons, else the first metric with a
 * direction. Returns LOOM__NO_NAME if there is none. */
size_t loom__view_leading(const struct loom__view *view, const char *name);
/* Chooses two metrics for a Pareto front. Returns 0 if no two are suitable. */
int loom__view_pair(const struct loom__view *view, size_t *x, size_t *y);
/* Sets front[v] to the place of variant v relative to the Pareto front of two metrics. A variant that lacks a metric is
 * LOOM__FRONT_OFF. Returns 0 or an error of loom__stats_pareto(). */
enum loom__front {
	LOOM__FRONT_OFF,  /* another variant dominates this variant, even by the intervals */
	LOOM__FRONT_NEAR, /* another variant dominates this variant by the medians, but not by the intervals */
	LOOM__FRONT_ON,   /* no other variant dominates this variant by the medians */
};
int loom__view_front(const struct loom__view *view, size_t x, size_t y, unsigned char *front);
int loom__view_more(const struct loom__view *view, size_t metric); /* returns 1 if more is better */
enum loom_better loom__better_named(const char *word);
/* Lists the variants that have the metric, best first if `sorted` is 1. The caller frees the list. */
size_t *loom__view_order(const struct loom__view *view, size_t metric, int sorted, size_t *n);
/* Returns the number of the factor or metric that has the name of the member, or LOOM__NO_NAME. */
size_t loom__view_number(const struct loom__names *names, const cJSON *member);
void loom__view_name_factor(struct loom__view *view, const char *name);
/* Adds all members of an object as factors. */
void loom__view_name_factors(struct loom__view *view, const cJSON *values);

/* Returns a counter of a worker in counted sample number `row`, or NaN if it is missing. */
double loom__view_counter(const cJSON *worker, const char *counter, size_t row);
/* Returns the number of the counted sample whose time is nearest to the median. If no sample has a time, returns the
 * number of the last sample. Returns SIZE_MAX if there are no samples. */
size_t loom__view_typical(const struct loom__view *view, const struct loom__variant *v);

/* view_*.c: these functions read documents, one for each schema. */
void loom__view_add_results(struct loom__view *view);
void loom__view_add_compare(struct loom__view *view);
void loom__view_add_sweep(struct loom__view *view);
/* Finds or adds a metric. Unit and direction (NULL: not given) must be the same everywhere in a view. For messages,
 * `where` names the source: by a name or, if that is missing, by the values of a configuration. */
struct loom__where {
	const char *name;
	const cJSON *values;
};
size_t loom__view_metric(struct loom__view *view, const char *name, const char *unit, const char *better,
			 const struct loom__where *where);
/* loom__view_rows() allocates rows and empty series of a variant. loom__view_room() allocates the values of a series,
 * all NaN. If there are more values than the limit allows, both functions set view->too_large. */
void loom__view_rows(struct loom__view *view, struct loom__variant *v, size_t rows);
void loom__view_room(struct loom__view *view, struct loom__series *s, size_t rows);
/* Sorts the values of a metric. Call it when all values have been read. */
void loom__view_finish(struct loom__view *view, size_t metric);
double *loom__view_numbers(struct loom__view *view, size_t n); /* returns n NaNs; NULL beyond the limit */
/* loom__view_name_metrics() adds the metrics of a gpuloom.result/1. loom__view_fill() fills a variant from a
 * gpuloom.result/1. */
void loom__view_name_metrics(struct loom__view *view, const cJSON *result, const char *where);
void loom__view_fill(struct loom__view *view, struct loom__variant *v, const cJSON *result);
/* Returns a number, text or boolean as text in the arena. Returns NULL for lists and objects. */
const char *loom__view_scalar(struct loom__view *view, const cJSON *item);
/* Returns the levels of a variant as text in the arena: "a, b". */
const char *loom__view_levels(struct loom__view *view, const struct loom__variant *v, int with_keys);

#endif
