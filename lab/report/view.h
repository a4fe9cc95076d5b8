/* SPDX-License-Identifier: Apache-2.0 */
/* What all reports show, independent of the schema: variants with their samples, comparisons, factors. Values are
 * checked and finite; strings are still untrusted. */
#ifndef LOOM_VIEW_H
#define LOOM_VIEW_H

#include "run/result.h"
#include "report/document.h"
#include "report/pool.h"
#include "stats/stats.h"

struct loom__view_metric {
	const char *name, *unit, *unit_of; /* unit_of: the first place that gives the unit */
	enum loom_better better;
	int shown; /* 1: some sample is not 0. Metrics of mechanisms that took no part are not listed */
};

/* One metric of one variant. */
struct loom__series {
	double *value;  /* [rows] in run order; NaN: the sample has no value */
	size_t rows;    /* at most variant->rows */
	double *sorted; /* [n]: the finite values */
	size_t n;
	struct loom__stats_interval median; /* with the 95 % interval; valid when n > 0 */
};

/* A result, a variant of a comparison, or a configuration of a sweep. */
struct loom__variant {
	const char *label;   /* short, never empty */
	const char *name;    /* the full name: the levels of the factors, or the file */
	const char *status;  /* "ok", ..., "skipped" */
	const char *note;    /* the error or the reason for skipping; "": none */
	const char **level;  /* [factors]: the level as text; NULL: not given */
	const cJSON *result; /* the variant's gpuloom.result/1, or NULL */
	size_t rows;
	double *order, *start_ns;    /* [rows]: place in the run order from 0; start may be NaN */
	struct loom__series *series; /* [metrics] */
	size_t warmups;              /* number of executions that do not count */
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
	size_t baseline, variant; /* always valid */
	double effect, low, high; /* ratio to the baseline; NaN: unknown or unbounded */
	double p, p_holm, margin, blocks, more_blocks;
	enum loom__verdict verdict;
	const char *word, *notes;
	double *ratio; /* [blocks]; NaN: missing */
	size_t ratios;
};

struct loom__view {
	struct loom__pool pool;
	enum loom__doc_kind kind;
	const struct loom__doc *doc; /* [docs]; belongs to the caller */
	size_t docs;
	const cJSON *head; /* command, environment, warnings etc. of the first document */
	cJSON *own;        /* the head of a sweep, assembled from its lines; or NULL */
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
	size_t values; /* number of values so far, at most LOOM__VIEW_VALUES */
	int too_large; /* the number of values exceeds the limit */
	const char *clash; /* the error message for a metric with two units or directions, or NULL */
};

/* Further metrics are counted, but not read. */
#define LOOM__VIEW_METRICS 200
#define LOOM__VIEW_FACTORS 32
/* Bounds the memory of a view: samples times metrics, and the fixed part of each series. */
#define LOOM__VIEW_VALUES ((size_t)1 << 25)

/* Makes a view of one comparison, one sweep or its shards, or any number of results. It points into them. */
int loom__view_create(const struct loom__doc *doc, size_t docs, struct loom__view *view,
		      struct loom_error *err);
void loom__view_free(struct loom__view *view);

/* Returns the levels of a factor as the head of a sweep lists them, or NULL. */
const cJSON *loom__view_values(const struct loom__view *view, size_t factor);

double loom__view_value(const struct loom__variant *v, size_t metric, size_t row);

/* Returns the leading metric: `name` if not NULL, else the first one with a direction. LOOM__NO_NAME: none. */
size_t loom__view_leading(const struct loom__view *view, const char *name);
/* Chooses two metrics that form a useful Pareto front. Returns 0 if there are none. */
int loom__view_pair(const struct loom__view *view, size_t *x, size_t *y);
/* Fills front[variants] with the place of each variant relative to the Pareto front of two metrics. Variants that lack
 * a metric are OFF. Returns 0 or an error of loom__stats_pareto(). */
enum loom__front {
	LOOM__FRONT_OFF,  /* dominated by intervals */
	LOOM__FRONT_NEAR, /* dominated by medians, but the intervals overlap */
	LOOM__FRONT_ON,	  /* no other median dominates the variant */
};
int loom__view_front(const struct loom__view *view, size_t x, size_t y, unsigned char *front);
int loom__view_more(const struct loom__view *view, size_t metric); /* returns 1 if more is better */
enum loom_better loom__better_named(const char *word);
/* Lists the variants that have the metric, best first if `sorted`. The caller frees the list. */
size_t *loom__view_order(const struct loom__view *view, size_t metric, int sorted, size_t *n);
/* Returns the number of a factor or metric by the name of a member, or LOOM__NO_NAME. */
size_t loom__view_number(const struct loom__names *names, const cJSON *member);
void loom__view_name_factor(struct loom__view *view, const char *name);
/* Adds all members of an object as factors. */
void loom__view_name_factors(struct loom__view *view, const cJSON *values);

/* Returns a counter of a worker in a counted sample; NaN if missing. */
double loom__view_counter(const cJSON *worker, const char *counter, size_t row);
/* Returns the counted sample whose time is nearest to the median; SIZE_MAX if there is none. */
size_t loom__view_typical(const struct loom__view *view, const struct loom__variant *v);

/* view_*.c: one reader per schema. */
void loom__view_add_results(struct loom__view *view);
void loom__view_add_compare(struct loom__view *view);
void loom__view_add_sweep(struct loom__view *view);
/* For the readers: finds or adds a metric. Unit and direction, NULL if not given, must agree within a view. `where`
 * names the source: a name, or else the values of a configuration. */
struct loom__where {
	const char *name;
	const cJSON *values;
};
size_t loom__view_metric(struct loom__view *view, const char *name, const char *unit, const char *better,
			 const struct loom__where *where);
/* Allocates rows and empty series of a variant; the values of a series, all NaN. Beyond the limit the view is too
 * large. */
void loom__view_rows(struct loom__view *view, struct loom__variant *v, size_t rows);
void loom__view_room(struct loom__view *view, struct loom__series *s, size_t rows);
/* Sorts the values of a metric once all are read. */
void loom__view_finish(struct loom__view *view, size_t metric);
double *loom__view_numbers(struct loom__view *view, size_t n); /* returns n times NaN; NULL beyond the limit */
/* Adds the metrics of a gpuloom.result/1, and fills a variant from it. */
void loom__view_name_metrics(struct loom__view *view, const cJSON *result, const char *where);
void loom__view_fill(struct loom__view *view, struct loom__variant *v, const cJSON *result);
/* Returns a scalar as text in the pool; NULL for lists and objects. */
const char *loom__view_scalar(struct loom__view *view, const cJSON *item);
/* Returns the levels of the factors, as "a, b" in the pool. */
const char *loom__view_levels(struct loom__view *view, const struct loom__variant *v,
			      int with_keys);

#endif
